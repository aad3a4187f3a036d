// Repair and deletion through a whole replica plane: what is copied where, what may be told to go, and when it may not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "tests/namenode/replica_cluster.h"

namespace cairn::namenode::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Repair, DeadNodesBlocksAreCopiedToAnotherAndCounted) {
  ReplicaCluster cluster(4);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.world.RunFor(absl::Seconds(1));
  std::vector<BlockId> blocks;
  for (int i = 0; i < 30; ++i) blocks.push_back(cluster.Write({0, 1, 2}, 3));
  cluster.Settle();
  EXPECT_EQ(cluster.plane->figures().under_replicated_blocks, 0u);
  cluster.nodes[2]->Disconnect();
  cluster.world.RunFor(absl::Seconds(40));
  for (BlockId block : blocks) EXPECT_FALSE(cluster.nodes[3]->Has(block));  // Stale is not dead.
  cluster.world.RunFor(absl::Seconds(60));
  for (BlockId block : blocks) EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0", "dn1", "dn3"));
  EXPECT_EQ(cluster.plane->figures().under_replicated_blocks, 0u);
  EXPECT_EQ(cluster.plane->figures().repairs_running, 0u);
  // It comes back: of each block one copy too many, which goes.
  cluster.nodes[2]->Connect(cluster.plane.get());
  cluster.world.RunFor(absl::Seconds(30));
  for (BlockId block : blocks) {
    EXPECT_EQ(cluster.Copies(block), 3u);
    EXPECT_THAT(cluster.Locate(block), SizeIs(3));
  }
}

TEST(Repair, ReplicaThatMovedToAnotherVolumeOfItsNodeIsOneAsBefore) {
  ReplicaCluster cluster(1);
  FakeDatanode* const node = cluster.AddDatanode("dn1", {"s1a", "s1b"});
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.Write({1}, 1);
  cluster.Settle();
  // So that both events are in one message, as a DataNode sends them.
  node->Disconnect();
  node->Finalize(block, 1001, 100, /*storage=*/1);
  node->Drop(block, /*storage=*/0);
  node->Connect(cluster.plane.get());
  for (int i = 0; i < 30; ++i) {
    cluster.Settle();  // Within the grace, in which the acknowledged volume counts too, and after it.
    EXPECT_THAT(cluster.Locate(block), ElementsAre("dn1"));
    EXPECT_EQ(cluster.plane->figures().under_replicated_blocks, 0u);
    EXPECT_EQ(cluster.plane->figures().missing_blocks, 0u);
  }
  EXPECT_THAT(node->invalidations, IsEmpty());
  EXPECT_FALSE(cluster.nodes[0]->Has(block));
  EXPECT_EQ(node->replicas(1).count(block), 1u);
}

TEST(Repair, AcknowledgedStoragesHoldItOffForTheGraceOnly) {
  ReplicaCluster cluster(3);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.Commit({0, 1}, 2);
  cluster.nodes[0]->Finalize(block, 1001, 100);  // The other one's word never comes.
  cluster.world.RunFor(absl::Seconds(55));
  EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0", "dn1"));
  EXPECT_FALSE(cluster.nodes[2]->Has(block));
  cluster.nodes[1]->downs.clear();
  cluster.world.RunFor(absl::Seconds(15));
  ASSERT_EQ(cluster.nodes[1]->Count(v1::ReportDown::kWalk), 1u);  // Asked for this one block.
  EXPECT_EQ(cluster.nodes[1]->downs[0].walk().first_id(), block.value());
  EXPECT_EQ(cluster.nodes[1]->downs[0].walk().end_id(), block.value() + 1);
  EXPECT_EQ(cluster.Locate(block).size(), 2u);
  EXPECT_EQ(cluster.Copies(block), 2u);  // On whichever had none.
}

