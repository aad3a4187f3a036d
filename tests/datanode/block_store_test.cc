#include <algorithm>
#include <string>

#include "common/env/random.h"
#include "datanode/storage/replica_format.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::SizeIs;

class BlockStoreTest : public StorageTest {
 protected:
  void SetUp() override { Open(); }
  std::shared_ptr<ReplicaWriter> MustCreate(BlockId id = kBlock, BlockStore::CreateOptions options = {}) {
    auto writer = Create(id, kStamp, options);
    EXPECT_THAT(writer, IsOk());
    return *std::move(writer);
  }
};

class BlockSizes : public BlockStoreTest, public ::testing::WithParamInterface<size_t> {};

TEST_P(BlockSizes, ComeBackIdentical) {
  const size_t length = GetParam();
  auto writer = MustCreate();
  ASSERT_THAT(WritePattern(*writer, 0, length), IsOk());
  ASSERT_THAT(writer->Finalize(length, true), IsOk());
  writer.reset();
  EXPECT_EQ(*Read(kBlock), Pattern(0, length));
  EXPECT_EQ(store().Statistics()[0].used_bytes(), UsedBytes(length, 512));
  KillAndOpen();
  EXPECT_EQ(*Read(kBlock), Pattern(0, length));
  EXPECT_EQ(store().Statistics()[0].used_bytes(), UsedBytes(length, 512));
  CutPowerAndOpen();
  EXPECT_EQ(*Read(kBlock), Pattern(0, length));
  EXPECT_THAT(store().Verify(kBlock, kStamp), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Edges, BlockSizes, ::testing::Values(0, 1, 511, 512, 513, 4095, 4096, 65536, 65537, (1 << 20) - 1, 1 << 20));

TEST_F(BlockStoreTest, ByteBeyondCapacityIsRefused) {
  auto writer = MustCreate(kBlock, {.capacity = 1000});
  ASSERT_THAT(WritePattern(*writer, 0, 1000), IsOk());
  EXPECT_THAT(WritePattern(*writer, 1000, 1), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(writer->Finalize(1000, true), IsOk());
}

TEST_F(BlockStoreTest, GapIsRefused) {
  auto writer = MustCreate();
  ASSERT_THAT(WritePattern(*writer, 0, 512), IsOk());
  EXPECT_THAT(WritePattern(*writer, 513, 10), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(writer->received(), 512u);
}

TEST_F(BlockStoreTest, BytesReceivedAreNeverWrittenAgain) {
  auto writer = MustCreate();
  ASSERT_THAT(WritePattern(*writer, 0, 1024), IsOk());
  const std::string other(1024, 'x');
  EXPECT_THAT(writer->Write({.offset = 0, .data = other, .checksums = ChecksumsOf(other)}), IsOk());
  const std::string more = other + Pattern(1024, 100);
  EXPECT_THAT(writer->Write({.offset = 0, .data = more, .checksums = ChecksumsOf(more)}), IsOk());
  ASSERT_THAT(writer->Finalize(1124, true), IsOk());
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1124));
}

TEST_F(BlockStoreTest, WrongChecksumStoresNothing) {
  auto writer = MustCreate();
  const std::string data = Pattern(0, 700);
  std::string checksums = ChecksumsOf(data);
  checksums[5] = static_cast<char>(checksums[5] ^ 1);
  EXPECT_THAT(writer->Write({.offset = 0, .data = data, .checksums = checksums}), HasKind(ErrorKind::kChecksum));
  EXPECT_EQ(writer->received(), 0u);
  EXPECT_THAT(WritePattern(*writer, 0, 700), IsOk());
}

TEST_F(BlockStoreTest, NullChecksumsAreStoredAsCrc32c) {
  auto writer = MustCreate(kBlock, {.checksum = ChecksumType::kNull});
  const std::string data = Pattern(0, 1300);
  ASSERT_THAT(writer->Write({.offset = 0, .data = data, .checksums = {}}), IsOk());
  ASSERT_THAT(writer->Finalize(1300, true), IsOk());
  auto reader = store().OpenForRead(kBlock, kStamp);
  ASSERT_THAT(reader, IsOk());
  EXPECT_EQ((*reader)->checksum_type(), ChecksumType::kCrc32c);
  EXPECT_EQ(*(*reader)->ReadChecksums(0, 3), ChecksumsOf(data));
}

TEST_F(BlockStoreTest, RandomOverlappingPacketsGiveTheBytesThatCameFirst) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const BlockId id(kBlock.value() + seed * 16);
    const uint32_t chunk = static_cast<uint32_t>(64 + random.Below(600));
    auto writer = MustCreate(id, {.checksum = random.OneIn(2) ? ChecksumType::kCrc32 : ChecksumType::kCrc32c, .bytes_per_checksum = chunk});
    uint64_t received = 0;
    for (int i = 0; i < 60; ++i) {
      const uint64_t offset = received - std::min<uint64_t>(received, random.OneIn(2) ? 0 : random.Below(3 * chunk));
      const size_t length = static_cast<size_t>(random.Below(3 * chunk));
      const std::string data = Pattern(offset, length);
      const std::string checksums = random.OneIn(4) ? "" : ChecksumsOf(data, chunk, writer->checksum_type());
      ASSERT_THAT(
          writer->Write({.offset = offset, .data = data, .checksums = checksums, .verify = random.OneIn(2), .sync = random.OneIn(9)}),
          IsOk())
          << "seed " << seed;
      received = std::max(received, offset + length);
      ASSERT_EQ(writer->received(), received);
      writer->SetVisibleLength(random.Below(received + 1));
      if (random.OneIn(5)) {
        const auto read = Read(id);
        ASSERT_THAT(read, IsOk()) << "seed " << seed;
        ASSERT_EQ(*read, Pattern(0, read->size()));
      }
    }
    if (seed % 2 == 0) {
      writer.reset();
      KillAndOpen();
      ASSERT_EQ(store().Describe(id)->length, received) << "seed " << seed;
      ASSERT_EQ(*Read(id), Pattern(0, received));
    } else {
      ASSERT_THAT(writer->Finalize(received, true), IsOk());
      ASSERT_EQ(*Read(id), Pattern(0, received));
    }
  }
}

