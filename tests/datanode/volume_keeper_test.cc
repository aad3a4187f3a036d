#include "datanode/storage/volume_keeper.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "datanode/storage/file_block_store.h"
#include "datanode/storage/version_file.h"
#include "tests/datanode/volume_keeper_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Nothing is created where there is no room: that its files have gone shows all the same.
TEST_F(VolumeKeeperTest, SpaceThatOthersTakeAndGiveBackIsNoticedWithoutAWrite) {
  machine_->disk().SetCapacity(20 << 20);
  Open();
  ASSERT_THAT(store().Place({}), IsOk());
  ASSERT_THAT(process_->files().WriteWhole("/others", std::string((20 << 20) - (1 << 18), 'x')), IsOk());
  world_.RunFor(absl::Seconds(30));
  EXPECT_THAT(store().Place({.expected_bytes = 1 << 20}), HasKind(ErrorKind::kDiskFull));
  ASSERT_THAT(process_->files().Remove("/others"), IsOk());
  world_.RunFor(absl::Seconds(30));
  EXPECT_THAT(store().Place({.expected_bytes = 1 << 20}), IsOk());
  EXPECT_THAT(EventsOf(v1::STORAGE_STATE_CHANGED), IsEmpty());
}

TEST_F(VolumeKeeperTest, OneErrorOfOpeningOrReadingLosesNoReplica) {
  Open();
  PutOn(0, kBlock, 1000);
  for (const Op op : {Op::kOpen, Op::kRead}) {
    for (const bool absent : {false, true}) {
      bool once = true;
      machine_->disk().SetFaultHook([&once, op, absent](Op now, const std::string& path) -> absl::Status {
        if (now != op || path.find("/blk_") == std::string::npos || !std::exchange(once, false)) return absl::OkStatus();
        return absent ? MakeError(ErrorKind::kNotFound, path + ": No such file or directory") : absl::InternalError(path + ": EIO");
      });
      EXPECT_FALSE(Read(kBlock).ok());
      once = true;
      EXPECT_THAT(store().Verify(kBlock, kStamp), IsOk());
      Heal();
      EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
    }
  }
  EXPECT_THAT(EventsOf(v1::CORRUPT), IsEmpty());
  EXPECT_THAT(EventsOf(v1::DROPPED), IsEmpty());
  EXPECT_THAT(EventsOf(v1::STORAGE_STATE_CHANGED), IsEmpty());
}

TEST_F(VolumeKeeperTest, ReplicaWhoseFileIsGoneForGoodIsCorrupt) {
  Open();
  PutOn(0, kBlock, 1000);
  ASSERT_THAT(process_->files().Remove(PathOf(kBlock)), IsOk());
  EXPECT_THAT(store().Verify(kBlock, kStamp), HasKind(ErrorKind::kChecksum));
  EXPECT_THAT(EventsOf(v1::CORRUPT), SizeIs(1));
  EXPECT_THAT(EventsOf(v1::STORAGE_STATE_CHANGED), IsEmpty());
}

