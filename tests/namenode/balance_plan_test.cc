#include "namenode/replicas/balance_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kNoBound = UINT64_MAX;

BalanceNode Node(const std::string& uuid, uint64_t capacity, uint64_t used, const std::string& rack = "/r") {
  BalanceNode node;
  node.datanode_uuid = uuid;
  node.rack = rack;
  node.capacity_bytes = capacity;
  node.used_bytes = used;
  node.remaining_bytes = capacity - used;
  return node;
}

std::vector<std::string> Text(const BalancePlan& plan) {
  std::vector<std::string> pairs;
  for (const BalancePair& pair : plan.pairs) pairs.push_back(pair.source + ">" + pair.target + " " + std::to_string(pair.bytes));
  return pairs;
}

TEST(PlanBalance, NodesWithinTheThresholdAreLeftAlone) {
  const BalancePlan plan = PlanBalance({Node("a", 1000, 500), Node("b", 1000, 400), Node("c", 1000, 450)}, 0.1, kNoBound);
  EXPECT_DOUBLE_EQ(plan.mean, 0.45);
  EXPECT_EQ(plan.left_bytes, 0u);
  EXPECT_THAT(plan.pairs, IsEmpty());
  EXPECT_EQ(PlanBalance({}, 0.1, kNoBound).left_bytes, 0u);
  EXPECT_EQ(PlanBalance({Node("a", 1000, 900)}, 0.1, kNoBound).left_bytes, 0u);
}

