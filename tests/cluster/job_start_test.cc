// A large job starts, or takes a checkpoint: all of its tasks ask for the same at the same moment.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "cairn/file_system.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/contents.h"
#include "tests/testing/seeds.h"

namespace cairn::testing {
namespace {

class JobStart : public ClusterTest {
 protected:
  void SetUp() override { StartCluster(nullptr); }
  double Batches() {
    const double batches = OfNamenode("cairn_journal_batches_total");
    EXPECT_GE(batches, 0);
    return batches;
  }
};

TEST_F(JobStart, MkdirsOfTheSamePathsByEveryTaskIsWrittenOnce) {
  const std::string paths[] = {"/job/shared", "/job/taskowned", "/job/chk-1"};
  ASSERT_TRUE(files_->MakeDirectories("/job").ok());
  const double before = Batches();
  const SteadyTime began = env_->clock().Now();
  std::atomic<int> failed{0};
  AtOnce(40, [&](int) {
    for (int i = 0; i < 50; ++i)
      for (const std::string& path : paths) failed += files_->MakeDirectories(path).ok() ? 0 : 1;
  });
  EXPECT_EQ(failed.load(), 0);
  EXPECT_LE(Batches() - before, 3);  // Those which found it there wrote nothing.
  EXPECT_LT(env_->clock().Now() - began, absl::Seconds(30));
  const auto summary = files_->GetContentSummary("/job");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->directories, 4u);
}

TEST_F(JobStart, MkdirsAtTheSameMomentAllSucceedAndTheDirectoryIsThereForEach) {
  std::atomic<int> failed{0};
  const int rounds = Scaled(15, 1000);
  for (int round = 0; round < rounds; ++round) {
    const std::string path = fmt::format("/r/{}/a/b/c/d", round);
    AtOnce(64, [&](int i) {
      const absl::Status made = files_->MakeDirectories(path);
      const absl::Status child = files_->MakeDirectories(fmt::format("{}/{}", path, i));
      if (!made.ok() || !child.ok()) ++failed;
    });
  }
  EXPECT_EQ(failed.load(), 0);
  ASSERT_TRUE(WriteFile(files_.get(), "/r/x", "a file in the way").ok());
  AtOnce(16, [&](int) {
    const absl::Status refused = files_->MakeDirectories("/r/x/a/b");
    EXPECT_TRUE(errors::IsNotDirectory(refused)) << refused;
  });
}

TEST_F(JobStart, AllStreamsOfALargeJobOpenTogetherAndEveryFileIsWritten) {
  const int clients = Scaled(10, 50);
  const int streams = Scaled(20, 100);
  std::atomic<int> failed{0};
  const SteadyTime began = env_->clock().Now();
  AtOnce(clients, [&](int client) {
    const std::unique_ptr<FileSystem> files = Connect();
    std::vector<std::unique_ptr<FileWriter>> writers;
    for (int stream = 0; stream < streams; ++stream) {  // All of them are open before the first is closed.
      auto writer = files->Create(fmt::format("/pulse/{}/{}", client, stream));
      if (!writer.ok() ||
          !(*writer)->Append(Content(static_cast<uint64_t>(client) * 1000 + static_cast<uint64_t>(stream), 64 << 10)).ok()) {
        ++failed;
        continue;
      }
      writers.push_back(*std::move(writer));
    }
    for (const auto& writer : writers)
      if (!writer->Close().ok()) ++failed;
  });
  EXPECT_EQ(failed.load(), 0);
  EXPECT_LT(env_->clock().Now() - began, absl::Seconds(60));
  const auto summary = files_->GetContentSummary("/pulse");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->files, static_cast<uint64_t>(clients * streams));
  EXPECT_EQ(summary->length_bytes, static_cast<uint64_t>(clients * streams) * (64 << 10));
  const auto read = ReadFile(files_.get(), fmt::format("/pulse/{}/{}", clients - 1, streams - 1));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == Content(static_cast<uint64_t>((clients - 1) * 1000 + streams - 1), 64 << 10));
}

}  // namespace
}  // namespace cairn::testing
