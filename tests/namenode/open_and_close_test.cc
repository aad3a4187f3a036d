// The store is closed, opened, restored from a checkpoint and opened in place again, while another thread walks it from end to end.

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/mutex.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace/apply.h"
#include "namenode/namespace/checker.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeds.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

// Who serves now, as parts of a NameNode see it: nobody while it changes hands.
class Served {
 public:
  void Set(std::shared_ptr<NamenodeDirectory> directory) ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    directory_.swap(directory);
  }
  std::shared_ptr<const ReadView> Snapshot() const ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    return directory_ == nullptr ? nullptr : directory_->store().Snapshot();
  }

 private:
  mutable Mutex mu_;
  std::shared_ptr<NamenodeDirectory> directory_ ABSL_GUARDED_BY(mu_);
};

// Checks whatever is served, again and again. It holds a snapshot and nothing else, also when the store that it is of has been closed.
class Scanner {
 public:
  explicit Scanner(const Served* served) : served_(served), thread_([this] { Run(); }) {}
  ~Scanner() {
    stop_.store(true);
    thread_.join();
  }
  int scans() const { return scans_.load(); }
  // False once nobody is served: then it has let go of what was.
  bool holds() const { return holds_.load(); }

 private:
  void Run() {
    while (!stop_.load()) {
      holds_.store(true);
      std::shared_ptr<const ReadView> view = served_->Snapshot();
      if (view == nullptr) {
        holds_.store(false);
        std::this_thread::yield();
        continue;
      }
      const auto sound = CheckNamespace(*view, [](const Violation& violation) { ADD_FAILURE() << ToString(violation); });
      EXPECT_THAT(sound, IsOk());
      view.reset();
      holds_.store(false);
      scans_.fetch_add(1);
    }
  }
  const Served* const served_;
  std::atomic<bool> stop_{false};
  std::atomic<int> scans_{0};
  std::atomic<bool> holds_{false};
  std::thread thread_;  // Last: it uses the others.
};

class OpenAndClose : public ::testing::Test {
 protected:
  OpenAndClose() { EXPECT_THAT(NamenodeDirectory::Format(path(), {}, env_.get()), IsOk()); }
  ~OpenAndClose() override { Close(); }

  std::string path() const { return directory_.path() + "/name"; }
  MetaStore& store() { return opened_->store(); }

  // The database stays locked until the last snapshot of it is gone.
  void Open() {
    const SteadyTime deadline = env_->clock().Now() + absl::Seconds(60);
    MetaStore::Options options;
    options.block_cache_bytes = 1 << 20;
    for (;;) {
      auto opened = NamenodeDirectory::Open(path(), options, env_.get());
      if (opened.ok()) {
        opened_ = *std::move(opened);
        served_.Set(opened_);
        return;
      }
      ASSERT_LT(env_->clock().Now(), deadline) << opened.status();
      env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(1));
    }
  }
  void Close() {
    served_.Set(nullptr);
    opened_.reset();
  }
  void Change(int count) {
    const auto txn = store().NewTransaction();
    for (int i = 0; i < count; ++i) {
      v1::Mutation mutation = MkdirsMutation(fmt::format("/{}/{:0>60}", made_ % 7, made_));
      ++made_;
      mutation.set_time_ms(kTestStartMs);
      ASSERT_THAT(Apply(mutation, *txn), IsOk());
    }
    ASSERT_THAT(store().Write(txn->TakeEffects(), /*sync=*/true), IsOk());
    store().Publish();
  }
  void WaitForScan(const Scanner& scanner) {
    const int before = scanner.scans();
    const SteadyTime deadline = env_->clock().Now() + absl::Seconds(60);
    while (scanner.scans() == before && env_->clock().Now() < deadline)
      env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(1));
    ASSERT_GT(scanner.scans(), before);
  }

  const std::unique_ptr<Env> env_ = NewRealEnv();
  const TemporaryDirectory directory_;
  std::shared_ptr<NamenodeDirectory> opened_;
  Served served_;
  int made_ = 0;
};

TEST_F(OpenAndClose, AScanInALoopOutlivesRoleChangesAndRestoredSnapshots) {
  const int changes = Scaled(40, 200);
  Open();
  Change(200);
  const Scanner scanner(&served_);
  const std::string saved = directory_.path() + "/saved";
  uint64_t restored_to = 0;
  for (int i = 0; i < changes; ++i) {
    Change(10);
    if (i % 8 == 3) WaitForScan(scanner);
    switch (i % 4) {
      case 0: {  // A checkpoint for later.
        std::filesystem::remove_all(saved);
        ASSERT_THAT(store().Checkpoint(saved), IsOk());
        restored_to = store().applied_index();
        break;
      }
      case 1: {  // Steps down, and serves again.
        Close();
        Open();
        break;
      }
      case 2: {  // Opened anew in place, as after a full disk; whoever still reads the old state holds it up, not the readers to come.
        const SteadyTime deadline = env_->clock().Now() + absl::Seconds(60);
        absl::StatusOr<bool> reopened = store().Reopen();
        while (reopened.ok() && !*reopened && env_->clock().Now() < deadline) {
          env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(1));
          reopened = store().Reopen();
        }
        ASSERT_THAT(reopened, IsOkAndHolds(true));
        break;
      }
      default: {  // Goes back to the checkpoint.
        Close();
        // Not under a database that is open still: it deletes by name what it does not need.
        while (scanner.holds()) env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(1));
        std::filesystem::rename(path() + "/namespace", fmt::format("{}/gone{}", directory_.path(), i));
        std::filesystem::rename(saved, path() + "/namespace");
        Open();
        EXPECT_EQ(store().applied_index(), restored_to + 1);  // The new epoch.
        std::filesystem::remove_all(fmt::format("{}/gone{}", directory_.path(), i));
        break;
      }
    }
  }
  WaitForScan(scanner);
}

}  // namespace
}  // namespace cairn::namenode