TEST(Repair, FailedTransferIsTriedAgainElsewhereAndTimeoutsFreeTheNodes) {
  ReplicaCluster cluster(3);
  cluster.options.repair_timeout = absl::Seconds(30);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  cluster.nodes[0]->transfers = false;  // Takes the order and says nothing.
  const BlockId block = cluster.Write({0}, 2);
  cluster.world.RunFor(absl::Seconds(20));
  ASSERT_THAT(cluster.nodes[0]->commands, SizeIs(1));
  const v1::CommandDown::Transfer& transfer = cluster.nodes[0]->commands[0].transfer();
  EXPECT_EQ(transfer.block().id(), block.value());
  EXPECT_EQ(transfer.storage_uuid(), cluster.nodes[0]->storage());
  EXPECT_EQ(transfer.traffic_class(), v1::REPAIR);
  cluster.nodes[0]->transfers = true;
  cluster.world.RunFor(absl::Seconds(30));
  EXPECT_EQ(cluster.Copies(block), 2u);
}

TEST(Repair, BlocksThatCannotBeRepairedHoldUpNoneThatCan) {
  ReplicaCluster cluster(5);
  cluster.options.max_repairs_per_node = 50;
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  std::vector<BlockId> hopeless, fixable;
  for (int i = 0; i < 300; ++i) hopeless.push_back(cluster.Write({4}, 2));
  cluster.nodes[4]->Disconnect();
  cluster.world.RunFor(absl::Minutes(3));
  for (int i = 0; i < 300; ++i) fixable.push_back(cluster.Write({0, 1}, 3));
  cluster.world.RunFor(absl::Minutes(2));
  for (BlockId block : fixable) EXPECT_EQ(cluster.Copies(block), 3u);
  v1::ClusterReportResponse report;
  cluster.plane->FillReport(&report);
  EXPECT_EQ(report.repairs_parked(), 300u);
  ASSERT_EQ(report.parked_size(), 2);
  EXPECT_EQ(report.parked(0).reason(), "NO_SOURCE");
  EXPECT_EQ(report.parked(0).blocks(), 300u);
  EXPECT_EQ(report.under_replicated_blocks(), 300u);
  EXPECT_EQ(report.missing_blocks(), 300u);
  v1::ListBadBlocksRequest request;
  request.set_kind(v1::ListBadBlocksRequest::PARKED);
  request.set_limit(120);
  size_t listed = 0;
  for (int page = 0; page < 4; ++page) {
    std::optional<absl::StatusOr<v1::ListBadBlocksResponse>> answer;
    cluster.plane->ListBadBlocks(request, [&](absl::StatusOr<v1::ListBadBlocksResponse> got) { answer = std::move(got); });
    ASSERT_TRUE(cluster.world.RunUntil([&] { return answer.has_value(); }, absl::Seconds(1)));
    ASSERT_TRUE(answer->ok());
    listed += static_cast<size_t>((*answer)->blocks_size());
    if ((*answer)->next() == 0) break;
    request.set_start_after((*answer)->next());
  }
  EXPECT_EQ(listed, 300u);
  cluster.nodes[4]->Connect(cluster.plane.get());  // It comes back: now they are copied.
  cluster.world.RunFor(absl::Minutes(2));
  EXPECT_EQ(cluster.plane->figures().under_replicated_blocks, 0u);
}

TEST(Repair, WhatIsShownAddsUpUntilAllIsHealed) {
  ReplicaCluster cluster(5);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  std::vector<BlockId> blocks;
  for (size_t i = 0; i < 200; ++i) blocks.push_back(cluster.Write({i % 5, (i + 1) % 5, (i + 2) % 5}, 3));
  cluster.Settle();
  cluster.nodes[0]->Disconnect();
  cluster.world.RunFor(absl::Seconds(63));
  bool any = false;
  for (int tick = 0; tick < 200; ++tick) {
    cluster.world.RunFor(absl::Seconds(1));
    const ReplicaPlane::Figures figures = cluster.plane->figures();
    EXPECT_EQ(figures.repairs_waiting + figures.repairs_running + figures.repairs_timed_out + figures.repairs_parked_no_source +
                  figures.repairs_parked_no_target,
              figures.under_replicated_blocks);
    size_t short_ones = 0;
    for (BlockId block : blocks) short_ones += cluster.Locate(block).size() < 3 ? 1 : 0;
    any |= figures.under_replicated_blocks > 0;
    if (figures.under_replicated_blocks == 0 && any) {
      EXPECT_EQ(short_ones, 0u);
      break;
    }
  }
  EXPECT_TRUE(any);
  EXPECT_EQ(cluster.plane->figures().under_replicated_blocks, 0u);
}

