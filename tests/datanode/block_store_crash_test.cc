// Power cuts and kills at every step between two durable effects: what was acknowledged is there afterwards.

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "common/env/random.h"
#include "datanode/storage/replica_format.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

// What the store has acknowledged so far.
struct Acknowledged {
  bool created = false;
  uint64_t received = 0;
  uint64_t synced = 0;
  GenerationStamp stamp;
  bool finalized = false;
};

class CrashTest : public StorageTest {
 protected:
  CrashTest() : StorageTest(77) {}
  void SetUp() override { Open(); }

  // Creates, writes, hsyncs, recovers and finalizes a block, until something fails.
  Acknowledged Work(BlockId id, Random& random) {
    Acknowledged done;
    auto created = Create(id);
    if (!created.ok()) return done;
    std::shared_ptr<ReplicaWriter> writer = *created;
    done.created = true;
    done.stamp = kStamp;
    for (int i = 0; i < 12; ++i) {
      const uint64_t offset = done.received - std::min<uint64_t>(done.received, random.Below(600));
      const size_t length = static_cast<size_t>(random.Below(2000));
      const bool sync = random.OneIn(4);
      if (!WritePattern(*writer, offset, length, sync).ok()) return done;
      done.received = std::max(done.received, offset + length);
      if (sync) done.synced = done.received;
      if (random.OneIn(6)) {
        const GenerationStamp next(done.stamp.value() + 1);
        auto recovered = store().RecoverRbw(id, done.stamp, next, done.received, done.received);
        if (!recovered.ok()) return done;
        writer = *recovered;
        done.stamp = next;
        done.synced = done.received;
      }
    }
    if (!writer->Finalize(done.received, true).ok()) return done;
    done.synced = done.received;
    done.finalized = true;
    return done;
  }

  // Empty, or what was lost.
  std::string Lost(BlockId id, const Acknowledged& done, uint64_t least_length) {
    const auto ours = store().Describe(id);
    if (!ours) return done.created && least_length > 0 ? "the replica" : "";
    if (ours->corrupt) return "the replica is called corrupt";
    if (done.finalized && ours->state != ReplicaState::kFinalized) return "the close";
    if (ours->length < least_length) return fmt::format("bytes: {} of {}", ours->length, least_length);
    if (least_length > 0 && ours->stamp < done.stamp) return "the stamp";
    const auto read = Read(id);
    if (!read.ok()) return std::string(read.status().message());
    if (*read != Pattern(0, read->size())) return "other bytes";
    return "";
  }
};

constexpr const char* kPoints[] = {
    "replica_file.before_header",        "replica_file.before_durable_slot", "replica_file.before_sync",
    "replica_file.after_sync",           "replica_file.before_data",         "replica_file.before_region",
    "replica_file.before_progress_slot", "volume.before_directory_sync",     "replica_file.before_synced_mark",
};

class CrashAt : public CrashTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(CrashAt, PowerCutKeepsWhatWasSynced) {
  Random random(5);
  uint64_t hit = 0;
  for (uint64_t i = 1; i <= 40; ++i) {
    const BlockId id(kBlock.value() + 16 * i);
    ASSERT_THAT(ArmFault(GetParam(), fmt::format("error@{}*1", random.Below(8))), IsOk());
    const Acknowledged done = Work(id, random);
    hit += done.finalized ? 0 : 1;
    DisarmAllFaults();
    CutPowerAndOpen();
    ASSERT_EQ(Lost(id, done, done.synced), "") << "round " << i;
  }
  EXPECT_GT(hit, 0u);  // The point lies on the way.
}

