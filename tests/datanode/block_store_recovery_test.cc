// Replicas that are opened again for an append, put under recovery and cut: what is read afterwards, also after kills and power cuts.

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "common/env/random.h"
#include "datanode/storage/replica_format.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

constexpr GenerationStamp kNext{1002};
constexpr GenerationStamp kThird{1003};

class RecoveryTest : public StorageTest {
 protected:
  RecoveryTest() : StorageTest(41) {}
  void SetUp() override { Open(); }

  std::shared_ptr<ReplicaWriter> MakeRbw(size_t length, BlockId id = kBlock) {
    auto writer = Create(id);
    EXPECT_THAT(writer, IsOk());
    EXPECT_THAT(WritePattern(**writer, 0, length), IsOk());
    (*writer)->SetVisibleLength(length);
    return *writer;
  }
  // Appends [from, to) in one go and closes.
  void Append(GenerationStamp stamp, GenerationStamp next, size_t from, size_t to) {
    auto writer = store().ReopenForAppend(kBlock, stamp, next, from, /*recovery=*/false);
    ASSERT_THAT(writer, IsOk());
    ASSERT_EQ((*writer)->received(), from);
    size_t at = from;
    if (at % 512 != 0) {  // As clients do: up to the end of the chunk first.
      const size_t first = std::min<size_t>(to - at, 512 - at % 512);
      ASSERT_THAT(WritePattern(**writer, at, first), IsOk());
      at += first;
    }
    ASSERT_THAT(WritePattern(**writer, at, to - at), IsOk());
    ASSERT_THAT((*writer)->Finalize(to, true), IsOk());
  }
  uint64_t used() { return store().Statistics()[0].used_bytes(); }
};

