// What is believed of a volume that has failed.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "datanode/storage/file_block_store.h"
#include "datanode/storage/version_file.h"
#include "tests/datanode/volume_keeper_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class VolumeDistrustTest : public VolumeKeeperTest {
 protected:
  // Of kBlock on /data/1, with 5000 bytes that its disk is going to lose; null, and the test has failed, if it cannot be had.
  std::shared_ptr<ReplicaWriter> WriterWhoseSyncFails() {
    const auto writer = store().CreateRbw(*store().Place({.storage_uuid = storage(0)}), kBlock, kStamp, {});
    EXPECT_THAT(writer, IsOk());
    if (!writer.ok()) return nullptr;
    EXPECT_THAT(WritePattern(**writer, 0, 5000), IsOk());
    machine_->disk().FailNextSync("/data/1");
    return *writer;
  }
  bool AllComeBack() {
    const auto healthy = [](const v1::StorageStatistics& storage) { return storage.state() == v1::HEALTHY; };
    return world_.RunUntil(
        [&] {
          const std::vector<v1::StorageStatistics> all = store().Statistics();
          return std::all_of(all.begin(), all.end(), healthy);
        },
        absl::Minutes(1));
  }
  // Of replicas of /data/1, while the hook is set.
  int reads_ = 0;
  void CountReads() {
    reads_ = 0;
    machine_->disk().SetFaultHook([this](Op op, const std::string& path) -> absl::Status {
      if (op == Op::kRead && path.starts_with("/data/1/blocks")) ++reads_;
      return absl::OkStatus();
    });
  }
};

TEST_F(VolumeDistrustTest, WhatAFailedSyncLostIsNotBelievedThoughTheCacheShowsIt) {
  Open();
  PutOn(0, BlockId(kBlock.value() + 16), 5000);
  std::shared_ptr<ReplicaWriter> writer = WriterWhoseSyncFails();
  ASSERT_NE(writer, nullptr);
  EXPECT_FALSE(writer->Finalize(5000, true).ok());
  world_.RunFor(absl::Minutes(1));
  ASSERT_EQ(StatesTold(storage(0)).back(), v1::HEALTHY);
  EXPECT_EQ(*Read(BlockId(kBlock.value() + 16)), Pattern(0, 5000));
  ASSERT_TRUE(store().Describe(kBlock).has_value());
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr);
  EXPECT_EQ(store().Describe(kBlock)->length, 0u);
  EXPECT_FALSE(store().Describe(kBlock)->sure);
}

TEST_F(VolumeDistrustTest, RestartDoesNotBelieveAVolumeThatHadFailed) {
  Open();
  std::shared_ptr<ReplicaWriter> writer = WriterWhoseSyncFails();
  ASSERT_NE(writer, nullptr);
  EXPECT_FALSE(writer->Finalize(5000, true).ok());
  writer.reset();
  KillAndOpen();  // Of the same boot, and before it could come back.
  ASSERT_TRUE(AllComeBack());
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr);
  EXPECT_EQ(store().Describe(kBlock)->length, 0u);
  EXPECT_FALSE(store().Describe(kBlock)->sure);
  // It is trusted again, and what was found stays what it is.
  EXPECT_FALSE(DecodeVersion(*process_->files().ReadWhole("/data/1/VERSION"))->distrust);
  KillAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->length, 0u);
  EXPECT_FALSE(store().Describe(kBlock)->sure);
  EXPECT_FALSE(store().Describe(kBlock)->corrupt);
}