TEST_F(VolumeKeeperTest, VolumeWhoseDiskComesBackServesAgainWithEveryReplica) {
  Open();
  const BlockId other(kBlock.value() + 16);
  PutOn(0, kBlock, 1000);
  PutOn(1, other, 1000);
  const std::string failing = storage(0);
  std::vector<std::string> came;
  store().SetVolumeObserver([&came](const std::string& uuid) { came.push_back(uuid); });
  Break("/data/1");
  EXPECT_FALSE(store().Verify(kBlock, kStamp).ok());
  EXPECT_EQ(store().Statistics()[0].state(), v1::FAILED);
  EXPECT_THAT(store().Statistics()[0].failure(), HasSubstr("Input/output error"));
  EXPECT_THAT(Read(kBlock), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_THAT(Read(other), IsOk());
  EXPECT_THAT(EventsOf(v1::CORRUPT), IsEmpty());
  world_.RunFor(absl::Seconds(60));
  EXPECT_THAT(StatesTold(failing), ElementsAre(v1::FAILED));
  Heal();
  world_.RunFor(absl::Seconds(15));
  EXPECT_THAT(StatesTold(failing), ElementsAre(v1::FAILED, v1::HEALTHY));
  EXPECT_THAT(came, ElementsAre(failing));
  EXPECT_EQ(removals_, 0);
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
  EXPECT_EQ(store().replica_count(), 2u);
  EXPECT_THAT(Directories(), SizeIs(2));
  EXPECT_NE(store().WalkStep(failing, UINT64_MAX, 1), 0u);
}

TEST_F(VolumeKeeperTest, VolumeThatFailsAgainAndAgainIsTrustedLessAndLess) {
  Open();
  const std::string failing = storage(0);
  absl::Duration before;
  for (int i = 0; i < 4; ++i) {
    machine_->disk().FailNextSync("/data/1/blocks");
    BlockStore::CreateOptions options;
    options.storage_uuid = failing;
    const auto placement = store().Place(options);
    ASSERT_THAT(placement, IsOk());
    EXPECT_FALSE(store().CreateRbw(*placement, BlockId(kBlock.value() + 16 * static_cast<uint64_t>(i)), kStamp, {}).ok());
    const SteadyTime failed = world_.Now();
    const size_t times = StatesTold(failing).size();
    ASSERT_EQ(StatesTold(failing).back(), v1::FAILED) << i;
    ASSERT_TRUE(world_.RunUntil([&] { return StatesTold(failing).size() > times; }, absl::Hours(1)));
    if (i > 1) {
      EXPECT_GT(world_.Now() - failed, before) << i;
    }
    before = world_.Now() - failed;
  }
}

TEST_F(VolumeKeeperTest, CopyThatWasMadeElsewhereMeanwhileStays) {
  Open();
  PutOn(0, kBlock, 1000);
  const std::string failing = storage(0);
  Break("/data/1");
  EXPECT_FALSE(store().Verify(kBlock, kStamp).ok());
  Heal();
  machine_->disk().SetFaultHook([](Op, const std::string& path) -> absl::Status {  // Not back yet.
    return path.starts_with("/data/1/") ? absl::InternalError("EIO") : absl::OkStatus();
  });
  // As a repair would; what the failed volume has does not count.
  const auto placement = store().Place({});
  ASSERT_THAT(placement, IsOk());
  const auto writer = store().CreateTemporary(*placement, kBlock, kStamp, {});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 1000), IsOk());
  ASSERT_THAT((*writer)->Finalize(1000, true), IsOk());
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));  // The copy that counts, though the other volume is asked first.
  Heal();
  world_.RunFor(absl::Minutes(1));
  ASSERT_EQ(StatesTold(failing).back(), v1::HEALTHY);
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
  EXPECT_EQ(store().Describe(kBlock)->storage_uuid, storage(1));
  EXPECT_FALSE(FileExists(kBlock));
  EXPECT_EQ(store().replica_count(), 1u);
}

TEST_F(VolumeKeeperTest, CopyThatIsStillOnItsWayDoesNotCostTheOneThatComesBack) {
  Open();
  PutOn(0, kBlock, 1000);
  const std::string failing = storage(0);
  Break("/data/1");
  EXPECT_FALSE(store().Verify(kBlock, kStamp).ok());
  const auto placement = store().Place({});
  ASSERT_THAT(placement, IsOk());
  auto writer = store().CreateTemporary(*placement, kBlock, kStamp, {});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 1000), IsOk());
  Heal();
  world_.RunFor(absl::Minutes(1));
  ASSERT_EQ(StatesTold(failing).back(), v1::HEALTHY);
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
  writer->reset();  // It never arrives.
  world_.RunFor(absl::Minutes(1));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
  EXPECT_EQ(store().Describe(kBlock)->storage_uuid, failing);
}

TEST_F(VolumeKeeperTest, OfManyReplicasThatComeBackThoseWithoutACopyElsewhereStay) {
  Open();
  constexpr uint64_t kMany = 2500;
  const auto id = [](uint64_t i) { return BlockId(kBlock.value() + 16 * i); };
  for (uint64_t i = 0; i < kMany; ++i) ASSERT_NO_FATAL_FAILURE(PutOn(0, id(i), 1));
  const std::string failing = storage(0);
  Break("/data/1");
  EXPECT_FALSE(store().Verify(kBlock, kStamp).ok());
  const std::vector<uint64_t> copied = {0, 1023, 1024, 1025, 2048, kMany - 1};
  for (const uint64_t i : copied) ASSERT_NO_FATAL_FAILURE(PutOn(1, id(i), 1));
  Heal();
  world_.RunFor(absl::Minutes(1));
  ASSERT_EQ(StatesTold(failing).back(), v1::HEALTHY);
  EXPECT_EQ(store().replica_count(), kMany);
  EXPECT_EQ(store().Statistics()[0].replicas() + store().Statistics()[1].replicas(), kMany);
  for (const uint64_t i : copied) EXPECT_EQ(store().Describe(id(i))->storage_uuid, storage(1)) << i;
  EXPECT_EQ(store().Statistics()[1].replicas(), copied.size());
}