TEST_F(BlockStoreTest, ReaderSeesWhatWasVisibleWhenItOpened) {
  auto writer = MustCreate();
  ASSERT_THAT(WritePattern(*writer, 0, 700), IsOk());
  EXPECT_EQ(*Read(kBlock), "");
  writer->SetVisibleLength(600);
  writer->SetVisibleLength(10);  // Never falls.
  auto early = store().OpenForRead(kBlock, kStamp);
  ASSERT_THAT(early, IsOk());
  EXPECT_EQ((*early)->length(), 600u);
  ASSERT_THAT(WritePattern(*writer, 700, 2000), IsOk());
  writer->SetVisibleLength(5000);  // No further than what was received.
  EXPECT_EQ(*ReadAll(**early), Pattern(0, 600));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 2700));
  ASSERT_THAT(writer->Finalize(2700, true), IsOk());
  EXPECT_EQ(*ReadAll(**early), Pattern(0, 600));
}

TEST_F(BlockStoreTest, ReaderThatAsksForTooManyChecksumsGetsAnError) {
  Put(kBlock, 513);
  auto reader = store().OpenForRead(kBlock, kStamp);
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT((*reader)->ReadChecksums(0, 3), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT((*reader)->ReadChecksums(3, 0), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ((*reader)->ReadChecksums(1, 1)->size(), 4u);
  char byte = 0;
  EXPECT_EQ(*(*reader)->ReadData(513, {&byte, 1}), 0u);
}

TEST_F(BlockStoreTest, EventsTellOfEachStepInOrder) {
  Put(kBlock, 100);
  store().Invalidate(storage(), kBlock, kStamp, 7, NotVoided());
  world_.RunUntilQuiet(absl::Seconds(10));
  const auto all = events().From(1, 100, 1 << 20).events;
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].type(), v1::RBW_CREATED);
  EXPECT_EQ(all[0].replica().state(), v1::RBW);
  EXPECT_EQ(all[1].type(), v1::REPLICA_FINALIZED);
  EXPECT_EQ(all[1].replica().state(), v1::FINALIZED);
  EXPECT_EQ(all[1].replica().length_bytes(), 100u);
  EXPECT_EQ(all[1].replica().generation_stamp(), kStamp.value());
  EXPECT_EQ(all[1].storage_uuid(), storage());
  EXPECT_EQ(all[2].type(), v1::DROPPED);
  EXPECT_EQ(all[3].type(), v1::DELETED);
  EXPECT_FALSE(FileExists(kBlock));
  EXPECT_EQ(store().Statistics()[0].used_bytes(), 0u);
  EXPECT_EQ(store().replica_count(), 0u);
}

