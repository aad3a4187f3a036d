// The namespace's store with the options of production: real files, RocksDB's own threads, a writer on a thread of its own, readers beside
// it.

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/journal/local_journal.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace_writer.h"
#include "namenode/store/keys.h"
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

// A namespace on the real store, changed without a writer's thread, many changes a batch.
class Tombstones : public RealStoreTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(NamenodeDirectory::Format(directory_, {}, env_.get()).ok());
    MetaStore::Options options;  // Its own sizes: all of it stays in memory unless somebody writes it out.
    auto opened = NamenodeDirectory::Open(directory_, options, env_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    opened_ = *std::move(opened);
  }
  MetaStore& store() { return opened_->store(); }

  v1::MutationResult Do(v1::Mutation mutation) {
    mutation.set_time_ms(cairn::testing::kTestStartMs);
    if (txn_ == nullptr) txn_ = store().NewTransaction();
    const auto result = Apply(mutation, *txn_);
    EXPECT_TRUE(result.ok() && !result->has_error()) << result.status() << (result.ok() ? result->error().message() : "");
    if (txn_->ApproximateBytes() > 200'000) Commit();
    return result.ok() ? *result : v1::MutationResult();
  }
  void Commit() {
    if (txn_ == nullptr) return;
    const absl::Status written = store().Write(txn_->TakeEffects(), /*sync=*/false);
    EXPECT_TRUE(written.ok()) << written;
    store().Publish();
    txn_.reset();
  }
  void MakeFiles(const std::string& directory, int count) {
    for (int i = 0; i < count; ++i) {
      const v1::MutationResult file = Do(cairn::testing::CreateMutation(fmt::format("{}/{:06}", directory, i), "me", {1}));
      v1::Mutation complete = cairn::testing::CompleteMutation(file, "me");
      *complete.mutable_complete()->mutable_last() = cairn::testing::MakeCommit(file.block(), 10, {1});
      Do(complete);
    }
    Commit();
  }
  // Tombstones that a listing of the whole directory steps over.
  uint64_t SkippedByListing(const std::string& directory, size_t entries) {
    const uint64_t before = store().tombstones_skipped();
    const auto listing = ListDirectory(*store().Snapshot(), directory, "", 100'000);
    EXPECT_TRUE(listing.ok()) << listing.status();
    if (listing.ok()) {
      EXPECT_EQ(listing->entries.size(), entries);
    }
    return store().tombstones_skipped() - before;
  }
  std::unique_ptr<NamenodeDirectory> opened_;
  std::unique_ptr<StoreTransaction> txn_;
};

// Counted, not timed: the parent of a deleted tree and its neighbours are listed as before, right after the delete, while the tree is
// freed, and afterwards. Once with directories that go row by row, and once with one that goes as a range.
TEST_F(Tombstones, OfADeletedTreeAreInNoListingsWay) {
  for (const int files_in_each : {100, 2'000}) {
    const std::string parent = fmt::format("/of{}", files_in_each);
    for (const char* name : {"/a", "/z"}) MakeFiles(parent + name, 50);
    for (int i = 0; i < 2'000 / files_in_each; ++i) MakeFiles(fmt::format("{}/m/{}", parent, i), files_in_each);
    EXPECT_EQ(SkippedByListing(parent, 3), 0u);
    Do(cairn::testing::DeleteMutation(parent + "/m", true));
    Commit();
    EXPECT_LE(SkippedByListing(parent, 2), 1u);
    bool done = false;
    for (int steps = 0; !done; ++steps) {
      v1::Mutation step;
      step.mutable_reclaim_step()->set_work_id(files_in_each == 100 ? 1 : 2);
      step.mutable_reclaim_step()->set_max_entries(256);
      done = Do(step).done();
      Commit();
      if (steps % 8 != 0 && !done) continue;
      EXPECT_LE(SkippedByListing(parent, 2), 1u);
      EXPECT_EQ(SkippedByListing(parent + "/a", 50), 0u);
      EXPECT_EQ(SkippedByListing(parent + "/z", 50), 0u);
    }
  }
}

// Files deleted one by one leave their tombstones where their directory is listed. The listing that steps over too many has them written
// out and compacted away, so that others have none: RocksDB looks again at what it has moved to the last level when a snapshot goes, as
// with every change.
TEST_F(Tombstones, OfFilesDeletedOneByOneGoWhenAListingMeetsThem) {
  MakeFiles("/d", 5'000);
  for (int i = 0; i < 4'990; ++i) Do(cairn::testing::DeleteMutation(fmt::format("/d/{:06}", i), false));
  Commit();
  EXPECT_GE(SkippedByListing("/d", 10), 4'500u);
  uint64_t skipped = 1;
  int changes = 0;
  const SteadyTime deadline = env_->clock().Now() + absl::Seconds(30);
  while (skipped > 0 && env_->clock().Now() < deadline) {
    env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(20));
    Do(cairn::testing::MkdirsMutation(fmt::format("/meanwhile/{}", ++changes)));
    Commit();
    skipped = SkippedByListing("/d", 10);
  }
  EXPECT_EQ(skipped, 0u);
}

// The cache of rows is in front of every snapshot: whatever was committed, two rows of one batch are never seen apart.
TEST_F(RealStoreTest, SnapshotsShowWholeBatchesWhileRowsAreCached) {
  constexpr int kReaders = 3;
  ASSERT_TRUE(NamenodeDirectory::Format(directory_, {}, env_.get()).ok());
  const auto opened = Open();
  MetaStore& store = opened->store();
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0}, behind{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < kReaders; ++r)
    readers.emplace_back([&] {
      uint64_t newest = 0;
      while (!stop.load()) {
        const auto view = store.Snapshot();
        const auto first = view->Get(Family::kUsage, EncodeU64(1));
        const auto second = view->Get(Family::kInode, EncodeU64(2));
        if (!first.ok() || !second.ok() || *first != *second) torn.fetch_add(1);
        const uint64_t seen = first.ok() && *first ? DecodeU64(**first).value_or(0) : 0;
        if (seen < newest) behind.fetch_add(1);
        newest = seen;
      }
    });
  for (uint64_t n = 1; n <= 3000; ++n) {
    const auto txn = store.NewTransaction();
    EXPECT_EQ(txn->Get(Family::kUsage, EncodeU64(1))->value_or(EncodeU64(0)), EncodeU64(n - 1));
    txn->Put(Family::kUsage, EncodeU64(1), EncodeU64(n));
    txn->Put(Family::kInode, EncodeU64(2), EncodeU64(n));
    ASSERT_TRUE(store.Write(txn->TakeEffects(), /*sync=*/false).ok());
    store.Publish();
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(behind.load(), 0);
}

TEST_F(RealStoreTest, AViewOfMemorySaysWhatItWouldHaveToReadFromTheDisk) {
  ASSERT_TRUE(NamenodeDirectory::Format(directory_, {}, env_.get()).ok());
  const std::string value(4000, 'v');
  {
    const auto opened = Open();
    const auto txn = opened->store().NewTransaction();
    for (uint64_t i = 0; i < 500; ++i) txn->Put(Family::kFileBlock, FileBlockKey(InodeId(1), i), value);
    ASSERT_TRUE(opened->store().Write(txn->TakeEffects(), /*sync=*/true).ok());
    opened->store().Publish();
    EXPECT_EQ(opened->store().MemorySnapshot()->Get(Family::kFileBlock, FileBlockKey(InodeId(1), 7)).value(), value);
  }
  const auto opened = Open();  // What the log held is in tables now.
  const auto memory = opened->store().MemorySnapshot();
  const auto key = FileBlockKey(InodeId(1), 7);
  EXPECT_TRUE(IsNotInMemory(memory->Get(Family::kFileBlock, key).status()));
  const auto cursor = memory->Scan(Family::kFileBlock, key, "");
  EXPECT_FALSE(cursor->Valid());
  EXPECT_TRUE(IsNotInMemory(cursor->status()));
  EXPECT_EQ(opened->store().Snapshot()->Get(Family::kFileBlock, key).value(), value);
  EXPECT_EQ(memory->Get(Family::kFileBlock, key).value(), value);
}

TEST_F(RealStoreTest, TheDirectoryIsLocked) {
  ASSERT_TRUE(NamenodeDirectory::Format(directory_, {}, env_.get()).ok());
  const auto opened = Open();
  EXPECT_EQ(KindOf(NamenodeDirectory::Open(directory_, {}, env_.get()).status()), ErrorKind::kBusy);
}

}  // namespace
}  // namespace cairn::namenode