TEST_F(VolumeKeeperTest, NothingIsWrittenWhereAnUnmountedDiskWas) {
  Open();
  PutOn(0, kBlock, 1000);
  const std::string failing = storage(0);
  // What is left of a disk that was unmounted, as far as anybody asks before he writes.
  const std::string version = *process_->files().ReadWhole("/data/1/VERSION");
  ASSERT_THAT(process_->files().Remove("/data/1/VERSION"), IsOk());
  ASSERT_THAT(identity().RememberEpoch(Epoch(7)), IsOk());  // By the other one.
  EXPECT_FALSE(*process_->files().Exists("/data/1/VERSION"));
  EXPECT_THAT(StatesTold(failing), ElementsAre(v1::FAILED));
  world_.RunFor(absl::Minutes(10));
  EXPECT_FALSE(*process_->files().Exists("/data/1/VERSION"));
  EXPECT_THAT(StatesTold(failing), ElementsAre(v1::FAILED));
  // Nor over what another storage says of itself.
  VersionRecord other = *DecodeVersion(version);
  other.storage_uuid = "another";
  ASSERT_THAT(process_->files().WriteWhole("/data/1/VERSION", EncodeVersion(other)), IsOk());
  FileBlockStore& store_of_files = dynamic_cast<FileBlockStore&>(store());
  EXPECT_THAT((*store_of_files.Volumes().begin())->SetDistrusted(true), HasKind(ErrorKind::kInvalidArgument));
  world_.RunFor(absl::Minutes(10));
  EXPECT_EQ(*process_->files().ReadWhole("/data/1/VERSION"), EncodeVersion(other));
  EXPECT_THAT(StatesTold(failing), ElementsAre(v1::FAILED));
  ASSERT_THAT(process_->files().WriteWhole("/data/1/VERSION", version), IsOk());
  world_.RunFor(absl::Minutes(10));
  EXPECT_THAT(StatesTold(failing), ElementsAre(v1::FAILED, v1::HEALTHY));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
}

TEST_F(VolumeKeeperTest, DirectoryIsAddedWithWhatItHolds) {
  options_.directories = {"/data/1"};
  Open();
  std::vector<std::string> came;
  store().SetVolumeObserver([&came](const std::string& uuid) { came.push_back(uuid); });
  EXPECT_EQ(Change({"/data/1", "/data/2"}), "");
  EXPECT_THAT(Directories(), ElementsAre("/data/1", "/data/2"));
  EXPECT_THAT(came, ElementsAre(storage(1)));
  EXPECT_THAT(StatesTold(storage(1)), ElementsAre(v1::HEALTHY));
  PutOn(1, kBlock, 1000);
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
  // And is found by the next start.
  options_.directories = {"/data/1", "/data/2"};
  KillAndOpen();
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
}