TEST(Repair, NodeTakesPartInNoMoreRepairsThanAllowed) {
  ReplicaCluster cluster(3);
  cluster.options.max_repairs_per_node = 2;
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  cluster.nodes[0]->transfers = false;
  for (int i = 0; i < 10; ++i) cluster.Write({0}, 2);
  cluster.world.RunFor(absl::Seconds(20));
  EXPECT_THAT(cluster.nodes[0]->commands, SizeIs(2));
  EXPECT_EQ(cluster.plane->figures().repairs_running, 2u);
  EXPECT_EQ(cluster.plane->figures().under_replicated_blocks, 10u);
}

TEST(Repair, BlockWithoutAnyCopyIsMissingAndComesBack) {
  ReplicaCluster cluster(2);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.Write({0}, 1);
  cluster.Settle();
  cluster.nodes[0]->Disconnect();
  cluster.world.RunFor(absl::Seconds(70));
  v1::ClusterReportResponse report;
  cluster.plane->FillReport(&report);
  EXPECT_EQ(report.missing_blocks(), 1u);
  EXPECT_EQ(report.missing_blocks_replication_one(), 1u);
  bool retry = true;
  EXPECT_THAT(cluster.Locate(block, &retry), IsEmpty());
  EXPECT_FALSE(retry);
  cluster.nodes[0]->Connect(cluster.plane.get());
  cluster.Settle();
  EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0"));
  EXPECT_EQ(cluster.plane->figures().missing_blocks, 0u);
}

TEST(Repair, CorruptReplicaIsReplacedAndOnlyThenGone) {
  ReplicaCluster cluster(3);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.Write({0, 1, 2}, 3);
  const BlockId lonely = cluster.Write({0}, 1);
  cluster.Settle();
  cluster.nodes[0]->MarkCorrupt(block);
  cluster.nodes[0]->MarkCorrupt(lonely);
  // The bad copy is dropped, then copied again: until then its node has none, or one that is being written.
  EXPECT_TRUE(cluster.world.RunUntil(
      [&] {
        const auto copy = cluster.nodes[0]->Find(block);
        return copy.has_value() && !copy->corrupt && copy->state == v1::FINALIZED;
      },
      absl::Minutes(2)));
  cluster.Settle();
  EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0", "dn1", "dn2"));
  EXPECT_TRUE(cluster.nodes[0]->Has(lonely));  // The last copy, bad as it is, is not thrown away.
}

TEST(Repair, BadReplicaOfAClientIsVerifiedByItsOwnNode) {
  ReplicaCluster cluster(2);
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0, 1}, 2);
  cluster.Settle();
  v1::Block named;
  named.set_id(block.value());
  named.set_generation_stamp(1001);
  cluster.plane->OnBadReplica(named, cluster.nodes[1]->storage());
  cluster.Settle();
  ASSERT_THAT(cluster.nodes[1]->commands, SizeIs(1));
  EXPECT_EQ(cluster.nodes[1]->commands[0].command_class(), v1::CONTROL);
  EXPECT_EQ(cluster.nodes[1]->commands[0].verify().block().id(), block.value());
  EXPECT_THAT(cluster.Locate(block), SizeIs(2));  // A word is not proof.
}

