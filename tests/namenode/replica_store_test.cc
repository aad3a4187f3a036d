#include "namenode/store/replica_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/perf_context.h>

#include "common/fault_points.h"
#include "tests/testing/sim_world.h"

namespace cairn::namenode {
namespace {

using cairn::testing::SimMachine;
using cairn::testing::SimProcess;
using cairn::testing::SimWorld;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ReplicaRow Row(uint64_t block, uint32_t storage, uint64_t stamp = 1001) {
  ReplicaRow row;
  row.block = BlockId(block);
  row.storage = StorageNumber(storage);
  row.stamp = GenerationStamp(stamp);
  row.length_bytes = block * 10 + storage;
  row.state = v1::RBW;
  row.corrupt = storage % 2 == 1;
  row.group_index = 7;
  return row;
}

class ReplicaStoreTest : public ::testing::Test {
 protected:
  ReplicaStoreTest() : world_({.seed = 3}), machine_(world_.AddMachine("nn")), process_(machine_->StartProcess()) {
    options_.directory = "/nn/replicas";
    options_.simulated = true;
    options_.cluster_id = "a";
    options_.pool_id = std::string("p\0q", 3);
  }
  std::unique_ptr<ReplicaStore> Open() {
    absl::StatusOr<std::unique_ptr<ReplicaStore>> store = ReplicaStore::Open(options_, process_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  static void Put(ReplicaStore& store, std::vector<ReplicaRow> rows) {
    ReplicaStore::Batch batch;
    for (const ReplicaRow& row : rows) batch.Put(row);
    ASSERT_TRUE(store.Write(std::move(batch)).ok());
  }

  SimWorld world_;
  SimMachine* machine_;
  SimProcess* process_;
  ReplicaStore::Options options_;
};

TEST_F(ReplicaStoreTest, RowsAreFoundByBlockAndByStorageInOrder) {
  std::unique_ptr<ReplicaStore> store = Open();
  EXPECT_TRUE(store->started_empty());
  Put(*store, {Row(32, 300), Row(32, 2), Row(16, 2), Row(256 * 16, 2), Row(48, 1)});
  EXPECT_THAT(*store->ReplicasOf(BlockId(32)), ElementsAre(Row(32, 2), Row(32, 300)));
  EXPECT_THAT(*store->ReplicasOf(BlockId(33)), IsEmpty());
  EXPECT_THAT(*store->ReplicasOn(StorageNumber(2), 0, kNothingWalked, 10), ElementsAre(Row(16, 2), Row(32, 2), Row(256 * 16, 2)));
  EXPECT_THAT(*store->ReplicasOn(StorageNumber(2), 16, 32, 10), ElementsAre(Row(16, 2)));
  EXPECT_THAT(*store->ReplicasOn(StorageNumber(2), 17, kNothingWalked, 1), ElementsAre(Row(32, 2)));
  EXPECT_THAT(*store->BlocksFrom(BlockId(17), 2), ElementsAre(BlockId(32), BlockId(48)));
  EXPECT_THAT(*store->BlocksFrom(BlockId(0), 99), ElementsAre(BlockId(16), BlockId(32), BlockId(48), BlockId(256 * 16)));
  ReplicaStore::Batch batch;
  batch.Delete(StorageNumber(2), BlockId(32));
  ASSERT_TRUE(store->Write(std::move(batch)).ok());
  EXPECT_THAT(*store->ReplicasOf(BlockId(32)), ElementsAre(Row(32, 300)));
  EXPECT_THAT(*store->ReplicasOn(StorageNumber(2), 0, kNothingWalked, 10), ElementsAre(Row(16, 2), Row(256 * 16, 2)));
}

TEST_F(ReplicaStoreTest, ALookUpStepsOverNoTombstonesOfOtherBlocksOrStorages) {
  std::unique_ptr<ReplicaStore> store = Open();
  std::vector<ReplicaRow> rows;
  for (uint64_t block = 16; block < 16 + 5000; ++block) rows.push_back(Row(block, 2));
  rows.push_back(Row(16, 1));
  Put(*store, rows);
  ReplicaStore::Batch batch;
  for (uint64_t block = 16; block < 16 + 5000; ++block) batch.Delete(StorageNumber(2), BlockId(block));
  ASSERT_TRUE(store->Write(std::move(batch)).ok());
  const auto& skipped = rocksdb::get_perf_context()->internal_delete_skipped_count;  // Of this thread.
  const uint64_t before = skipped;
  EXPECT_THAT(*store->ReplicasOf(BlockId(16)), ElementsAre(Row(16, 1)));
  EXPECT_THAT(*store->ReplicasOf(BlockId(17)), IsEmpty());
  EXPECT_THAT(*store->ReplicasOn(StorageNumber(1), 0, kNothingWalked, 10), ElementsAre(Row(16, 1)));
  EXPECT_THAT(*store->ReplicasOn(StorageNumber(2), 100, 110, 10), IsEmpty());
  EXPECT_LE(skipped - before, 20u);
}

TEST_F(ReplicaStoreTest, KillLosesNothingWritten) {
  StreamPosition position;
  position.incarnation = Incarnation(0xfedcba9876543210);
  position.applied = 42;
  position.walks = {{StorageNumber(3), 0}, {StorageNumber(9), kNothingWalked}};
  {
    std::unique_ptr<ReplicaStore> store = Open();
    ReplicaStore::Batch batch;
    batch.Put(Row(16, 3));
    batch.SetPosition("dn", position);
    ASSERT_TRUE(store->Write(std::move(batch)).ok());
    machine_->Kill();
  }
  process_ = machine_->StartProcess();
  std::unique_ptr<ReplicaStore> store = Open();
  EXPECT_FALSE(store->started_empty());
  EXPECT_THAT(*store->ReplicasOf(BlockId(16)), ElementsAre(Row(16, 3)));
  EXPECT_EQ(*store->PositionOf("dn"), position);
  EXPECT_EQ(*store->PositionOf("another"), std::nullopt);
}

TEST_F(ReplicaStoreTest, PowerCutKeepsWhatWasSyncedAndNeverAPositionWithoutItsRows) {
  for (int round = 0; round < 20; ++round) {
    uint64_t synced = 0;
    {
      std::unique_ptr<ReplicaStore> store = Open();
      const uint64_t before = store->PositionOf("dn")->value_or(StreamPosition()).applied;
      for (uint64_t i = before + 1; i <= before + 20; ++i) {
        StreamPosition position;
        position.applied = i;
        ReplicaStore::Batch batch;
        batch.Put(Row(i * 16, 1));
        batch.SetPosition("dn", position);
        ASSERT_TRUE(store->Write(std::move(batch)).ok());
        if (i == before + 10) {
          ASSERT_TRUE(store->Sync().ok());
          synced = i;
        }
      }
      machine_->PowerCut();
    }
    process_ = machine_->StartProcess();
    std::unique_ptr<ReplicaStore> store = Open();
    const uint64_t applied = store->PositionOf("dn")->value_or(StreamPosition()).applied;
    EXPECT_GE(applied, synced) << "round " << round;
    EXPECT_EQ(store->BlocksFrom(BlockId(0), 10'000)->size(), applied) << "round " << round;
  }
}

TEST_F(ReplicaStoreTest, AnotherClustersDatabaseIsThrownAway) {
  {
    std::unique_ptr<ReplicaStore> store = Open();
    Put(*store, {Row(16, 3)});
  }
  options_.cluster_id = "b";
  std::unique_ptr<ReplicaStore> store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->started_empty());
  EXPECT_THAT(*store->ReplicasOf(BlockId(16)), IsEmpty());
}

TEST_F(ReplicaStoreTest, RowThatCannotBeMadeOutHidesNoOther) {
  std::unique_ptr<ReplicaStore> store = Open();
  Put(*store, {Row(16, 1), Row(32, 2), Row(48, 1)});
  EnableFaultPoints();
  ASSERT_TRUE(ArmFault("replica_store.damage_row", "error*2").ok());
  Put(*store, {Row(32, 1)});
  DisarmAllFaults();
  EXPECT_THAT(*store->ReplicasOf(BlockId(32)), ElementsAre(Row(32, 2)));
  EXPECT_THAT(store->TakeDamaged(), ElementsAre(std::pair(StorageNumber(1), BlockId(32))));
  EXPECT_THAT(store->TakeDamaged(), IsEmpty());
  const std::vector<ReplicaRow> rows = *store->ReplicasOn(StorageNumber(1), 0, kNothingWalked, 10);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], Row(16, 1));
  EXPECT_EQ(rows[1].block, BlockId(32));
  EXPECT_EQ(rows[1].state, v1::REPLICA_STATE_UNSPECIFIED);
  EXPECT_EQ(rows[2], Row(48, 1));
  Put(*store, {Row(32, 1)});
  EXPECT_THAT(*store->ReplicasOf(BlockId(32)), ElementsAre(Row(32, 1), Row(32, 2)));
}

TEST_F(ReplicaStoreTest, DamagedDatabaseIsThrownAway) {
  {
    std::unique_ptr<ReplicaStore> store = Open();
    Put(*store, {Row(16, 3)});
  }
  absl::StatusOr<std::unique_ptr<File>> current = process_->files().Open("/nn/replicas/CURRENT", LocalFileSystem::OpenMode::kReadWrite);
  ASSERT_TRUE(current.ok()) << current.status();
  const std::string garbage = "no such manifest\n";
  ASSERT_TRUE((*current)->WriteAt(0, garbage).ok());
  std::unique_ptr<ReplicaStore> store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->started_empty());
  Put(*store, {Row(32, 3)});
  EXPECT_THAT(*store->BlocksFrom(BlockId(0), 9), ElementsAre(BlockId(32)));
}

}  // namespace
}  // namespace cairn::namenode