TEST(PlanBalance, ShareNotBytesSaysWhoIsFull) {
  // The small node is the full one, though the large one has more bytes.
  const BalancePlan plan = PlanBalance({Node("large", 10'000, 2000), Node("small", 1000, 900)}, 0.1, kNoBound);
  ASSERT_THAT(plan.pairs, SizeIs(1));
  EXPECT_EQ(plan.pairs[0].source, "small");
  EXPECT_EQ(plan.pairs[0].target, "large");
  EXPECT_LE(plan.pairs[0].bytes, 900u - 263u);  // Down to the mean, 26.4 %.
}

TEST(PlanBalance, TheFullestGivesFirstAndTheEmptiestTakesFirst) {
  const BalancePlan plan =
      PlanBalance({Node("a", 1000, 700), Node("b", 1000, 900), Node("c", 1000, 200), Node("d", 1000, 0)}, 0.05, kNoBound);
  // The mean is 45 %: b has 450 to give, a 250; d may take 450, c 250.
  EXPECT_THAT(Text(plan), ElementsAre("b>d 450", "a>c 250"));
  EXPECT_EQ(plan.bytes(), 700u);
  EXPECT_EQ(plan.left_bytes, 600u);  // Each side, beyond the threshold: 400 + 200.
}

TEST(PlanBalance, NodesOffTheMeanHelpThoseBeyondTheThreshold) {
  // Only the new node is beyond the threshold; those above the mean give to it.
  const BalancePlan plan =
      PlanBalance({Node("a", 1000, 500), Node("b", 1000, 500), Node("c", 1000, 500), Node("new", 1000, 0)}, 0.2, kNoBound);
  EXPECT_THAT(Text(plan), ElementsAre("a>new 125", "b>new 125", "c>new 125"));
  EXPECT_EQ(plan.left_bytes, 175u);
  // And the other way round: those below the mean take from the one that is too full.
  const BalancePlan other =
      PlanBalance({Node("a", 1000, 100), Node("b", 1000, 100), Node("c", 1000, 100), Node("full", 1000, 900)}, 0.3, kNoBound);
  EXPECT_THAT(Text(other), ElementsAre("full>a 200", "full>b 200", "full>c 200"));
}

TEST(PlanBalance, BytesStayInTheirRackFirst) {
  const BalancePlan plan = PlanBalance(
      {Node("a", 1000, 800, "/1"), Node("b", 1000, 800, "/2"), Node("c", 1000, 0, "/2"), Node("d", 1000, 0, "/1")}, 0.1, kNoBound);
  EXPECT_THAT(Text(plan), ElementsAre("a>d 400", "b>c 400"));
}

TEST(PlanBalance, NoNodeTakesMoreThanItHasRoomForOrMovesMoreThanTheBound) {
  BalanceNode crowded = Node("crowded", 1000, 0);
  crowded.remaining_bytes = 50;  // Somebody else's files.
  EXPECT_THAT(Text(PlanBalance({Node("a", 1000, 1000), crowded}, 0.1, kNoBound)), ElementsAre("a>crowded 50"));
  EXPECT_THAT(Text(PlanBalance({Node("a", 1000, 1000), Node("b", 1000, 0)}, 0.1, 120)), ElementsAre("a>b 120"));
}

TEST(PlanBalance, WithoutAGiverThereAreBytesLeftAndNoPairs) {
  BalanceNode full = Node("a", 1000, 900);
  full.may_give = false;
  const BalancePlan plan = PlanBalance({full, Node("b", 1000, 0)}, 0.1, kNoBound);
  EXPECT_THAT(plan.pairs, IsEmpty());
  EXPECT_EQ(plan.left_bytes, 350u);
}

class NodesToBalanceTest : public ::testing::Test {
 protected:
  v1::DatanodeReport* Add(const std::string& host, uint64_t used) {
    v1::DatanodeReport* const node = report_.add_datanodes();
    node->mutable_info()->set_uuid("uuid-" + host);
    node->mutable_info()->mutable_transfer()->set_host(host);
    node->mutable_info()->mutable_transfer()->set_port(9866);
    node->set_state(v1::LIVE);
    v1::StorageStatistics* const storage = node->add_storages();
    storage->set_state(v1::HEALTHY);
    storage->set_capacity_bytes(1000);
    storage->set_used_bytes(used);
    storage->set_remaining_bytes(1000 - used);
    return node;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const BalanceNode& node : NodesToBalance(report_, request_)) names.push_back(node.datanode_uuid);
    return names;
  }
  v1::ClusterReportResponse report_;
  v1::BalanceRequest request_;
};

TEST_F(NodesToBalanceTest, DeadStaleAndAdministeredNodesTakeNoPart) {
  Add("good", 0);
  Add("dead", 0)->set_state(v1::DEAD);
  Add("stale", 0)->set_state(v1::STALE);
  Add("leaving", 0)->set_admin_state(v1::DECOMMISSIONING);
  Add("left", 0)->set_admin_state(v1::DECOMMISSIONED);
  Add("entering", 0)->set_admin_state(v1::ENTERING_MAINTENANCE);
  Add("resting", 0)->set_admin_state(v1::IN_MAINTENANCE);
  Add("stranger", 0)->set_not_allowed(true);
  Add("diskless", 0)->mutable_storages(0)->set_state(v1::FAILED);
  EXPECT_THAT(Names(), ElementsAre("uuid-good"));
}

TEST_F(NodesToBalanceTest, NamesAreUuidsHostsOrAddresses) {
  for (const char* host : {"a", "b", "c", "d"}) Add(host, 0);
  request_.add_exclude("b");
  EXPECT_THAT(Names(), ElementsAre("uuid-a", "uuid-c", "uuid-d"));
  request_.add_include("uuid-a");
  request_.add_include("c:9866");
  request_.add_include("b");
  request_.add_include("d:1");
  EXPECT_THAT(Names(), ElementsAre("uuid-a", "uuid-c"));
  request_.add_sources("c");
  const std::vector<BalanceNode> nodes = NodesToBalance(report_, request_);
  EXPECT_FALSE(nodes[0].may_give);
  EXPECT_TRUE(nodes[1].may_give);
}

TEST_F(NodesToBalanceTest, WhatWaitsToBeUnlinkedIsNotUsedAndAReadOnlyVolumeTakesNothing) {
  v1::DatanodeReport* const node = Add("a", 600);
  node->mutable_storages(0)->set_pending_deletion_bytes(500);
  v1::StorageStatistics second = node->storages(0);
  second.set_read_only(true);
  second.set_pending_deletion_bytes(10'000);
  *node->add_storages() = second;
  const std::vector<BalanceNode> nodes = NodesToBalance(report_, request_);
  ASSERT_THAT(nodes, SizeIs(1));
  EXPECT_EQ(nodes[0].used_bytes, 100u);
  EXPECT_EQ(nodes[0].capacity_bytes, 2000u);
  EXPECT_EQ(nodes[0].remaining_bytes, 400u);
}

}  // namespace
}  // namespace cairn::namenode