TEST(Invalidation, FreedBlocksGoOnCredit) {
  ReplicaCluster cluster(1);
  cluster.nodes[0]->invalidation_credit = 3;
  cluster.nodes[0]->obeys = false;
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(cluster.Write({0}, 1));
  cluster.Settle();
  for (BlockId block : blocks) cluster.Free(block);
  cluster.Settle();
  EXPECT_EQ(cluster.nodes[0]->waiting, 3u);
  EXPECT_EQ(cluster.plane->figures().invalidations_told, 3u);
  EXPECT_EQ(cluster.plane->figures().invalidations_waiting, 5u);
  cluster.nodes[0]->AnswerInvalidations();
  cluster.nodes[0]->obeys = true;
  cluster.nodes[0]->OpenCommands();  // Fresh credit.
  cluster.Settle();
  for (BlockId block : blocks) EXPECT_FALSE(cluster.nodes[0]->Has(block));
  EXPECT_EQ(cluster.plane->figures().invalidations_told, 0u);
}

TEST(Invalidation, GarbageThatNobodyAnnouncedIsFound) {
  ReplicaCluster cluster(1);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.space.NextBlock();
  const BlockId beyond(block.value() + 100 * kBlockIdStep);
  cluster.nodes[0]->Finalize(block, 1001, 5);
  cluster.nodes[0]->Finalize(beyond, 1001, 5);
  cluster.Settle();
  EXPECT_FALSE(cluster.nodes[0]->Has(block));
  EXPECT_TRUE(cluster.nodes[0]->Has(beyond));  // This namespace cannot have made it: quarantined.
  EXPECT_EQ(cluster.plane->figures().quarantined_blocks, 1u);
}

TEST(Invalidation, RolledBackNamespaceDeletesNothingItDoesNotKnow) {
  ReplicaCluster cluster(1);
  cluster.StartNamenode();
  const BlockId block = cluster.space.NextBlock();
  cluster.nodes[0]->highest_block_id = block.value() + 4096;
  cluster.ConnectAll();
  cluster.nodes[0]->Finalize(block, 1001, 5);
  cluster.Settle();
  EXPECT_EQ(cluster.space.rolled_back_to(), block.value() + 4096);
  EXPECT_TRUE(cluster.nodes[0]->Has(block));
  EXPECT_TRUE(cluster.plane->figures().unknown_replicas_kept);
}

TEST(Invalidation, StaleStampGoesOnlyIfAnotherCounts) {
  ReplicaCluster cluster(2);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.Commit({1}, 1, 1005);
  cluster.nodes[0]->Finalize(block, 1001, 100);
  cluster.world.RunFor(absl::Seconds(30));
  EXPECT_TRUE(cluster.nodes[0]->Has(block));  // dn1 acknowledged, but its stream has said nothing.
  cluster.nodes[1]->Finalize(block, 1005, 100);
  cluster.Settle();
  EXPECT_FALSE(cluster.nodes[0]->Has(block));
  EXPECT_TRUE(cluster.nodes[1]->Has(block));
}

TEST(Invalidation, ExcessWaitsForTheMarksOfThisEpoch) {
  ReplicaCluster cluster(3);
  for (auto& node : cluster.nodes) node->marks = false;
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0, 1, 2}, 2);
  cluster.world.RunFor(absl::Minutes(2));
  EXPECT_EQ(cluster.Copies(block), 3u);
  for (size_t i = 0; i < 2; ++i) {  // Two counted copies let the third go.
    v1::ReportEvent mark;
    mark.set_type(v1::EPOCH_MARK);
    mark.set_epoch(cluster.epoch);
    cluster.nodes[i]->Send(mark);
    cluster.Settle();
    EXPECT_EQ(cluster.Copies(block), i == 0 ? 3u : 2u);
  }
}

TEST(Invalidation, MarkOfAnOlderEpochIsNone) {
  ReplicaCluster cluster(2);
  for (auto& node : cluster.nodes) node->marks = false;
  cluster.epoch = 7;
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0, 1}, 1);
  for (auto& node : cluster.nodes) {
    v1::ReportEvent mark;
    mark.set_type(v1::EPOCH_MARK);
    mark.set_epoch(7);
    node->Send(mark);
  }
  cluster.world.RunFor(absl::Minutes(2));
  EXPECT_EQ(cluster.Copies(block), 2u);
}

