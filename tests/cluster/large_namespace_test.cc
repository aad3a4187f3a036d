// A large tree is counted, and a file grows by many small appends, while everything goes on as if they were small.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "client/cli/dfs_usage.h"
#include "common/env/random.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace/apply.h"
#include "namenode/namespace/checker.h"
#include "namenode/namespace_copy.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/builders.h"
#include "tests/testing/contents.h"
#include "tests/testing/seeds.h"

namespace cairn::testing {
namespace {

absl::Duration At(std::vector<absl::Duration> took, double share) {
  if (took.empty()) return absl::ZeroDuration();
  std::sort(took.begin(), took.end());
  return took[static_cast<size_t>(share * static_cast<double>(took.size() - 1))];
}

class LargeNamespace : public ClusterTest {
 protected:
  // Closed files of one block of `length` bytes each, put into the database of a NameNode that is stopped.
  void LoadFiles(const std::string& directory, int count, uint64_t length) {
    auto opened = namenode::NamenodeDirectory::Open(directory_.path() + "/namenode", {}, env_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    namenode::MetaStore& store = (*opened)->store();
    std::unique_ptr<namenode::StoreTransaction> txn = store.NewTransaction();
    const auto apply = [&](v1::Mutation mutation) {
      mutation.set_time_ms(absl::ToUnixMillis(env_->clock().WallNow()));
      auto result = namenode::Apply(mutation, *txn);
      EXPECT_TRUE(result.ok() && !result->has_error()) << result.status() << (result.ok() ? result->error().message() : "");
      return result.ok() ? *std::move(result) : v1::MutationResult();
    };
    for (int i = 0; i < count; ++i) {
      const v1::MutationResult file = apply(CreateMutation(fmt::format("{}/{}/{}", directory, i / 1000, i), "loader", {1, 2, 3}));
      v1::Mutation complete = CompleteMutation(file, "loader");
      *complete.mutable_complete()->mutable_last() = MakeCommit(file.block(), length, {1, 2, 3});
      apply(complete);
      if (txn->ApproximateBytes() < 200'000 && i + 1 < count) continue;
      const absl::Status written = store.Write(txn->TakeEffects(), /*sync=*/i + 1 == count);
      ASSERT_TRUE(written.ok()) << written;
      store.Publish();
      txn = store.NewTransaction();
    }
  }
  void StopAndLoad(const std::string& directory, int count, uint64_t length) {
    cluster_->StopNamenode();
    LoadFiles(directory, count, length);
    const absl::Status started = cluster_->StartNamenode();
    ASSERT_TRUE(started.ok()) << started;
  }
  // What `cairn dfs -du -s` prints.
  std::string DiskUsage(const std::string& path) {
    std::ostringstream out, err;
    cli::Shell shell;
    shell.files = files_.get();
    shell.out = &out;
    shell.err = &err;
    const std::vector<std::string> words = {"-du", "-s", path};
    EXPECT_EQ(cli::RunVerb("cairn dfs", cli::UsageVerbs(), words, &shell), 0) << err.str();
    return out.str();
  }
  double Rows(const std::string& op) { return OfNamenode(fmt::format("cairn_namespace_rows_total{{op=\"{}\"}}", op)); }
  // Every row and total of the namespace, once the NameNode has stopped.
  void ExpectSound() {
    files_.reset();
    cluster_.reset();
    const auto copy = namenode::NamespaceCopy::Open(directory_.path() + "/namenode", env_.get());
    ASSERT_TRUE(copy.ok()) << copy.status();
    const auto sound =
        namenode::CheckNamespace(copy->view(), [](const namenode::Violation& violation) { ADD_FAILURE() << ToString(violation); });
    ASSERT_TRUE(sound.ok()) << sound.status();
    EXPECT_EQ(sound->violations, 0u);
  }
};

// The total of the loaded tree does not change, so every answer must be just that; that of the directory that is filled at the same time
// grows, and lies between what was there before the question and after it.
TEST_F(LargeNamespace, DiskUsageIsExactBesideALoopOfCreates) {
  constexpr uint64_t kLength = 1000;
  const int loaded = Scaled(5'000, 1'000'000);
  ClientOptions unsynced;
  unsynced.close_sync = CloseSync::kNone;
  StartCluster(nullptr, 3, unsynced);
  ASSERT_FALSE(HasFatalFailure());
  StopAndLoad("/tree/loaded", loaded, kLength);
  ASSERT_FALSE(HasFatalFailure());
  const uint64_t bytes = static_cast<uint64_t>(loaded) * kLength;
  const std::string expected = fmt::format("{}  {}  /tree/loaded\n", bytes, 3 * bytes);

  auto other = FileSystem::Connect(transport_.uri(), unsynced);
  ASSERT_TRUE(other.ok()) << other.status();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> begun{0}, ended{0};
  std::vector<absl::Duration> creates, questions;
  std::thread creator([&] {
    while (!stop.load()) {
      begun.fetch_add(1);
      const SteadyTime began = env_->clock().Now();
      auto writer = (*other)->Create(fmt::format("/tree/new/{}", begun.load()));
      ASSERT_TRUE(writer.ok()) << writer.status();
      creates.push_back(env_->clock().Now() - began);
      ASSERT_TRUE((*writer)->Append("x").ok());
      const absl::Status closed = (*writer)->Close();
      ASSERT_TRUE(closed.ok()) << closed;
      ended.fetch_add(1);
    }
  });
  EXPECT_TRUE(Eventually([&] { return ended.load() >= 3; }));
  for (int i = 0; i < 100; ++i) {
    const SteadyTime began = env_->clock().Now();
    EXPECT_EQ(DiskUsage("/tree/loaded"), expected);
    questions.push_back(env_->clock().Now() - began);
    const uint64_t at_least = ended.load();
    const auto growing = files_->GetContentSummary("/tree/new");
    ASSERT_TRUE(growing.ok()) << growing.status();
    EXPECT_GE(growing->files, at_least);
    EXPECT_LE(growing->files, begun.load());
    EXPECT_GE(growing->length_bytes, at_least);
  }
  stop = true;
  creator.join();
  std::printf("%d files: du -s p50 %.2f ms, p99 %.2f ms; %lu creates beside it, p99 %.1f ms\n", loaded,
              absl::ToDoubleMilliseconds(At(questions, 0.5)), absl::ToDoubleMilliseconds(At(questions, 0.99)),
              static_cast<unsigned long>(ended.load()), absl::ToDoubleMilliseconds(At(creates, 0.99)));
  const auto all = files_->GetContentSummary("/tree");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->files, static_cast<uint64_t>(loaded) + ended.load());
  EXPECT_EQ(all->length_bytes, bytes + ended.load());
  EXPECT_EQ(all->charged_bytes, 3 * (bytes + ended.load()));
}

// One file grows by appends of ten blocks each: the last append writes as few rows as the first that has the list of blocks outside the
// inode, and what was written is read back at random offsets.
TEST_F(LargeNamespace, AFileOfManyAppendsCostsTheSameForEach) {
  constexpr uint64_t kBlock = 64 << 10;
  constexpr uint64_t kBlocksOfAnAppend = 10;
  const uint64_t appends = Scaled<uint64_t>(60, 10'000);
  ClientOptions client;
  client.close_sync = CloseSync::kNone;
  client.replication = 1;  // The namespace is what this is about.
  client.block_size_bytes = kBlock;
  client.packet_bytes = kBlock;
  StartCluster(
      [](namenode::NamenodeOptions* namenode) {
        namenode->clients.limits.min_block_size_bytes = kBlock;
        namenode->clients.limits.max_blocks_per_file = 1 << 20;
      },
      3, client);
  ASSERT_FALSE(HasFatalFailure());
  const auto part = [](uint64_t i) { return Content(i, kBlock * kBlocksOfAnAppend); };
  ASSERT_TRUE(WriteFile(files_.get(), "/grows", part(0)).ok());
  std::vector<absl::Duration> took;
  double rows_in_the_beginning = 0, rows_at_the_end = 0;
  for (uint64_t i = 1; i < appends; ++i) {
    const double before = Rows("append") + Rows("add_block") + Rows("complete");
    const SteadyTime began = env_->clock().Now();
    auto writer = files_->Append("/grows");
    ASSERT_TRUE(writer.ok()) << i << ": " << writer.status();
    ASSERT_TRUE((*writer)->Append(part(i)).ok()) << i;
    const absl::Status closed = (*writer)->Close();
    ASSERT_TRUE(closed.ok()) << i << ": " << closed;
    took.push_back(env_->clock().Now() - began);
    (i == 1 ? rows_in_the_beginning : rows_at_the_end) = Rows("append") + Rows("add_block") + Rows("complete") - before;
  }
  // The time of the last mutation is a row of each of the 12 mutations, unless two were in the same millisecond.
  EXPECT_NEAR(rows_at_the_end, rows_in_the_beginning, 12);
  const size_t tenth = took.size() / 10;
  std::printf("%lu appends of %lu blocks: p99 of the first tenth %.1f ms, of the last %.1f ms\n", static_cast<unsigned long>(appends),
              static_cast<unsigned long>(kBlocksOfAnAppend),
              absl::ToDoubleMilliseconds(At({took.begin(), took.begin() + static_cast<long>(tenth)}, 0.99)),
              absl::ToDoubleMilliseconds(At({took.end() - static_cast<long>(tenth), took.end()}, 0.99)));

  const auto status = files_->GetFileStatus("/grows");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->length_bytes, appends * kBlocksOfAnAppend * kBlock);
  auto reader = files_->Open("/grows");
  ASSERT_TRUE(reader.ok()) << reader.status();
  Random random(1);
  for (int i = 0; i < 50; ++i) {
    const uint64_t at = random.Below(appends);
    const uint64_t offset = random.Below(kBlocksOfAnAppend * kBlock - 5000);
    std::string data(5000, '\0');
    const auto count = (*reader)->ReadAt(at * kBlocksOfAnAppend * kBlock + offset, {data.data(), data.size()});
    ASSERT_TRUE(count.ok()) << count.status();
    ASSERT_EQ(*count, data.size());
    EXPECT_TRUE(data == part(at).substr(offset, data.size())) << at << " at " << offset;
  }
  reader->reset();
  EXPECT_TRUE(files_->Delete("/grows", false).value_or(false));
  EXPECT_TRUE(errors::IsNotFound(files_->GetFileStatus("/grows").status()));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_reclaim_works") == 0; }, absl::Minutes(5)));
  ASSERT_TRUE(WriteFile(files_.get(), "/after", "x").ok());
  ExpectSound();
}

}  // namespace
}  // namespace cairn::testing