TEST_F(RecoveryTest, InitEndsTheWriterAndKeepsEverybodyElseAway) {
  const std::shared_ptr<ReplicaWriter> writer = MakeRbw(1000);
  bool stopped = false;
  writer->OnRevoked([&stopped] { stopped = true; });
  const auto found = store().InitReplicaRecovery(kBlock, kNext);
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->state, ReplicaState::kRbw);
  EXPECT_EQ(found->length, 1000u);
  EXPECT_EQ(found->stamp, kStamp);
  EXPECT_TRUE(found->sure);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRur);
  EXPECT_THAT(WritePattern(*writer, 1000, 10), HasKind(ErrorKind::kCancelled));
  EXPECT_THAT(writer->Finalize(1000, true), HasKind(ErrorKind::kCancelled));
  EXPECT_THAT(store().RecoverRbw(kBlock, kStamp, kThird, 0, 1000), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_THAT(store().RecoverClose(kBlock, kStamp, kThird, 1000, true), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_THAT(store().ReopenForAppend(kBlock, kStamp, kThird, 1000, true), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_EQ(*Read(kBlock), Pattern(0, 1000));  // Readers are not disturbed.
}

TEST_F(RecoveryTest, OnlyANewerRecoveryTakesOver) {
  MakeRbw(1000);
  ASSERT_THAT(store().InitReplicaRecovery(kBlock, kThird), IsOk());
  EXPECT_THAT(store().InitReplicaRecovery(kBlock, kThird), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(store().InitReplicaRecovery(kBlock, kNext), HasKind(ErrorKind::kStaleGeneration));
  const auto again = store().InitReplicaRecovery(kBlock, GenerationStamp(1004));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->state, ReplicaState::kRbw);  // Still what it was before the first.
  EXPECT_THAT(store().UpdateReplicaUnderRecovery(kBlock, kThird, 1000), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_THAT(store().UpdateReplicaUnderRecovery(kBlock, GenerationStamp(1004), 1000), IsOk());
}

TEST_F(RecoveryTest, ReplicaOfTheSameStampOrNewerIsNotTouched) {
  Put(kBlock, 1000, kNext);
  EXPECT_THAT(store().InitReplicaRecovery(kBlock, kNext), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(store().InitReplicaRecovery(kBlock, kStamp), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kFinalized);
}

TEST_F(RecoveryTest, AbsentAndTemporaryReplicasAreNotFound) {
  EXPECT_THAT(store().InitReplicaRecovery(kBlock, kNext), HasKind(ErrorKind::kReplicaNotFound));
  auto copy = store().CreateTemporary(*store().Place({}), kBlock, kStamp, {});
  ASSERT_THAT(copy, IsOk());
  EXPECT_THAT(store().InitReplicaRecovery(kBlock, kNext), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_THAT(store().DiskOfStorage("elsewhere"), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_THAT(store().DiskOfStorage(storage()), IsOk());
}

TEST_F(RecoveryTest, UpdateFinalizesAtTheNewStampWithOneEvent) {
  MakeRbw(1000);
  ASSERT_THAT(store().InitReplicaRecovery(kBlock, kNext), IsOk());
  const auto updated = store().UpdateReplicaUnderRecovery(kBlock, kNext, 1000);
  ASSERT_THAT(updated, IsOk());
  EXPECT_EQ(*updated, storage());
  const auto ours = store().Describe(kBlock);
  EXPECT_EQ(ours->state, ReplicaState::kFinalized);
  EXPECT_EQ(ours->stamp, kNext);
  EXPECT_EQ(ours->length, 1000u);
  ASSERT_EQ(EventsOf(v1::REPLICA_FINALIZED).size(), 1u);
  EXPECT_EQ(EventsOf(v1::REPLICA_FINALIZED)[0].replica().generation_stamp(), kNext.value());
  EXPECT_EQ(EventsOf(v1::REPLICA_FINALIZED)[0].replica().length_bytes(), 1000u);
  EXPECT_THAT(store().UpdateReplicaUnderRecovery(kBlock, kNext, 1000), IsOk());  // Its answer was lost.
  EXPECT_EQ(EventsOf(v1::REPLICA_FINALIZED).size(), 1u);
  EXPECT_THAT(store().UpdateReplicaUnderRecovery(kBlock, kNext, 999), HasKind(ErrorKind::kReplicaNotFound));
  CutPowerAndOpen();
  EXPECT_EQ(*Read(kBlock, kNext), Pattern(0, 1000));
}

TEST_F(RecoveryTest, CutsAtEveryEdgeAndNeverShowsWhatWasCutAgain) {
  uint64_t stamp = kStamp.value();
  for (const bool finalized : {false, true}) {
    for (const size_t length : {0, 1, 511, 512, 513, 1023, 1024, 1299, 1300}) {
      const BlockId id(kBlock.value() + 16 * ++stamp);
      if (finalized) {
        Put(id, 1300);
      } else {
        MakeRbw(1300, id);
      }
      const uint64_t used_before = used();
      ASSERT_THAT(store().InitReplicaRecovery(id, kNext), IsOk());
      ASSERT_THAT(store().UpdateReplicaUnderRecovery(id, kNext, length), IsOk()) << length;
      EXPECT_EQ(*Read(id, kNext), Pattern(0, length));
      EXPECT_EQ(used_before - used(), UsedBytes(1300, 512) - UsedBytes(length, 512));
      // Written on and killed at once: nothing beyond what was written comes back.
      auto writer = store().ReopenForAppend(id, kNext, kThird, length, false);
      ASSERT_THAT(writer, IsOk());
      ASSERT_THAT(WritePattern(**writer, length, 1), IsOk());
      writer->reset();
      KillAndOpen();
      EXPECT_EQ(store().Describe(id)->length, length + 1);
      EXPECT_EQ(*Read(id, kThird), Pattern(0, length + 1));
    }
  }
}

TEST_F(RecoveryTest, LengthBeyondTheReplicasIsRefused) {
  MakeRbw(1000);
  ASSERT_THAT(store().InitReplicaRecovery(kBlock, kNext), IsOk());
  EXPECT_THAT(store().UpdateReplicaUnderRecovery(kBlock, kNext, 1001), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRur);
}

TEST_F(RecoveryTest, ChunkThatIsCutInTwoIsProvedFirst) {
  Put(kBlock, 1300);
  ASSERT_THAT(store().InitReplicaRecovery(kBlock, kNext), IsOk());
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(kBlock), DataOffset(1 << 20, 512) + 700), IsOk());
  EXPECT_THAT(store().UpdateReplicaUnderRecovery(kBlock, kNext, 600), HasKind(ErrorKind::kChecksum));
  EXPECT_TRUE(store().Describe(kBlock)->corrupt);
  EXPECT_EQ(EventsOf(v1::CORRUPT).size(), 1u);
}

TEST_F(RecoveryTest, RestartFindsWhatWasThereBefore) {
  MakeRbw(1000);
  const BlockId closed(kBlock.value() + 16);
  Put(closed, 700);
  ASSERT_THAT(store().InitReplicaRecovery(kBlock, kNext), IsOk());
  ASSERT_THAT(store().InitReplicaRecovery(closed, kNext), IsOk());
  KillAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr);
  EXPECT_TRUE(store().Describe(kBlock)->sure);
  EXPECT_EQ(store().Describe(closed)->state, ReplicaState::kFinalized);
  EXPECT_THAT(store().UpdateReplicaUnderRecovery(kBlock, kNext, 1000), HasKind(ErrorKind::kReplicaNotFound));
  const auto again = store().InitReplicaRecovery(kBlock, kThird);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->state, ReplicaState::kRwr);
  EXPECT_TRUE(again->sure);
  ASSERT_THAT(store().UpdateReplicaUnderRecovery(kBlock, kThird, 900), IsOk());
  EXPECT_EQ(*Read(kBlock, kThird), Pattern(0, 900));
}

TEST_F(RecoveryTest, ReplicaThatAPowerCutShortenedIsFoundUnsureAndCutClean) {
  const std::shared_ptr<ReplicaWriter> writer = MakeRbw(2000);
  ASSERT_THAT(writer->Sync(), IsOk());
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(kBlock), DataOffset(1 << 20, 512) + 600), IsOk());  // The second chunk never got there.
  CutPowerAndOpen();
  const auto found = store().InitReplicaRecovery(kBlock, kNext);
  ASSERT_THAT(found, IsOk());
  EXPECT_FALSE(found->sure);
  EXPECT_EQ(found->length, 512u);
  ASSERT_THAT(store().UpdateReplicaUnderRecovery(kBlock, kNext, 512), IsOk());
  // The third and fourth chunk, which verified, must not follow the second when it is written again.
  auto more = store().ReopenForAppend(kBlock, kNext, kThird, 512, false);
  ASSERT_THAT(more, IsOk());
  ASSERT_THAT(WritePattern(**more, 512, 512), IsOk());
  more->reset();
  KillAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->length, 1024u);
}

