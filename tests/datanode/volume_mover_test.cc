#include "datanode/storage/volume_mover.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "datanode/storage/replica_format.h"
#include "tests/datanode/volume_mover_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(VolumeMoverTest, ReplicasGoToTheEmptyVolumeUntilBothAreEven) {
  Open();
  Fill();
  LetNamenodeKnow();
  world_.RunFor(absl::Minutes(1));
  const std::vector<v1::StorageStatistics> volumes = store().Statistics();
  EXPECT_GE(volumes[1].replicas(), 15u);
  EXPECT_LE(volumes[1].replicas(), 20u);
  EXPECT_EQ(volumes[0].replicas() + volumes[1].replicas(), kReplicas);
  EXPECT_EQ(store().replica_count(), kReplicas);
  EXPECT_EQ(Moves().replicas, volumes[1].replicas());
  EXPECT_EQ(Moves().bytes, volumes[1].used_bytes());
  EXPECT_EQ(Moves().failed, 0u);
  EXPECT_EQ(Moves().under_way, "");
  EXPECT_EQ(volumes[0].used_bytes() + volumes[1].used_bytes(), kReplicas * UsedBytes(kLength, 512));
  for (uint64_t i = 0; i < kReplicas; ++i) {
    EXPECT_EQ(*Read(Block(i)), Pattern(0, kLength));
    EXPECT_THAT(FilesOf(Block(i)), SizeIs(1)) << i;
    EXPECT_TRUE(store().Describe(Block(i))->sure);
  }
  // And it is where the next start finds it, after a loss of power too.
  const size_t moved = OnSecond();
  CutPowerAndOpen();
  EXPECT_EQ(OnSecond(), moved);
  for (uint64_t i = 0; i < kReplicas; ++i) EXPECT_EQ(*Read(Block(i)), Pattern(0, kLength));
}

// A NameNode that applies a message at a time, as it comes.
TEST_F(VolumeMoverTest, NamenodeNeverSeesTwoOfThemNorNone) {
  Open();
  Fill();
  const uint64_t before = events().last();
  LetNamenodeKnow();
  ASSERT_TRUE(RunUntilMoved(10));
  for (const size_t most : std::vector<size_t>{1, 2, 3, 7, 1000}) {
    std::map<uint64_t, std::set<std::string>> holders;
    for (uint64_t i = 0; i < kReplicas; ++i) holders[Block(i).value()] = {storage(0)};
    for (uint64_t next = before + 1; next <= events().last();) {
      const EventLog::Slice slice = events().From(next, most, 1 << 20);
      ASSERT_FALSE(slice.events.empty());
      for (const v1::ReportEvent& event : slice.events) {
        std::set<std::string>& of_block = holders[event.replica().block_id()];
        if (event.type() == v1::REPLICA_FINALIZED) of_block.insert(event.storage_uuid());
        if (event.type() == v1::DROPPED) of_block.erase(event.storage_uuid());
      }
      next = slice.events.back().number() + 1;
      for (const auto& [block, storages] : holders) ASSERT_THAT(storages, SizeIs(1)) << block << " before event " << next;
    }
  }
  const std::vector<v1::ReportEvent> arrived = EventsOf(v1::REPLICA_FINALIZED);
  EXPECT_EQ(arrived.back().replica().length_bytes(), kLength);
  EXPECT_EQ(arrived.back().replica().generation_stamp(), kStamp.value());
}

TEST_F(VolumeMoverTest, NothingGoesToAStorageThatTheNamenodeDoesNotKnow) {
  options_.mover.check_interval = absl::Minutes(1);
  Open();
  Fill();
  store().NoteRegistered({storage(0)});
  world_.RunFor(absl::Minutes(5) + absl::Seconds(2));
  EXPECT_EQ(Moves().replicas, 0u);
  LetNamenodeKnow();
  EXPECT_TRUE(RunUntilMoved(1, absl::Seconds(5)));
}

TEST_F(VolumeMoverTest, LittleDifferenceIsLeftAlone) {
  Open();
  Fill(8);  // 8 % of the disk.
  LetNamenodeKnow();
  world_.RunFor(absl::Minutes(5));
  EXPECT_EQ(Moves().replicas, 0u);
  options_.mover.threshold_percent = 3;
  opened_.volumes->SetPace(options_.deleter, options_.scanner, options_.mover);
  EXPECT_TRUE(RunUntilMoved(1, absl::Seconds(5)));
}

