// A real file system that is really full: a tmpfs of a few megabytes in a mount name space of this process. Needs root.

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/disk_watch.h"
#include "namenode/journal/local_journal.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace_writer.h"
#include "tests/testing/builders.h"

namespace cairn::namenode {
namespace {

using cairn::testing::MkdirsMutation;
using cairn::testing::WithRetry;

// A mount name space for this thread and all that it makes later, before RocksDB makes any: the mounts go with the process.
class OwnMounts : public ::testing::Environment {
 public:
  void SetUp() override {
    if (geteuid() != 0) return;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      std::printf("no mount name space: %s\n", std::strerror(errno));
  }
};
const auto* const own_mounts = ::testing::AddGlobalTestEnvironment(new OwnMounts);

class FullTmpfs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "mounting a tmpfs needs root";
    std::string name = ::testing::TempDir() + "cairn-full-XXXXXX";
    mount_point_ = mkdtemp(name.data());
    if (mount("cairn-test", mount_point_.c_str(), "tmpfs", 0, "size=12m") != 0) {
      GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(errno);
    }
    mounted_ = true;
    env_ = NewRealEnv();
    directory_path_ = mount_point_ + "/nn";
  }
  void TearDown() override {
    watch_.reset();
    writer_.reset();
    executor_.reset();
    journal_.reset();
    directory_.reset();
    if (mounted_) umount2(mount_point_.c_str(), MNT_DETACH);
    if (!mount_point_.empty()) rmdir(mount_point_.c_str());
  }

  void Open(uint64_t reserved_bytes) {
    MetaStore::Options options;
    options.block_cache_bytes = 1 << 20;
    options.write_buffer_bytes = 256 << 10;  // Flushes and compactions happen, and find no room either.
    auto opened = NamenodeDirectory::Open(directory_path_, options, env_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    directory_ = *std::move(opened);
    journal_ = std::make_unique<LocalJournal>(&directory_->store());
    executor_ = env_->executors().NewExecutor("writer");
    writer_ = std::make_unique<NamespaceWriter>(NamespaceWriter::Options(), &directory_->store(), journal_.get(), executor_.get(),
                                                &env_->clock());
    DiskWatch::Options watch;
    watch.directory = directory_path_;
    watch.reserved_bytes = reserved_bytes;
    watch.interval = absl::Milliseconds(50);
    watch.closing_interval = absl::Milliseconds(5);
    watch_ = std::make_unique<DiskWatch>(watch, &env_->files(), &directory_->store(), journal_.get(), writer_.get(), executor_.get());
    watch_->Start();
  }
  void Stop() {
    std::atomic<int> stopped{0};
    watch_->Stop([&] {
      writer_->Stop([&] {
        stopped = 1;
        env_->Wake();
      });
    });
    env_->BlockUntil([&] { return stopped.load() == 1; }, SteadyTime::Infinite());
    watch_.reset();
    writer_.reset();
    executor_.reset();
    journal_.reset();
    directory_.reset();
  }
  absl::Status Apply(const v1::Mutation& mutation) {
    auto answer = std::make_shared<std::optional<absl::Status>>();
    auto done = std::make_shared<std::atomic<bool>>(false);
    writer_->Submit(mutation, [answer, done, this](const absl::StatusOr<v1::MutationResult>& result) {
      answer->emplace(result.status());
      done->store(true);
      env_->Wake();
    });
    env_->BlockUntil([&] { return done->load(); }, SteadyTime::Infinite());
    return **answer;
  }
  bool WaitFor(DiskWatch::State state) {
    const SteadyTime end = env_->clock().Now() + absl::Seconds(40);
    while (watch_->stats().state != state && env_->clock().Now() < end)
      env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(5));
    return watch_->stats().state == state;
  }
  // Takes all that is free but `left` bytes.
  void TakeSpace(uint64_t left) {
    const std::filesystem::space_info space = std::filesystem::space(mount_point_);
    std::ofstream ballast(mount_point_ + "/ballast", std::ios::binary | std::ios::app);
    if (space.available > left) ballast << std::string(space.available - left, 'x');
  }
  void GiveSpace() { std::filesystem::remove(mount_point_ + "/ballast"); }

  std::string mount_point_, directory_path_;
  bool mounted_ = false;
  std::unique_ptr<Env> env_;
  std::unique_ptr<NamenodeDirectory> directory_;
  std::unique_ptr<LocalJournal> journal_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<NamespaceWriter> writer_;
  std::unique_ptr<DiskWatch> watch_;
};