TEST(Invalidation, ToldReplicasCountAsGoneUntilTheyAnswer) {
  ReplicaCluster cluster(3);
  for (auto& node : cluster.nodes) node->obeys = false;
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0, 1, 2}, 1);
  cluster.world.RunFor(absl::Minutes(2));
  size_t told = 0;
  for (auto& node : cluster.nodes) told += node->waiting;
  EXPECT_EQ(told, 2u);  // Never all three, however often it is judged.
  for (auto& node : cluster.nodes) node->AnswerInvalidations();
  cluster.Settle();
  EXPECT_EQ(cluster.Copies(block), 1u);
  EXPECT_THAT(cluster.Locate(block), SizeIs(1));
}

TEST(Invalidation, KeptReplicaCountsAgain) {
  ReplicaCluster cluster(2);
  for (auto& node : cluster.nodes) node->obeys = false;
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.Write({0, 1}, 1);
  cluster.Settle();
  FakeDatanode& told = cluster.nodes[0]->waiting > 0 ? *cluster.nodes[0] : *cluster.nodes[1];
  ASSERT_EQ(told.waiting, 1u);
  std::optional<v1::BlockRecord> record = cluster.space.Block(block);
  record->set_replication(2);  // Meanwhile somebody wants both.
  cluster.space.SetBlock(block, *record);
  cluster.plane->OnBlocksChanged({block});
  cluster.Settle();
  EXPECT_EQ(cluster.plane->figures().under_replicated_blocks, 1u);
  v1::ReportEvent kept;
  kept.set_type(v1::KEPT);
  kept.set_storage_uuid(told.storage());
  kept.mutable_replica()->set_block_id(block.value());
  kept.set_command_id(told.invalidations.back().command_id());
  told.waiting = 0;
  told.Send(kept);
  cluster.Settle();
  EXPECT_EQ(cluster.plane->figures().under_replicated_blocks, 0u);
  EXPECT_EQ(cluster.plane->figures().invalidations_told, 0u);
}

TEST(Invalidation, CommandsThatABrokenStreamSwallowedAreSentAgain) {
  ReplicaCluster cluster(1);
  cluster.nodes[0]->obeys = false;
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0}, 1);
  cluster.Settle();
  cluster.Free(block);
  cluster.Settle();
  ASSERT_EQ(cluster.nodes[0]->waiting, 1u);
  cluster.nodes[0]->waiting = 0;  // Lost.
  cluster.nodes[0]->obeys = true;
  cluster.nodes[0]->OpenCommands();
  cluster.Settle();
  EXPECT_FALSE(cluster.nodes[0]->Has(block));
  ASSERT_THAT(cluster.nodes[0]->invalidations, SizeIs(2));
  EXPECT_NE(cluster.nodes[0]->invalidations[0].command_id(), cluster.nodes[0]->invalidations[1].command_id());
  EXPECT_EQ(cluster.plane->figures().invalidations_told, 0u);  // The one answer is enough.
}

TEST(Invalidation, CommandOfAnOldIncarnationIsForgottenWhenTheWalkHasPassed) {
  ReplicaCluster cluster(1);
  FakeDatanode& node = *cluster.nodes[0];
  node.obeys = false;
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0}, 1);
  cluster.Settle();
  cluster.Free(block);
  cluster.Settle();
  ASSERT_EQ(node.waiting, 1u);
  node.Restart();
  node.obeys = true;
  node.Connect(cluster.plane.get());
  cluster.world.RunFor(absl::Seconds(20));
  EXPECT_FALSE(node.Has(block));  // Told anew, in the new incarnation.
  EXPECT_EQ(cluster.plane->figures().invalidations_told, 0u);
}

