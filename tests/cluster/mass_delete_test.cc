// A delete is the same few rows for ten files and for a hundred thousand, nobody waits for what it leaves to be freed, and in the end every
// replica is gone from every disk.

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "namenode/namenode_directory.h"
#include "namenode/namespace/apply.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/builders.h"
#include "tests/testing/contents.h"

namespace cairn::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int kRealFiles = 200;
constexpr int kLoadedFiles = 3'800;
#else
constexpr int kRealFiles = 5'000;
constexpr int kLoadedFiles = 95'000;
#endif
constexpr int kWriters = 16;
constexpr int kFilesInADirectory = 5'000;

class MassDelete : public ClusterTest {
 protected:
  // Files of 1,000 bytes with three replicas each, "<directory>/<number>".
  void WriteFiles(const std::string& directory, int count) {
    std::vector<std::thread> writers;
    for (int t = 0; t < kWriters; ++t)
      writers.emplace_back([this, &directory, count, t] {
        for (int i = t; i < count; i += kWriters) {
          const absl::Status written = WriteFile(files_.get(), fmt::format("{}/{}", directory, i), Content(static_cast<uint64_t>(i), 1000));
          EXPECT_TRUE(written.ok()) << written;
        }
      });
    for (std::thread& writer : writers) writer.join();
  }

  // Files of one block each, put into the NameNode's database by Apply while nobody else has it.
  void LoadFiles(const std::string& directory, int count) {
    auto opened = namenode::NamenodeDirectory::Open(directory_.path() + "/namenode", {}, env_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    namenode::MetaStore& store = (*opened)->store();
    std::unique_ptr<namenode::StoreTransaction> txn;
    for (int i = 0; i < count; ++i) {
      if (txn == nullptr) txn = store.NewTransaction();
      v1::Mutation mutation = CreateMutation(fmt::format("{}/{}/{}", directory, i / kFilesInADirectory, i), "loader", {1, 2, 3});
      mutation.set_time_ms(absl::ToUnixMillis(env_->clock().WallNow()));
      const auto result = namenode::Apply(mutation, *txn);
      ASSERT_TRUE(result.ok() && !result->has_error()) << result.status() << (result.ok() ? result->error().message() : "");
      if (txn->ApproximateBytes() < 200'000 && i + 1 < count) continue;
      const absl::Status written = store.Write(txn->TakeEffects(), /*sync=*/i + 1 == count);
      ASSERT_TRUE(written.ok()) << written;
      txn.reset();
    }
  }

  double RowsOfDeletes() { return OfNamenode("cairn_namespace_rows_total{op=\"delete\"}"); }
  // Of a delete of this tree. Nobody else deletes meanwhile.
  double RowsToDelete(const std::string& path) {
    const double before = RowsOfDeletes();
    const absl::StatusOr<bool> deleted = files_->Delete(path, /*recursive=*/true);
    EXPECT_TRUE(deleted.ok() && *deleted) << deleted.status();
    return RowsOfDeletes() - before;
  }
};

TEST_F(MassDelete, IsTheSameFewRowsAndLeavesNoReplicaWhileOthersCreate) {
  ClientOptions unsynced;  // Durability is others' to test; here thousands of files are.
  unsynced.close_sync = CloseSync::kNone;
  StartCluster([](namenode::NamenodeOptions* namenode) { namenode->clients.default_block_size_bytes = 1 << 20; }, 3, unsynced);
  ASSERT_FALSE(HasFatalFailure());
  WriteFiles("/ten", 10);
  WriteFiles("/many/real", kRealFiles);
  for (size_t index = 0; index < 3; ++index) EXPECT_EQ(ReplicaFiles(index).size(), static_cast<size_t>(kRealFiles + 10));
  cluster_->StopNamenode();
  LoadFiles("/many/loaded", kLoadedFiles);
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(cluster_->StartNamenode().ok());
  ASSERT_TRUE(cluster_->WaitReady(absl::Minutes(1)).ok());
  const absl::StatusOr<ContentSummary> all = files_->GetContentSummary("/many");
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->files, static_cast<uint64_t>(kRealFiles + kLoadedFiles));

  // Another client creates files all the while.
  auto other = FileSystem::Connect(transport_.uri(), unsynced);
  ASSERT_TRUE(other.ok()) << other.status();
  std::atomic<bool> stop{false};
  std::atomic<int> created{0};
  std::thread creator([&] {
    for (int i = 0; !stop; ++i) {
      const absl::Status written = WriteFile(other->get(), fmt::format("/new/{}", i), Content(static_cast<uint64_t>(i), 1000));
      ASSERT_TRUE(written.ok()) << i << ": " << written;
      created = i + 1;
    }
  });
  EXPECT_TRUE(Eventually([&] { return created >= 5; }));
  const double rows_of_ten = RowsToDelete("/ten");
  const double rows_of_many = RowsToDelete("/many");
  EXPECT_GT(rows_of_ten, 0);
  // The time of the last mutation is a row, too, unless the creator's last one was in the same millisecond.
  EXPECT_NEAR(rows_of_many, rows_of_ten, 1);
  EXPECT_FALSE(*files_->Exists("/many"));
  const int at_delete = created;
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_reclaim_works") == 0; }, absl::Minutes(2)));
  EXPECT_TRUE(Eventually([&] { return created >= at_delete + 10; }));
  stop = true;
  creator.join();

  for (size_t index = 0; index < 3; ++index)
    EXPECT_TRUE(Eventually([&] { return ReplicaFiles(index).size() == static_cast<size_t>(created); }, absl::Minutes(2)))
        << ReplicaFiles(index).size() << " on DataNode " << index << ", " << created << " files";
  for (int i = 0; i < created; ++i) {
    const auto read = ReadFile(files_.get(), fmt::format("/new/{}", i));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == Content(static_cast<uint64_t>(i), 1000)) << i;
  }
  std::printf("%d + %d files deleted in %.0f rows, %d files created beside it\n", kRealFiles, kLoadedFiles, rows_of_many, created.load());
}

}  // namespace
}  // namespace cairn::testing