TEST_F(VolumeMoverTest, SwitchedOffAndOnWhileItRuns) {
  options_.mover.threshold_percent = 0;
  Open();
  Fill();
  LetNamenodeKnow();
  world_.RunFor(absl::Minutes(5));
  EXPECT_EQ(Moves().replicas, 0u);
  VolumeMoverOptions on = options_.mover;
  on.threshold_percent = 10;
  on.bytes_per_second = 1 << 20;
  opened_.volumes->SetPace(options_.deleter, options_.scanner, on);
  ASSERT_TRUE(RunUntilMoved(2));
  EXPECT_EQ(Moves().under_way, "from /data/1 to /data/2");
  opened_.volumes->SetPace(options_.deleter, options_.scanner, options_.mover);
  world_.RunFor(absl::Seconds(1));
  const uint64_t moved = Moves().replicas;
  EXPECT_EQ(Moves().under_way, "");
  world_.RunFor(absl::Minutes(5));
  EXPECT_EQ(Moves().replicas, moved);
  for (uint64_t i = 0; i < kReplicas; ++i) EXPECT_THAT(FilesOf(Block(i)), SizeIs(1)) << i;  // Nothing is left of the one under way.
}

TEST_F(VolumeMoverTest, KeepsToItsPace) {
  options_.mover.bytes_per_second = kLength;  // A replica a second.
  Open();
  Fill();
  LetNamenodeKnow();
  world_.RunFor(absl::Seconds(10));
  EXPECT_LE(Moves().replicas, 11u);
  EXPECT_GE(Moves().replicas, 8u);
}

TEST_F(VolumeMoverTest, ReaderThatHasTheOldFileOpenGoesOn) {
  Open();
  Fill();
  const auto reader = store().OpenForRead(Block(0), kStamp);
  ASSERT_THAT(reader, IsOk());
  LetNamenodeKnow();
  ASSERT_TRUE(RunUntilMoved(3));
  world_.RunFor(absl::Seconds(5));
  ASSERT_THAT(FilesOf(Block(0)), ElementsAre("/data/2"));
  EXPECT_EQ(*ReadAll(**reader), Pattern(0, kLength));
  EXPECT_EQ(*Read(Block(0)), Pattern(0, kLength));
}

TEST_F(VolumeMoverTest, DeletionThatComesMeanwhileWins) {
  ASSERT_NO_FATAL_FAILURE(OpenWithAMoveUnderWay());
  store().Invalidate(storage(0), Block(0), kStamp, 77, NotVoided());
  world_.RunFor(absl::Minutes(1));
  EXPECT_THAT(FilesOf(Block(0)), IsEmpty());
  EXPECT_EQ(store().Describe(Block(0)), std::nullopt);
  EXPECT_EQ(store().replica_count(), kReplicas - 1);
  for (const v1::ReportEvent& event : EventsOf(v1::REPLICA_FINALIZED))
    EXPECT_FALSE(event.storage_uuid() == storage(1) && event.replica().block_id() == Block(0).value());
  EXPECT_EQ(store().Statistics()[0].used_bytes() + store().Statistics()[1].used_bytes(), (kReplicas - 1) * UsedBytes(kLength, 512));
  EXPECT_EQ(Moves().failed, 0u);
}

TEST_F(VolumeMoverTest, DeletionOfWhereItWasIsRefusedOnceItHasMoved) {
  Open();
  Fill();
  LetNamenodeKnow();
  ASSERT_TRUE(RunUntilMoved(1));
  store().Invalidate(storage(0), Block(0), kStamp, 77, NotVoided());
  ASSERT_THAT(EventsOf(v1::KEPT), SizeIs(1));
  EXPECT_EQ(*Read(Block(0)), Pattern(0, kLength));
  store().Invalidate(storage(1), Block(0), kStamp, 78, NotVoided());
  EXPECT_THAT(Read(Block(0)), HasKind(ErrorKind::kReplicaNotFound));
}

TEST_F(VolumeMoverTest, AppendThatComesMeanwhileWinsAndOneThatComesLaterFindsIt) {
  ASSERT_NO_FATAL_FAILURE(OpenWithAMoveUnderWay());
  const auto writer = store().ReopenForAppend(Block(0), kStamp, GenerationStamp(1005), kLength, false);
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, kLength, 1000), IsOk());
  ASSERT_THAT((*writer)->Finalize(kLength + 1000, true), IsOk());
  EXPECT_EQ(*Read(Block(0), GenerationStamp(1005)), Pattern(0, kLength + 1000));
  ASSERT_TRUE(RunUntilMoved(3));
  EXPECT_EQ(store().Describe(Block(0))->storage_uuid, storage(0));
  ASSERT_EQ(store().Describe(Block(1))->storage_uuid, storage(1));
  const auto later = store().ReopenForAppend(Block(1), kStamp, GenerationStamp(1006), kLength, false);
  ASSERT_THAT(later, IsOk());
  EXPECT_EQ((*later)->Describe().storage_uuid, storage(1));
  ASSERT_THAT(WritePattern(**later, kLength, 1000), IsOk());
  ASSERT_THAT((*later)->Finalize(kLength + 1000, true), IsOk());
  EXPECT_EQ(*Read(Block(1), GenerationStamp(1006)), Pattern(0, kLength + 1000));
}