// Invariant: a live block's last good replica is never told to go, whatever happens in whatever order.
size_t RunRandomHistory(uint64_t seed, bool check) {
  ReplicaCluster cluster(4, seed);
  Random random = cluster.world.NewRandom();
  cluster.options.acknowledged_grace = absl::Seconds(10);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  std::vector<BlockId> blocks;
  size_t lost = 0;
  for (int step = 0; step < 60; ++step) {
    const size_t at = static_cast<size_t>(random.Below(4));
    FakeDatanode& node = *cluster.nodes[at];
    switch (random.Below(12)) {
      case 0:
      case 1:
      case 2: {
        const size_t next = (at + 1) % 4, third = (at + 2) % 4;
        const std::vector<size_t> on = random.OneIn(2) ? std::vector<size_t>{at, next} : std::vector<size_t>{at, next, third};
        blocks.push_back(cluster.Write(on, static_cast<uint32_t>(1 + random.Below(3))));
        break;
      }
      case 3:
        if (!blocks.empty()) {  // Another replication.
          const BlockId block = blocks[static_cast<size_t>(random.Below(blocks.size()))];
          std::optional<v1::BlockRecord> record = cluster.space.Block(block);
          if (!record) break;
          record->set_replication(static_cast<uint32_t>(1 + random.Below(3)));
          cluster.space.SetBlock(block, *record);
          cluster.plane->OnBlocksChanged({block});
        }
        break;
      case 4:
        node.Restart();
        node.Connect(cluster.plane.get());
        break;
      case 5:
        node.Disconnect();
        if (random.OneIn(3)) cluster.world.RunFor(absl::Seconds(65));
        node.Connect(cluster.plane.get());
        break;
      case 6:
        cluster.RestartNamenode();
        cluster.ConnectAll();
        break;
      case 7:
        cluster.CrashNamenode(random.OneIn(2));
        cluster.StartNamenode();
        cluster.ConnectAll();
        break;
      case 8:
        node.obeys = !node.obeys;
        if (node.obeys) node.AnswerInvalidations();
        break;
      case 9: node.AnswerInvalidations(); break;
      case 10:
        if (!blocks.empty() && random.OneIn(2)) {
          const BlockId block = blocks[static_cast<size_t>(random.Below(blocks.size()))];
          if (cluster.space.Block(block)) cluster.Free(block);
        }
        break;
      default: node.OpenCommands(); break;
    }
    cluster.world.RunFor(absl::Milliseconds(static_cast<int64_t>(random.Below(4000))));
    for (BlockId block : blocks) {
      const std::optional<v1::BlockRecord> record = cluster.space.Block(block);
      if (!record) continue;
      size_t good = 0;
      for (auto& each : cluster.nodes) {
        const std::optional<FakeDatanode::Replica> replica = each->Find(block);
        good += replica && replica->state == v1::FINALIZED && replica->stamp == record->generation_stamp();
      }
      lost += good == 0;
      if (check) {
        EXPECT_GE(good, 1u) << "seed " << seed << " step " << step << " block " << block.value();
      }
    }
    if (check && ::testing::Test::HasFailure()) return lost;
  }
  // Heal: all converges, and what was freed is gone.
  for (auto& node : cluster.nodes) {
    node->obeys = true;
    node->AnswerInvalidations();
    node->Connect(cluster.plane.get());
  }
  cluster.world.RunFor(absl::Minutes(3));
  for (BlockId block : blocks) {
    const std::optional<v1::BlockRecord> record = cluster.space.Block(block);
    if (check) {
      EXPECT_EQ(cluster.Copies(block), record ? record->replication() : 0u) << "seed " << seed << " block " << block.value();
    }
    if (check && record) {
      EXPECT_EQ(cluster.Locate(block).size(), record->replication()) << "seed " << seed << " block " << block.value();
    }
  }
  return lost;
}

TEST(Invalidation, NeverTakesTheLastGoodReplicaInAnyHistory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RunRandomHistory(seed, true);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Invalidation, TheCheckCatchesAPlaneThatDeletesTheLastReplica) {
  EnableFaultPoints();
  ASSERT_TRUE(ArmFault("replicas.invalidate_last", "error").ok());
  size_t lost = 0;
  for (uint64_t seed = 1; seed <= 5 && lost == 0; ++seed) lost = RunRandomHistory(seed, false);
  DisarmAllFaults();
  EXPECT_GT(lost, 0u);
}

}  // namespace
}  // namespace cairn::namenode::testing
