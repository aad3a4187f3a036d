#include "namenode/replicas/placement_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "common/error.h"

namespace cairn::namenode {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// Storage i of host "h<i>", on rack "/r".
PlacementNode Node(uint64_t i, uint64_t remaining = 100 * kGiB, v1::NodeState state = v1::LIVE) {
  PlacementNode node;
  node.datanode_uuid = "u" + std::to_string(i);
  node.host = "h" + std::to_string(i);
  node.address = node.host + ":9866";
  node.rack = "/r";
  node.state = state;
  node.storages = {{StorageNumber(i), remaining}};
  return node;
}

PlacementRequest Request(uint32_t replication) {
  PlacementRequest request;
  request.replication = replication;
  request.block_size_bytes = kGiB / 8;
  return request;
}

std::vector<uint64_t> Numbers(const std::vector<StorageNumber>& storages) {
  std::vector<uint64_t> numbers;
  for (StorageNumber storage : storages) numbers.push_back(storage.value());
  return numbers;
}

void Exclude(PlacementRequest* request, const std::string& uuid, const std::string& reason) {
  v1::ExcludedNode node;
  node.set_datanode_uuid(uuid);
  node.set_reason(reason);
  request->excluded.push_back(node);
}

PlacementNode Used(uint64_t i, uint64_t percent) {
  PlacementNode node = Node(i, (100 - percent) * kGiB);
  node.storages[0].capacity_bytes = 100 * kGiB;
  return node;
}

PlacementNode Slow(uint64_t i, const std::string& rack = "/r") {
  PlacementNode node = Node(i);
  node.slow = true;
  node.rack = rack;
  return node;
}

TEST(PlaceBlock, ASlowNodeOnlyWhenNoOtherIsLeft) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const std::vector<PlacementNode> nodes = {Node(1), Slow(2), Node(3), Slow(4), Node(5)};
    EXPECT_THAT(Numbers(PlaceBlock(nodes, Request(3), &random).value()), ::testing::UnorderedElementsAre(1, 3, 5));
    const std::vector<uint64_t> four = Numbers(PlaceBlock(nodes, Request(4), &random).value());
    ASSERT_THAT(four, SizeIs(4));
    EXPECT_THAT(four[3], AnyOf(Eq(2u), Eq(4u)));
    EXPECT_THAT(Numbers(PlaceBlock(nodes, Request(5), &random).value()), SizeIs(5));
    // Slow, all of them: as if none were.
    EXPECT_THAT(Numbers(PlaceBlock({Slow(1), Slow(2), Slow(3)}, Request(3), &random).value()), SizeIs(3));
    // Better a slow one than one that is not heard.
    EXPECT_THAT(Numbers(PlaceBlock({Slow(1), Node(2, 100 * kGiB, v1::STALE)}, Request(1), &random).value()), ElementsAre(1));
  }
}

TEST(PlaceBlock, AWriterOnASlowNodeWritesElsewhereFirst) {
  Random random(1);
  PlacementRequest request = Request(2);
  request.client_host = "h2";
  EXPECT_THAT(Numbers(PlaceBlock({Node(1), Slow(2), Node(3)}, request, &random).value()), ::testing::UnorderedElementsAre(1, 3));
}

TEST(PlaceBlock, ASecondRackGoesBeforeSpeedAndAThirdCopyDoesNot) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    // The only other rack has slow nodes alone.
    const std::vector<PlacementNode> nodes = {Node(1), Node(2), Node(3), Slow(4, "/s"), Slow(5, "/s")};
    const std::vector<uint64_t> two = Numbers(PlaceBlock(nodes, Request(2), &random).value());
    EXPECT_THAT(two[1], AnyOf(Eq(4u), Eq(5u)));
    const std::vector<uint64_t> three = Numbers(PlaceBlock(nodes, Request(3), &random).value());
    EXPECT_THAT(three[2], AnyOf(Eq(1u), Eq(2u), Eq(3u)));
  }
}

TEST(PlaceBlock, NeverTheFullestWhileAnotherFits) {
  Random random(1);
  std::map<uint64_t, int> chosen;
  for (int i = 0; i < 100; ++i) {
    const auto targets = PlaceBlock({Used(1, 97), Used(2, 98), Used(3, 99)}, Request(1), &random);
    ASSERT_TRUE(targets.ok());
    ++chosen[(*targets)[0].value()];
  }
  EXPECT_EQ(chosen[3], 0);
  EXPECT_EQ(chosen[1], 100);
  const auto all = PlaceBlock({Used(1, 97), Used(2, 98), Used(3, 99)}, Request(3), &random);
  ASSERT_TRUE(all.ok());
  EXPECT_THAT(Numbers(*all), ElementsAre(1, 2, 3));  // All are needed.
  // Nor for the writer's own host, or for another rack.
  PlacementRequest local = Request(1);
  local.client_host = "h1";
  EXPECT_THAT(Numbers(*PlaceBlock({Used(1, 95), Used(2, 50)}, local, &random)), ElementsAre(2));
}

