// Client, NameNode and 3 DataNodes in one process on real executors and sockets, the api called directly: what the thread sanitizer
// watches, since no gRPC is linked.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "client/src/file_system.h"
#include "common/env/env.h"
#include "tests/testing/contents.h"
#include "tests/testing/mini_cluster.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::testing {
namespace {

class ConcurrentUse : public ::testing::Test {
 protected:
  void SetUp() override {
    MiniClusterOptions options;
    options.directory = directory_.path();
    auto started = MiniCluster::Start(std::move(options), transport_.get(), env_.get());
    ASSERT_TRUE(started.ok()) << started.status();
    cluster_ = *std::move(started);
    ClientOptions client;
    client.user = "test";
    client.block_size_bytes = 256 << 10;
    client.packet_bytes = 64 << 10;
    files_ = client::NewFileSystem(client, env_.get(), cluster_->namenode()->client_api());
  }
  void TearDown() override {
    files_.reset();
    cluster_.reset();
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Env> env_ = NewRealEnv();
  const std::unique_ptr<MiniClusterTransport> transport_ = NewDirectTransport();
  std::unique_ptr<MiniCluster> cluster_;
  std::unique_ptr<FileSystem> files_;
};

TEST_F(ConcurrentUse, ManyThreadsWriteReadRenameAndDelete) {
  constexpr int kThreads = 6;
  constexpr int kFiles = 6;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kFiles; ++i) {
        const std::string path = fmt::format("/t{}/file-{}", t, i);
        const std::string content = Content(static_cast<uint64_t>(t * 100 + i), static_cast<uint64_t>(i) * 150'001);
        const absl::Status written = WriteFile(files_.get(), path, content);
        EXPECT_TRUE(written.ok()) << path << ": " << written;
        const absl::Status renamed = files_->Rename(path, path + ".done");
        EXPECT_TRUE(renamed.ok()) << renamed;
        const absl::StatusOr<std::string> read = ReadFile(files_.get(), path + ".done");
        EXPECT_TRUE(read.ok()) << read.status();
        if (!read.ok() || *read != content) ++wrong;
        if (i % 2 == 0) {
          EXPECT_TRUE(files_->Delete(path + ".done", false).ok());
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (int t = 0; t < kThreads; ++t) {
    const auto listing = files_->List(fmt::format("/t{}", t));
    ASSERT_TRUE(listing.ok()) << listing.status();
    EXPECT_EQ(listing->size(), kFiles / 2u);
  }
}

TEST_F(ConcurrentUse, AnAbortFromAnotherThreadEndsAWriter) {
  auto writer = files_->Create("/aborted");
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::thread other([&] { (*writer)->Abort(); });
  const std::string piece = Content(1, 100'000);
  absl::Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) status = (*writer)->Append(piece);
  other.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

TEST_F(ConcurrentUse, ADatanodeStopsUnderLoad) {
  std::thread stopper([&] { cluster_->StopDatanode(1); });
  for (int i = 0; i < 12; ++i) {
    const std::string content = Content(static_cast<uint64_t>(i), 400'000);
    const std::string path = fmt::format("/stop/{}", i);
    const absl::Status written = WriteFile(files_.get(), path, content);
    EXPECT_TRUE(written.ok()) << written;
    const absl::StatusOr<std::string> read = ReadFile(files_.get(), path);
    EXPECT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read.ok() && *read == content) << path;
  }
  stopper.join();
}

}  // namespace
}  // namespace cairn::testing