TEST_F(VolumeKeeperTest, DirectoryIsTakenOutWhenItsWritersHaveEnded) {
  Open();
  PutOn(0, kBlock, 1000);
  const BlockId open(kBlock.value() + 16);
  const std::string leaving = storage(0);
  const auto placement = store().Place({.storage_uuid = leaving});
  auto writer = store().CreateRbw(*placement, open, kStamp, {});
  ASSERT_THAT(writer, IsOk());
  std::optional<absl::Status> changed;
  opened_.volumes->ChangeVolumes({"/data/2"}, [&changed](absl::Status status) { changed = std::move(status); });
  world_.RunFor(absl::Seconds(10));
  EXPECT_FALSE(changed.has_value());
  EXPECT_EQ(store().Place({.storage_uuid = leaving})->storage_uuid, storage(1));  // Takes nothing new.
  EXPECT_THAT(Read(kBlock), IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 100), IsOk());
  ASSERT_THAT((*writer)->Finalize(100, true), IsOk());
  world_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(changed.has_value());
  EXPECT_THAT(*changed, IsOk());
  EXPECT_THAT(Directories(), ElementsAre("/data/2"));
  EXPECT_THAT(StatesTold(leaving), ElementsAre(v1::REMOVED));
  EXPECT_EQ(events().last(), EventsOf(v1::STORAGE_STATE_CHANGED).back().number());
  EXPECT_THAT(Read(kBlock), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_EQ(store().replica_count(), 0u);
  EXPECT_TRUE(FileExists(kBlock));  // Nothing is deleted.
  // Free for others, and as it was when it comes again.
  EXPECT_THAT(process_->files().Lock("/data/1"), IsOk());
  EXPECT_EQ(Change({"/data/1", "/data/2"}), "");
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
  EXPECT_EQ(*Read(open), Pattern(0, 100));
  EXPECT_THAT(StatesTold(leaving), ElementsAre(v1::REMOVED, v1::HEALTHY));
}

TEST_F(VolumeKeeperTest, WriterThatDoesNotEndIsEnded) {
  Open();
  const auto placement = store().Place({.storage_uuid = storage(0)});
  auto writer = store().CreateRbw(*placement, kBlock, kStamp, {});
  ASSERT_THAT(writer, IsOk());
  int stopped = 0;
  (*writer)->OnRevoked([&stopped] { ++stopped; });
  EXPECT_EQ(Change({"/data/2"}), "");
  EXPECT_EQ(stopped, 1);
  EXPECT_THAT(WritePattern(**writer, 0, 100), HasKind(ErrorKind::kCancelled));
}

TEST_F(VolumeKeeperTest, WhatCannotBeDoneIsSaidAndTheRestIsDone) {
  Open();
  ASSERT_THAT(process_->files().MakeDirectories("/data/bad"), IsOk());
  ASSERT_THAT(process_->files().WriteWhole("/data/bad/photo.jpg", "x"), IsOk());
  const std::string why = Change({"/data/1", "/data/bad", "/data/3"});
  EXPECT_THAT(why, AllOf(HasSubstr("/data/bad"), HasSubstr("photo.jpg")));
  EXPECT_THAT(Directories(), ElementsAre("/data/1", "/data/3"));
  EXPECT_THAT(Change({"/data/bad"}), HasSubstr("no volume would be left"));
  EXPECT_THAT(Directories(), ElementsAre("/data/1", "/data/3"));
  EXPECT_THAT(store().Place({}), IsOk());
}

TEST_F(VolumeKeeperTest, WalkThatWaitsWhileItsVolumeIsTakenOutSaysRemoved) {
  Open();
  for (uint64_t i = 0; i < 3; ++i) PutOn(0, BlockId(kBlock.value() + 16 * i), 100);
  const std::string leaving = storage(0);
  const uint64_t next = store().WalkStep(leaving, UINT64_MAX, 1);
  ASSERT_NE(next, 0u);
  EXPECT_EQ(Change({"/data/2"}), "");
  const size_t ranges = EventsOf(v1::RANGE).size();
  EXPECT_EQ(store().WalkStep(leaving, next, 1), 0u);
  EXPECT_EQ(store().WalkStep(leaving, UINT64_MAX, 2), 0u);
  store().ExpandRange(leaving, 0, next, 1);
  EXPECT_THAT(StatesTold(leaving), ElementsAre(v1::REMOVED, v1::REMOVED, v1::REMOVED));
  EXPECT_THAT(EventsOf(v1::RANGE), SizeIs(ranges));
  EXPECT_EQ(Change({"/data/1", "/data/2"}), "");
  EXPECT_NE(store().WalkStep(leaving, UINT64_MAX, 3), 0u);
  EXPECT_EQ(StatesTold(leaving).back(), v1::HEALTHY);
}

