#include "datanode/storage/scanner.h"

#include <string>

#include <gmock/gmock.h>

#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class ScannerTest : public StorageTest {
 protected:
  static constexpr uint64_t kReplicas = 10;
  static constexpr size_t kLength = 100'000;

  ScannerTest() {
    options_.scanner.period = absl::Hours(24);
    options_.scanner.bytes_per_second = kLength / 10;  // Ten seconds each.
    options_.scanner.cursor_interval = absl::Seconds(1);
    options_.scanner.piece_bytes = 16 << 10;
  }
  static BlockId Block(uint64_t i) { return BlockId(kBlock.value() + 16 * i); }
  void Fill() {
    for (uint64_t i = 0; i < kReplicas; ++i) Put(Block(i), kLength + i);  // Chunks whole and partial.
  }
  v1::StorageStatistics Statistics() { return store().Statistics()[0]; }
  void Rot(BlockId id, uint64_t at) {
    ASSERT_THAT(machine_->disk().FlipByte(PathOf(id), DataOffset(options_.max_block_bytes, 512) + at), IsOk());
  }
};

TEST_F(ScannerTest, EveryReplicaIsReadOnceInAPeriodAtItsPace) {
  Open();
  Fill();
  world_.RunFor(absl::Seconds(50));
  EXPECT_LE(Statistics().scanned_bytes(), 50 * options_.scanner.bytes_per_second + kLength);
  EXPECT_LT(Statistics().scanned_replicas(), 7u);
  EXPECT_EQ(Statistics().last_scan_ms(), -1);
  world_.RunFor(absl::Seconds(70));
  EXPECT_EQ(Statistics().scanned_replicas(), kReplicas);
  EXPECT_GE(Statistics().last_scan_ms(), 0);
  world_.RunFor(absl::Hours(23));
  EXPECT_EQ(Statistics().scanned_replicas(), kReplicas);
  world_.RunFor(absl::Hours(2));
  EXPECT_EQ(Statistics().scanned_replicas(), 2 * kReplicas);
  EXPECT_EQ(Statistics().scan_errors(), 0u);
  EXPECT_THAT(EventsOf(v1::CORRUPT), IsEmpty());
}

