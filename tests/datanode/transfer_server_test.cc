#include "datanode/transfer/transfer_server.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.h"
#include "common/status.h"
#include "tests/datanode/transfer_harness.h"

namespace cairn::datanode {
namespace {

class TransferServerTest : public TransferTest {
 protected:
  TransferServerTest() : TransferTest(2) {}

  std::string Token(const v1::BlockTokenKey& key, GenerationStamp stamp, uint8_t modes) {
    BlockTokenClaims claims;
    claims.pool_id = kPool;
    claims.block = block_;
    claims.stamp = stamp;
    claims.modes = modes;
    claims.expires_ms = absl::ToUnixMillis(world().clock().WallNow() + absl::Hours(1));
    return SealBlockToken(key, claims);
  }
  hdfs::BlockOpResponseProto AnswerTo(transfer::Opcode opcode, const google::protobuf::MessageLite& op) {
    const std::unique_ptr<TestPeer> peer = Connect(0);
    EXPECT_TRUE(peer->Write(transfer::EncodeOperation(opcode, op)).ok());
    hdfs::BlockOpResponseProto answer;
    const absl::Status read = peer->Read(&answer);
    EXPECT_TRUE(read.ok()) << read;
    return answer;
  }

  // As many as there may be, each of a block of its own; the next block is nobody's yet.
  std::vector<std::unique_ptr<TestPeer>> StartWithAllStreamsOpen(size_t max_streams) {
    TransferOptions options;
    options.max_streams = max_streams;
    StartNodes(options);
    std::vector<std::unique_ptr<TestPeer>> open;
    for (size_t i = 0; i < max_streams; ++i) {
      open.push_back(OpenPipeline({0}));
      NextBlock();
    }
    return open;
  }

  static constexpr uint8_t kRead = static_cast<uint8_t>(TokenMode::kRead);
  static constexpr uint8_t kWrite = static_cast<uint8_t>(TokenMode::kWrite);
  v1::BlockTokenKey key_ = NewBlockTokenKey(1, std::string(32, 'k'), INT64_MAX);
};

TEST_F(TransferServerTest, GarbageCostsItsSenderOnly) {
  StartNodes({});
  const std::unique_ptr<TestPeer> writer = OpenPipeline({0, 1});
  const std::vector<std::string> garbage = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      std::string("\xde\xad\xbe\xef", 4),
      std::string(100'000, '\0'),
      std::string("\x00\x1c\x01", 3),                          // No such operation.
      std::string("\x00\x1c\x50\xff\xff\xff\xff\xff\xff", 9),  // An endless length.
      std::string("\x00\x1c\x51\xff\xff\x7f", 6),              // 2 MiB of header.
      std::string("\x00\x1c\x50\x03garb", 7),                  // Not a message.
      std::string("\x00\x1c\x51\x00", 4),                      // A message without its required fields.
  };
  for (const std::string& bytes : garbage) {
    const std::unique_ptr<TestPeer> peer = Connect(0);
    IgnoreError(peer->Write(bytes), "the node may close while it is sent");
    EXPECT_TRUE(peer->AtEnd(absl::Seconds(1)));
  }
  EXPECT_EQ(node(0).server->counters().bad_requests.load(), garbage.size());
  ASSERT_TRUE(writer->Write(Frame(Pattern(512), 0, 0) + LastFrame(512, 1)).ok());
  EXPECT_TRUE(writer->ReadAck().ok());
  EXPECT_TRUE(writer->ReadAck().ok());
}

TEST_F(TransferServerTest, GarbageInTheMiddleOfAStreamEndsThatStream) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1});
  ASSERT_TRUE(peer->Write(Frame(Pattern(512), 0, 0)).ok());
  ASSERT_TRUE(peer->ReadAck().ok());
  IgnoreError(peer->Write(std::string(50'000, '\xee')), "the node may close while it is sent");
  EXPECT_TRUE(peer->AtEnd(absl::Seconds(5)));
  world().RunFor(absl::Seconds(1));
  EXPECT_EQ(node(1).server->counters().active_streams.load(), 0u);
  ExpectReplica(1, ReplicaState::kRbw, Pattern(512));
}

TEST_F(TransferServerTest, OperationsOfHdfsThatAreNotOursAreRefusedInWords) {
  StartNodes({});
  const hdfs::BlockOpResponseProto answer = AnswerTo(transfer::Opcode::kRequestShortCircuitFds, ReadOp(0, 0).header().baseheader());
  EXPECT_EQ(answer.status(), hdfs::ERROR_UNSUPPORTED);
  EXPECT_NE(answer.message(), "");
}

TEST_F(TransferServerTest, AConnectionServesReadsUntilItIsIdle) {
  StartNodes({});
  WriteBlock({0}, Pattern(1000));
  const std::unique_ptr<TestPeer> peer = Connect(0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ReadOver(peer.get(), ReadOp(0, 1000)).status.ok());
    world().RunFor(absl::Seconds(3));
  }
  EXPECT_TRUE(peer->AtEnd(absl::Seconds(2)));
}

TEST_F(TransferServerTest, ASilentConnectionIsClosed) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = Connect(0);
  world().RunFor(absl::Seconds(59));
  EXPECT_EQ(node(0).server->counters().connections.load(), 1u);
  EXPECT_TRUE(peer->AtEnd(absl::Seconds(2)));
}

