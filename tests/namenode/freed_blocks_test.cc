// What was freed: how its replicas come to go, when many are freed at once, and when an operator wants nothing to go.

#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/namenode/replica_cluster.h"

namespace cairn::namenode::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FreedBlocks : public ::testing::Test {
 protected:
  void Begin(size_t datanodes, uint32_t credit = 1000) {
    cluster_ = std::make_unique<ReplicaCluster>(datanodes);
    for (const auto& node : cluster_->nodes) node->invalidation_credit = credit;
    cluster_->StartNamenode();
    cluster_->ConnectAll();
    cluster_->Settle();
  }
  // Writes `stored` blocks, and frees them in one list of `count`, the others of which no DataNode has.
  std::vector<BlockId> WriteAndFree(size_t stored, size_t count) {
    std::vector<BlockId> blocks;
    for (size_t i = 0; i < stored; ++i) blocks.push_back(cluster_->Write({0}, 1));
    cluster_->Settle();
    std::vector<v1::FreedBlock> freed(count);
    for (size_t i = 0; i < count; ++i) {
      const BlockId id = i < stored ? blocks[i] : cluster_->space.NextBlock();
      cluster_->space.RemoveBlock(id);
      freed[i].mutable_block()->set_id(id.value());
    }
    cluster_->plane->OnBlocksFreed(freed);
    cluster_->world.RunFor(absl::Milliseconds(1));
    return blocks;
  }
  size_t Left(const std::vector<BlockId>& blocks) {
    return static_cast<size_t>(std::count_if(blocks.begin(), blocks.end(), [&](BlockId id) { return cluster_->Copies(id) > 0; }));
  }

  std::unique_ptr<ReplicaCluster> cluster_;
};

TEST_F(FreedBlocks, AreToldToGoAtOnce) {
  Begin(1);
  const std::vector<BlockId> blocks = WriteAndFree(20, 8192);
  EXPECT_THAT(cluster_->nodes[0]->invalidations, SizeIs(20));
  EXPECT_EQ(Left(blocks), 0u);
}

TEST_F(FreedBlocks, AMassOfThemIsLeftToTheScan) {
  Begin(1);
  const std::vector<BlockId> blocks = WriteAndFree(20, 8193);
  EXPECT_THAT(cluster_->nodes[0]->invalidations, IsEmpty());
  cluster_->Settle();  // It is asked for, and does not wait for the hour of the next one.
  EXPECT_EQ(Left(blocks), 0u);
  // What is freed afterwards is told at once again.
  WriteAndFree(5, 5);
  EXPECT_THAT(cluster_->nodes[0]->invalidations, SizeIs(25));
}

TEST_F(FreedBlocks, StayWhileAnOperatorHasPausedAndGoWhenHeGoesOn) {
  Begin(3);
  const BlockId excess = cluster_->Write({0, 1, 2}, 3);
  const BlockId corrupt = cluster_->Write({0, 1, 2}, 3);
  const BlockId freed = cluster_->Write({0, 1, 2}, 3);
  cluster_->Settle();
  cluster_->space.PauseReclaim(true);
  cluster_->Free(freed);
  v1::BlockRecord record = *cluster_->space.Block(excess);
  record.set_replication(2);
  cluster_->space.SetBlock(excess, record);
  cluster_->plane->OnBlocksChanged({excess});
  cluster_->world.RunFor(absl::Minutes(25));  // Scans come by.
  for (const auto& node : cluster_->nodes) EXPECT_THAT(node->invalidations, IsEmpty());
  EXPECT_EQ(cluster_->Copies(freed), 3u);
  EXPECT_EQ(cluster_->plane->figures().invalidations_waiting, 0u);
  // Also for a NameNode that begins now, and for what a DataNode brings.
  cluster_->RestartNamenode();
  cluster_->nodes[1]->Restart();
  cluster_->ConnectAll();
  cluster_->world.RunFor(absl::Minutes(2));
  EXPECT_EQ(cluster_->Copies(freed), 3u);
  EXPECT_EQ(cluster_->Copies(excess), 3u);
  // A bad replica takes the place of a good one.
  cluster_->nodes[0]->MarkCorrupt(corrupt);
  EXPECT_TRUE(cluster_->world.RunUntil(
      [&] {
        const auto replica = cluster_->nodes[0]->Find(corrupt);
        return replica && !replica->corrupt && replica->state == v1::FINALIZED;
      },
      absl::Minutes(2)));
  cluster_->space.PauseReclaim(false);
  cluster_->Settle();
  EXPECT_EQ(cluster_->Copies(freed), 0u);
  EXPECT_EQ(cluster_->Copies(excess), 2u);
  EXPECT_THAT(cluster_->Locate(corrupt), ElementsAre("dn0", "dn1", "dn2"));
}

TEST_F(FreedBlocks, ThatWaitedForCreditWhenAnOperatorPausedStayToo) {
  Begin(1, /*credit=*/3);
  FakeDatanode& node = *cluster_->nodes[0];
  node.obeys = false;
  const std::vector<BlockId> blocks = WriteAndFree(8, 8);
  EXPECT_EQ(node.waiting, 3u);
  cluster_->space.PauseReclaim(true);
  node.AnswerInvalidations();  // What was told goes.
  node.obeys = true;
  node.invalidation_credit = 1000;
  node.OpenCommands();
  cluster_->Settle();
  EXPECT_EQ(Left(blocks), 5u);
  cluster_->space.PauseReclaim(false);
  cluster_->Settle();
  EXPECT_EQ(Left(blocks), 0u);
}

}  // namespace
}  // namespace cairn::namenode::testing