TEST_F(FullTmpfs, IsOvercomeAgainAndAgainWithoutARestart) {
  ASSERT_TRUE(NamenodeDirectory::Format(directory_path_, {}, env_.get()).ok());
  Open(/*reserved_bytes=*/0);
  std::vector<std::string> made;
  uint64_t sequence = 0;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    const uint64_t recoveries = watch_->stats().recoveries;
    TakeSpace(static_cast<uint64_t>(round) * 700);  // In the middle of a page of the log, too.
    absl::Status status;
    v1::Mutation last;
    for (int i = 0; status.ok(); ++i) {
      ASSERT_LT(i, 20000) << "the disk does not fill up";
      const std::string path = fmt::format("/r{}/{:0>180}", round, i);
      ++sequence;
      last = WithRetry(MkdirsMutation(path), 0, sequence, sequence);
      status = Apply(last);
      if (status.ok()) made.push_back(path);
    }
    // Outcome unknown, or refused because background work had found out first.
    EXPECT_TRUE(status.code() == absl::StatusCode::kUnavailable || KindOf(status) == ErrorKind::kReadOnly) << status;
    // Or it is over already: a compaction that is given up leaves room, too.
    const auto is_over = [&] { return watch_->stats().recoveries > recoveries; };
    EXPECT_TRUE(is_over() || KindOf(writer_->failure()) == ErrorKind::kDiskFull) << writer_->failure();
    EXPECT_TRUE(is_over() || WaitFor(DiskWatch::State::kFull) || watch_->stats().state == DiskWatch::State::kWell);
    {
      const auto view = directory_->store().Snapshot();
      for (size_t i = 0; i < made.size(); i += 17) EXPECT_TRUE(ResolvePath(*view, made[i]).ok()) << made[i];
    }
    GiveSpace();
    ASSERT_TRUE(WaitFor(DiskWatch::State::kWell)) << watch_->status();
    ASSERT_TRUE(Apply(last).ok());  // The retry acts now, or gets its kept answer.
    const auto view = directory_->store().Snapshot();
    for (const std::string& path : made) EXPECT_TRUE(ResolvePath(*view, path).ok()) << path;
  }
  EXPECT_GE(watch_->stats().recoveries, 6u);
  Stop();
  Open(0);
  const auto view = directory_->store().Snapshot();
  for (const std::string& path : made) EXPECT_TRUE(ResolvePath(*view, path).ok()) << path;
}

TEST_F(FullTmpfs, LowSpaceComesBeforeAnyWriteFails) {
  ASSERT_TRUE(NamenodeDirectory::Format(directory_path_, {}, env_.get()).ok());
  Open(/*reserved_bytes=*/2 << 20);
  TakeSpace(1 << 20);
  ASSERT_TRUE(WaitFor(DiskWatch::State::kLowSpace));
  const absl::Status refused = Apply(MkdirsMutation("/a"));
  EXPECT_EQ(ReasonOf(refused), "LOW_SPACE") << refused;
  EXPECT_TRUE(writer_->failure().ok());
  GiveSpace();
  ASSERT_TRUE(WaitFor(DiskWatch::State::kWell));
  EXPECT_TRUE(Apply(MkdirsMutation("/a")).ok());
  Stop();
}

TEST_F(FullTmpfs, AStartThatNeedsMoreThanTheReserveToWriteTablesGivesItUpAndDoesWithout) {
  constexpr uint64_t kReserve = 2 << 20;
  MetaStore::Options options;
  options.block_cache_bytes = 1 << 20;
  options.write_buffer_bytes = 64 << 20;  // What is written stays in the log.
  ASSERT_TRUE(NamenodeDirectory::Format(directory_path_, {}, env_.get()).ok());
  const std::string row(64 << 10, 'x');
  {
    auto opened = NamenodeDirectory::Open(directory_path_, options, env_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    MetaStore& store = (*opened)->store();
    for (int i = 0; i < 64; ++i) {  // 4 MiB in the log, and in no table.
      const auto txn = store.NewTransaction();
      txn->Put(Family::kWork, fmt::format("row {}", i), row);
      ASSERT_TRUE(store.Write(txn->TakeEffects(), /*sync=*/true).ok());
    }
    DiskReserve reserve(directory_path_, kReserve, &env_->files());
    ASSERT_TRUE(reserve.GiveUpIfFull().ok());
    ASSERT_TRUE(reserve.PutBack().ok());
  }
  TakeSpace(kReserve + (256 << 10));  // The disk is not full, as far as the reserve can see.
  ASSERT_EQ(KindOf(NamenodeDirectory::Open(directory_path_, options, env_.get()).status()), ErrorKind::kDiskFull);  // Who keeps none.
  DiskReserve reserve(directory_path_, kReserve, &env_->files());
  auto opened = NamenodeDirectory::Open(directory_path_, options, env_.get(), &reserve);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(reserve.missing_bytes(), kReserve);
  EXPECT_FALSE(std::filesystem::exists(directory_path_ + "/reserve"));
  {
    const auto view = (*opened)->store().Snapshot();
    for (int i = 0; i < 64; ++i) EXPECT_EQ(view->Get(Family::kWork, fmt::format("row {}", i)).value(), row) << i;
  }
  const Epoch epoch = (*opened)->epoch();
  opened->reset();
  // And again, though there is nothing more to give up.
  opened = NamenodeDirectory::Open(directory_path_, options, env_.get(), &reserve);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_GT((*opened)->epoch(), epoch);
  opened->reset();
  // With nothing given back it is an error, not a loop.
  TakeSpace(0);
  EXPECT_FALSE(NamenodeDirectory::Open(directory_path_, options, env_.get(), &reserve).ok());
  GiveSpace();
  opened = NamenodeDirectory::Open(directory_path_, options, env_.get(), &reserve);
  ASSERT_TRUE(opened.ok()) << opened.status();
}

}  // namespace
}  // namespace cairn::namenode
