// Many clients at the same moment: of a checkpoint's small files, of a job's first directories, of a cluster with few threads.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cairn/file_system.h"
#include "common/mutex.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/contents.h"
#include "tests/testing/seeds.h"

namespace cairn::testing {
namespace {

// How long calls took.
class Latencies {
 public:
  void Add(absl::Duration took) ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    took_.push_back(took);
  }
  absl::Duration At(double share) ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    if (took_.empty()) return absl::ZeroDuration();
    std::sort(took_.begin(), took_.end());
    return took_[static_cast<size_t>(share * static_cast<double>(took_.size() - 1))];
  }

 private:
  Mutex mu_;
  std::vector<absl::Duration> took_ ABSL_GUARDED_BY(mu_);
};

class ManyClients : public ClusterTest {
 protected:
  double Calls(const std::string& call) { return OfNamenode(fmt::format("cairn_namespace_ops_total{{op=\"{}\",result=\"ok\"}}", call)); }
};

// 16 clients write files of 4 KiB: each is one call to begin and one to end, whatever the number of files, and a new NameNode knows all of
// them at once. How fast: ./dev bench nn.
TEST_F(ManyClients, ASmallFileIsOneCallToBeginAndOneToEnd) {
  constexpr int kClients = 16;
  ClientOptions unsynced;
  unsynced.close_sync = CloseSync::kNone;
  StartCluster(nullptr, 3, unsynced);
  ASSERT_FALSE(HasFatalFailure());
  std::vector<std::unique_ptr<FileSystem>> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(Connect(unsynced));
  ASSERT_TRUE(files_->MakeDirectories("/shared").ok());
  const double creates = Calls("Create"), completes = Calls("Complete"), blocks = Calls("AddBlock");
  const double others = Calls("AbandonBlock") + Calls("Fsync") + Calls("UpdatePipeline");
  const double batches = OfNamenode("cairn_journal_batches_total");

  const SteadyTime began = env_->clock().Now();
  const SteadyTime end = began + Scaled(absl::Seconds(4), absl::Minutes(5));
  std::atomic<int> written{0};
  Latencies closes;
  AtOnce(kClients, [&](int client) {
    FileSystem* const files = clients[static_cast<size_t>(client)].get();
    for (int i = 0; env_->clock().Now() < end; ++i) {
      auto writer = files->Create(fmt::format("/shared/{}-{}", client, i));
      ASSERT_TRUE(writer.ok()) << writer.status();
      const absl::Status appended = (*writer)->Append(Content(static_cast<uint64_t>(i), 4096));
      ASSERT_TRUE(appended.ok()) << appended;
      const SteadyTime close_began = env_->clock().Now();
      const absl::Status closed = (*writer)->Close();
      ASSERT_TRUE(closed.ok()) << closed;
      closes.Add(env_->clock().Now() - close_began);
      written.fetch_add(1);
    }
  });
  const int files = written.load();
  std::printf("%d files in %.1f s; close p50 %.1f ms, p99 %.1f ms\n", files, absl::ToDoubleSeconds(env_->clock().Now() - began),
              absl::ToDoubleMilliseconds(closes.At(0.5)), absl::ToDoubleMilliseconds(closes.At(0.99)));
  EXPECT_GE(files, kClients);
  EXPECT_EQ(Calls("Create") - creates, files);
  EXPECT_EQ(Calls("Complete") - completes, files);
  EXPECT_EQ(Calls("AddBlock"), blocks);
  EXPECT_EQ(Calls("AbandonBlock") + Calls("Fsync") + Calls("UpdatePipeline"), others);
  EXPECT_LE(OfNamenode("cairn_journal_batches_total") - batches, 2 * files);  // One sync may serve several.

  cluster_->StopNamenode();
  const absl::Status started = cluster_->StartNamenode();
  ASSERT_TRUE(started.ok()) << started;
  ASSERT_TRUE(WriteFile(files_.get(), "/shared/after", "x").ok());
  const auto summary = files_->GetContentSummary("/shared");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->files, static_cast<uint64_t>(files) + 1);
  EXPECT_EQ(summary->length_bytes, static_cast<uint64_t>(files) * 4096 + 1);
}