TEST_F(BlockStoreTest, FinalizeAtAnotherLengthIsRefused) {
  auto writer = MustCreate();
  ASSERT_THAT(WritePattern(*writer, 0, 100), IsOk());
  EXPECT_THAT(writer->Finalize(101, true), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(writer->Finalize(100, true), IsOk());
  EXPECT_THAT(WritePattern(*writer, 100, 1), HasKind(ErrorKind::kInvalidArgument));
}

TEST_F(BlockStoreTest, BlockThatIsThereIsNotCreatedAgainUnlessOursIsOlderAndUnfinished) {
  auto writer = MustCreate();
  EXPECT_THAT(Create(), HasKind(ErrorKind::kAlreadyExists));
  auto newer = Create(kBlock, GenerationStamp(1002));
  ASSERT_THAT(newer, IsOk());
  EXPECT_THAT(WritePattern(*writer, 0, 10), HasKind(ErrorKind::kCancelled));
  ASSERT_THAT(WritePattern(**newer, 0, 10), IsOk());
  ASSERT_THAT((*newer)->Finalize(10, true), IsOk());
  EXPECT_THAT(Create(kBlock, GenerationStamp(1003)), HasKind(ErrorKind::kAlreadyExists));
  world_.RunUntilQuiet(absl::Seconds(10));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 10));  // The old one's deletion did not touch it.
  EXPECT_EQ(store().replica_count(), 1u);
}

