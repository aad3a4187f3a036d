// A node that ends, or loses its power, at every step of a move: of each replica one good copy is left, whatever had happened.

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/datanode/volume_mover_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::SizeIs;

class VolumeMoverCrashTest : public VolumeMoverTest, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr uint64_t kFew = 12;
  static constexpr int kSteps = 70;  // More than two moves have.

  VolumeMoverCrashTest() {
    machine_->disk().SetCapacity(8 << 20);
    options_.keeper.check_interval = absl::InfiniteDuration();
  }
  // From the n-th on, no operation has any effect.
  void EndAt(int n) {
    machine_->disk().SetFaultHook([this, n](Op, const std::string& path) -> absl::Status {
      return ++operations_ < n ? absl::OkStatus() : absl::InternalError(path + ": the process has ended");
    });
  }
  void EndAndOpen() {
    if (GetParam()) {
      machine_->PowerCut();
    } else {
      process_->Kill();
    }
    machine_->disk().SetFaultHook(nullptr);
    Close();
    process_ = machine_->StartProcess();
    Open();
  }
  int operations_ = 0;
};

TEST_P(VolumeMoverCrashTest, OneGoodCopyOfEachReplicaIsLeft) {
  options_.mover.threshold_percent = 0;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Fill(kFew));
  VolumeMoverOptions on = options_.mover;
  on.threshold_percent = 1;
  uint64_t moved_in_all = 0;
  for (int n = 1; n <= kSteps; ++n) {
    // What earlier rounds have moved goes back first, so that there is always something to do.
    if (store().Statistics()[1].replicas() * 4 > kFew) {
      Close();
      options_.directories = {"/data/1", "/data/2"};
      for (const char* directory : {"/data/1", "/data/2"}) {
        for (uint64_t i = 0; i < kFew; ++i) {
          const std::string path = PathOf(Block(i), directory);
          if (!*process_->files().Exists(path)) continue;
          ASSERT_THAT(process_->files().Remove(path), IsOk());
        }
      }
      ASSERT_NO_FATAL_FAILURE(Open());
      ASSERT_NO_FATAL_FAILURE(Fill(kFew));
    }
    LetNamenodeKnow();
    operations_ = 0;
    EndAt(n);
    opened_.volumes->SetPace(options_.deleter, options_.scanner, on);
    world_.RunUntil([this, n] { return operations_ >= n; }, absl::Seconds(10));
    ASSERT_GE(operations_, n);  // There was so much to do.
    moved_in_all += Moves().replicas;
    ASSERT_NO_FATAL_FAILURE(EndAndOpen());
    world_.RunFor(absl::Seconds(10));  // Deletions.
    ASSERT_EQ(store().replica_count(), kFew) << n;
    ASSERT_EQ(store().Statistics()[0].replicas() + store().Statistics()[1].replicas(), kFew) << n;
    for (uint64_t i = 0; i < kFew; ++i) {
      const auto read = Read(Block(i));
      ASSERT_THAT(read, IsOk()) << n << ", block " << i;
      ASSERT_EQ(*read, Pattern(0, kLength)) << n << ", block " << i;
      ASSERT_THAT(FilesOf(Block(i)), SizeIs(1)) << n << ", block " << i;
      ASSERT_TRUE(store().Describe(Block(i))->sure);
      ASSERT_EQ(store().Describe(Block(i))->state, ReplicaState::kFinalized);
    }
  }
  EXPECT_GT(moved_in_all, 0u);  // Some of the ends came after one was through.
}

INSTANTIATE_TEST_SUITE_P(PowerCut, VolumeMoverCrashTest, ::testing::Bool(),
                         [](const auto& power) { return power.param ? "PowerCut" : "Kill"; });

class VolumeMoverPowerTest : public VolumeMoverTest {};

// The control: a disk that forgets what it said was synced is noticed by the same checks.
TEST_F(VolumeMoverPowerTest, CopyThatWasNotSyncedIsNoticed) {
  Open();
  Fill();
  machine_->disk().IgnoreSyncs(true);
  machine_->disk().IgnoreDirectorySyncs(true);
  LetNamenodeKnow();
  ASSERT_TRUE(RunUntilMoved(10));
  world_.RunFor(absl::Seconds(5));
  machine_->disk().IgnoreSyncs(false);
  machine_->disk().IgnoreDirectorySyncs(false);
  // That the old ones are gone is durable.
  const std::string old = PathOf(Block(0));
  ASSERT_THAT(process_->files().SyncDirectory(old.substr(0, old.rfind('/'))), IsOk());
  options_.mover.threshold_percent = 0;
  CutPowerAndOpen();
  size_t lost = 0;
  for (uint64_t i = 0; i < kReplicas; ++i) {
    const auto read = Read(Block(i));
    lost += !read.ok() || *read != Pattern(0, kLength) ? 1 : 0;
  }
  EXPECT_GT(lost, 0u);
}

}  // namespace
}  // namespace cairn::datanode::testing