TEST_P(CrashAt, KillKeepsAllThatWasAcknowledged) {
  Random random(6);
  for (uint64_t i = 1; i <= 40; ++i) {
    const BlockId id(kBlock.value() + 16 * i);
    ASSERT_THAT(ArmFault(GetParam(), fmt::format("error@{}*1", random.Below(8))), IsOk());
    // The error stands for the end of the process, which does not live to say that its volume has failed.
    machine_->disk().SetFaultHook([](cairn::testing::SimDisk::Op, const std::string& path) -> absl::Status {
      return path.find("/VERSION") == std::string::npos ? absl::OkStatus() : absl::InternalError(path + ": killed");
    });
    const Acknowledged done = Work(id, random);
    machine_->disk().SetFaultHook(nullptr);
    DisarmAllFaults();
    KillAndOpen();
    ASSERT_EQ(Lost(id, done, done.received), "") << "round " << i;
    const auto ours = store().Describe(id);
    if (done.created) {
      ASSERT_TRUE(ours.has_value());
      EXPECT_TRUE(ours->sure);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Points, CrashAt, ::testing::ValuesIn(kPoints), [](const auto& point) {
  std::string name = point.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

class Controls : public CrashTest {
 protected:
  // How many of 20 acknowledged closes a power cut harmed.
  int Harmed() {
    Random random(7);
    int harmed = 0;
    for (uint64_t i = 1; i <= 20; ++i) {
      const BlockId id(kBlock.value() + 16 * i);
      const Acknowledged done = Work(id, random);
      EXPECT_TRUE(done.finalized);
      machine_->PowerCut();
      Close();
      process_ = machine_->StartProcess();
      Open();
      if (!Lost(id, done, done.received).empty()) ++harmed;
    }
    return harmed;
  }
};

TEST_F(Controls, NothingIsHarmedWithoutAFault) { EXPECT_EQ(Harmed(), 0); }

TEST_F(Controls, CloseAcknowledgedBeforeItsSyncIsNoticed) {
  ASSERT_THAT(ArmFault("datanode.finalize.skip_sync", "error"), IsOk());
  EXPECT_GT(Harmed(), 0);
}

TEST_F(Controls, MissingDirectorySyncIsNoticed) {
  machine_->disk().IgnoreDirectorySyncs(true);
  EXPECT_GT(Harmed(), 0);
}

TEST_F(CrashTest, UnfinishedReplicaIsNotSureAfterAReboot) {
  auto writer = Create();
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 5000, /*sync=*/true), IsOk());
  writer->reset();
  KillAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr);
  EXPECT_TRUE(store().Describe(kBlock)->sure);
  EXPECT_EQ(*Read(kBlock), Pattern(0, 5000));
  CutPowerAndOpen();
  EXPECT_FALSE(store().Describe(kBlock)->sure);
  EXPECT_EQ(store().Describe(kBlock)->length, 5000u);
  EXPECT_THAT(store().RecoverRbw(kBlock, kStamp, GenerationStamp(1002), 0, 5000), HasKind(ErrorKind::kReplicaNotFound));
}

TEST_F(CrashTest, WriterGoesOnWithASureReplicaAfterAKill) {
  auto writer = Create();
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 700), IsOk());
  writer->reset();
  KillAndOpen();
  auto next = store().RecoverRbw(kBlock, kStamp, GenerationStamp(1002), 700, 700);
  ASSERT_THAT(next, IsOk());
  ASSERT_THAT(WritePattern(**next, 700, 700), IsOk());
  ASSERT_THAT((*next)->Finalize(1400, true), IsOk());
  EXPECT_EQ(*Read(kBlock, GenerationStamp(1002)), Pattern(0, 1400));
}

