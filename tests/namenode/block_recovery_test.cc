// Block recovery through a whole replica plane: who is asked, when another one is, and what comes of the answers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/namenode/replica_cluster.h"

namespace cairn::namenode::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class BlockRecovery : public ::testing::Test {
 protected:
  explicit BlockRecovery(size_t datanodes = 3) : cluster_(datanodes) {
    cluster_.StartNamenode();
    cluster_.ConnectAll();
    cluster_.Settle();
    cluster_.space.on_changed = [this](BlockId block) { cluster_.plane->OnBlocksChanged({block}); };
  }

  // A block being written on these nodes, of which each has so many bytes; then its writer is gone.
  BlockId Write(const std::vector<std::pair<size_t, uint64_t>>& on, uint64_t acknowledged = 0) {
    const BlockId id = cluster_.space.NextBlock();
    v1::BlockRecord record;
    record.set_inode_id(20000);
    record.set_state(v1::UNDER_RECOVERY);
    record.set_generation_stamp(1001);
    record.set_length_bytes(acknowledged);
    record.set_replication(3);
    for (const auto& [node, length] : on) {
      const std::optional<StorageNumber> number = cluster_.plane->NumberOf(cluster_.nodes[node]->storage());
      record.add_expected_storages(static_cast<uint32_t>(number->value()));
      cluster_.nodes[node]->Create(id, 1001);
      cluster_.nodes[node]->replicas()[id].length = length;
    }
    record.set_recovery_id(cluster_.space.TakeStamp());
    cluster_.space.SetBlock(id, record);
    cluster_.plane->OnBlocksChanged({id});
    return id;
  }
  std::vector<v1::CommandDown::Recover> Orders(size_t node) {
    std::vector<v1::CommandDown::Recover> orders;
    for (const v1::CommandDown& command : cluster_.nodes[node]->commands)
      if (command.has_recover()) orders.push_back(command.recover());
    return orders;
  }
  v1::BlockRecord Row(BlockId block) { return cluster_.space.Block(block).value_or(v1::BlockRecord()); }
  bool Recovers(BlockId block, absl::Duration within) {
    return cluster_.world.RunUntil([&] { return Row(block).state() == v1::COMMITTED; }, within);
  }

  ReplicaCluster cluster_;
};

