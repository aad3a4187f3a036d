#include "datanode/storage/replica_file.h"

#include <string>

#include <gtest/gtest.h>

#include "datanode/storage/replica_load.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::SizeIs;

constexpr char kPath[] = "/blk_1";

class ReplicaFileTest : public ::testing::Test {
 protected:
  ReplicaFileTest() : machine_(world_.AddMachine("datanode")), process_(machine_->StartProcess()) { EnableFaultPoints(); }
  ~ReplicaFileTest() override { DisarmAllFaults(); }

  static ReplicaHeader Header() { return {.capacity = 100'000, .pool_id = kPool, .id = kBlock}; }
  std::unique_ptr<ReplicaFile> Create() {
    auto file = ReplicaFile::Create(process_->files(), kPath, Header(), kStamp, ReplicaState::kRbw, process_->boot_id());
    EXPECT_THAT(file, IsOk());
    EXPECT_THAT(process_->files().SyncDirectory("/"), IsOk());
    return *std::move(file);
  }
  std::unique_ptr<ReplicaFile> Open() {
    auto file = ReplicaFile::Open(process_->files(), kPath, LocalFileSystem::OpenMode::kReadWrite, process_->boot_id());
    EXPECT_THAT(file, IsOk());
    return *std::move(file);
  }
  // [0, length) of the pattern with its checksums; unsynced, no slot.
  static void Fill(ReplicaFile& file, uint64_t length) {
    const std::string data = Pattern(0, length);
    ASSERT_THAT(file.WriteData(0, data), IsOk());
    ASSERT_THAT(file.WriteChecksums(0, ChecksumsOf(data).substr(0, 4 * (length / 512))), IsOk());
  }
  static uint32_t PartialOf(uint64_t length) { return Crc32c(Pattern(length - length % 512, length % 512)); }
  LoadedReplica Load() {
    const auto file = Open();
    const auto loaded = LoadReplica(*file, process_->boot_id());
    EXPECT_THAT(loaded, IsOk());
    return *loaded;
  }
  void Restart(bool power_cut) {
    power_cut ? machine_->PowerCut() : machine_->Kill();
    process_ = machine_->StartProcess();
  }

  cairn::testing::SimWorld world_{{.seed = 4}};
  cairn::testing::SimMachine* machine_;
  cairn::testing::SimProcess* process_;
};

TEST_F(ReplicaFileTest, SlotWriteTakesTheOlderOfItsPairInOneSequence) {
  auto file = Create();
  for (uint64_t length = 1; length <= 3; ++length) {
    ASSERT_THAT(file->WriteProgressSlot({.stamp = kStamp, .length = length, .partial_checksum = 1}), IsOk());
    ASSERT_THAT(file->WriteDurableSlot({.stamp = kStamp, .length = 10 * length, .partial_checksum = 1}), IsOk());
  }
  file.reset();
  const auto slots = Open()->ValidSlots();
  ASSERT_THAT(slots, SizeIs(4));
  EXPECT_EQ(slots[0].length, 30u);
  EXPECT_EQ(slots[1].length, 3u);
  EXPECT_EQ(slots[2].length, 20u);
  EXPECT_EQ(slots[3].length, 2u);
  EXPECT_EQ(slots[0].sequence, 7u);
  // Opened again, the sequence goes on.
  ASSERT_THAT(Open()->WriteProgressSlot({.stamp = kStamp, .length = 4, .partial_checksum = 1}), IsOk());
  EXPECT_EQ(Open()->ValidSlots()[0].sequence, 8u);
}

TEST_F(ReplicaFileTest, ChecksumOnAChunksEdgeIsZero) {
  auto file = Create();
  ASSERT_THAT(file->WriteDurableSlot({.stamp = kStamp, .length = 512, .partial_checksum = 99}), IsOk());
  EXPECT_EQ(file->ValidSlots()[0].partial_checksum, 0u);
}

TEST_F(ReplicaFileTest, SlotLongerThanCapacityIsNone) {
  auto file = Create();
  ASSERT_THAT(file->WriteDurableSlot({.stamp = kStamp, .length = 100'001}), IsOk());
  EXPECT_THAT(Open()->ValidSlots(), SizeIs(1));
}

TEST_F(ReplicaFileTest, WithoutARebootAnUnfinishedReplicaExtendsByWholeChunksThatVerify) {
  auto file = Create();
  Fill(*file, 700);
  ASSERT_THAT(file->WriteProgressSlot({.stamp = kStamp, .length = 700, .partial_checksum = PartialOf(700)}), IsOk());
  Restart(false);
  EXPECT_EQ(Load().length, 700u);
  EXPECT_EQ(Load().partial_checksum, PartialOf(700));
  Fill(*Open(), 512 * 5 + 3);  // Three bytes without a slot: never acknowledged.
  Restart(false);
  EXPECT_EQ(Load().length, 512u * 5);
  EXPECT_EQ(Load().state, ReplicaState::kRwr);
  EXPECT_TRUE(Load().sure);
}

TEST_F(ReplicaFileTest, SlotThatPowerCutTookTheBytesOfIsPassedOverAndTheResultIsNotSure) {
  auto file = Create();
  Fill(*file, 700);
  ASSERT_THAT(file->WriteDurableSlot({.stamp = kStamp, .length = 700, .partial_checksum = PartialOf(700)}), IsOk());
  ASSERT_THAT(file->Sync(), IsOk());
  // A slot whose bytes were never written, as if only the slot's sector had reached the disk.
  ASSERT_THAT(file->WriteProgressSlot({.stamp = kStamp, .length = 900, .partial_checksum = 12345}), IsOk());
  ASSERT_THAT(file->Sync(), IsOk());
  EXPECT_TRUE(Load().corrupt);  // On a host that did not reboot it can only be rot.
  Restart(true);
  EXPECT_FALSE(Load().corrupt);
  EXPECT_EQ(Load().length, 700u);
  EXPECT_FALSE(Load().sure);
}

TEST_F(ReplicaFileTest, AfterARebootTheLengthIsTheLongestVerifyingPrefix) {
  auto file = Create();
  Fill(*file, 512 * 10);
  ASSERT_THAT(file->WriteDurableSlot({.stamp = kStamp, .length = 512 * 10}), IsOk());
  ASSERT_THAT(file->Sync(), IsOk());
  ASSERT_THAT(machine_->disk().FlipByte(kPath, file->data_offset() + 512 * 4 + 7), IsOk());
  Restart(false);
  EXPECT_EQ(Load().length, 512u * 10);  // Its slot stands: whoever reads finds the rot.
  Restart(true);
  EXPECT_EQ(Load().length, 512u * 4);
  EXPECT_FALSE(Load().sure);
}

TEST_F(ReplicaFileTest, CutReplicaNeverGrowsBackWhereverPowerFails) {
  for (const char* point :
       {"", "replica_file.before_sync", "replica_file.after_sync", "replica_file.before_cut_region", "replica_file.before_cut_data"}) {
    for (const bool power_cut : {false, true}) {
      auto file = Create();
      Fill(*file, 512 * 10);
      ASSERT_THAT(file->WriteDurableSlot({.stamp = kStamp, .length = 512 * 10}), IsOk());
      ASSERT_THAT(file->Sync(), IsOk());
      if (*point != '\0') {
        ASSERT_THAT(ArmFault(point, "error*1"), IsOk());
      }
      const GenerationStamp next(1002);
      const absl::Status cut = file->Cut({.stamp = next, .length = 1100, .partial_checksum = PartialOf(1100)});
      EXPECT_EQ(cut.ok(), *point == '\0') << point;
      DisarmAllFaults();
      Restart(power_cut);
      const LoadedReplica loaded = Load();
      EXPECT_TRUE(!cut.ok() || loaded.stamp == next);
      EXPECT_EQ(loaded.length, loaded.stamp == next ? 1100u : 5120u) << point;
      EXPECT_EQ(loaded.cut, loaded.stamp == next);
      if (loaded.cut) {
        // As the scan does; then the next durable slot may clear CUT and nothing old is found again.
        file = Open();
        ASSERT_THAT(file->FinishCut(loaded.length), IsOk());
        ASSERT_THAT(file->WriteDurableSlot({.stamp = next, .length = 1100, .partial_checksum = PartialOf(1100)}), IsOk());
        file.reset();
        EXPECT_EQ(Load().length, 1100u);
      }
      ASSERT_THAT(process_->files().Remove(kPath), IsOk());
    }
  }
}

TEST_F(ReplicaFileTest, ReadsBackWhatIsNotThereAsAbsent) {
  EXPECT_THAT(ReplicaFile::Open(process_->files(), "/none", LocalFileSystem::OpenMode::kRead, process_->boot_id()),
              HasKind(ErrorKind::kReplicaNotFound));
  auto empty = process_->files().Open("/empty", LocalFileSystem::OpenMode::kCreateNew);
  ASSERT_THAT(empty, IsOk());
  EXPECT_THAT(ReplicaFile::Open(process_->files(), "/empty", LocalFileSystem::OpenMode::kRead, process_->boot_id()),
              HasKind(ErrorKind::kCorruptMetadata));
  EXPECT_TRUE(*ReplicaFile::IsBlank(process_->files(), "/empty"));
  Create();
  EXPECT_FALSE(*ReplicaFile::IsBlank(process_->files(), kPath));
  EXPECT_THAT(ReplicaFile::Create(process_->files(), kPath, Header(), kStamp, ReplicaState::kRbw, process_->boot_id()),
              HasKind(ErrorKind::kAlreadyExists));
}

}  // namespace
}  // namespace cairn::datanode::testing