TEST(PlaceBlock, EquallyFullNodesShareWhatComes) {
  Random random(1);
  std::map<uint64_t, int> chosen;
  for (int i = 0; i < 300; ++i) ++chosen[(*PlaceBlock({Used(1, 95), Used(2, 95), Used(3, 95)}, Request(1), &random))[0].value()];
  for (uint64_t node = 1; node <= 3; ++node) EXPECT_GT(chosen[node], 60);
}

TEST(PlaceBlock, EmptierVolumeOfANodeTakesMostAndAFullOneNone) {
  Random random(1);
  PlacementNode node = Used(1, 10);
  node.storages.push_back({StorageNumber(11), 20 * kGiB, 100 * kGiB});
  std::map<uint64_t, int> chosen;
  for (int i = 0; i < 1000; ++i) ++chosen[(*PlaceBlock({node}, Request(1), &random))[0].value()];
  EXPECT_GE(chosen[1], 650);
  EXPECT_LE(chosen[1], 850);
  node.storages[1].remaining_bytes = 5 * kGiB;
  for (int i = 0; i < 100; ++i) EXPECT_EQ((*PlaceBlock({node}, Request(1), &random))[0].value(), 1u);
}

TEST(PlaceBlock, NodesThatLeaveAreNoTargets) {
  Random random(1);
  PlacementNode draining = Node(1), maintained = Node(2);
  draining.admin = v1::DECOMMISSIONED;
  maintained.admin = v1::ENTERING_MAINTENANCE;
  EXPECT_THAT(Numbers(*PlaceBlock({draining, maintained, Node(3)}, Request(3), &random)), ElementsAre(3));
  RejectionCounts counts{};
  const auto none = PlaceBlock({draining, maintained, Node(4, kGiB, v1::DEAD)}, Request(3), &random, &counts);
  EXPECT_EQ(ReasonOf(none.status()), "NO_LIVE_DATANODES");
  EXPECT_THAT(ErrorOf(none.status())->nodes, ElementsAre("h1:9866 DRAINING", "h2:9866 MAINTENANCE", "h4:9866 DEAD"));
  EXPECT_EQ(counts[static_cast<size_t>(Rejection::kDraining)], 1u);
  EXPECT_EQ(counts[static_cast<size_t>(Rejection::kMaintenance)], 1u);
  EXPECT_EQ(counts[static_cast<size_t>(Rejection::kDead)], 1u);
}

TEST(PlaceBlock, GivesEachCopyANodeOfItsOwn) {
  Random random(1);
  PlacementNode two_volumes = Node(1);
  two_volumes.storages.push_back({StorageNumber(11), 100 * kGiB});
  for (int i = 0; i < 50; ++i) {
    const auto targets = PlaceBlock({two_volumes, Node(2), Node(3)}, Request(3), &random);
    ASSERT_TRUE(targets.ok());
    ASSERT_THAT(*targets, SizeIs(3));
    EXPECT_EQ(Numbers(*targets).size() - static_cast<size_t>(std::count(targets->begin(), targets->end(), StorageNumber(1))) -
                  static_cast<size_t>(std::count(targets->begin(), targets->end(), StorageNumber(11))),
              2u);
  }
}

TEST(PlaceBlock, FewerNodesThanCopiesIsSuccess) {
  Random random(1);
  EXPECT_THAT(*PlaceBlock({Node(1), Node(2)}, Request(3), &random), SizeIs(2));
}

TEST(PlaceBlock, FirstCopyIsTheWritersOwn) {
  Random random(2);
  PlacementRequest request = Request(3);
  request.client_host = "h3";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(PlaceBlock({Node(1), Node(2), Node(3), Node(4)}, request, &random)->front(), StorageNumber(3));
  // But not where there is no room.
  EXPECT_NE(PlaceBlock({Node(1), Node(2), Node(3, kGiB / 16), Node(4)}, request, &random)->front(), StorageNumber(3));
}

