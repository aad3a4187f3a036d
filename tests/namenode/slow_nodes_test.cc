#include "namenode/replicas/slow_nodes.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "namenode/replicas/datanode_registry.h"
#include "tests/namenode/hand_clock.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using testing::HandClock;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;

v1::SlowPeer Peer(const std::string& uuid, uint64_t latency_ms = 200, uint64_t oldest_ms = 1000) {
  v1::SlowPeer peer;
  peer.set_datanode_uuid(uuid);
  peer.set_latency_us(latency_ms * 1000);
  peer.set_limit_us(20'000);
  peer.set_oldest_sample_ms(oldest_ms);
  return peer;
}

class SlowNodesTest : public ::testing::Test {
 protected:
  explicit SlowNodesTest(size_t nodes = 12) {
    for (size_t i = 0; i < nodes; ++i) uuids_.push_back(fmt::format("n{:02}", i));
  }
  void Say(const std::string& reporter, const std::vector<v1::SlowPeer>& peers) {
    google::protobuf::RepeatedPtrField<v1::SlowPeer> all(peers.begin(), peers.end());
    slow_.Heard(reporter, all, now_);
  }
  std::set<std::string> Judge() {
    slow_.Judge({uuids_.begin(), uuids_.end()}, now_);
    return slow_.slow();
  }
  // As two others say.
  void FindN05Slow() {
    Say("n00", {Peer("n05")});
    Say("n01", {Peer("n05")});
    EXPECT_THAT(Judge(), ElementsAre("n05"));
  }

  std::vector<std::string> uuids_;
  SlowNodes slow_{SlowNodes::Options()};
  SteadyTime now_ = SteadyTime::FromStart(absl::Hours(1));
};

TEST_F(SlowNodesTest, TwoHaveToSaySo) {
  Say("n00", {Peer("n05")});
  EXPECT_THAT(Judge(), IsEmpty());
  EXPECT_THAT(slow_.WordsOn("n05"), SizeIs(1));
  Say("n00", {Peer("n05")});  // The same again is one voice.
  EXPECT_THAT(Judge(), IsEmpty());
  Say("n01", {Peer("n05"), Peer("n06")});
  EXPECT_THAT(Judge(), ElementsAre("n05"));
  EXPECT_THAT(slow_.WordsOn("n05"), SizeIs(2));
  SlowNodes::Options options;
  options.reporters = 3;
  slow_.SetOptions(options);
  now_ = now_ + absl::Seconds(31);
  EXPECT_THAT(Judge(), IsEmpty());
}

TEST_F(SlowNodesTest, AWordHoldsUntilTheNextOneAndTheNodeForHalfAMinuteMore) {
  FindN05Slow();
  now_ = now_ + absl::Minutes(10);
  EXPECT_THAT(Judge(), ElementsAre("n05"));
  Say("n00", {});
  now_ = now_ + SlowNodes::kHold;
  EXPECT_THAT(Judge(), ElementsAre("n05"));
  Say("n00", {Peer("n05")});  // At the limit: it does not come and go.
  EXPECT_THAT(Judge(), ElementsAre("n05"));
  Say("n00", {});
  Say("n01", {});
  now_ = now_ + SlowNodes::kHold + absl::Milliseconds(1);
  EXPECT_THAT(Judge(), IsEmpty());
}

TEST_F(SlowNodesTest, NeitherTheDeadNorWhatOneSaysOfItselfCounts) {
  Say("n00", {Peer("n05")});
  Say("n05", {Peer("n05")});
  Say("nobody", {Peer("n05")});
  EXPECT_THAT(Judge(), IsEmpty());
  Say("n01", {Peer("n05")});
  EXPECT_THAT(Judge(), ElementsAre("n05"));
  std::erase(uuids_, "n05");
  EXPECT_THAT(Judge(), IsEmpty());
  uuids_.push_back("n05");
  EXPECT_THAT(Judge(), ElementsAre("n05"));
  std::erase(uuids_, "n01");
  now_ = now_ + absl::Seconds(31);
  EXPECT_THAT(Judge(), IsEmpty());
}

TEST_F(SlowNodesTest, ARestartedNodeIsJudgedByItsNewProcess) {
  FindN05Slow();
  slow_.Restarted("n05", now_);
  now_ = now_ + absl::Seconds(10);
  Say("n00", {Peer("n05", 200, 60'000)});
  Say("n01", {Peer("n05", 200, 10'001)});
  EXPECT_THAT(Judge(), IsEmpty());
  EXPECT_THAT(slow_.WordsOn("n05"), IsEmpty());
  Say("n00", {Peer("n05", 200, 10'000)});
  Say("n01", {Peer("n05", 200, 9'000)});
  EXPECT_THAT(Judge(), ElementsAre("n05"));
  slow_.Forget("n05");
  EXPECT_THAT(slow_.slow(), IsEmpty());
}

TEST_F(SlowNodesTest, NoMoreThanAQuarterAreSlowTheOnesThatMostNameFirst) {
  // n04 is named by four, n05 by three, n06 and n07 by two, of which n07 is the slower.
  Say("n00", {Peer("n04"), Peer("n05"), Peer("n06"), Peer("n07", 900)});
  Say("n01", {Peer("n04"), Peer("n05"), Peer("n06"), Peer("n07", 300)});
  Say("n02", {Peer("n04"), Peer("n05")});
  Say("n03", {Peer("n04")});
  EXPECT_THAT(Judge(), ElementsAre("n04", "n05", "n07"));  // Of twelve.
  SlowNodes::Options options;
  options.most = 2;
  slow_.SetOptions(options);
  EXPECT_THAT(Judge(), ElementsAre("n04", "n05"));
  options.most = 0;
  slow_.SetOptions(options);
  EXPECT_THAT(Judge(), IsEmpty());
  options.most = 100;
  slow_.SetOptions(options);
  uuids_ = {"n00", "n01", "n02", "n04", "n05"};  // One of five; and of three too.
  EXPECT_THAT(Judge(), ElementsAre("n04"));
  uuids_ = {"n00", "n01", "n05"};
  EXPECT_THAT(Judge(), ElementsAre("n05"));
}

TEST_F(SlowNodesTest, AHeartbeatNamesNoMoreThanItMay) {
  std::vector<v1::SlowPeer> many;
  for (int i = 0; i < 1000; ++i) many.push_back(Peer(fmt::format("n{:02}", i % 12)));
  many.push_back(Peer(""));
  Say("n00", many);
  Say("n01", many);
  Judge();
  int words = 0;
  for (const std::string& uuid : uuids_) words += static_cast<int>(slow_.WordsOn(uuid).size());
  EXPECT_EQ(words, 2 * static_cast<int>(SlowNodes::kMostOfEach));
}

// --- what follows from it in the registry

class SlowInRegistryTest : public ::testing::Test {
 protected:
  SlowInRegistryTest() : registry_({"cluster", "pool", Epoch(5), absl::Seconds(15), absl::Seconds(60), {}}, &clock_) {
    for (uint64_t i = 1; i <= 4; ++i) Register(i, i);
  }
  void Register(uint64_t node, uint64_t incarnation) {
    v1::RegisterRequest request;
    request.set_datanode_uuid(fmt::format("u{}", node));
    request.set_incarnation(incarnation);
    request.mutable_info()->mutable_transfer()->set_host(fmt::format("h{}", node));
    request.mutable_info()->mutable_transfer()->set_port(9866);
    v1::StorageStatistics* storage = request.add_storages();
    storage->set_storage_uuid(fmt::format("s{}", node));
    storage->set_state(v1::HEALTHY);
    storage->set_remaining_bytes(1000);
    EXPECT_THAT(registry_.Register(request, {StorageNumber(node)}).status(), IsOk());
  }
  void Beat(uint64_t node, uint64_t incarnation, const std::vector<v1::SlowPeer>& peers) {
    v1::HeartbeatRequest request;
    request.set_datanode_uuid(fmt::format("u{}", node));
    request.set_incarnation(incarnation);
    for (const v1::SlowPeer& peer : peers) *request.add_slow_peers() = peer;
    bool new_storages = false;
    EXPECT_THAT(registry_.Heartbeat(request, &new_storages), IsOk());
  }
  bool Avoided(uint64_t node) {
    const std::vector<PlacementNode> nodes = registry_.PlacementNodes();
    const bool for_writes =
        std::any_of(nodes.begin(), nodes.end(), [&](const auto& n) { return n.slow && n.datanode_uuid == fmt::format("u{}", node); });
    EXPECT_EQ(registry_.HealthOf(StorageNumber(node), "", "")->slow, for_writes);
    return for_writes;
  }

  HandClock clock_;
  DatanodeRegistry registry_;
};

TEST_F(SlowInRegistryTest, ASlowNodeIsAvoidedShownAndTold) {
  Beat(1, 1, {Peer("u3")});
  Beat(2, 2, {Peer("u3", 300)});
  EXPECT_FALSE(Avoided(3));  // Not before the next sweep.
  registry_.Sweep();
  EXPECT_TRUE(Avoided(3));
  EXPECT_FALSE(Avoided(1));
  EXPECT_TRUE(registry_.IsSlow("u3"));
  EXPECT_FALSE(registry_.IsSlow("u1"));
  EXPECT_FALSE(registry_.IsSlow("unheard of"));
  v1::ClusterReportResponse report;
  registry_.FillReport(&report);
  EXPECT_TRUE(report.datanodes(2).slow());
  ASSERT_EQ(report.datanodes(2).found_slow_size(), 2);
  EXPECT_EQ(report.datanodes(2).found_slow(1).by(), "h2:9866");
  EXPECT_EQ(report.datanodes(2).found_slow(1).what().latency_us(), 300'000u);
  EXPECT_FALSE(report.datanodes(1).slow());

  SlowNodes::Options options;
  options.avoid = false;
  registry_.SetSlowNodes(options);
  EXPECT_FALSE(Avoided(3));
  EXPECT_TRUE(registry_.IsSlow("u3"));  // It is still shown.
}

TEST_F(SlowInRegistryTest, ANewProcessIsNotSlowAndASilentReporterIsNotHeard) {
  Beat(1, 1, {Peer("u3")});
  Beat(2, 2, {Peer("u3")});
  registry_.Sweep();
  EXPECT_TRUE(Avoided(3));
  Register(3, 33);
  EXPECT_FALSE(Avoided(3));
  registry_.Sweep();
  EXPECT_FALSE(Avoided(3));
  clock_.now = clock_.now + absl::Seconds(10);
  Beat(1, 1, {Peer("u3", 200, 9'000)});
  Beat(2, 2, {Peer("u3", 200, 9'000)});
  Beat(3, 33, {});
  registry_.Sweep();
  EXPECT_TRUE(Avoided(3));
  Register(3, 33);  // The same process again: after a volume came, say.
  EXPECT_TRUE(Avoided(3));
  for (int i = 0; i < 5; ++i) {
    clock_.now = clock_.now + absl::Seconds(10);
    Beat(3, 33, {});
    registry_.Sweep();
  }
  EXPECT_FALSE(Avoided(3));  // Those that found it so have been silent.
}

}  // namespace
}  // namespace cairn::namenode
