// Tasks are cancelled while the answers to their creates are still on the way: what becomes of the files.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/src/file_system.h"
#include "client/src/file_writer_core.h"
#include "common/error.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeds.h"
#include "tests/testing/sim_cluster.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kAnswersLate = absl::Seconds(5);
constexpr absl::Duration kCancelAfter = absl::Seconds(1);
constexpr absl::Duration kSoftLimit = absl::Seconds(60);  // As configured unless somebody says otherwise.
constexpr size_t kCreatesOfOneClient = 50;                // All on their way at once.

// A task that opens a file.
struct Task {
  std::unique_ptr<client::FileWriterCore> writer;
  absl::Status opened = absl::UnknownError("not yet");
  bool done = false;
};

Awaitable<void> Open(Task* task) {
  absl::Status opened = co_await task->writer->Open();
  task->opened = std::move(opened);
  task->done = true;
}

class AbandonedCreates : public ::testing::Test {
 protected:
  AbandonedCreates() { cluster_.AskFromElsewhere(); }
  ~AbandonedCreates() override {
    Stop(&tasks_);
    Stop(&writers_);
  }

  std::string PathOf(size_t i) const { return fmt::format("/d/{:05}", i); }

  // All tasks create their files at once; the NameNode makes them, and its answers take 5 s; each task is cancelled after 1 s.
  void CreateAndCancel(size_t count, bool delete_if_abandoned) {
    CreateOptions options;
    options.delete_if_abandoned = delete_if_abandoned;
    for (size_t i = 0; i < (count + kCreatesOfOneClient - 1) / kCreatesOfOneClient; ++i) {
      cores_.push_back(cluster_.NewClientCore());
      // Another file of this client stays open, so that it renews its lease.
      Task& writer = *writers_.emplace_back(std::make_unique<Task>());
      writer.writer = std::make_unique<client::FileWriterCore>(cores_.back().get(), fmt::format("/open/{}", i), CreateOptions());
      writer.writer->group().Spawn("open", [task = &writer] { return Open(task); });
    }
    ASSERT_TRUE(cluster_.RunUntil([&] { return AllDone(writers_); }, absl::Minutes(1)));
    SimNetwork& network = cluster_.world().network();
    network.Block(cluster_.namenode_machine(), cluster_.client_machine());
    for (size_t i = 0; i < count; ++i) {
      Task& task = *tasks_.emplace_back(std::make_unique<Task>());
      task.writer = std::make_unique<client::FileWriterCore>(cores_[i / kCreatesOfOneClient].get(), PathOf(i), options);
      task.writer->group().Spawn("open", [t = &task] { return Open(t); });
    }
    Wait(kCancelAfter);
    for (const auto& task : tasks_) task->writer->Abort();
    Wait(absl::Milliseconds(10));
    EXPECT_TRUE(AllDone(tasks_));  // Nobody waits for an answer that he does not want any more.
    for (const auto& task : tasks_) EXPECT_THAT(task->opened, HasKind(ErrorKind::kCancelled));
  }
  // The same, and the tasks wait until their creates fail, since no answer comes at all.
  void CreateAndWait(size_t count, const CreateOptions& options) {
    cores_.push_back(cluster_.NewClientCore());
    Task& writer = *writers_.emplace_back(std::make_unique<Task>());
    writer.writer = std::make_unique<client::FileWriterCore>(cores_.back().get(), "/open/0", CreateOptions());
    writer.writer->group().Spawn("open", [task = &writer] { return Open(task); });
    ASSERT_TRUE(cluster_.RunUntil([&] { return AllDone(writers_); }, absl::Minutes(1)));
    cluster_.world().network().Block(cluster_.namenode_machine(), cluster_.client_machine());
    for (size_t i = 0; i < count; ++i) {
      Task& task = *tasks_.emplace_back(std::make_unique<Task>());
      task.writer = std::make_unique<client::FileWriterCore>(cores_.back().get(), PathOf(i), options);
      task.writer->group().Spawn("open", [t = &task] { return Open(t); });
    }
    // Less than the soft limit, else the NameNode deletes them by itself.
    ASSERT_TRUE(cluster_.RunUntil([&] { return AllDone(tasks_); }, kSoftLimit - absl::Seconds(15)));
    for (const auto& task : tasks_) EXPECT_FALSE(task->opened.ok());
  }
  void LetAnswersThrough() {
    Wait(kAnswersLate - kCancelAfter);
    cluster_.world().network().Unblock(cluster_.namenode_machine(), cluster_.client_machine());
  }
  // Nothing of the client comes through any more, as if it had died.
  void LoseClient() { cluster_.world().network().Isolate(cluster_.client_machine()); }
  void FindClient() { cluster_.world().network().Heal(); }

