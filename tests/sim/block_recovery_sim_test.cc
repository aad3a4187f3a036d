// Files whose writer is gone, files that are cut, files that are written on: the NameNode's block recovery and that of the DataNodes
// together, with clients, in one thread.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "common/status.h"
#include "datanode/storage/replica_format.h"
#include "tests/sim/sim_user.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeds.h"

namespace cairn::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHold[] = "datanode.recovery.before_update";
constexpr size_t kBlock = 1 << 20;

class BlockRecovery : public ::testing::Test {
 protected:
  BlockRecovery() { EnableFaultPoints(); }
  ~BlockRecovery() override {
    DisarmAllFaults();
    End();
  }

  void Begin(SimClusterOptions options) {
    End();
    cluster_ = std::make_unique<SimCluster>(options);
    writer_ = std::make_unique<SimUser>(cluster_.get(), "writer");
    other_ = std::make_unique<SimUser>(cluster_.get(), "other");
  }
  void Begin(uint64_t seed) { Begin(SimClusterOptions{.seed = seed}); }
  void End() {
    other_.reset();
    writer_.reset();
    cluster_.reset();
  }

  void Run(absl::Duration duration) { cluster_->RunFor(duration); }
  bool RunUntil(absl::AnyInvocable<bool()> done, absl::Duration limit = absl::Minutes(2)) {
    return cluster_->RunUntil(std::move(done), limit);
  }
  v1::Block LastBlock(const std::string& path) {
    const auto located = other_->Locate(path);
    return located.ok() && !located->blocks().empty() ? located->blocks().rbegin()->block() : v1::Block();
  }
  // DataNodes that run and hold a replica of the block.
  std::vector<size_t> HoldersOf(uint64_t block) {
    std::vector<size_t> holders;
    for (size_t i = 0; i < cluster_->datanode_count(); ++i)
      if (cluster_->datanode(i) != nullptr && cluster_->datanode(i)->store().Describe(BlockId(block))) holders.push_back(i);
    return holders;
  }
  // Changes a byte of the block's data on a DataNode that is down. Done once more, it is as before.
  absl::Status Flip(size_t datanode, BlockId block, uint64_t offset) {
    const std::string path = fmt::format("/data/blocks/{}/{}/blk_{}", block.value() >> 4 & 255, block.value() >> 12 & 255, block.value());
    const uint64_t data = datanode::DataOffset(64 << 20, 512);  // The capacity is SimCluster's largest block.
    return cluster_->datanode_machine(datanode)->disk().FlipByte(path, data + offset);
  }
  // The DataNode that drives a recovery now.
  std::optional<size_t> Primary() {
    for (size_t i = 0; i < cluster_->datanode_count(); ++i)
      if (cluster_->datanode(i) != nullptr && cluster_->datanode(i)->recoveries().running() > 0) return i;
    return std::nullopt;
  }
  // Runs until a primary has asked everybody and waits before it changes anything.
  std::optional<size_t> HeldPrimary() {
    RunUntil([&] { return FaultHits(kHold) > 0 && Primary(); });
    return Primary();
  }

  // After everything: a file that is closed, with these bytes on every replica.
  void ExpectWhole(const std::string& path, const std::string& expected) {
    ASSERT_TRUE(cluster_->Settle(absl::Minutes(30))) << cluster_->Report().ShortDebugString();
    EXPECT_THAT(CheckReplicas(cluster_.get(), other_.get(), path, expected), IsEmpty());
  }
  // The same for a file whose writer went: at least `promised` of its bytes, and no others. Its bytes.
  std::string ExpectPrefix(const std::string& path, const std::string& content, uint64_t promised) {
    const absl::StatusOr<std::string> read = other_->Get(path);
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok()) return "";
    EXPECT_GE(read->size(), promised);
    EXPECT_LE(read->size(), content.size());
    EXPECT_TRUE(content.starts_with(*read)) << path << " has other bytes than were written";
    ExpectWhole(path, *read);
    return *read;
  }

  std::unique_ptr<SimCluster> cluster_;
  std::unique_ptr<SimUser> writer_;
  std::unique_ptr<SimUser> other_;
};

// --- a writer that is gone