TEST_F(RecoveryTest, InvalidationOfAReplicaUnderRecoveryActs) {
  MakeRbw(100);
  ASSERT_THAT(store().InitReplicaRecovery(kBlock, kNext), IsOk());
  store().Invalidate(storage(), kBlock, kStamp, 1, NotVoided());
  EXPECT_FALSE(store().Describe(kBlock).has_value());
  EXPECT_THAT(store().UpdateReplicaUnderRecovery(kBlock, kNext, 100), HasKind(ErrorKind::kReplicaNotFound));
}

TEST_F(RecoveryTest, AppendsAtEveryEdgeSeveralTimes) {
  Put(kBlock, 0);
  uint64_t stamp = kStamp.value();
  size_t length = 0;
  for (const size_t to : {1, 511, 512, 513, 514, 1024, 1500, 5000}) {
    ASSERT_NO_FATAL_FAILURE(Append(GenerationStamp(stamp), GenerationStamp(stamp + 1), length, to));
    ++stamp;
    length = to;
    EXPECT_EQ(*Read(kBlock, GenerationStamp(stamp)), Pattern(0, length));
    if (to % 2 == 0) {
      KillAndOpen();
    } else {
      CutPowerAndOpen();
    }
    EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kFinalized);
    EXPECT_EQ(*Read(kBlock, GenerationStamp(stamp)), Pattern(0, length));
  }
}

