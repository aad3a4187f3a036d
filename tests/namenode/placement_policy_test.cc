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