TEST_F(ScannerTest, RotIsFoundFlaggedOnTheDiskAndReported) {
  Open();
  Fill();
  Rot(Block(2), 70'000);           // In a whole chunk.
  Rot(Block(7), kLength + 7 - 1);  // In the last, partial one.
  world_.RunFor(absl::Minutes(3));
  EXPECT_EQ(Statistics().scan_errors(), 2u);
  ASSERT_THAT(EventsOf(v1::CORRUPT), SizeIs(2));
  EXPECT_EQ(EventsOf(v1::CORRUPT)[0].replica().block_id(), Block(2).value());
  EXPECT_THAT(Read(Block(2)), HasKind(ErrorKind::kChecksum));
  EXPECT_EQ(Statistics().scanned_replicas(), kReplicas);
  CutPowerAndOpen();
  EXPECT_TRUE(store().Describe(Block(2))->corrupt);
  EXPECT_TRUE(store().Describe(Block(7))->corrupt);
  EXPECT_FALSE(store().Describe(Block(3))->corrupt);
}

TEST_F(ScannerTest, GoesOnWhereItStoodAfterARestart) {
  Open();
  Fill();
  world_.RunFor(absl::Seconds(65));
  const uint64_t before = Statistics().scanned_replicas();
  ASSERT_GE(before, 5u);
  KillAndOpen();
  world_.RunFor(absl::Seconds(110));
  EXPECT_LE(Statistics().scanned_replicas(), kReplicas - before + 1);
  EXPECT_GE(Statistics().last_scan_ms(), 0);
  // The end of the round is remembered, too.
  KillAndOpen();
  world_.RunFor(absl::Hours(1));
  EXPECT_EQ(Statistics().scanned_replicas(), 0u);
  EXPECT_GE(Statistics().last_scan_ms(), absl::ToInt64Milliseconds(absl::Hours(1)));
}

TEST_F(ScannerTest, PlaceThatCannotBeReadMeansTheBeginning) {
  Open();
  Fill();
  Close();
  ASSERT_THAT(process_->files().WriteWhole("/data/1/scanner.cursor", "garbage"), IsOk());
  Open();
  world_.RunFor(absl::Minutes(3));
  EXPECT_EQ(Statistics().scanned_replicas(), kReplicas);
}

TEST_F(ScannerTest, WhatIsDeletedOrRecoveredMeanwhileIsNoError) {
  Open();
  Fill();
  world_.RunFor(absl::Seconds(5));  // In the middle of the first.
  store().Invalidate(storage(), Block(0), kStamp, 1, NotVoided());
  ASSERT_THAT(store().InitReplicaRecovery(Block(1), GenerationStamp(1005)), IsOk());
  ASSERT_THAT(store().UpdateReplicaUnderRecovery(Block(1), GenerationStamp(1005), 50'000), IsOk());
  world_.RunFor(absl::Minutes(3));
  EXPECT_EQ(Statistics().scan_errors(), 0u);
  EXPECT_THAT(EventsOf(v1::CORRUPT), IsEmpty());
  EXPECT_GE(Statistics().last_scan_ms(), 0);
}

TEST_F(ScannerTest, FirstReplicaOfAnEmptyVolumeIsReadInThisPeriod) {
  options_.scanner.period = absl::Hours(504);
  Open();
  world_.RunFor(absl::Minutes(10));
  EXPECT_EQ(Statistics().last_scan_ms(), -1);  // Nothing was there to be read.
  Fill();
  world_.RunFor(absl::Minutes(5));
  EXPECT_EQ(Statistics().scanned_replicas(), kReplicas);
  EXPECT_GE(Statistics().last_scan_ms(), 0);
  world_.RunFor(absl::Hours(503));
  EXPECT_EQ(Statistics().scanned_replicas(), kReplicas);
}

TEST_F(ScannerTest, FlagIsWrittenByTheDisksExecutorAsAllSlotsAre) {
  Open();
  Put(kBlock, 1000);
  Rot(kBlock, 10);
  uint64_t read = 0;
  uint64_t written = 0;
  machine_->disk().SetFaultHook([&](cairn::testing::SimDisk::Op op, const std::string& path) -> absl::Status {
    if (!path.ends_with("/blk_" + std::to_string(kBlock.value()))) return absl::OkStatus();
    if (op == cairn::testing::SimDisk::Op::kRead && read == 0) read = world_.tasks_run();
    if (op == cairn::testing::SimDisk::Op::kWrite && written == 0) written = world_.tasks_run();
    return absl::OkStatus();
  });
  world_.RunFor(absl::Minutes(1));
  ASSERT_GT(read, 0u);
  EXPECT_GT(written, read);  // By another task than the scanner's.
  EXPECT_THAT(EventsOf(v1::CORRUPT), SizeIs(1));
  machine_->disk().SetFaultHook(nullptr);
}

TEST_F(ScannerTest, WhatIsAppendedToBeforeTheFlagIsWrittenStaysAsItIs) {
  Open();
  Put(kBlock, 1000);
  Rot(kBlock, 10);
  bool appended = false;
  machine_->disk().SetFaultHook([&](cairn::testing::SimDisk::Op op, const std::string& path) -> absl::Status {
    const bool scanned = op == cairn::testing::SimDisk::Op::kRead && path.find("/blk_") != std::string::npos;
    if (!scanned || std::exchange(appended, true)) return absl::OkStatus();
    // Before the flag, in the disk's own order.
    (*store().DiskOf(kBlock))->Post([this] {
      EXPECT_THAT(store().ReopenForAppend(kBlock, kStamp, GenerationStamp(1005), 1000, false), IsOk());
    });
    return absl::OkStatus();
  });
  world_.RunFor(absl::Minutes(1));
  ASSERT_TRUE(appended);
  EXPECT_THAT(EventsOf(v1::CORRUPT), IsEmpty());
  EXPECT_FALSE(store().Describe(kBlock)->corrupt);
  EXPECT_EQ(store().Describe(kBlock)->stamp, GenerationStamp(1005));
  machine_->disk().SetFaultHook(nullptr);
}

TEST_F(ScannerTest, SwitchedOffAndOnWhileItRuns) {
  options_.scanner.period = absl::ZeroDuration();
  Open();
  Fill();
  world_.RunFor(absl::Hours(1));
  EXPECT_EQ(Statistics().scanned_bytes(), 0u);
  ScannerOptions faster = options_.scanner;
  faster.period = absl::Hours(24);
  faster.bytes_per_second = 100 << 20;
  opened_.volumes->SetPace(options_.deleter, faster, options_.mover);
  world_.RunFor(absl::Seconds(5));
  EXPECT_EQ(Statistics().scanned_replicas(), kReplicas);
}

}  // namespace
}  // namespace cairn::datanode::testing