TEST_F(VolumeMoverTest, RecoveryThatComesMeanwhileWins) {
  ASSERT_NO_FATAL_FAILURE(OpenWithAMoveUnderWay());
  ASSERT_THAT(store().InitReplicaRecovery(Block(0), GenerationStamp(1005)), IsOk());
  world_.RunFor(absl::Seconds(5));
  EXPECT_EQ(*store().UpdateReplicaUnderRecovery(Block(0), GenerationStamp(1005), 100'000), storage(0));
  EXPECT_EQ(*Read(Block(0), GenerationStamp(1005)), Pattern(0, 100'000));
  EXPECT_THAT(FilesOf(Block(0)), ElementsAre("/data/1"));
}

TEST_F(VolumeMoverTest, ReplicaThatHasRottedIsNotCopiedButReported) {
  Open();
  Fill();
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(Block(2)), DataOffset(options_.max_block_bytes, 512) + 70'000), IsOk());
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(Block(3)), DataOffset(options_.max_block_bytes, 512) + kLength - 1), IsOk());
  LetNamenodeKnow();
  world_.RunFor(absl::Minutes(1));
  ASSERT_THAT(EventsOf(v1::CORRUPT), SizeIs(2));
  EXPECT_EQ(EventsOf(v1::CORRUPT)[0].replica().block_id(), Block(2).value());
  EXPECT_EQ(EventsOf(v1::CORRUPT)[0].storage_uuid(), storage(0));
  EXPECT_EQ(Moves().failed, 2u);
  EXPECT_THAT(FilesOf(Block(2)), ElementsAre("/data/1"));
  EXPECT_THAT(FilesOf(Block(3)), ElementsAre("/data/1"));
  EXPECT_GE(OnSecond(), 14u);  // The others go.
}

TEST_F(VolumeMoverTest, VolumeThatFailsWhileItIsFilledCostsNothing) {
  options_.keeper.check_interval = absl::InfiniteDuration();
  Open();
  Fill();
  const std::string first = storage(0);
  const std::string second = storage(1);
  machine_->disk().FailNextSync("/data/2/moving/");
  LetNamenodeKnow();
  world_.RunFor(absl::Minutes(1));
  EXPECT_THAT(StatesTold(second), ElementsAre(v1::FAILED));
  EXPECT_THAT(StatesTold(first), IsEmpty());
  EXPECT_EQ(Moves().replicas, 0u);
  EXPECT_EQ(Moves().failed, 1u);
  for (uint64_t i = 0; i < kReplicas; ++i) EXPECT_EQ(*Read(Block(i)), Pattern(0, kLength));
}

TEST_F(VolumeMoverTest, VolumeThatIsFullIsNeitherFailedNorEmptied) {
  Open();
  Fill();
  for (uint64_t i = kReplicas; i < kReplicas + 5; ++i) ASSERT_NO_FATAL_FAILURE(PutOn(1, Block(i), kLength));
  machine_->disk().SetFaultHook([](Op op, const std::string& path) -> absl::Status {
    return op == Op::kWrite && path.starts_with("/data/2/moving/") ? MakeError(ErrorKind::kDiskFull, path + ": ENOSPC") : absl::OkStatus();
  });
  LetNamenodeKnow();
  world_.RunFor(absl::Minutes(1));
  EXPECT_EQ(Moves().replicas, 0u);
  EXPECT_GE(Moves().failed, 1u);
  EXPECT_LE(Moves().failed, 7u);  // Its space is asked about every ten seconds.
  EXPECT_THAT(EventsOf(v1::STORAGE_STATE_CHANGED), IsEmpty());
  EXPECT_EQ(store().Statistics()[1].replicas(), 5u);
  for (uint64_t i = 0; i < kReplicas; ++i) EXPECT_THAT(FilesOf(Block(i)), ElementsAre("/data/1"));
  Heal();
  EXPECT_TRUE(RunUntilMoved(5));
  EXPECT_GE(store().Statistics()[1].replicas(), 10u);
}

TEST_F(VolumeMoverTest, ReplicaWhosePlaceIsTakenIsNotCopiedAgainAndAgain) {
  options_.mover.check_interval = absl::Minutes(1);
  options_.max_block_bytes = 8 << 20;
  Open();
  ASSERT_NO_FATAL_FAILURE(PutOn(0, Block(0), 1 << 20));
  ASSERT_NO_FATAL_FAILURE(PutOn(0, Block(100), 7 << 20));  // Too large to go.
  const std::string taken = PathOf(Block(0), "/data/2");
  ASSERT_THAT(process_->files().MakeDirectories(taken.substr(0, taken.rfind('/'))), IsOk());
  ASSERT_THAT(process_->files().WriteWhole(taken, "what is this"), IsOk());
  int written = 0;
  machine_->disk().SetFaultHook([&written](Op op, const std::string& path) -> absl::Status {
    written += op == Op::kWrite && path.starts_with("/data/2/moving/") ? 1 : 0;
    return absl::OkStatus();
  });
  LetNamenodeKnow();
  world_.RunFor(absl::Minutes(5));
  Heal();
  EXPECT_EQ(Moves().replicas, 0u);
  EXPECT_EQ(written, 0);
  EXPECT_GE(Moves().failed, 1u);
  EXPECT_LE(Moves().failed, 7u);
  EXPECT_EQ(*Read(Block(0)), Pattern(0, 1 << 20));
  // Others are moved all the same.
  for (uint64_t i = 1; i < 4; ++i) PutOn(0, Block(i), 100'000);
  world_.RunFor(absl::Minutes(5));
  EXPECT_EQ(Moves().replicas, 3u);
}

TEST_F(VolumeMoverTest, NextFullestGivesWhereTheFullestHasNothingThatFits) {
  options_.directories = {"/data/1", "/data/2", "/data/3"};
  options_.max_block_bytes = 8 << 20;
  Open();
  ASSERT_NO_FATAL_FAILURE(PutOn(0, Block(100), 7 << 20));
  for (uint64_t i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(PutOn(1, Block(i), kLength));
  store().NoteRegistered({storage(0), storage(1), storage(2)});
  EXPECT_TRUE(RunUntilMoved(3));
  EXPECT_EQ(store().Describe(Block(100))->storage_uuid, storage(0));
  EXPECT_GE(store().Statistics()[2].replicas(), 3u);
}

TEST_F(VolumeMoverTest, VolumeThatIsTakenOutIsFilledNoFurther) {
  options_.mover.bytes_per_second = kLength;
  Open();
  Fill();
  LetNamenodeKnow();
  ASSERT_TRUE(RunUntilMoved(3));
  world_.RunFor(absl::Milliseconds(500));
  EXPECT_EQ(Change({"/data/1"}), "");
  world_.RunFor(absl::Minutes(1));
  EXPECT_EQ(Moves().replicas, 3u);
  EXPECT_THAT(*process_->files().List("/data/2/moving"), IsEmpty());
  for (uint64_t i = 3; i < kReplicas; ++i) EXPECT_EQ(*Read(Block(i)), Pattern(0, kLength));
  // It comes back with what went there.
  EXPECT_EQ(Change({"/data/1", "/data/2"}), "");
  for (uint64_t i = 0; i < kReplicas; ++i) EXPECT_EQ(*Read(Block(i)), Pattern(0, kLength));
}

TEST_F(VolumeMoverTest, ReplicaThatIsTooLargeForTheDifferenceStays) {
  options_.max_block_bytes = 8 << 20;
  Open();
  PutOn(0, Block(0), 7 << 20);  // A third of the disk: it would only turn the difference round.
  LetNamenodeKnow();
  world_.RunFor(absl::Minutes(5));
  EXPECT_EQ(Moves().replicas, 0u);
  for (uint64_t i = 1; i < 4; ++i) PutOn(0, Block(i), 100'000);
  world_.RunFor(absl::Minutes(5));
  EXPECT_EQ(Moves().replicas, 3u);
  EXPECT_EQ(store().Describe(Block(0))->storage_uuid, storage(0));
}

TEST_F(VolumeMoverTest, VolumeThatIsAddedIsFilled) {
  options_.directories = {"/data/1"};
  Open();
  Fill();
  store().NoteRegistered({storage(0)});
  EXPECT_EQ(Change({"/data/1", "/data/2"}), "");
  LetNamenodeKnow();
  EXPECT_TRUE(RunUntilMoved(8));
}

TEST_F(VolumeMoverTest, GivesWayToOthersButNotForEver) {
  options_.mover.bytes_per_second = 1 << 30;
  Open();
  Fill();
  // Something always waits for the first disk.
  Executor* const disk = *store().DiskOf(Block(0));
  int left = 100'000;
  std::function<void()> again = [&] {
    if (--left > 0)
      disk->PostAt(disk->clock().Now() + absl::Milliseconds(1), [&] {
        disk->Post([&] { again(); });
        disk->Post([] {});
      });
  };
  again();
  LetNamenodeKnow();
  world_.RunFor(absl::Seconds(30));
  EXPECT_GE(Moves().replicas, 1u);
  left = 0;
  world_.RunFor(absl::Seconds(1));
}

}  // namespace
}  // namespace cairn::datanode::testing