TEST_F(TransferServerTest, MoreStreamsThanTheLimitAreToldToComeBack) {
  std::vector<std::unique_ptr<TestPeer>> open = StartWithAllStreamsOpen(2);
  const hdfs::BlockOpResponseProto busy = AnswerTo(transfer::Opcode::kWriteBlock, WriteOp({0}));
  EXPECT_EQ(KindOf(transfer::StatusOfResponse(busy, "dn1")), ErrorKind::kBusy);
  EXPECT_NE(busy.message().find("dfs.datanode.max.transfer.threads"), std::string::npos);
  EXPECT_EQ(node(0).server->counters().refused_busy.load(), 1u);
  open.front().reset();
  world().RunFor(absl::Seconds(1));
  const std::unique_ptr<TestPeer> third = OpenPipeline({0});
}

TEST_F(TransferServerTest, OneThatIsBeingRefusedHoldsNoStream) {
  std::vector<std::unique_ptr<TestPeer>> open = StartWithAllStreamsOpen(2);
  // Its operation does not come, so the refusal waits.
  const std::unique_ptr<TestPeer> refused = Connect(0);
  ASSERT_TRUE(refused->Write(transfer::EncodeOperation(transfer::Opcode::kWriteBlock, WriteOp({0})).substr(0, 3)).ok());
  world().RunFor(absl::Milliseconds(100));
  EXPECT_EQ(node(0).server->counters().refused_busy.load(), 1u);
  open.front().reset();
  world().RunFor(absl::Seconds(1));
  const std::unique_ptr<TestPeer> third = OpenPipeline({0});
  EXPECT_EQ(node(0).server->counters().active_streams.load(), 2u);
}

TEST_F(TransferServerTest, MoreConnectionsThanTheLimitAreToldSoAndNotCut) {
  const std::vector<std::unique_ptr<TestPeer>> open = StartWithAllStreamsOpen(1);
  const std::unique_ptr<TestPeer> idle = Connect(0);
  world().RunFor(absl::Seconds(1));
  for (int i = 0; i < 10; ++i) {
    const hdfs::BlockOpResponseProto busy = AnswerTo(transfer::Opcode::kWriteBlock, WriteOp({0}));
    EXPECT_EQ(KindOf(transfer::StatusOfResponse(busy, "dn1")), ErrorKind::kBusy) << busy.message();
    EXPECT_TRUE(busy.message().starts_with("BUSY: 3 connections are open, twice what dfs.datanode.max.transfer.threads (1) allows"))
        << busy.message();
    world().RunFor(absl::Milliseconds(100));
  }
  EXPECT_EQ(node(0).server->counters().refused_busy.load(), 10u);
  EXPECT_EQ(node(0).server->counters().connections.load(), 2u);
  // One that says nothing does not stay.
  const std::unique_ptr<TestPeer> silent = Connect(0);
  EXPECT_TRUE(silent->AtEnd(absl::Seconds(6)));
}

TEST_F(TransferServerTest, TheLimitOfStreamsMayChangeWhileTheyRun) {
  const std::vector<std::unique_ptr<TestPeer>> open = StartWithAllStreamsOpen(1);
  EXPECT_EQ(KindOf(transfer::StatusOfResponse(AnswerTo(transfer::Opcode::kWriteBlock, WriteOp({0})), "dn1")), ErrorKind::kBusy);
  node(0).server->SetMaxStreams(2);
  const std::unique_ptr<TestPeer> second = OpenPipeline({0});
  NextBlock();
  node(0).server->SetMaxStreams(1);  // Those that are open stay.
  const hdfs::BlockOpResponseProto busy = AnswerTo(transfer::Opcode::kWriteBlock, WriteOp({0}));
  EXPECT_EQ(KindOf(transfer::StatusOfResponse(busy, "dn1")), ErrorKind::kBusy);
  EXPECT_NE(busy.message().find("dfs.datanode.max.transfer.threads (1) allows"), std::string::npos) << busy.message();
  EXPECT_EQ(node(0).server->counters().active_streams.load(), 2u);
}

