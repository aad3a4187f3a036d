// Looks at blocks that are to be copied, through a whole replica plane: how long they are, and those that bring a block to a second rack.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/namenode/replica_cluster.h"

namespace cairn::namenode::testing {
namespace {

// However many blocks there are that nothing can be done for, and however many nodes are considered for each.
TEST(RepairLooks, LooksThatStartNothingAreShortSteps) {
  constexpr size_t kNodes = 200;
  constexpr size_t kBlocks = 600;
  constexpr size_t kOfAStep = 10'000 / kNodes;
  ReplicaCluster cluster(kNodes);
  for (const auto& node : cluster.nodes) node->remaining_bytes = 10;  // No room for anything.
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  cluster.plane->SetSafeMode(true);
  for (size_t i = 0; i < kBlocks; ++i) cluster.Write({i % kNodes}, 2);
  cluster.Settle();
  ASSERT_EQ(cluster.plane->figures().repairs_waiting, kBlocks);
  const auto parked = [&cluster] {
    v1::ListBadBlocksRequest request;
    request.set_kind(v1::ListBadBlocksRequest::PARKED);
    std::optional<int> count;
    cluster.plane->ListBadBlocks(
        request, [&count](const absl::StatusOr<v1::ListBadBlocksResponse>& answer) { count = answer.ok() ? answer->blocks_size() : -1; });
    cluster.world.RunUntil([&count] { return count.has_value(); }, absl::Seconds(1));
    return static_cast<size_t>(count.value_or(0));
  };
  cluster.plane->SetSafeMode(false);
  size_t most = 0, before = 0;
  for (int i = 0; i < 2000 && before < kBlocks; ++i) {
    cluster.world.RunFor(absl::Milliseconds(1));
    const size_t now = parked();
    most = std::max(most, now - std::min(now, before));
    before = now;
  }
  EXPECT_EQ(before, kBlocks);
  EXPECT_LE(most, 2 * kOfAStep);
}

TEST(RepairLooks, DamagedRowHoldsUpNoOtherBlock) {
  ReplicaCluster cluster(2);
  cluster.StartNamenode();
  cluster.nodes[0]->Connect(cluster.plane.get());
  cluster.Settle();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(cluster.Write({0}, 2));
  cluster.Settle();
  cluster.space.DamageBlock(blocks[2]);
  cluster.nodes[1]->Connect(cluster.plane.get());
  cluster.world.RunFor(absl::Seconds(30));
  for (const BlockId block : blocks) EXPECT_EQ(cluster.nodes[1]->Has(block), block != blocks[2]);
}

// Nothing is short of copies; a switch that fails would take all of them away.
TEST(RepairLooks, BlocksOnOneRackOfSeveralAreBroughtToASecond) {
  ReplicaCluster cluster(0);
  for (int i = 0; i < 5; ++i) {
    FakeDatanode* const node = cluster.AddDatanode("dn" + std::to_string(i), {"s" + std::to_string(i)});
    node->rack = i < 3 ? "/a" : "/b";
  }
  cluster.StartNamenode();
  for (size_t i = 0; i < 3; ++i) cluster.nodes[i]->Connect(cluster.plane.get());
  cluster.Settle();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(cluster.Write({0, 1, 2}, 3));
  const BlockId single = cluster.Write({0}, 1);
  cluster.world.RunFor(absl::Minutes(1));
  EXPECT_EQ(cluster.plane->figures().mis_replicated_blocks, 0u);  // There is but one.
  for (BlockId block : blocks) EXPECT_EQ(cluster.Copies(block), 3u);

  // There is a second one, without room: they are counted, and nothing is lost of it.
  cluster.nodes[3]->remaining_bytes = 10;
  cluster.nodes[3]->Connect(cluster.plane.get());
  cluster.world.RunFor(absl::Seconds(20));
  EXPECT_EQ(cluster.plane->figures().mis_replicated_blocks, 12u);
  EXPECT_EQ(cluster.plane->figures().under_replicated_blocks, 0u);
  v1::ClusterReportResponse report;
  cluster.plane->FillReport(&report);
  EXPECT_EQ(report.mis_replicated_blocks(), 12u);
  const auto shown = cluster.plane->Inspect(blocks[0], *cluster.space.Block(blocks[0]), false);
  ASSERT_TRUE(shown.ok());
  EXPECT_TRUE(shown->mis_replicated());
  EXPECT_EQ(shown->racks(), 1u);

  cluster.nodes[4]->Connect(cluster.plane.get());
  cluster.world.RunFor(absl::Minutes(2));
  EXPECT_EQ(cluster.plane->figures().mis_replicated_blocks, 0u);
  for (BlockId block : blocks) {
    EXPECT_TRUE(cluster.nodes[4]->Has(block));
    EXPECT_EQ(cluster.Copies(block), 3u);  // The fourth copy has gone from the rack of three.
  }
  EXPECT_EQ(cluster.Copies(single), 1u);
}

TEST(RepairLooks, BlocksAreSpreadWhenRacksBecomeKnown) {
  ReplicaCluster cluster(3);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.Write({0, 1}, 2);
  cluster.Settle();
  cluster.plane->SetRacks(std::make_shared<const RackTable>(RackTable::SoFar({{"dn1", "/a"}, {"dn2", "/b"}})));
  cluster.world.RunFor(absl::Minutes(1));
  cluster.plane->SetRacks(std::make_shared<const RackTable>(RackTable::SoFar({{"dn0", "/a"}, {"dn1", "/a"}})));
  cluster.world.RunFor(absl::Minutes(1));
  EXPECT_FALSE(cluster.nodes[2]->Has(block));  // Of one it is not known yet: it may be on the same.
  cluster.plane->SetRacks(std::make_shared<const RackTable>(RackTable::Of({{"dn0", "/a"}, {"dn1", "/a"}, {"dn2", "/b"}})));
  cluster.world.RunFor(absl::Minutes(1));
  EXPECT_TRUE(cluster.nodes[2]->Has(block));
  EXPECT_EQ(cluster.Copies(block), 2u);
  cluster.world.RunFor(absl::Minutes(20));  // And it stays so.
  EXPECT_TRUE(cluster.nodes[2]->Has(block));
  EXPECT_EQ(cluster.plane->figures().mis_replicated_blocks, 0u);
}

}  // namespace
}  // namespace cairn::namenode::testing