TEST(PlaceBlock, SpreadsOverTwoRacksWhenItCan) {
  Random random(3);
  std::vector<PlacementNode> nodes = {Node(1), Node(2), Node(3), Node(4)};
  nodes[2].rack = nodes[3].rack = "/other";
  for (int i = 0; i < 50; ++i) {
    const auto targets = PlaceBlock(nodes, Request(3), &random);
    const auto rack = [](StorageNumber storage) { return storage.value() > 2; };
    EXPECT_NE(rack((*targets)[0]), rack((*targets)[1]));
    EXPECT_EQ(rack((*targets)[1]), rack((*targets)[2]));
  }
}

TEST(PlaceBlock, ARepairBringsABlockToASecondRack) {
  std::vector<PlacementNode> nodes = {Node(1), Node(2), Node(3), Node(4, 1000 * kGiB), Node(5)};
  nodes[2].rack = nodes[4].rack = "/other";
  PlacementRequest request = Request(1);
  request.holding = {"u1", "u2", "u3"};
  nodes[2].admin = v1::DECOMMISSIONING;  // The only copy on the other rack leaves.
  Random random(3);
  for (int i = 0; i < 50; ++i) EXPECT_THAT(Numbers(*PlaceBlock(nodes, request, &random)), ElementsAre(5));
  nodes[2].admin = v1::NODE_NORMAL;  // It stays: anywhere will do.
  std::map<uint64_t, int> chosen;
  for (int i = 0; i < 50; ++i) ++chosen[Numbers(*PlaceBlock(nodes, request, &random))[0]];
  EXPECT_GT(chosen[4], chosen[5]);
}

TEST(PlaceBlock, PrefersFreeSpaceAndIdleNodes) {
  Random random(4);
  std::map<uint64_t, int> chosen;
  PlacementNode busy = Node(2);
  busy.active_streams = 9;
  for (int i = 0; i < 2000; ++i) ++chosen[PlaceBlock({Node(1), busy, Node(3, 10 * kGiB)}, Request(1), &random)->front().value()];
  EXPECT_GT(chosen[1], 1500);  // Of 2000, 10 parts in 12.
  EXPECT_GT(chosen[2], 80);
  EXPECT_GT(chosen[3], 80);
}

TEST(PlaceBlock, StaleNodesComeLastButCome) {
  Random random(5);
  const std::vector<PlacementNode> nodes = {Node(1, 100 * kGiB, v1::STALE), Node(2), Node(3)};
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Numbers(*PlaceBlock(nodes, Request(2), &random)), ::testing::Not(Contains(1)));
    EXPECT_EQ(PlaceBlock(nodes, Request(3), &random)->back(), StorageNumber(1));
  }
}

TEST(PlaceBlock, SaysWhyThereIsNoTarget) {
  Random random(6);
  absl::Status none = PlaceBlock({}, Request(3), &random).status();
  EXPECT_EQ(KindOf(none), ErrorKind::kNoTargets);
  EXPECT_EQ(ReasonOf(none), "NO_LIVE_DATANODES");

  none = PlaceBlock({Node(1, kGiB, v1::DEAD)}, Request(3), &random).status();
  EXPECT_EQ(ReasonOf(none), "NO_LIVE_DATANODES");

  PlacementRequest excluded = Request(3);
  Exclude(&excluded, "u1", "CONNECT_TIMEOUT");
  Exclude(&excluded, "u2", "");
  none = PlaceBlock({Node(1), Node(2), Node(3, kGiB, v1::DEAD)}, excluded, &random).status();
  EXPECT_EQ(ReasonOf(none), "ALL_EXCLUDED");
  EXPECT_THAT(ErrorOf(none)->nodes, ElementsAre("h1:9866 EXCLUDED CONNECT_TIMEOUT", "h2:9866 EXCLUDED", "h3:9866 DEAD"));

  none = PlaceBlock({Node(1, kGiB / 16), Node(2, 0)}, Request(3), &random).status();
  EXPECT_EQ(ReasonOf(none), "NO_SPACE");
  EXPECT_THAT(std::string(none.message()), HasSubstr("no volume with room 2"));

  PlacementRequest holding = Request(1);
  holding.holding = {"u1"};
  EXPECT_EQ(ReasonOf(PlaceBlock({Node(1)}, holding, &random).status()), "ALL_HOLD_THE_BLOCK");
}

TEST(PlaceBlock, SameSeedSameTargets) {
  const std::vector<PlacementNode> nodes = {Node(1), Node(2), Node(3), Node(4), Node(5)};
  Random a(9), b(9);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(*PlaceBlock(nodes, Request(3), &a), *PlaceBlock(nodes, Request(3), &b));
}

}  // namespace
}  // namespace cairn::namenode