TEST_F(TransferServerTest, BusyDownstreamIsTheFirstBadLink) {
  TransferOptions options;
  options.max_streams = 1;
  StartNodes(options);
  const std::unique_ptr<TestPeer> first = OpenPipeline({1});
  NextBlock();
  const hdfs::BlockOpResponseProto busy = AnswerTo(transfer::Opcode::kWriteBlock, WriteOp({0, 1}));
  EXPECT_EQ(KindOf(transfer::StatusOfResponse(busy, "dn1")), ErrorKind::kBusy) << busy.message();
  EXPECT_EQ(busy.firstbadlink(), node(1).link());
}

TEST_F(TransferServerTest, TokensAreChecked) {
  StartNodes({});
  for (size_t i = 0; i < 2; ++i) node(i).tokens->SetKeys({key_});
  token_ = Token(key_, kStamp, kRead);
  EXPECT_EQ(AnswerTo(transfer::Opcode::kWriteBlock, WriteOp({0, 1})).status(), hdfs::ERROR_ACCESS_TOKEN);
  token_ = Token(key_, GenerationStamp(1000), kWrite);
  EXPECT_EQ(AnswerTo(transfer::Opcode::kWriteBlock, WriteOp({0, 1})).status(), hdfs::ERROR_ACCESS_TOKEN);
  token_ = Token(key_, kStamp, kWrite);
  WriteBlock({0, 1}, Pattern(100));
  EXPECT_EQ(KindOf(ReadBlock(0, 0, 100).status), ErrorKind::kAccessToken);
  token_ = Token(key_, kStamp, kRead);
  EXPECT_TRUE(ReadBlock(1, 0, 100).status.ok());
  token_[50] = static_cast<char>(token_[50] ^ 1);
  EXPECT_EQ(KindOf(ReadBlock(1, 0, 100).status), ErrorKind::kAccessToken);
}

TEST_F(TransferServerTest, ARecoveryNeedsATokenOfTheNewStamp) {
  StartNodes({});
  for (size_t i = 0; i < 2; ++i) node(i).tokens->SetKeys({key_});
  token_ = Token(key_, kStamp, kWrite);
  std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1});
  hdfs::OpWriteBlockProto op = WriteOp({0}, hdfs::OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY);
  op.set_latestgenerationstamp(1002);
  EXPECT_EQ(AnswerTo(transfer::Opcode::kWriteBlock, op).status(), hdfs::ERROR_ACCESS_TOKEN);
  token_ = Token(key_, GenerationStamp(1002), kWrite);
  op = WriteOp({0}, hdfs::OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY);
  op.set_latestgenerationstamp(1002);
  EXPECT_EQ(AnswerTo(transfer::Opcode::kWriteBlock, op).status(), hdfs::SUCCESS);
}

TEST_F(TransferServerTest, AKeyThatIsOnItsWayIsWaitedFor) {
  StartNodes({});
  token_ = Token(key_, kStamp, kWrite);
  const std::unique_ptr<TestPeer> peer = Connect(0);
  ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kWriteBlock, WriteOp({0}))).ok());
  world().RunFor(absl::Seconds(2));
  node(0).tokens->SetKeys({key_});
  hdfs::BlockOpResponseProto answer;
  ASSERT_TRUE(peer->Read(&answer, absl::Seconds(1)).ok());
  EXPECT_EQ(answer.status(), hdfs::SUCCESS);
  const v1::BlockTokenKey unknown = NewBlockTokenKey(9, std::string(32, 'x'), INT64_MAX);
  token_ = Token(unknown, kStamp, kWrite);
  EXPECT_EQ(AnswerTo(transfer::Opcode::kWriteBlock, WriteOp({0})).status(), hdfs::ERROR_ACCESS_TOKEN);
}

TEST_F(TransferServerTest, APortInUseIsAnErrorThatNamesIt) {
  StartNodes({});
  TransferServer second(node(0).process, node(0).store.get(), node(0).tokens.get(), {});
  HostPort bind;
  bind.host = "0.0.0.0";
  bind.port = 9866;
  const absl::Status status = second.Start(bind);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("9866"), std::string::npos) << status;
}

TEST_F(TransferServerTest, ANodeWithoutAClusterSaysSo) {
  StartNodes({});
  node(0).server->SetPool("");
  const hdfs::BlockOpResponseProto answer = AnswerTo(transfer::Opcode::kWriteBlock, WriteOp({0}));
  EXPECT_EQ(answer.status(), hdfs::ERROR);
  EXPECT_NE(answer.message().find("registered"), std::string::npos);
}

}  // namespace
}  // namespace cairn::datanode