TEST_F(BlockStoreTest, OlderReplicaIsNotServed) {
  Put(kBlock, 10);
  EXPECT_THAT(Read(kBlock, GenerationStamp(1002)), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(Read(BlockId(kBlock.value() + 16)), HasKind(ErrorKind::kReplicaNotFound));
  ASSERT_THAT(ArmFault("datanode.stamp.accept_older", "error"), IsOk());
  EXPECT_THAT(Read(kBlock, GenerationStamp(1002)), IsOk());  // The switchable mistake.
}

TEST_F(BlockStoreTest, RecoveryFencesTheOldWriterAndKeepsItsBytes) {
  auto writer = MustCreate();
  int stopped = 0;
  writer->OnRevoked([&stopped] { ++stopped; });
  ASSERT_THAT(WritePattern(*writer, 0, 700), IsOk());
  auto next = store().RecoverRbw(kBlock, kStamp, GenerationStamp(1002), 600, 800);
  ASSERT_THAT(next, IsOk());
  EXPECT_EQ(stopped, 1);
  EXPECT_THAT(WritePattern(*writer, 700, 10), HasKind(ErrorKind::kCancelled));
  EXPECT_THAT(writer->Sync(), HasKind(ErrorKind::kCancelled));
  EXPECT_THAT(writer->Finalize(700, true), HasKind(ErrorKind::kCancelled));
  EXPECT_EQ((*next)->received(), 700u);
  ASSERT_THAT(WritePattern(**next, 512, 600), IsOk());
  ASSERT_THAT((*next)->Finalize(1112, true), IsOk());
  EXPECT_EQ(*Read(kBlock, GenerationStamp(1002)), Pattern(0, 1112));
  EXPECT_THAT(EventsOf(v1::STAMP_CHANGED), SizeIs(1));
}

TEST_F(BlockStoreTest, LateWriterOfAnEarlierStampSaysNothingMore) {
  auto first = MustCreate();
  ASSERT_THAT(WritePattern(*first, 0, 700), IsOk());
  auto second = store().RecoverRbw(kBlock, kStamp, GenerationStamp(1002), 0, 1000);
  ASSERT_THAT(second, IsOk());
  auto third = store().RecoverRbw(kBlock, GenerationStamp(1002), GenerationStamp(1003), 0, 1000);
  ASSERT_THAT(third, IsOk());
  ASSERT_THAT((*third)->Finalize(700, true), IsOk());
  const uint64_t last = events().last();
  EXPECT_THAT((*second)->Finalize(700, true), HasKind(ErrorKind::kCancelled));
  EXPECT_THAT(first->Finalize(700, true), HasKind(ErrorKind::kCancelled));
  EXPECT_EQ(events().last(), last);
  uint64_t stamp = 0;
  for (const v1::ReportEvent& event : events().From(1, 100, 1 << 20).events) {
    EXPECT_GE(event.replica().generation_stamp(), stamp);
    stamp = event.replica().generation_stamp();
  }
  EXPECT_EQ(stamp, 1003u);
}

TEST_F(BlockStoreTest, RecoveryChecksStampAndLength) {
  auto writer = MustCreate(kBlock);
  ASSERT_THAT(WritePattern(*writer, 0, 700), IsOk());
  const GenerationStamp next(1005);
  EXPECT_THAT(store().RecoverRbw(kBlock, GenerationStamp(1002), next, 0, 1000), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(store().RecoverRbw(kBlock, GenerationStamp(900), GenerationStamp(1000), 0, 1000), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(store().RecoverRbw(kBlock, kStamp, next, 701, 1000), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(store().RecoverRbw(kBlock, kStamp, next, 0, 699), HasKind(ErrorKind::kInvalidArgument));
  ASSERT_THAT(WritePattern(*writer, 700, 10), IsOk());  // A refused recovery fences nobody.
  ASSERT_THAT(ArmFault("datanode.stamp.accept_older", "error"), IsOk());
  EXPECT_THAT(store().RecoverRbw(kBlock, GenerationStamp(1002), next, 0, 1000), IsOk());
}

TEST_F(BlockStoreTest, RecoverCloseFinalizesOrOnlyRaisesTheStamp) {
  auto writer = MustCreate();
  ASSERT_THAT(WritePattern(*writer, 0, 700), IsOk());
  EXPECT_THAT(store().RecoverClose(kBlock, kStamp, GenerationStamp(1002), 699, true), HasKind(ErrorKind::kInvalidArgument));
  ASSERT_THAT(store().RecoverClose(kBlock, kStamp, GenerationStamp(1002), 700, true), IsOk());
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kFinalized);
  ASSERT_THAT(store().RecoverClose(kBlock, kStamp, GenerationStamp(1003), 700, true), IsOk());
  EXPECT_THAT(store().RecoverClose(kBlock, kStamp, GenerationStamp(1004), 701, true), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(store().Describe(kBlock)->stamp, GenerationStamp(1003));
  EXPECT_EQ(*Read(kBlock, GenerationStamp(1003)), Pattern(0, 700));
  writer.reset();
  CutPowerAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->stamp, GenerationStamp(1003));
  EXPECT_EQ(*Read(kBlock, GenerationStamp(1003)), Pattern(0, 700));
}

TEST_F(BlockStoreTest, InvalidationOfAWrittenReplicaEndsItsWriterFirst) {
  auto writer = MustCreate();
  ASSERT_THAT(WritePattern(*writer, 0, 700), IsOk());
  bool stopped = false;
  writer->OnRevoked([&stopped] { stopped = true; });
  store().Invalidate(storage(), kBlock, kStamp, 1, NotVoided());
  EXPECT_TRUE(stopped);
  EXPECT_THAT(WritePattern(*writer, 700, 100), HasKind(ErrorKind::kCancelled));
  world_.RunUntilQuiet(absl::Seconds(10));
  EXPECT_FALSE(FileExists(kBlock));
  EXPECT_EQ(store().Statistics()[0].used_bytes(), 0u);
}

TEST_F(BlockStoreTest, InvalidationActsOnThatExactReplicaOnly) {
  Put(kBlock, 100);
  store().Invalidate(storage(), kBlock, GenerationStamp(1002), 1, NotVoided());
  store().Invalidate("another-storage", kBlock, kStamp, 2, NotVoided());
  store().Invalidate(storage(), BlockId(kBlock.value() + 16), kStamp, 3, NotVoided());
  store().Invalidate(storage(), kBlock, kStamp, 4, [] { return true; });
  const auto kept = EventsOf(v1::KEPT);
  ASSERT_THAT(kept, SizeIs(4));
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(kept[i].command_id(), i + 1);
  EXPECT_THAT(EventsOf(v1::DROPPED), SizeIs(0));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 100));
}

TEST_F(BlockStoreTest, ReaderIsUndisturbedByDeletion) {
  Put(kBlock, 70'000);
  auto reader = store().OpenForRead(kBlock, kStamp);
  ASSERT_THAT(reader, IsOk());
  store().Invalidate(storage(), kBlock, kStamp, 1, NotVoided());
  world_.RunUntilQuiet(absl::Seconds(10));
  ASSERT_FALSE(FileExists(kBlock));
  EXPECT_EQ(*ReadAll(**reader), Pattern(0, 70'000));
  EXPECT_THAT(Read(kBlock), HasKind(ErrorKind::kReplicaNotFound));
}

TEST_F(BlockStoreTest, BlockedDeletionBlocksNothingElse) {
  for (uint64_t i = 0; i < 50; ++i) Put(BlockId(kBlock.value() + 16 * i), 1000);
  ASSERT_THAT(ArmFault("datanode.deleter.unlink", "block"), IsOk());
  for (uint64_t i = 0; i < 50; ++i) store().Invalidate(storage(), BlockId(kBlock.value() + 16 * i), kStamp, i, NotVoided());
  world_.RunFor(absl::Seconds(30));
  EXPECT_EQ(store().pending_deletion_blocks(), 50u);
  EXPECT_EQ(store().pending_deletion_bytes(), 50 * UsedBytes(1000, 512));
  const BlockId other(kBlock.value() + 16 * 100);
  Put(other, 5000);
  EXPECT_EQ(*Read(other), Pattern(0, 5000));
  EXPECT_THAT(EventsOf(v1::DROPPED), SizeIs(50));
  EXPECT_THAT(EventsOf(v1::DELETED), SizeIs(0));
  DisarmAllFaults();
  world_.RunUntilQuiet(absl::Seconds(10));
  EXPECT_EQ(store().pending_deletion_blocks(), 0u);
  EXPECT_EQ(store().pending_deletion_bytes(), 0u);
  EXPECT_THAT(EventsOf(v1::DELETED), SizeIs(50));
}

TEST_F(BlockStoreTest, BlockThatComesBackBeforeItsOldFileIsGoneIsNotDeletedWithIt) {
  Put(kBlock, 1000);
  ASSERT_THAT(ArmFault("datanode.deleter.unlink", "block"), IsOk());
  store().Invalidate(storage(), kBlock, kStamp, 1, NotVoided());
  auto copy = store().CreateTemporary(*store().Place({}), kBlock, kStamp, {});
  ASSERT_THAT(copy, IsOk());
  ASSERT_THAT(WritePattern(**copy, 0, 2000), IsOk());
  ASSERT_THAT((*copy)->Finalize(2000, true), IsOk());
  DisarmAllFaults();
  world_.RunUntilQuiet(absl::Seconds(10));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 2000));
  EXPECT_EQ(store().Statistics()[0].used_bytes(), UsedBytes(2000, 512));
  EXPECT_THAT(EventsOf(v1::DELETED), SizeIs(1));
}

TEST_F(BlockStoreTest, TemporaryReplicaIsSeenByNobodyUntilItIsFinal) {
  auto copy = store().CreateTemporary(*store().Place({}), kBlock, kStamp, {});
  ASSERT_THAT(copy, IsOk());
  ASSERT_THAT(WritePattern(**copy, 0, 1000), IsOk());
  EXPECT_EQ(events().last(), 0u);
  EXPECT_THAT(Read(kBlock), HasKind(ErrorKind::kReplicaNotFound));
  copy->reset();  // The transfer broke off: the next try finds the way free.
  copy = store().CreateTemporary(*store().Place({}), kBlock, kStamp, {});
  ASSERT_THAT(copy, IsOk());
  ASSERT_THAT((*copy)->ConvertToRbw(), IsOk());
  EXPECT_THAT(EventsOf(v1::RBW_CREATED), SizeIs(1));
  copy->reset();
  KillAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr);
  EXPECT_EQ(store().replica_count(), 1u);
}

TEST_F(BlockStoreTest, FlippedByteIsFoundByVerifyFlaggedAndReported) {
  Put(kBlock, 70'000);
  const uint64_t data_offset = DataOffset(1 << 20, 512);
  for (const uint64_t at : {data_offset + 5, data_offset + 69'990, uint64_t{4096 + 8}}) {
    const BlockId id(kBlock.value() + 16 * at);
    Put(id, 70'000);
    ASSERT_THAT(store().Verify(id, kStamp), IsOk());
    ASSERT_THAT(machine_->disk().FlipByte(PathOf(id), at), IsOk());
    EXPECT_THAT(store().Verify(id, kStamp), HasKind(ErrorKind::kChecksum));
    EXPECT_THAT(Read(id), HasKind(ErrorKind::kChecksum));
    EXPECT_EQ(EventsOf(v1::CORRUPT).back().replica().block_id(), id.value());
    EXPECT_TRUE(EventsOf(v1::CORRUPT).back().replica().corrupt());
  }
  CutPowerAndOpen();
  EXPECT_THAT(Read(BlockId(kBlock.value() + 16 * (data_offset + 5))), HasKind(ErrorKind::kChecksum));  // The flag was synced.
  EXPECT_EQ(*Read(kBlock), Pattern(0, 70'000));
}

TEST_F(BlockStoreTest, VerifyRefusesOtherStampsAndReplicasThatAwaitRecovery) {
  Put(kBlock, 10);
  EXPECT_THAT(store().Verify(kBlock, GenerationStamp(1002)), HasKind(ErrorKind::kStaleGeneration));
  const BlockId open(kBlock.value() + 16);
  MustCreate(open);
  KillAndOpen();
  EXPECT_THAT(store().Verify(open, kStamp), HasKind(ErrorKind::kInvalidArgument));
}

TEST_F(BlockStoreTest, ReplicaThatIsFoundCorruptWhileItIsWrittenLosesItsWriter) {
  auto writer = MustCreate();
  ASSERT_THAT(WritePattern(*writer, 0, 5000), IsOk());
  EXPECT_THAT(store().Verify(kBlock, kStamp), IsOk());
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(kBlock), DataOffset(1 << 20, 512) + 600), IsOk());
  EXPECT_THAT(store().Verify(kBlock, kStamp), HasKind(ErrorKind::kChecksum));
  EXPECT_THAT(EventsOf(v1::CORRUPT), SizeIs(1));
  EXPECT_THAT(WritePattern(*writer, 5000, 10), HasKind(ErrorKind::kCancelled));
  EXPECT_THAT(store().RecoverRbw(kBlock, kStamp, GenerationStamp(1002), 0, 5000), HasKind(ErrorKind::kChecksum));
  writer.reset();
  CutPowerAndOpen();
  // A replica that was never closed may have lost its directory entry; what is there is known to be bad.
  const std::optional<ReplicaDescription> left = store().Describe(kBlock);
  EXPECT_TRUE(!left || left->corrupt);
}

TEST_F(BlockStoreTest, FailedSyncStopsTheVolumeForGood) {
  auto writer = MustCreate();
  auto other = MustCreate(BlockId(kBlock.value() + 16));
  bool other_stopped = false;
  other->OnRevoked([&other_stopped] { other_stopped = true; });
  ASSERT_THAT(WritePattern(*writer, 0, 100), IsOk());
  machine_->disk().FailNextSync("/data/1");
  EXPECT_FALSE(writer->Finalize(100, true).ok());
  EXPECT_TRUE(other_stopped);
  const auto failed = EventsOf(v1::STORAGE_STATE_CHANGED);
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].storage_state(), v1::FAILED);
  EXPECT_EQ(store().Statistics()[0].state(), v1::FAILED);
  EXPECT_FALSE(writer->Finalize(100, true).ok());
  EXPECT_THAT(EventsOf(v1::REPLICA_FINALIZED), SizeIs(0));
  EXPECT_THAT(store().Place({}), HasKind(ErrorKind::kDiskFull));
  EXPECT_THAT(store().DiskOf(kBlock), HasKind(ErrorKind::kReplicaNotFound));
}

TEST_F(BlockStoreTest, UnsyncedCloseAsksForNoSync) {
  auto writer = MustCreate();
  ASSERT_THAT(WritePattern(*writer, 0, 100), IsOk());
  const uint64_t syncs = machine_->disk().counters().syncs;
  ASSERT_THAT(writer->Finalize(100, false), IsOk());
  EXPECT_EQ(machine_->disk().counters().syncs, syncs);
}

}  // namespace
}  // namespace cairn::datanode::testing