TEST_F(VolumeKeeperTest, DiskWithNothingOnItDoesNotHideTheBacklogOfTheOthers) {
  Open();
  const auto id = [](uint64_t i) { return BlockId(kBlock.value() + 16 * i); };
  for (uint64_t i = 0; i < 3; ++i) PutOn(0, id(i), 1);
  EXPECT_EQ(store().deletion_backlog(), 0u);
  for (uint64_t i = 0; i < 2; ++i) store().Invalidate(storage(0), id(i), kStamp, i + 1, NotVoided());
  EXPECT_EQ(store().deletion_backlog(), 2u);
  // One that has replicas can be told to delete, and would have time for it.
  PutOn(1, id(3), 1);
  EXPECT_EQ(store().deletion_backlog(), 0u);
  store().Invalidate(storage(1), id(3), kStamp, 4, NotVoided());
  EXPECT_EQ(store().deletion_backlog(), 2u);
}

TEST_F(VolumeKeeperTest, ChangeThatCouldNotBeMadeMayBeRepeated) {
  Open();
  bool broken = true;
  machine_->disk().SetFaultHook([&broken](Op, const std::string& path) -> absl::Status {
    return broken && path.starts_with("/data/3") ? absl::InternalError(path + ": Input/output error") : absl::OkStatus();
  });
  EXPECT_THAT(Change({"/data/1", "/data/2", "/data/3"}), HasSubstr("/data/3"));
  broken = false;
  world_.RunFor(absl::Minutes(5));
  EXPECT_THAT(Directories(), SizeIs(2));  // Nobody makes a volume of an empty directory by himself.
  EXPECT_EQ(Change({"/data/1", "/data/2", "/data/3"}), "");
  EXPECT_THAT(Directories(), ElementsAre("/data/1", "/data/2", "/data/3"));
  EXPECT_EQ(Change({"/data/1", "/data/2", "/data/3"}), "");
}

TEST_F(VolumeKeeperTest, DirectoryThatCouldNotBeUsedAtTheStartReturnsByItself) {
  Open();
  PutOn(0, kBlock, 1000);
  const std::string absent = storage(0);
  process_->Kill();
  Close();
  process_ = machine_->StartProcess();
  options_.tolerated_failed_volumes = 1;
  Break("/data/1");
  Open();
  EXPECT_THAT(Directories(), ElementsAre("/data/2"));
  std::vector<std::string> came;
  store().SetVolumeObserver([&came](const std::string& uuid) { came.push_back(uuid); });
  world_.RunFor(absl::Minutes(1));
  EXPECT_THAT(came, IsEmpty());
  Heal();
  world_.RunFor(absl::Minutes(2));
  EXPECT_THAT(came, ElementsAre(absent));
  EXPECT_THAT(StatesTold(absent), ElementsAre(v1::HEALTHY));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
}

TEST_F(VolumeKeeperTest, FailedVolumeIsTriedAtOnceByWhoeverAsksForAChange) {
  options_.keeper.first_return = absl::Hours(1);
  Open();
  PutOn(0, kBlock, 1000);
  Break("/data/1");
  EXPECT_FALSE(store().Verify(kBlock, kStamp).ok());
  EXPECT_THAT(Change({"/data/1", "/data/2"}), AllOf(HasSubstr("/data/1 is still failed"), HasSubstr("Input/output error")));
  Heal();
  EXPECT_EQ(Change({"/data/1", "/data/2"}), "");
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
}

TEST_F(VolumeKeeperTest, RemovalThatIsUndoneWhileItsWritersEndIsUndone) {
  Open();
  PutOn(0, kBlock, 1000);
  const BlockId open(kBlock.value() + 16);
  const std::string storage_uuid = storage(0);
  auto writer = store().CreateRbw(*store().Place({.storage_uuid = storage_uuid}), open, kStamp, {});
  ASSERT_THAT(writer, IsOk());
  std::optional<absl::Status> first;
  opened_.volumes->ChangeVolumes({"/data/2"}, [&first](absl::Status status) { first = std::move(status); });
  world_.RunFor(absl::Seconds(5));
  ASSERT_FALSE(first.has_value());
  EXPECT_EQ(Change({"/data/1", "/data/2"}, absl::Seconds(1)), "");
  world_.RunFor(absl::Minutes(2));
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT(std::string(first->message()), HasSubstr("/data/1 stays"));
  EXPECT_THAT(StatesTold(storage_uuid), IsEmpty());
  EXPECT_EQ(store().Place({.storage_uuid = storage_uuid})->storage_uuid, storage_uuid);
  ASSERT_THAT(WritePattern(**writer, 0, 100), IsOk());
  // Taken out anew, its writers have all of their time again.
  std::optional<absl::Status> again;
  opened_.volumes->ChangeVolumes({"/data/2"}, [&again](absl::Status status) { again = std::move(status); });
  world_.RunFor(absl::Seconds(15));
  EXPECT_FALSE(again.has_value());
  ASSERT_THAT((*writer)->Finalize(100, true), IsOk());
  world_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(again.has_value());
  EXPECT_THAT(StatesTold(storage_uuid), ElementsAre(v1::REMOVED));
}