TEST_F(BlockRecovery, OneOfThePipelineIsToldAllThatItMustKnow) {
  const BlockId block = Write({{0, 100}, {1, 120}, {2, 110}}, 90);
  ASSERT_TRUE(Recovers(block, absl::Seconds(5)));
  ASSERT_THAT(Orders(0), SizeIs(1));
  EXPECT_THAT(Orders(1), IsEmpty());
  const v1::CommandDown::Recover order = Orders(0)[0];
  EXPECT_EQ(cluster_.nodes[0]->commands.back().command_class(), v1::REPAIR_WORK);
  EXPECT_EQ(order.block().generation_stamp(), 1001u);
  EXPECT_EQ(order.block().length_bytes(), 90u);
  EXPECT_GT(order.recovery_id(), 1001u);
  EXPECT_FALSE(order.has_new_length_bytes());
  EXPECT_EQ(order.unreachable(), 0u);
  EXPECT_EQ(order.budget_ms(), 10'000u);
  std::vector<std::string> asked;
  for (const v1::StorageLocation& location : order.replicas()) asked.push_back(location.datanode().uuid());
  EXPECT_THAT(asked, ElementsAre("dn0", "dn1", "dn2"));
  EXPECT_EQ(Row(block).generation_stamp(), order.recovery_id());
  EXPECT_EQ(Row(block).length_bytes(), 100u);
  cluster_.Settle();
  EXPECT_EQ(cluster_.plane->figures().recovering_blocks, 0u);
  EXPECT_THAT(cluster_.Locate(block), ElementsAre("dn0", "dn1", "dn2"));
}

TEST_F(BlockRecovery, ItIsToldWhatWasClosedAndWhatWasSynced) {
  const BlockId block = Write({{0, 100}, {1, 120}, {2, 110}}, 90);
  v1::BlockRecord row = Row(block);
  row.set_closed_length_bytes(50);
  row.set_synced_length_bytes(80);
  cluster_.space.SetBlock(block, row);
  ASSERT_TRUE(Recovers(block, absl::Seconds(5)));
  EXPECT_EQ(Orders(0)[0].closed_length_bytes(), 50u);
  EXPECT_EQ(Orders(0)[0].synced_length_bytes(), 80u);
}

TEST_F(BlockRecovery, ATruncateSaysTheLengthToCutTo) {
  const BlockId block = Write({{0, 100}, {1, 100}, {2, 100}}, 100);
  v1::BlockRecord row = Row(block);
  row.set_truncate_to_bytes(60);
  cluster_.space.SetBlock(block, row);
  ASSERT_TRUE(Recovers(block, absl::Seconds(5)));
  EXPECT_EQ(Orders(0)[0].new_length_bytes(), 60u);
  EXPECT_EQ(Row(block).length_bytes(), 60u);
}

TEST_F(BlockRecovery, APrimaryThatFailsOrDiesOrStaysSilentIsFollowedByAnotherUnderANewId) {
  cluster_.nodes[0]->recovers = FakeDatanode::Recovers::kFails;
  cluster_.nodes[1]->recovers = FakeDatanode::Recovers::kSilent;
  const BlockId block = Write({{0, 100}, {1, 100}, {2, 100}});
  cluster_.world.RunFor(absl::Seconds(5));
  ASSERT_THAT(Orders(0), SizeIs(1));
  ASSERT_THAT(Orders(1), SizeIs(1));
  EXPECT_GT(Orders(1)[0].recovery_id(), Orders(0)[0].recovery_id());
  EXPECT_EQ(Orders(1)[0].budget_ms(), 20'000u);
  EXPECT_EQ(Row(block).recovery_id(), Orders(1)[0].recovery_id());  // In the row before it was asked.
  cluster_.world.RunFor(absl::Seconds(10));
  EXPECT_THAT(Orders(2), IsEmpty());
  cluster_.nodes[1]->Disconnect();  // It dies: nobody waits for the rest of its time.
  ASSERT_TRUE(Recovers(block, absl::Seconds(5)));
  EXPECT_THAT(Orders(2), SizeIs(1));
}

TEST_F(BlockRecovery, ASilentPrimaryHasTheTimeOfItsRoundOnly) {
  cluster_.nodes[0]->recovers = FakeDatanode::Recovers::kSilent;
  const BlockId block = Write({{0, 100}, {1, 100}, {2, 100}});
  EXPECT_FALSE(Recovers(block, absl::Seconds(11)));
  EXPECT_THAT(Orders(1), IsEmpty());
  EXPECT_TRUE(Recovers(block, absl::Seconds(4)));
  EXPECT_THAT(Orders(1), SizeIs(1));
  // The first one's word comes late: it changes nothing, and is told so.
  const v1::BlockRecord before = Row(block);
  const absl::Status late = cluster_.nodes[0]->FinishRecovery(Orders(0)[0]);
  cluster_.Settle();
  EXPECT_EQ(KindOf(cluster_.nodes[0]->committed), ErrorKind::kStaleGeneration) << late;
  EXPECT_EQ(Row(block).SerializeAsString(), before.SerializeAsString());
}

TEST_F(BlockRecovery, DeadNodesAreNeitherPrimariesNorAskedAndCountAsUnreachable) {
  cluster_.nodes[0]->Disconnect();
  cluster_.world.RunFor(absl::Seconds(70));
  BlockId block = Write({{0, 100}, {1, 100}, {2, 100}});
  ASSERT_TRUE(Recovers(block, absl::Seconds(5)));
  ASSERT_THAT(Orders(1), SizeIs(1));
  EXPECT_THAT(Orders(1)[0].replicas(), SizeIs(2));
  EXPECT_EQ(Orders(1)[0].unreachable(), 1u);
  EXPECT_EQ(Orders(1)[0].long_dead(), 0u);
  cluster_.world.RunFor(absl::Minutes(10));
  block = Write({{0, 100}, {1, 100}, {2, 100}});
  ASSERT_TRUE(Recovers(block, absl::Seconds(5)));
  EXPECT_EQ(Orders(1).back().unreachable(), 1u);
  EXPECT_EQ(Orders(1).back().long_dead(), 1u);
}

TEST_F(BlockRecovery, WithoutAnyNodeItWaitsAndGoesOnWhenOneComesBack) {
  for (auto& node : cluster_.nodes) node->Disconnect();
  cluster_.world.RunFor(absl::Seconds(70));
  const BlockId block = Write({{0, 100}, {1, 100}, {2, 100}});
  EXPECT_FALSE(Recovers(block, absl::Minutes(5)));
  EXPECT_EQ(cluster_.plane->figures().recovering_blocks, 1u);
  EXPECT_GE(cluster_.plane->figures().oldest_recovery, absl::Minutes(4));
  cluster_.nodes[2]->Connect(cluster_.plane.get());
  EXPECT_TRUE(Recovers(block, absl::Seconds(3)));
}

TEST_F(BlockRecovery, ABlockOfWhichNobodyHasAByteIsDroppedOnlyIfAllSaySo) {
  cluster_.nodes[2]->Disconnect();
  cluster_.world.RunFor(absl::Seconds(70));
  const BlockId block = Write({{0, 0}, {1, 0}, {2, 0}});
  for (const size_t node : {size_t{0}, size_t{1}, size_t{2}}) cluster_.nodes[node]->Drop(block);
  cluster_.world.RunFor(absl::Minutes(3));
  EXPECT_EQ(Row(block).state(), v1::UNDER_RECOVERY);
  cluster_.nodes[2]->Connect(cluster_.plane.get());
  EXPECT_TRUE(cluster_.world.RunUntil([&] { return !cluster_.space.Block(block); }, absl::Minutes(2)));
  cluster_.Settle();
  EXPECT_EQ(cluster_.plane->figures().recovering_blocks, 0u);
}

TEST_F(BlockRecovery, ANewNamenodeBeginsARoundOfItsOwn) {
  for (auto& node : cluster_.nodes) node->recovers = FakeDatanode::Recovers::kSilent;
  const BlockId block = Write({{0, 100}, {1, 100}, {2, 100}});
  cluster_.world.RunFor(absl::Seconds(2));
  const uint64_t first = Row(block).recovery_id();
  cluster_.RestartNamenode();
  for (auto& node : cluster_.nodes) node->recovers = FakeDatanode::Recovers::kWell;
  cluster_.ConnectAll();
  ASSERT_TRUE(Recovers(block, absl::Seconds(10)));
  EXPECT_GT(Row(block).generation_stamp(), first);
}

TEST_F(BlockRecovery, AWordOfAnUnknownDatanodeIsRefused) {
  v1::CommitBlockRecoveryRequest request;
  request.set_datanode_uuid("stranger");
  absl::Status answer;
  cluster_.plane->CommitBlockRecovery({}, request,
                                      [&](const absl::StatusOr<v1::CommitBlockRecoveryResponse>& response) { answer = response.status(); });
  EXPECT_EQ(KindOf(answer), ErrorKind::kUnregistered);
}

TEST_F(BlockRecovery, AThousandOpenFilesAreRecoveredWithoutCrowdingAnyNode) {
  std::vector<BlockId> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(Write({{0, 100}, {1, 100}, {2, 100}}));
  EXPECT_TRUE(cluster_.world.RunUntil(
      [&] { return std::all_of(blocks.begin(), blocks.end(), [&](BlockId block) { return Row(block).state() == v1::COMMITTED; }); },
      absl::Minutes(5)));
  cluster_.Settle();  // The nodes' own reports.
  for (const BlockId block : {blocks.front(), blocks.back()})
    EXPECT_THAT(cluster_.Locate(block), UnorderedElementsAre("dn0", "dn1", "dn2"));
}

}  // namespace
}  // namespace cairn::namenode::testing