TEST_F(CrashTest, FinalizedReplicaWithoutTheMarkIsReadBeforeItIsBelievedAfterAReboot) {
  auto writer = Create();
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 3000), IsOk());
  ASSERT_THAT((*writer)->Sync(), IsOk());
  ASSERT_THAT((*writer)->Finalize(3000, false), IsOk());
  // Only the slot is at risk now; make it durable by hand, then spoil a byte of the first chunk.
  auto file = process_->files().Open(PathOf(kBlock), LocalFileSystem::OpenMode::kReadWrite);
  ASSERT_THAT((*file)->Sync(), IsOk());
  file->reset();
  writer->reset();
  KillAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kFinalized);  // No reboot: nothing can be missing.
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(kBlock), DataOffset(1 << 20, 512) + 600), IsOk());
  CutPowerAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr);
  EXPECT_EQ(store().Describe(kBlock)->length, 512u);
  EXPECT_FALSE(store().Describe(kBlock)->sure);
}

TEST_F(CrashTest, VerifiedOnceAfterARebootItIsMarked) {
  auto writer = Create();
  ASSERT_THAT(WritePattern(**writer, 0, 3000), IsOk());
  ASSERT_THAT((*writer)->Sync(), IsOk());
  ASSERT_THAT((*writer)->Finalize(3000, false), IsOk());
  auto file = process_->files().Open(PathOf(kBlock), LocalFileSystem::OpenMode::kReadWrite);
  ASSERT_THAT((*file)->Sync(), IsOk());
  file->reset();
  writer->reset();
  CutPowerAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kFinalized);
  const uint64_t before = machine_->disk().counters().read_bytes;
  KillAndOpen();
  EXPECT_LT(machine_->disk().counters().read_bytes - before, 3000u + 8192);  // The header and VERSION, not the data.
}

TEST_F(CrashTest, RottenPartialChunkWithoutARebootMeansCorrupt) {
  auto writer = Create();
  ASSERT_THAT(WritePattern(**writer, 0, 700), IsOk());
  writer->reset();
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(kBlock), DataOffset(1 << 20, 512) + 600), IsOk());
  KillAndOpen();
  EXPECT_TRUE(store().Describe(kBlock)->corrupt);
  EXPECT_THAT(Read(kBlock), HasKind(ErrorKind::kChecksum));
}

TEST_F(CrashTest, FileThatIsNoReplicaOfOursIsQuarantined) {
  Put(kBlock, 100);
  const BlockId bad_header(kBlock.value() + 16);
  const BlockId wrong_name(kBlock.value() + 32);
  const BlockId source(kBlock.value() + 48);
  Put(bad_header, 100);
  Put(source, 100);
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(bad_header), 30), IsOk());
  ASSERT_THAT(process_->files().MakeDirectories(PathOf(wrong_name).substr(0, PathOf(wrong_name).rfind('/'))), IsOk());
  ASSERT_THAT(process_->files().Rename(PathOf(source), PathOf(wrong_name)), IsOk());
  KillAndOpen();
  EXPECT_EQ(store().replica_count(), 1u);
  EXPECT_EQ(opened_.scans[0].quarantined_count, 2u);
  EXPECT_EQ(process_->files().List("/data/1/quarantine")->size(), 2u);
  EXPECT_EQ(*Read(kBlock), Pattern(0, 100));
  EXPECT_THAT(Create(bad_header), IsOk());
}

TEST_F(CrashTest, TransferTargetsAndHalfMadeFilesAreGoneAfterARestart) {
  auto copy = store().CreateTemporary(*store().Place({}), kBlock, kStamp, {});
  ASSERT_THAT(copy, IsOk());
  ASSERT_THAT(WritePattern(**copy, 0, 100), IsOk());
  const BlockId half(kBlock.value() + 16);
  ASSERT_THAT(ArmFault("replica_file.before_header", "error"), IsOk());
  EXPECT_FALSE(Create(half).ok());
  DisarmAllFaults();
  process_->Kill();
  copy->reset();
  KillAndOpen();
  EXPECT_EQ(opened_.scans[0].removed, 2u);
  EXPECT_EQ(opened_.scans[0].quarantined_count, 0u);
  EXPECT_EQ(store().replica_count(), 0u);
  EXPECT_FALSE(FileExists(kBlock));
}

}  // namespace
}  // namespace cairn::datanode::testing