enum class Promise { kNothing, kAppended, kFlushed, kSynced };
enum class Taker { kRecoverLease, kAppend, kHardLimit };

TEST_F(BlockRecovery, AWriterThatIsKilledLeavesAllThatItWasPromisedWhoeverTakesTheFile) {
  const std::string content = PatternOf(1, 2 * kBlock);
  // A block that is begun, one that is not, and lengths inside and at the end of chunks.
  const std::vector<uint64_t> lengths = {1, 511, 512, 70'000, kBlock - 1, kBlock, kBlock + 1, kBlock + 300'077};
  for (const uint64_t seed : Seeds(2)) {
    SCOPED_TRACE(ReplayHint(seed));
    int runs = 0;
    for (const Taker taker : {Taker::kRecoverLease, Taker::kAppend, Taker::kHardLimit}) {
      for (const Promise promise : {Promise::kNothing, Promise::kAppended, Promise::kFlushed, Promise::kSynced}) {
        const uint64_t length = lengths[(seed + static_cast<uint64_t>(runs++)) % lengths.size()];
        SCOPED_TRACE(fmt::format("taker {}, promise {}, {} bytes", static_cast<int>(taker), static_cast<int>(promise), length));
        Begin({.seed = seed, .lease_soft_limit = absl::Seconds(30), .lease_hard_limit = absl::Minutes(2)});
        auto file = std::make_unique<SimWriting>(writer_.get(), "/f", content);
        ASSERT_TRUE(file->Create().ok());
        if (promise != Promise::kNothing) {
          ASSERT_TRUE(file->Append(length).ok());
        }
        if (promise == Promise::kFlushed) {
          ASSERT_TRUE(file->Flush().ok());
        }
        if (promise == Promise::kSynced) {
          ASSERT_TRUE(file->Sync().ok());
        }
        // And more behind it, which nobody waits for.
        if (promise >= Promise::kFlushed) {
          ASSERT_TRUE(file->Append(100'000).ok());
        }
        writer_->Kill();
        const SteadyTime began = cluster_->world().Now();
        std::unique_ptr<SimWriting> successor;
        if (taker == Taker::kRecoverLease) {
          ASSERT_TRUE(other_->Recover("/f", absl::Minutes(1)));
          EXPECT_LE(cluster_->world().Now() - began, absl::Seconds(20));
        } else if (taker == Taker::kAppend) {
          absl::Status opened = absl::UnknownError("not tried");
          while (!opened.ok() && cluster_->world().Now() - began < absl::Minutes(2)) {
            Run(absl::Seconds(1));
            successor = std::make_unique<SimWriting>(other_.get(), "/f", content);
            opened = successor->OpenForAppend(0);
          }
          ASSERT_TRUE(opened.ok()) << opened;
          EXPECT_GE(cluster_->world().Now() - began, absl::Seconds(25));  // Not before the soft limit, from the last word on.
          // One that died before it could say that it has heard of the limit has a minute.
          EXPECT_LE(cluster_->world().Now() - began, absl::Seconds(65));
          ASSERT_TRUE(successor->Close().ok());
        } else {
          ASSERT_TRUE(other_->AwaitClosed("/f", absl::Minutes(4)));
          EXPECT_GE(cluster_->world().Now() - began, absl::Seconds(90));
        }
        ExpectPrefix("/f", content, file->flushed());
      }
    }
  }
}

TEST_F(BlockRecovery, AFileOfWhichNothingWasWrittenEndsEmptyAndWithoutABlock) {
  Begin(Seeds(1).front());
  SimWriting file(writer_.get(), "/f", "");
  ASSERT_TRUE(file.Create().ok());
  writer_->Kill();
  ASSERT_TRUE(other_->Recover("/f", absl::Minutes(1)));
  const auto located = other_->Locate("/f");
  ASSERT_TRUE(located.ok()) << located.status();
  EXPECT_EQ(located->blocks_size(), 0);
  EXPECT_EQ(located->status().length_bytes(), 0u);
}

TEST_F(BlockRecovery, ADeadDatanodeDoesNotHoldItUpAndItsReplicaGoesWhenItComesBack) {
  const std::string content = PatternOf(2, 400'000);
  for (const uint64_t seed : Seeds(5)) {
    SCOPED_TRACE(ReplayHint(seed));
    Begin(seed);
    SimWriting file(writer_.get(), "/f", content);
    ASSERT_TRUE(file.Create().ok());
    ASSERT_TRUE(file.Append(250'001).ok());
    ASSERT_TRUE((seed % 2 == 0 ? file.Flush() : file.Sync()).ok());
    ASSERT_TRUE(file.Append(50'000).ok());
    const std::vector<size_t> holders = HoldersOf(LastBlock("/f").id());
    ASSERT_EQ(holders.size(), 3u);
    writer_->Kill();
    const size_t victim = holders[seed % 3];
    seed % 2 == 0 ? cluster_->KillDatanode(victim, absl::Minutes(5)) : cluster_->PowerCutDatanode(victim, absl::Minutes(5));
    const SteadyTime began = cluster_->world().Now();
    ASSERT_TRUE(other_->Recover("/f", absl::Minutes(2)));
    EXPECT_LE(cluster_->world().Now() - began, absl::Minutes(1));
    const absl::StatusOr<std::string> read = other_->Get("/f");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(ExpectPrefix("/f", content, file.flushed()), *read);  // And so it stays when the node is back.
  }
}

TEST_F(BlockRecovery, WhatWasSyncedSurvivesPowerLossOfAllAndWhatWasOnlyFlushedIsNeverMixedUp) {
  const std::string content = PatternOf(3, kBlock);
  for (const uint64_t seed : Seeds(8)) {
    for (const bool sync : {true, false}) {
      SCOPED_TRACE(fmt::format("{}, sync {}", ReplayHint(seed), sync));
      Begin(seed);
      SimWriting file(writer_.get(), "/f", content);
      ASSERT_TRUE(file.Create().ok());
      ASSERT_TRUE(file.Append(100'000 + seed * 777).ok());
      if (sync) {
        ASSERT_TRUE(file.Sync().ok());
        ASSERT_TRUE(file.Append(1000).ok());
      }
      ASSERT_TRUE(file.Flush().ok());
      ASSERT_TRUE(file.Append(123'456).ok());
      writer_->Kill();
      cluster_->PowerCutAll(absl::Seconds(5));
      ASSERT_TRUE(RunUntil([&] { return cluster_->AllUp(); }));
      // All disks answer, so the file ends, with what they have.
      ASSERT_TRUE(other_->Recover("/f", absl::Minutes(3))) << "it stays under recovery";
      ExpectPrefix("/f", content, file.synced());
    }
  }
}

TEST_F(BlockRecovery, SyncedBytesThatHaveRottedEverywhereKeepTheFileOpenUntilAReplicaWithThemAnswers) {
  const std::string content = PatternOf(12, kBlock);
  for (const uint64_t seed : Seeds(4)) {
    SCOPED_TRACE(ReplayHint(seed));
    Begin(seed);
    SimWriting file(writer_.get(), "/f", content);
    ASSERT_TRUE(file.Create().ok());
    ASSERT_TRUE(file.Append(200'000).ok());
    ASSERT_TRUE((seed % 2 == 0 ? file.Flush() : absl::OkStatus()).ok());  // Told of this length before it was synced, or not.
    ASSERT_TRUE(file.Sync().ok());
    ASSERT_TRUE(file.Append(70'000).ok());
    ASSERT_TRUE(file.Flush().ok());
    const BlockId block(LastBlock("/f").id());
    const std::vector<size_t> holders = HoldersOf(block.value());
    ASSERT_EQ(holders.size(), 3u);
    writer_->Kill();
    // No host is sure of its replica any more, and each has rotted below what is synced.
    cluster_->PowerCutAll(absl::Seconds(5));
    for (const size_t holder : holders) ASSERT_TRUE(Flip(holder, block, 100'000 + seed).ok());
    ASSERT_TRUE(RunUntil([&] { return cluster_->AllUp(); }));
    EXPECT_FALSE(other_->Recover("/f", absl::Minutes(15)));
    EXPECT_TRUE(other_->Stat("/f")->under_construction());
    // One disk reads again what it had.
    cluster_->PowerCutDatanode(holders[seed % 3], absl::Seconds(5));
    ASSERT_TRUE(Flip(holders[seed % 3], block, 100'000 + seed).ok());
    ASSERT_TRUE(RunUntil([&] { return cluster_->AllUp(); }));
    ASSERT_TRUE(other_->Recover("/f", absl::Minutes(15)));
    ExpectPrefix("/f", content, file.synced());
  }
}

// --- rounds that do not end

TEST_F(BlockRecovery, APrimaryThatDiesInTheMiddleOfItsRoundIsFollowedByAnother) {
  const std::string content = PatternOf(4, 300'000);
  for (const uint64_t seed : Seeds(5)) {
    SCOPED_TRACE(ReplayHint(seed));
    Begin(seed);
    SimWriting file(writer_.get(), "/f", content);
    ASSERT_TRUE(file.Create().ok());
    ASSERT_TRUE(file.Append(200'001).ok());
    ASSERT_TRUE(file.Flush().ok());
    writer_->Kill();
    ASSERT_TRUE(ArmFault(kHold, "block").ok());
    ASSERT_TRUE(other_->RecoverLease("/f").ok());
    const std::optional<size_t> primary = HeldPrimary();
    ASSERT_TRUE(primary);
    EXPECT_FALSE(*other_->RecoverLease("/f"));
    DisarmAllFaults();
    seed % 2 == 0 ? cluster_->KillDatanode(*primary, absl::Minutes(1)) : cluster_->PowerCutDatanode(*primary, absl::Minutes(1));
    ASSERT_TRUE(other_->Recover("/f", absl::Minutes(2)));
    ExpectPrefix("/f", content, file.flushed());
  }
}

TEST_F(BlockRecovery, ARoundWhoseCommitIsNeverHeardIsGoneOverAgain) {
  const std::string content = PatternOf(5, 300'000);
  for (const uint64_t seed : Seeds(5)) {
    SCOPED_TRACE(ReplayHint(seed));
    Begin(seed);
    SimWriting file(writer_.get(), "/f", content);
    ASSERT_TRUE(file.Create().ok());
    ASSERT_TRUE(file.Append(200'513).ok());
    ASSERT_TRUE(file.Flush().ok());
    writer_->Kill();
    ASSERT_TRUE(ArmFault(kHold, "block").ok());
    ASSERT_TRUE(other_->RecoverLease("/f").ok());
    const std::optional<size_t> primary = HeldPrimary();
    ASSERT_TRUE(primary);
    // It finalizes the replicas, and can tell nobody.
    cluster_->world().network().Partition(cluster_->namenode_machine(), cluster_->datanode_machine(*primary));
    DisarmAllFaults();
    const uint64_t block = LastBlock("/f").id();
    EXPECT_TRUE(RunUntil([&] { return cluster_->FinalizedReplicas(block) >= 2; }));
    const bool comes_back = seed % 2 == 0;
    if (!comes_back) cluster_->KillDatanode(*primary, absl::Minutes(2));
    Run(absl::Seconds(5));
    ASSERT_TRUE(other_->Recover("/f", absl::Minutes(3)));
    cluster_->world().network().Heal();
    ExpectPrefix("/f", content, file.flushed());
  }
}

TEST_F(BlockRecovery, ANamenodeThatIsKilledInTheMiddleOfARoundGoesOnWhenItIsBack) {
  const std::string content = PatternOf(6, 300'000);
  for (const uint64_t seed : Seeds(4)) {
    SCOPED_TRACE(ReplayHint(seed));
    Begin(seed);
    SimWriting file(writer_.get(), "/f", content);
    ASSERT_TRUE(file.Create().ok());
    ASSERT_TRUE(file.Append(200'001).ok());
    ASSERT_TRUE(file.Sync().ok());
    writer_->Kill();
    ASSERT_TRUE(ArmFault(kHold, "block").ok());
    ASSERT_TRUE(other_->RecoverLease("/f").ok());
    ASSERT_TRUE(HeldPrimary());
    cluster_->PowerCutNamenode(absl::Seconds(3));
    // With the round of before still held, or let go.
    if (seed % 2 == 0) DisarmAllFaults();
    RunUntil([&] { return cluster_->AllUp(); });
    Run(absl::Seconds(1));
    DisarmAllFaults();
    ASSERT_TRUE(other_->AwaitClosed("/f", absl::Minutes(3)));  // Nobody asks it to.
    ExpectPrefix("/f", content, file.flushed());
  }
}

// --- a writer that was fenced

TEST_F(BlockRecovery, AFencedWriterThatComesBackChangesNothingAnywhere) {
  const std::string content = PatternOf(7, 2 * kBlock);
  for (const uint64_t seed : Seeds(6)) {
    SCOPED_TRACE(ReplayHint(seed));
    Begin({.seed = seed, .lease_soft_limit = absl::Seconds(30)});
    SimWriting file(writer_.get(), "/f", content);
    ASSERT_TRUE(file.Create().ok());
    ASSERT_TRUE(file.Append(300'000 + seed * 1001).ok());
    ASSERT_TRUE(file.Flush().ok());
    // Packets on their way when the link goes: they are delivered when it is back, as TCP does.
    ASSERT_TRUE(file.Append(150'000).ok());
    const auto late = file.BeginFlush();
    Run(absl::Microseconds(50 * seed));
    writer_->CutOff();
    ASSERT_TRUE(other_->Recover("/f", absl::Minutes(2)));
    const std::string ended = ExpectPrefix("/f", content, file.flushed());
    // By another, the file is even written on: with other bytes at the places where the old writer's would go.
    std::string expected = ended;
    if (seed % 2 == 0) {
      SimWriting successor(other_.get(), "/f", ended + PatternOf(100 + seed, 200'000));
      ASSERT_TRUE(successor.OpenForAppend(ended.size()).ok());
      ASSERT_TRUE(successor.Append(200'000).ok());
      ASSERT_TRUE(successor.Close().ok());
      expected = successor.content();
    }
    cluster_->world().network().Heal();
    // The late flush may have been acknowledged by all before the link went; then its bytes were found by the recovery.
    const absl::Status flushed = writer_->Await(late);
    if (flushed.ok()) {
      EXPECT_GE(ended.size(), file.appended());
    }
    const absl::Status refused = file.Flush();
    EXPECT_FALSE(refused.ok());
    EXPECT_FALSE(file.Close().ok());
    Run(absl::Seconds(30));
    ExpectWhole("/f", expected);
  }
}

TEST_F(BlockRecovery, AWriterThatLostItsFileIsToldSoByEveryCall) {
  const std::string content = PatternOf(8, kBlock);
  Begin(Seeds(1).front());
  SimWriting file(writer_.get(), "/f", content);
  ASSERT_TRUE(file.Create().ok());
  ASSERT_TRUE(file.Append(100'000).ok());
  ASSERT_TRUE(file.Flush().ok());
  ASSERT_TRUE(other_->Recover("/f", absl::Minutes(1)));
  const std::string ended = *other_->Get("/f");
  IgnoreError(file.Append(100'000), "the bytes go into the window; the flush tells");
  const absl::Status refused = file.Flush();
  EXPECT_THAT(refused, HasKind(ErrorKind::kLeaseExpired));
  // Its pipeline ended when the recovery began, so it may have asked before that was over.
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/f (inode"));
  EXPECT_THAT(std::string(refused.message()), AnyOf(HasSubstr("is closed"), HasSubstr("was taken from its writer")));
  EXPECT_THAT(file.Close(), HasKind(ErrorKind::kLeaseExpired));
  ExpectWhole("/f", ended);
}

// --- truncate and append

TEST_F(BlockRecovery, TruncateInsideABlockThenAppendThenRead) {
  for (const uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(ReplayHint(seed));
    Begin(seed);
    std::string expected = PatternOf(9, kBlock + 200'000);
    ASSERT_TRUE(other_->Put("/f", expected).ok());
    for (const size_t cut :
         {kBlock + 150'001, kBlock, size_t{700'000}, size_t{131'072}, size_t{513}, size_t{512}, size_t{511}, size_t{1}}) {
      SCOPED_TRACE(cut);
      const absl::StatusOr<bool> done = other_->Truncate("/f", cut);
      ASSERT_TRUE(done.ok()) << done.status();
      EXPECT_EQ(*done, cut == kBlock);
      ASSERT_TRUE(other_->AwaitClosed("/f", absl::Minutes(1)));
      expected.resize(cut);
      EXPECT_EQ(*other_->Get("/f"), expected);
      // And on again, with other bytes where some were cut off.
      expected += PatternOf(cut + seed, 700);
      SimWriting more(other_.get(), "/f", expected);
      ASSERT_TRUE(more.OpenForAppend(cut).ok());
      ASSERT_TRUE(more.Append(700).ok());
      if (cut % 2 == 0) {
        ASSERT_TRUE(more.Sync().ok());
      }
      ASSERT_TRUE(more.Close().ok());
      EXPECT_EQ(*other_->Get("/f"), expected);
    }
    ExpectWhole("/f", expected);
  }
}

TEST_F(BlockRecovery, ATruncateWhosePrimaryDiesEndsAtTheLengthThatWasAskedFor) {
  for (const uint64_t seed : Seeds(5)) {
    SCOPED_TRACE(ReplayHint(seed));
    Begin(seed);
    const std::string content = PatternOf(10, 400'000);
    ASSERT_TRUE(other_->Put("/f", content).ok());
    ASSERT_TRUE(cluster_->Settle(absl::Minutes(3)));
    ASSERT_TRUE(ArmFault(kHold, "block").ok());
    const uint64_t cut = 100'001 + seed * 333;
    ASSERT_FALSE(*other_->Truncate("/f", cut));
    EXPECT_THAT(other_->Truncate("/f", 5).status(), HasReason("BUSY"));
    const std::optional<size_t> primary = HeldPrimary();
    ASSERT_TRUE(primary);
    const BlockId block(LastBlock("/f").id());
    // It has cut some replicas when it dies, or none.
    if (seed % 2 == 0) cluster_->world().network().Partition(cluster_->namenode_machine(), cluster_->datanode_machine(*primary));
    DisarmAllFaults();
    if (seed % 2 == 0) {
      EXPECT_TRUE(RunUntil([&] {
        const auto replica = cluster_->datanode(*primary)->store().Describe(block);
        return replica && replica->length == cut;
      }));
    }
    cluster_->PowerCutDatanode(*primary, absl::Seconds(40));
    ASSERT_TRUE(other_->AwaitClosed("/f", absl::Minutes(3)));
    cluster_->world().network().Heal();
    ExpectWhole("/f", content.substr(0, cut));
  }
}

TEST_F(BlockRecovery, AnAppendThatDiesKeepsWhatWasClosedBefore) {
  for (const uint64_t seed : Seeds(6)) {
    for (const Promise promise : {Promise::kNothing, Promise::kAppended, Promise::kFlushed}) {
      SCOPED_TRACE(fmt::format("{}, promise {}", ReplayHint(seed), static_cast<int>(promise)));
      Begin(seed);
      const std::string content = PatternOf(11, 500'000);
      const uint64_t closed = 100'003;
      ASSERT_TRUE(other_->Put("/f", content.substr(0, closed)).ok());
      SimWriting more(writer_.get(), "/f", content);
      ASSERT_TRUE(more.OpenForAppend(closed).ok());
      if (promise != Promise::kNothing) {
        ASSERT_TRUE(more.Append(90'000).ok());
      }
      if (promise == Promise::kFlushed) {
        ASSERT_TRUE(more.Flush().ok());
      }
      Run(absl::Microseconds(300 * seed));
      writer_->Kill();
      const std::vector<size_t> holders = HoldersOf(LastBlock("/f").id());
      ASSERT_FALSE(holders.empty());
      if (seed % 3 == 0) cluster_->PowerCutAll(absl::Seconds(3));
      if (seed % 3 == 1) cluster_->PowerCutDatanode(holders[seed % holders.size()], absl::Minutes(2));
      Run(absl::Seconds(5));
      ASSERT_TRUE(other_->Recover("/f", absl::Minutes(3)));
      ExpectPrefix("/f", content, seed % 3 == 0 ? more.synced() : more.flushed());
    }
  }
}

}  // namespace
}  // namespace cairn::testing
