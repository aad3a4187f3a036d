#include "datanode/storage/volume_keeper.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "datanode/storage/volume_choice.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Op = cairn::testing::SimDisk::Op;

class VolumeKeeperTest : public StorageTest {
 protected:
  VolumeKeeperTest() {
    options_.directories = {"/data/1", "/data/2"};
    options_.keeper = {};
    options_.keeper.drain = absl::Seconds(20);
  }
  // Every operation on this directory fails until Heal.
  void Break(const std::string& directory) {
    machine_->disk().SetFaultHook([this, prefix = directory + "/"](Op op, const std::string& path) -> absl::Status {
      if (op == Op::kRemove && path.starts_with(prefix) && path.find("/blk_") != std::string::npos) ++removals_;
      return path.starts_with(prefix) ? absl::InternalError(path + ": Input/output error") : absl::OkStatus();
    });
  }
  void Heal() { machine_->disk().SetFaultHook(nullptr); }
  // Errors of the change.
  std::string Change(std::vector<std::string> directories, absl::Duration within = absl::Seconds(60)) {
    std::optional<absl::Status> changed;
    opened_.volumes->ChangeVolumes(std::move(directories), [&changed](absl::Status status) { changed = std::move(status); });
    EXPECT_TRUE(world_.RunUntil([&changed] { return changed.has_value(); }, within));
    return changed ? std::string(changed->message()) : "not done";
  }
  std::vector<std::string> Directories() {
    std::vector<std::string> directories;
    for (const v1::StorageStatistics& storage : store().Statistics()) directories.push_back(storage.directory());
    return directories;
  }
  std::vector<v1::StorageState> StatesTold(const std::string& storage_uuid) {
    std::vector<v1::StorageState> states;
    for (const v1::ReportEvent& event : EventsOf(v1::STORAGE_STATE_CHANGED))
      if (event.storage_uuid() == storage_uuid) states.push_back(event.storage_state());
    return states;
  }
  void PutOn(size_t volume, BlockId id, size_t length) {
    const auto placement = store().Place({.storage_uuid = storage(volume)});
    ASSERT_THAT(placement, IsOk());
    const auto writer = store().CreateRbw(*placement, id, kStamp, {});
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT(WritePattern(**writer, 0, length), IsOk());
    ASSERT_THAT((*writer)->Finalize(length, true), IsOk());
  }

  int removals_ = 0;
};

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
  if (writer.ok()) {
    ASSERT_THAT(WritePattern(**writer, 0, 1000), IsOk());
    ASSERT_THAT((*writer)->Finalize(1000, true), IsOk());
  }
  Heal();
  world_.RunFor(absl::Minutes(1));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));
  EXPECT_EQ(store().replica_count(), 1u);
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

// --- which volume

VolumeChoice Choice(uintptr_t volume, uint64_t free_mib, double fullness, size_t queued = 0) {
  return {.volume = reinterpret_cast<Volume*>(volume), .free_bytes = free_mib << 20, .fullness = fullness, .queued = queued};
}

int TimesOf(const std::vector<VolumeChoice>& choices, uintptr_t wanted) {
  Random random(7);
  int times = 0;
  for (int i = 0; i < 1000; ++i) times += ChooseVolume(choices, &random) == reinterpret_cast<Volume*>(wanted) ? 1 : 0;
  return times;
}

TEST(VolumeChoice, EmptierIsTakenMoreOften) {
  const int times = TimesOf({Choice(1, 90'000, 0.1), Choice(2, 20'000, 0.8)}, 1);
  EXPECT_GE(times, 650);
  EXPECT_LE(times, 850);
}

TEST(VolumeChoice, BusyDiskIsTakenLessOften) {
  const int times = TimesOf({Choice(1, 50'000, 0.5, 9), Choice(2, 50'000, 0.5, 0)}, 1);
  EXPECT_GE(times, 50);
  EXPECT_LE(times, 150);
}

TEST(VolumeChoice, NearlyFullOneIsTakenOnlyIfThereIsNoOther) {
  EXPECT_EQ(TimesOf({Choice(1, 900'000, 0.97), Choice(2, 100, 0.9)}, 1), 0);
  EXPECT_GE(TimesOf({Choice(1, 900, 0.97), Choice(2, 900, 0.99)}, 2), 400);
  EXPECT_EQ(TimesOf({Choice(1, 0, 0.97)}, 1), 1000);
  Random random(7);
  EXPECT_EQ(ChooseVolume({}, &random), nullptr);
}

}  // namespace
}  // namespace cairn::datanode::testing