TEST_F(VolumeDistrustTest, DistrustedVolumeKeepsTheOthersOfItsNodeFromNothing) {
  Open();
  const BlockId other(kBlock.value() + 16);
  PutOn(0, kBlock, 5000);
  PutOn(1, other, 5000);
  ASSERT_THAT((*dynamic_cast<FileBlockStore&>(store()).Volumes().begin())->SetDistrusted(true), IsOk());
  CountReads();
  KillAndOpen();  // Though none may have failed: dfs.datanode.failed.volumes.tolerated is 0.
  EXPECT_EQ(reads_, 0);
  EXPECT_EQ(*Read(other), Pattern(0, 5000));
  EXPECT_EQ(store().Place({.storage_uuid = storage(0)})->storage_uuid, storage(1));
  EXPECT_EQ(store().Statistics()[0].state(), v1::FAILED);
  EXPECT_THAT(store().Statistics()[0].failure(), HasSubstr("read from its disk before it serves"));
  EXPECT_THAT(Read(kBlock), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_EQ(store().WalkStep(storage(0), UINT64_MAX, 1), 0u);  // Nothing is said of what it holds.
  EXPECT_THAT(EventsOf(v1::RANGE), SizeIs(0));
  ASSERT_TRUE(AllComeBack());
  EXPECT_GT(reads_, 0);
  EXPECT_EQ(StatesTold(storage(0)).back(), v1::HEALTHY);
  EXPECT_EQ(*Read(kBlock), Pattern(0, 5000));
  EXPECT_FALSE(DecodeVersion(*process_->files().ReadWhole("/data/1/VERSION"))->distrust);
}

TEST_F(VolumeDistrustTest, NodeWithNothingElseToServeReadsItsVolumesFirst) {
  options_.directories = {"/data/1"};
  Open();
  PutOn(0, kBlock, 5000);
  ASSERT_THAT((*dynamic_cast<FileBlockStore&>(store()).Volumes().begin())->SetDistrusted(true), IsOk());
  CountReads();
  KillAndOpen();
  EXPECT_GT(reads_, 0);
  EXPECT_EQ(store().Statistics()[0].state(), v1::HEALTHY);
  EXPECT_EQ(*Read(kBlock), Pattern(0, 5000));
}

TEST_F(VolumeDistrustTest, DirectoryThatFailedIsNotBelievedWhenItIsAddedAgain) {
  options_.keeper.first_return = absl::Hours(1);
  Open();
  std::shared_ptr<ReplicaWriter> writer = WriterWhoseSyncFails();
  ASSERT_NE(writer, nullptr);
  EXPECT_FALSE(writer->Finalize(5000, true).ok());
  EXPECT_EQ(Change({"/data/2"}), "");
  EXPECT_EQ(Change({"/data/1", "/data/2"}), "");
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr);
  EXPECT_EQ(store().Describe(kBlock)->length, 0u);
}

TEST_F(VolumeDistrustTest, DirectoryWhoseMarkCouldNotBeWrittenIsNotBelievedEither) {
  options_.keeper.first_return = absl::Hours(1);
  Open();
  std::shared_ptr<ReplicaWriter> writer = WriterWhoseSyncFails();
  ASSERT_NE(writer, nullptr);
  machine_->disk().SetFaultHook([](Op op, const std::string& path) -> absl::Status {
    const bool version = path.starts_with("/data/1/VERSION") && op != Op::kRead;
    return version ? absl::InternalError(path + ": Input/output error") : absl::OkStatus();
  });
  EXPECT_FALSE(writer->Finalize(5000, true).ok());
  Heal();
  ASSERT_FALSE(DecodeVersion(*process_->files().ReadWhole("/data/1/VERSION"))->distrust);
  EXPECT_EQ(Change({"/data/2"}), "");
  EXPECT_EQ(Change({"/data/1", "/data/2"}), "");
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr);
  EXPECT_EQ(store().Describe(kBlock)->length, 0u);
  // And once it has been read anew it is.
  PutOn(0, BlockId(kBlock.value() + 16), 1000);
  EXPECT_EQ(Change({"/data/2"}), "");
  EXPECT_EQ(Change({"/data/1", "/data/2"}), "");
  EXPECT_TRUE(store().Describe(BlockId(kBlock.value() + 16))->sure);
}