TEST_F(RecoveryTest, ReopenedReplicaIsRbwAtTheNewStampDurably) {
  Put(kBlock, 700);
  auto writer = store().ReopenForAppend(kBlock, kStamp, kNext, 700, false);
  ASSERT_THAT(writer, IsOk());
  const auto ours = store().Describe(kBlock);
  EXPECT_EQ(ours->state, ReplicaState::kRbw);
  EXPECT_EQ(ours->stamp, kNext);
  EXPECT_EQ(ours->visible_length, 700u);
  ASSERT_EQ(EventsOf(v1::STAMP_CHANGED).size(), 1u);
  EXPECT_EQ(EventsOf(v1::STAMP_CHANGED)[0].replica().state(), v1::RBW);
  EXPECT_EQ(*Read(kBlock, kNext), Pattern(0, 700));
  writer->reset();
  CutPowerAndOpen();
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kRwr);
  EXPECT_EQ(store().Describe(kBlock)->stamp, kNext);
  EXPECT_EQ(*Read(kBlock, kNext), Pattern(0, 700));
}

TEST_F(RecoveryTest, BytesBeforeAnAppendSurviveAPowerCutInTheMiddleOfIt) {
  Put(kBlock, 700);
  auto writer = store().ReopenForAppend(kBlock, kStamp, kNext, 700, false);
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 700, 324), IsOk());
  ASSERT_THAT(WritePattern(**writer, 1024, 5000), IsOk());
  writer->reset();
  CutPowerAndOpen();
  const auto ours = store().Describe(kBlock);
  EXPECT_FALSE(ours->corrupt);
  EXPECT_GE(ours->length, 700u);
  EXPECT_EQ(*Read(kBlock, kNext), Pattern(0, ours->length));
}

