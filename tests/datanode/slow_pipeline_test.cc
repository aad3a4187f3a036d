// Which node of a pipeline is found slow, by whom, and what acknowledgements say of it.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/datanode/transfer_harness.h"

namespace cairn::datanode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SlowPipelineTest : public TransferTest {
 protected:
  SlowPipelineTest() : TransferTest(4) {}

  void SetLink(size_t a, size_t b, const testing::SimLinkOptions& link) {
    world().network().SetLink(node(a).machine, node(b).machine, link);
  }
  // Slow whichever way.
  void Delay(size_t slow, absl::Duration latency) {
    testing::SimLinkOptions link;
    link.latency = latency;
    for (size_t other = 0; other < 4; ++other)
      if (other != slow) SetLink(slow, other, link);
  }
  void WriteBlocks(const std::vector<size_t>& chain, int count, size_t size = 3000) {
    for (int i = 0; i < count; ++i) {
      WriteBlock(chain, Pattern(size));
      NextBlock();
    }
  }
  std::vector<std::string> SlowFor(size_t i) {
    std::vector<std::string> slow;
    for (const v1::SlowPeer& peer : node(i).server->peers().Slow(world().Now())) slow.push_back(peer.datanode_uuid());
    return slow;
  }
  absl::Duration Longest(size_t i) { return node(i).server->peers().Longest(PeerLatency::Kind::kData, world().Now()); }
};

TEST_F(SlowPipelineTest, TheSlowNodeIsBlamedAtTheEndAndNoneBeforeIt) {
  StartNodes({});
  Delay(2, absl::Milliseconds(100));
  WriteBlocks({0, 1, 2}, 10);
  EXPECT_EQ(Longest(0), absl::ZeroDuration());
  EXPECT_THAT(Longest(1), ::testing::Ge(absl::Milliseconds(200)));
  WriteBlocks({1, 0, 2}, 10);
  WriteBlocks({0, 3}, 10);
  WriteBlocks({1, 3}, 10);
  EXPECT_THAT(SlowFor(0), ElementsAre("dn3"));
  EXPECT_THAT(SlowFor(1), ElementsAre("dn3"));
  // For the slow node all others are as slow as it is itself.
  WriteBlocks({2, 0}, 10);
  WriteBlocks({2, 1}, 10);
  EXPECT_THAT(Longest(2), ::testing::Ge(absl::Milliseconds(200)));
  EXPECT_THAT(SlowFor(2), IsEmpty());
}

// A node in the middle seems to do nothing of its own: beside such, whoever is at the end would seem slow.
TEST_F(SlowPipelineTest, TheEndOfAChainIsNotComparedWithTheMiddleOfOthers) {
  StartNodes({});
  Delay(3, absl::Milliseconds(30));
  WriteBlocks({0, 1, 3}, 20);
  WriteBlocks({0, 2, 3}, 20);
  WriteBlocks({1, 0, 3}, 20);
  EXPECT_THAT(Longest(0), ::testing::Ge(absl::Milliseconds(60)));
  EXPECT_THAT(SlowFor(0), IsEmpty());
  // Beside other ends it is.
  WriteBlocks({1, 0, 2}, 20);
  EXPECT_THAT(SlowFor(0), ElementsAre("dn4"));
}

TEST_F(SlowPipelineTest, OnlyClosesWithASyncAreMeasured) {
  StartNodes({});
  Delay(1, absl::Milliseconds(30));
  const auto close = [&](bool sync) {
    for (int i = 0; i < 10; ++i) {
      hdfs::OpWriteBlockProto op = WriteOp({0, 1});
      op.set_cairnsynconclose(sync);
      const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1}, op);
      EXPECT_TRUE(peer->Write(Frame(Pattern(1000), 0, 0)).ok());
      EXPECT_TRUE(peer->ReadAck().ok());
      EXPECT_TRUE(peer->Write(LastFrame(1000, 1)).ok());
      EXPECT_TRUE(peer->ReadAck().ok());
      NextBlock();
    }
    return node(0).server->peers().Longest(PeerLatency::Kind::kClose, world().Now());
  };
  EXPECT_EQ(close(false), absl::ZeroDuration());
  EXPECT_THAT(close(true), ::testing::Ge(absl::Milliseconds(60)));
}