TEST_F(VolumeDistrustTest, SyncThatFailsAfterItsVolumeWasTakenOutIsRemembered) {
  Open();
  Volume* const volume = *dynamic_cast<FileBlockStore&>(store()).Volumes().begin();
  EXPECT_EQ(Change({"/data/2"}), "");
  EXPECT_FALSE(DecodeVersion(*process_->files().ReadWhole("/data/1/VERSION"))->distrust);
  volume->Fail(absl::InternalError("sync: Input/output error"));
  EXPECT_TRUE(DecodeVersion(*process_->files().ReadWhole("/data/1/VERSION"))->distrust);
  EXPECT_THAT(StatesTold(volume->storage_uuid()), ElementsAre(v1::REMOVED));
}

TEST_F(VolumeDistrustTest, ScanThatFailsAtTheStartIsRememberedThoughTheStartFailsToo) {
  Open();
  PutOn(0, kBlock, 1000);
  Close();
  machine_->disk().SetFaultHook([](Op op, const std::string& path) -> absl::Status {
    return op == Op::kList && path == "/data/1/blocks" ? absl::InternalError(path + ": Input/output error") : absl::OkStatus();
  });
  EventLog events(&process_->clock());
  const auto opened = OpenBlockStore(options_, process_, &events);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("1 of 2 data directories"));
  Heal();
  EXPECT_TRUE(DecodeVersion(*process_->files().ReadWhole("/data/1/VERSION"))->distrust);
  EXPECT_FALSE(DecodeVersion(*process_->files().ReadWhole("/data/2/VERSION"))->distrust);
  Open();
  ASSERT_TRUE(AllComeBack());
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
}

TEST_F(VolumeDistrustTest, ErrorsThatNobodyHasSeenYetDoNotKeepAVolumeAway) {
  Open();
  for (uint64_t i = 0; i < 5; ++i) PutOn(0, BlockId(kBlock.value() + 16 * i), 1000);
  Break("/data/1");
  EXPECT_FALSE(store().Verify(kBlock, kStamp).ok());
  // As the system tells them: each file's to the first sync of it.
  std::map<std::string, int> syncs;
  machine_->disk().SetFaultHook([&](Op op, const std::string& path) -> absl::Status {
    if (op != Op::kSync || path.find("/blk_") == std::string::npos) return absl::OkStatus();
    return ++syncs[path] == 1 ? absl::InternalError(path + ": Input/output error") : absl::OkStatus();
  });
  world_.RunFor(absl::Seconds(15));
  EXPECT_THAT(syncs, SizeIs(5));
  EXPECT_THAT(StatesTold(storage(0)), ElementsAre(v1::FAILED, v1::HEALTHY));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
  // One that fails again is the disk's.
  Heal();
  Break("/data/1");
  EXPECT_FALSE(store().Verify(kBlock, kStamp).ok());
  machine_->disk().SetFaultHook([](Op op, const std::string& path) -> absl::Status {
    return op == Op::kSync && path.find("/blk_") != std::string::npos ? absl::InternalError(path + ": EIO") : absl::OkStatus();
  });
  world_.RunFor(absl::Minutes(10));
  EXPECT_EQ(StatesTold(storage(0)).back(), v1::FAILED);
}

TEST_F(VolumeDistrustTest, UnfinishedReplicaThatTheDiskHasAfterAllIsKeptButNotSure) {
  Open();
  auto writer = store().CreateRbw(*store().Place({.storage_uuid = storage(0)}), kBlock, kStamp, {});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 700, /*sync=*/true), IsOk());
  ASSERT_THAT(WritePattern(**writer, 700, 300), IsOk());
  Break("/data/1");
  EXPECT_FALSE((*writer)->Sync().ok());
  writer->reset();
  Heal();
  for (int i = 0; i < 2; ++i) {
    KillAndOpen();
    ASSERT_TRUE(AllComeBack());
    EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr) << i;
    EXPECT_GE(store().Describe(kBlock)->length, 512u) << i;
    EXPECT_FALSE(store().Describe(kBlock)->corrupt) << i;
  }
}

}  // namespace
}  // namespace cairn::datanode::testing