// 2,000 clients ask for the same three directories, all before the first is answered: three changes are written, and no more rows than for
// one who asks alone.
TEST_F(ManyClients, TwoThousandThatWantTheSameDirectoriesWriteThemOnce) {
  constexpr int kClients = 2000;
  StartCluster([](namenode::NamenodeOptions* namenode) { namenode->clients.limits.permissions_enabled = false; });
  ASSERT_FALSE(HasFatalFailure());
  const std::string rows = "cairn_namespace_rows_total{op=\"mkdirs\"}";
  ASSERT_TRUE(files_->MakeDirectories("/job").ok());
  double before = OfNamenode(rows);
  ASSERT_TRUE(files_->MakeDirectories("/job/other").ok());
  const double rows_of_one = OfNamenode(rows) - before;
  ASSERT_GT(rows_of_one, 0);
  before = OfNamenode(rows);

  std::atomic<int> answered{0}, failed{0};
  const SteadyTime began = env_->clock().Now();
  for (int client = 0; client < kClients; ++client) {
    for (const char* path : {"/job/shared", "/job/taskowned", "/job/chk-1"}) {
      v1::MkdirsRequest request;
      request.mutable_header()->set_client_id(fmt::format("client-{:09}", client));
      request.mutable_header()->set_user("flink");
      request.mutable_header()->set_client_name(fmt::format("client-{}", client));
      request.set_path(path);
      request.set_create_parent(true);
      cluster_->namenode()->client_api()->Mkdirs({}, std::move(request), [&](const absl::StatusOr<v1::MkdirsResponse>& response) {
        if (!response.ok()) failed.fetch_add(1);
        if (answered.fetch_add(1) + 1 == 3 * kClients) env_->Wake();
      });
    }
  }
  EXPECT_TRUE(env_->BlockUntil([&] { return answered.load() == 3 * kClients; }, env_->clock().Now() + absl::Minutes(1)));
  std::printf("%d calls of %d clients answered in %.2f s\n", 3 * kClients, kClients, absl::ToDoubleSeconds(env_->clock().Now() - began));
  EXPECT_EQ(failed.load(), 0);
  // These calls bear no retry id, which is a row less; the times of the last mutation and of /job are rows only in another millisecond.
  EXPECT_LE(OfNamenode(rows) - before, 3 * (rows_of_one - 1));
  EXPECT_GE(OfNamenode(rows) - before, 3 * (rows_of_one - 3));
  const auto summary = files_->GetContentSummary("/job");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->directories, 5u);
}

// 50 processes' clients open all their streams before they close one, on a NameNode with four threads for calls.
TEST_F(ManyClients, AllStreamsOfFiftyClientsOpenOnANamenodeOfFewThreads) {
  constexpr int kClients = 50;
  const int streams = Scaled(4, 100);
  ClientOptions unsynced;
  unsynced.close_sync = CloseSync::kNone;
  // Two pollers of gRPC, one thread that reads, and the writer.
  StartCluster([](namenode::NamenodeOptions* namenode) { namenode->readers = 1; }, 3, unsynced);
  ASSERT_FALSE(HasFatalFailure());
  std::vector<std::unique_ptr<FileSystem>> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(Connect(unsynced));  // Each with connections of its own.
  Latencies files_took;
  std::atomic<int> failed{0};
  AtOnce(kClients, [&](int client) {
    const auto seed = [client](int stream) { return static_cast<uint64_t>(client) * 1000 + static_cast<uint64_t>(stream); };
    std::vector<std::pair<SteadyTime, std::unique_ptr<FileWriter>>> writers;
    for (int stream = 0; stream < streams; ++stream) {
      const SteadyTime began = env_->clock().Now();
      auto writer = clients[static_cast<size_t>(client)]->Create(fmt::format("/pulse/{}/{}", client, stream));
      const absl::Status appended = writer.ok() ? (*writer)->Append(Content(seed(stream), 64 << 10)) : writer.status();
      EXPECT_TRUE(appended.ok()) << appended;
      failed += appended.ok() ? 0 : 1;
      if (writer.ok()) writers.emplace_back(began, *std::move(writer));
    }
    for (const auto& [began, writer] : writers) {
      const absl::Status closed = writer->Close();
      EXPECT_TRUE(closed.ok()) << closed;
      failed += closed.ok() ? 0 : 1;
      files_took.Add(env_->clock().Now() - began);
    }
  });
  std::printf("%d files, slowest %.1f s\n", kClients * streams, absl::ToDoubleSeconds(files_took.At(1)));
  EXPECT_EQ(failed.load(), 0);
  EXPECT_LT(files_took.At(1), absl::Seconds(60));
  const auto summary = files_->GetContentSummary("/pulse");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->files, static_cast<uint64_t>(kClients * streams));
  EXPECT_EQ(summary->length_bytes, static_cast<uint64_t>(kClients * streams) * (64 << 10));
  for (const int client : {0, kClients - 1}) {
    const auto read = ReadFile(files_.get(), fmt::format("/pulse/{}/{}", client, streams - 1));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == Content(static_cast<uint64_t>(client) * 1000 + static_cast<uint64_t>(streams - 1), 64 << 10));
  }
}

}  // namespace
}  // namespace cairn::testing