TEST_F(VolumeKeeperTest, DirectoryNamedTwiceIsAnErrorAndNothingIsDone) {
  Open();
  EXPECT_THAT(Change({"/data/1", "/data/3", "/data/1"}), HasSubstr("/data/1 twice"));
  EXPECT_THAT(Directories(), ElementsAre("/data/1", "/data/2"));
}

TEST_F(VolumeKeeperTest, OneReplicaThatCannotBeReadDoesNotKeepTheOthersAway) {
  Open();
  const BlockId no_data(kBlock.value() + 16);
  const BlockId no_header(kBlock.value() + 32);
  PutOn(0, kBlock, 1000);
  // Without the mark that it is synced it is read in full.
  ASSERT_THAT(ArmFault("datanode.finalize.skip_sync", "error"), IsOk());
  PutOn(0, no_data, 100'000);
  DisarmAllFaults();
  PutOn(0, no_header, 1000);
  Break("/data/1");
  EXPECT_FALSE(store().Verify(kBlock, kStamp).ok());
  int header_reads = 0;
  machine_->disk().SetFaultHook([&, data = PathOf(no_data), header = PathOf(no_header)](Op op, const std::string& path) -> absl::Status {
    if (op != Op::kRead) return absl::OkStatus();
    // Each opening reads the first page; what comes next is data.
    if (path == header || (path == data && ++header_reads % 2 == 0)) return absl::InternalError(path + ": Input/output error");
    return absl::OkStatus();
  });
  world_.RunFor(absl::Minutes(1));
  Heal();
  ASSERT_EQ(StatesTold(storage(0)).back(), v1::HEALTHY);
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
  EXPECT_TRUE(*store().HasQuarantined(no_header, storage(0)));
  ASSERT_TRUE(store().Describe(no_data).has_value());
  EXPECT_TRUE(store().Describe(no_data)->corrupt);
  EXPECT_EQ(store().Describe(no_data)->length, 100'000u);
}

TEST_F(VolumeKeeperTest, ProbesAtTheSameTimeDoNotDisturbEachOther) {
  Open();
  PutOn(0, kBlock, 1000);
  Volume* const volume = *dynamic_cast<FileBlockStore&>(store()).Volumes().begin();
  std::vector<std::string> written;
  bool inside = false;
  machine_->disk().SetFaultHook([&](Op op, const std::string& path) -> absl::Status {
    if (op == Op::kRename && path.find("/probe") != std::string::npos) written.push_back(path);
    // While the first one is about to read its file, a second one comes and goes.
    if (op == Op::kRead && path.find("/probe") != std::string::npos && !std::exchange(inside, true)) {
      EXPECT_THAT(volume->Probe(), IsOk());
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(volume->Probe(), IsOk());
  ASSERT_THAT(written, SizeIs(2));
  EXPECT_NE(written[0], written[1]);
  Heal();
  // What a crash left of one is gone at the next start.
  ASSERT_THAT(process_->files().WriteWhole("/data/1/probe-7", "x"), IsOk());
  KillAndOpen();
  EXPECT_FALSE(*process_->files().Exists("/data/1/probe-7"));
}

TEST_F(VolumeKeeperTest, VolumesComeAndGoOftenerThanThereArePlaces) {
  options_.directories = {"/data/1"};
  Open();
  for (size_t had = 1; had < VolumeSet::kMostEver; ++had) {
    ASSERT_EQ(Change({"/data/1", "/data/2"}), "") << had;
    ASSERT_EQ(Change({"/data/1"}), "") << had;
  }
  EXPECT_THAT(Change({"/data/1", "/data/2"}), AllOf(HasSubstr("/data/2"), HasSubstr("restart it")));
  EXPECT_THAT(Directories(), ElementsAre("/data/1"));
}

}  // namespace
}  // namespace cairn::datanode::testing