TEST_F(SlowPipelineTest, ANodeThatIsPushedBackOnIsNotBlamedForIt) {
  TransferOptions options;
  options.window_bytes = 128 << 10;
  StartNodes(options);
  testing::SimLinkOptions narrow;
  narrow.bytes_per_second = 1 << 20;
  SetLink(1, 2, narrow);
  // Most packets wait in front of the second node because its window is full of what the third does not take.
  WriteBlocks({0, 1, 2}, 10, 1 << 20);
  WriteBlocks({0, 3}, 10, 1 << 20);
  EXPECT_THAT(SlowFor(0), IsEmpty());
  EXPECT_THAT(Longest(0), ::testing::Lt(absl::Milliseconds(10)));
  EXPECT_THAT(Longest(1), ::testing::Ge(absl::Milliseconds(50)));
}

TEST_F(SlowPipelineTest, AcknowledgementsSayWhatTheNodesDownstreamTook) {
  StartNodes({});
  Delay(1, absl::Milliseconds(50));
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1});
  ASSERT_TRUE(peer->Write(Frame(Pattern(1000), 0, 0)).ok());
  const absl::StatusOr<transfer::PipelineAck> ack = peer->ReadAck();
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_THAT(ack->downstream_time, ::testing::Ge(absl::Milliseconds(100)));
  EXPECT_THAT(ack->downstream_time, ::testing::Lt(absl::Milliseconds(110)));
  ASSERT_TRUE(peer->Write(LastFrame(1000, 1)).ok());
  EXPECT_EQ(*peer->ReadAck(), AllGood(1, 2));
}

TEST_F(SlowPipelineTest, ANodeSaysThatItIsSlowOnlyIfItIsToldAndMayTell) {
  TransferOptions options;
  options.tell_slow = true;
  StartNodes(options);
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  int64_t seqno = 0;
  const auto told = [&] {
    const auto at = static_cast<uint64_t>(seqno) * 100;
    EXPECT_TRUE(peer->Write(Frame(Pattern(at % kChunk + 100), at - at % kChunk, seqno)).ok());
    const absl::StatusOr<transfer::PipelineAck> ack = peer->ReadAck();
    EXPECT_TRUE(ack.ok() && ack->all_success()) << ack.status();
    ++seqno;
    return ack.ok() ? ack->slow_nodes : ~0ull;
  };
  EXPECT_EQ(told(), 0u);
  node(1).server->SetSlow(true);
  EXPECT_EQ(told(), 2u);
  node(2).server->SetSlow(true);
  node(0).server->SetSlow(true);
  EXPECT_EQ(told(), 7u);
  node(0).server->SetSlow(false);
  node(1).server->SetSlow(false);
  EXPECT_EQ(told(), 4u);
}

TEST_F(SlowPipelineTest, NoNodeSaysThatItIsSlowWithoutAThird) {
  TransferOptions options;
  options.tell_slow = true;
  StartNodes(options);
  for (size_t i = 0; i < 3; ++i) node(i).server->SetSlow(true);
  for (const std::vector<size_t>& chain : {std::vector<size_t>{0}, {0, 1}, {0, 1, 2}}) {
    const std::unique_ptr<TestPeer> peer = OpenPipeline(chain);
    ASSERT_TRUE(peer->Write(Frame(Pattern(100), 0, 0)).ok());
    const absl::StatusOr<transfer::PipelineAck> ack = peer->ReadAck();
    ASSERT_TRUE(ack.ok()) << ack.status();
    EXPECT_EQ(ack->slow_nodes, chain.size() < 3 ? 0u : 7u);
    NextBlock();
  }
}

TEST_F(SlowPipelineTest, ByDefaultNoNodeSaysThatItIsSlow) {
  StartNodes({});
  node(0).server->SetSlow(true);
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  ASSERT_TRUE(peer->Write(Frame(Pattern(100), 0, 0)).ok());
  const absl::StatusOr<transfer::PipelineAck> ack = peer->ReadAck();
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->slow_nodes, 0u);
}

}  // namespace
}  // namespace cairn::datanode
