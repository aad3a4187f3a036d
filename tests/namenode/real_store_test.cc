// The namespace's store with the options of production: real files, RocksDB's own threads, a writer on a thread of its own, readers beside
// it.

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/journal/local_journal.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace_writer.h"
#include "tests/testing/builders.h"

namespace cairn::namenode {
namespace {

using cairn::testing::MkdirsMutation;

class RealStoreTest : public ::testing::Test {
 protected:
  RealStoreTest() : env_(NewRealEnv()) {
    std::string name = ::testing::TempDir() + "cairn-store-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~RealStoreTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  // Small buffers, so that flushes and compactions happen.
  std::unique_ptr<NamenodeDirectory> Open() {
    MetaStore::Options options;
    options.block_cache_bytes = 1 << 20;
    options.write_buffer_bytes = 256 << 10;
    auto opened = NamenodeDirectory::Open(directory_, options, env_.get());
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  void Wait(const std::atomic<int>& count, int until) {
    const bool in_time = env_->BlockUntil([&] { return count.load() >= until; }, env_->clock().Now() + absl::Seconds(50));
    ASSERT_TRUE(in_time) << count.load() << " of " << until;
  }

  std::unique_ptr<Env> env_;
  std::string directory_;
};

TEST_F(RealStoreTest, WriterReadersFlushesAndRestarts) {
  constexpr int kChanges = 3000;
  ASSERT_TRUE(NamenodeDirectory::Format(directory_, {}, env_.get()).ok());
  uint64_t applied_index = 0;
  {
    const auto opened = Open();
    LocalJournal journal(&opened->store());
    const auto executor = env_->executors().NewExecutor("writer");
    NamespaceWriter writer({}, &opened->store(), &journal, executor.get(), &env_->clock());
    std::atomic<int> answered{0}, failed{0};
    for (int i = 0; i < kChanges; ++i) {
      writer.Submit(MkdirsMutation(fmt::format("/d{}/{:0>200}", i % 50, i)), [&](const absl::StatusOr<v1::MutationResult>& result) {
        if (!result.ok()) failed.fetch_add(1);
        if (answered.fetch_add(1) + 1 == kChanges) env_->Wake();
      });
      // What a snapshot shows of a directory is one state: usage and rows agree.
      if (i % 50 == 0) {
        const auto view = opened->store().Snapshot();
        const auto summary = SummaryOfPath(*view, "/");
        ASSERT_TRUE(summary.ok()) << summary.status();
        uint64_t rows = 0;
        for (const auto cursor = view->Scan(Family::kInodeById, "", ""); cursor->Valid(); cursor->Next()) ++rows;
        EXPECT_EQ(summary->directories(), rows) << i;
      }
    }
    Wait(answered, kChanges);
    EXPECT_EQ(failed.load(), 0);
    const NamespaceWriter::Stats stats = writer.stats();
    EXPECT_EQ(stats.acted, static_cast<uint64_t>(kChanges));
    EXPECT_LT(stats.batches, static_cast<uint64_t>(kChanges));
    std::printf("%d changes in %lu batches\n", kChanges, static_cast<unsigned long>(stats.batches));
    std::atomic<int> stopped{0};
    writer.Stop([&] {
      stopped = 1;
      env_->Wake();
    });
    Wait(stopped, 1);
    applied_index = opened->store().applied_index();
  }
  bool flushed = false;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/namespace")) flushed |= entry.path().extension() == ".sst";
  EXPECT_TRUE(flushed);
  const auto opened = Open();
  EXPECT_EQ(opened->epoch().value(), 2u);
  EXPECT_EQ(opened->store().applied_index(), applied_index + 1);
  const auto view = opened->store().Snapshot();
  for (int i = 0; i < kChanges; i += 97) EXPECT_TRUE(ResolvePath(*view, fmt::format("/d{}/{:0>200}", i % 50, i)).ok()) << i;
}

TEST_F(RealStoreTest, TheDirectoryIsLocked) {
  ASSERT_TRUE(NamenodeDirectory::Format(directory_, {}, env_.get()).ok());
  const auto opened = Open();
  EXPECT_EQ(KindOf(NamenodeDirectory::Open(directory_, {}, env_.get()).status()), ErrorKind::kBusy);
}

}  // namespace
}  // namespace cairn::namenode