  std::vector<std::string> Entries() {
    std::vector<std::string> paths;
    for (;;) {
      v1::ListRequest request;
      request.set_path("/d");
      if (!paths.empty()) request.set_start_after(paths.back().substr(3));
      const auto page = cluster_.Ask(&api::ClientNamenode::List, request);
      EXPECT_THAT(page, IsOk());
      if (!page.ok()) return paths;
      for (const v1::FileStatus& entry : page->entries()) paths.push_back(fmt::format("/d/{}", entry.path()));
      if (!page->has_more()) return paths;
    }
  }
  // "STATE path".
  std::vector<std::string> Orphans(absl::Duration older) {
    std::vector<std::string> found;
    v1::ListOrphansRequest request;
    request.mutable_header()->set_user("sim");
    request.set_path("/d");
    request.set_older_than_ms(absl::ToInt64Milliseconds(older));
    do {
      const auto page = cluster_.AskAdmin(&api::NamenodeAdmin::ListOrphans, request);
      EXPECT_THAT(page, IsOk());
      if (!page.ok()) return found;
      for (const v1::OrphanFile& file : page->files()) found.push_back(v1::OrphanFile::State_Name(file.state()) + " " + file.path());
      request.set_start_after(page->next());
    } while (!request.start_after().empty());
    return found;
  }
  std::vector<std::string> Expected(size_t count, const std::string& state) const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < count; ++i) lines.push_back(state + " " + PathOf(i));
    return lines;
  }
  void Wait(absl::Duration time) { cluster_.RunFor(time); }
  static bool AllDone(const std::vector<std::unique_ptr<Task>>& tasks) {
    return std::all_of(tasks.begin(), tasks.end(), [](const auto& task) { return task->done; });
  }
  // A closed file beside them, which is nobody's orphan.
  void WriteGoodFile() {
    cores_.push_back(cluster_.NewClientCore());
    auto files = client::NewFileSystem(cores_.back());
    auto writer = files->Create("/d/good");
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Append("x").ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }

  SimCluster cluster_{SimClusterOptions{.seed = 1, .retry_budget = absl::Seconds(30)}};
  std::vector<std::shared_ptr<client::ClientCore>> cores_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<Task>> writers_;

 private:
  void Stop(std::vector<std::unique_ptr<Task>>* tasks) {
    for (const auto& task : *tasks) {
      bool ended = false;
      task->writer->group().StopAndThen([&ended] { ended = true; });
      cluster_.RunUntil([&ended] { return ended; }, absl::Minutes(1));
    }
    tasks->clear();
  }
};

TEST_F(AbandonedCreates, OfAClientThatLivesOnAreDeletedWhenTheirAnswersCome) {
  CreateAndCancel(Scaled<size_t>(200, 1000), true);
  LetAnswersThrough();
  Wait(absl::Seconds(10));
  EXPECT_THAT(Entries(), IsEmpty());
}

TEST_F(AbandonedCreates, OfAClientThatDiedAreDeletedAtTheSoftLimit) {
  const size_t count = Scaled<size_t>(200, 1000);
  CreateAndCancel(count, true);
  LoseClient();
  EXPECT_THAT(Entries(), SizeIs(count));
  Wait(kSoftLimit + absl::Seconds(10));
  EXPECT_THAT(Entries(), IsEmpty());
  FindClient();  // Its late answers and releases find nothing, and do no harm.
  Wait(absl::Seconds(30));
  EXPECT_THAT(Entries(), IsEmpty());
  EXPECT_TRUE(cluster_.Settle(absl::Minutes(5)));
}

TEST_F(AbandonedCreates, WhoseAnswersDoNotComeWithinTheRetryBudgetAreFoundAndDeletedWhileTheClientLives) {
  CreateOptions options;
  options.delete_if_abandoned = true;
  const size_t count = 40;
  CreateAndWait(count, options);
  EXPECT_THAT(Entries(), SizeIs(count));
  cluster_.world().network().Unblock(cluster_.namenode_machine(), cluster_.client_machine());
  Wait(absl::Minutes(1));
  EXPECT_THAT(Entries(), IsEmpty());
  EXPECT_EQ(cores_.front()->leases().writers(), 1);  // The other file of this client is not touched.
  EXPECT_FALSE(cores_.front()->opens().any());
}

TEST_F(AbandonedCreates, WithoutTheFlagStayAndAreListedExactly) {
  const size_t count = Scaled<size_t>(200, 1000);
  CreateAndCancel(count, false);
  LoseClient();
  Wait(kSoftLimit + absl::Seconds(10));
  EXPECT_THAT(Orphans(absl::Minutes(1)), ElementsAreArray(Expected(count, "SILENT")));
  EXPECT_THAT(Orphans(absl::Hours(1)), IsEmpty());
  EXPECT_THAT(Entries(), SizeIs(count));
  // After the hard limit the NameNode has closed them.
  Wait(absl::Minutes(12));
  FindClient();
  EXPECT_THAT(Orphans(absl::Minutes(1)), ElementsAreArray(Expected(count, "ABANDONED")));
}

TEST_F(AbandonedCreates, WithoutTheFlagOfAClientThatLivesOnAreClosedAndListed) {
  WriteGoodFile();
  const size_t count = Scaled<size_t>(200, 1000);
  CreateAndCancel(count, false);
  LetAnswersThrough();
  Wait(absl::Seconds(70));
  EXPECT_THAT(Entries(), SizeIs(count + 1));
  EXPECT_THAT(Orphans(absl::Minutes(1)), ElementsAreArray(Expected(count, "ABANDONED")));
}

}  // namespace
}  // namespace cairn::testing