TEST_F(RecoveryTest, AppendIsRefusedUnlessStampAndLengthAreRight) {
  Put(kBlock, 700, kNext);
  EXPECT_THAT(store().ReopenForAppend(kBlock, kNext, kThird, 701, false), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(store().ReopenForAppend(kBlock, kThird, kThird, 700, false), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(store().ReopenForAppend(kBlock, kStamp, kThird, 700, false), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(store().ReopenForAppend(kBlock, kStamp, kStamp, 700, true), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(store().ReopenForAppend(BlockId(kBlock.value() + 16), kNext, kThird, 0, false), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_EQ(store().Describe(kBlock)->state, ReplicaState::kFinalized);
  EXPECT_THAT(store().ReopenForAppend(kBlock, kStamp, kThird, 700, true), IsOk());  // A recovery may find it at any stamp in between.
}

TEST_F(RecoveryTest, OnlyTheRecoveryOfAnAppendTakesOverAnOpenReplica) {
  Put(kBlock, 700);
  auto first = store().ReopenForAppend(kBlock, kStamp, kNext, 700, false);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(store().ReopenForAppend(kBlock, kNext, kThird, 700, false), HasKind(ErrorKind::kReplicaNotFound));
  auto second = store().ReopenForAppend(kBlock, kStamp, kThird, 700, true);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(WritePattern(**first, 700, 10), HasKind(ErrorKind::kCancelled));
  ASSERT_THAT(WritePattern(**second, 700, 10), IsOk());
  ASSERT_THAT((*second)->Finalize(710, true), IsOk());
  EXPECT_EQ(*Read(kBlock, kThird), Pattern(0, 710));
}

TEST_F(RecoveryTest, RottenLastChunkIsNotContinued) {
  Put(kBlock, 700);
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(kBlock), DataOffset(1 << 20, 512) + 600), IsOk());
  EXPECT_THAT(store().ReopenForAppend(kBlock, kStamp, kNext, 700, false), HasKind(ErrorKind::kChecksum));
  EXPECT_TRUE(store().Describe(kBlock)->corrupt);
}

TEST_F(RecoveryTest, RotBehindTheAppendedBytesStaysVisible) {
  Put(kBlock, 700);
  auto writer = store().ReopenForAppend(kBlock, kStamp, kNext, 700, false);
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(kBlock), DataOffset(1 << 20, 512) + 600), IsOk());
  ASSERT_THAT(WritePattern(**writer, 700, 324), IsOk());
  ASSERT_THAT((*writer)->Finalize(1024, true), IsOk());
  EXPECT_THAT(Read(kBlock, kNext), HasKind(ErrorKind::kChecksum));  // A checksum made from the disk would have blessed it.
}

// A block's life with an append and a recovery in it, cut off at every step between two durable effects.
struct Acknowledged {
  uint64_t at_least = 0;  // So many bytes are on disk, by what was answered or will be cut to.
  GenerationStamp stamp;
  bool recovered = false;
};

class RecoveryCrash : public RecoveryTest, public ::testing::WithParamInterface<const char*> {
 protected:
  Acknowledged Work(BlockId id, Random& random) {
    Acknowledged done;
    auto writer = Create(id);
    if (!writer.ok()) return done;
    const auto first = static_cast<size_t>(random.Below(1500));
    if (!WritePattern(**writer, 0, first).ok() || !(*writer)->Finalize(first, true).ok()) return done;
    done.at_least = first;
    done.stamp = kStamp;
    auto more = store().ReopenForAppend(id, kStamp, kNext, first, false);
    if (!more.ok()) return done;
    done.stamp = kNext;
    const auto second = static_cast<size_t>(random.Below(1500));
    if (!WritePattern(**more, first, second, /*sync=*/true).ok()) return done;
    done.at_least = first + second;
    if (!store().InitReplicaRecovery(id, kThird).ok()) return done;
    const uint64_t length = random.Below(done.at_least + 1);
    const uint64_t before = done.at_least;
    done.at_least = length;  // From now on a cut may have happened.
    if (!store().UpdateReplicaUnderRecovery(id, kThird, length).ok()) {
      cut_off_ = before;
      return done;
    }
    done.stamp = kThird;
    done.recovered = true;
    return done;
  }
  std::string Lost(BlockId id, const Acknowledged& done) {
    const auto ours = store().Describe(id);
    if (!ours) return done.at_least > 0 ? "the replica" : "";
    if (ours->corrupt) return "the replica is called corrupt";
    if (ours->length < done.at_least) return fmt::format("bytes: {} of {}", ours->length, done.at_least);
    if (ours->stamp < done.stamp) return "the stamp";
    if (done.recovered && (ours->state != ReplicaState::kFinalized || ours->length != done.at_least)) return "the cut";
    if (ours->stamp == kThird && ours->length != done.at_least) return "the cut, though its stamp is there";
    const auto read = Read(id);
    if (!read.ok()) return std::string(read.status().message());
    if (*read != Pattern(0, read->size())) return "other bytes";
    return "";
  }
  uint64_t cut_off_ = 0;
};

TEST_P(RecoveryCrash, WhatWasAcknowledgedIsThereAfterwards) {
  Random random(8);
  uint64_t hit = 0;
  for (uint64_t i = 1; i <= 40; ++i) {
    const BlockId id(kBlock.value() + 16 * i);
    ASSERT_THAT(ArmFault(GetParam(), fmt::format("error@{}*1", random.Below(6))), IsOk());
    const Acknowledged done = Work(id, random);
    hit += done.recovered ? 0 : 1;
    DisarmAllFaults();
    if (i % 2 == 0) {
      KillAndOpen();
    } else {
      CutPowerAndOpen();
    }
    ASSERT_EQ(Lost(id, done), "") << "round " << i;
    if (done.stamp.value() == 0) continue;
    // And a later recovery settles it.
    const auto found = store().InitReplicaRecovery(id, GenerationStamp(1010));
    if (!found.ok()) continue;
    ASSERT_THAT(store().UpdateReplicaUnderRecovery(id, GenerationStamp(1010), found->length), IsOk());
    EXPECT_EQ(*Read(id, GenerationStamp(1010)), Pattern(0, found->length));
  }
  EXPECT_GT(hit, 0u);
}

INSTANTIATE_TEST_SUITE_P(Points, RecoveryCrash,
                         ::testing::Values("replica_file.before_durable_slot", "replica_file.before_sync", "replica_file.after_sync",
                                           "replica_file.before_cut_region", "replica_file.before_cut_data",
                                           "replica_file.before_progress_slot", "replica_file.before_data"),
                         [](const auto& point) {
                           std::string name = point.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace cairn::datanode::testing
