// Quotas, replication and joined files on a whole cluster: what a writer hears, what is charged, and where the replicas end up.

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "common/error.h"
#include "tests/testing/contents.h"
#include "tests/testing/grpc_transport.h"
#include "tests/testing/mini_cluster.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::testing {
namespace {

constexpr uint64_t kBlock = 1 << 20;

class QuotaCluster : public ::testing::Test {
 protected:
  void SetUp() override {
    MiniClusterOptions options;
    options.directory = directory_.path();
    options.namenode = [](namenode::NamenodeOptions* namenode) {
      namenode->clients.default_block_size_bytes = kBlock;
      namenode->clients.limits.permissions_enabled = false;
      namenode->replicas.acknowledged_grace = absl::Seconds(1);
    };
    auto started = MiniCluster::Start(std::move(options), &transport_, env_.get());
    ASSERT_TRUE(started.ok()) << started.status();
    cluster_ = *std::move(started);
    auto files = FileSystem::Connect(transport_.uri());
    ASSERT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
  }
  void TearDown() override {
    files_.reset();
    cluster_.reset();
  }

  absl::Status Put(const std::string& path, const std::string& data) {
    auto writer = files_->Create(path);
    if (!writer.ok()) return writer.status();
    const absl::Status appended = (*writer)->Append(data);
    return appended.ok() ? (*writer)->Close() : appended;
  }
  std::string Get(const std::string& path) {
    auto reader = files_->Open(path);
    if (!reader.ok()) return std::string(reader.status().message());
    std::string data((*reader)->length(), '\0');
    for (size_t at = 0; at < data.size();) {
      const absl::StatusOr<size_t> count = (*reader)->Read(std::span<char>(data.data() + at, data.size() - at));
      if (!count.ok() || *count == 0) return "cannot be read";
      at += *count;
    }
    return data;
  }
  // The number of DataNodes that each block is on.
  std::vector<size_t> Hosts(const std::string& path) {
    std::vector<size_t> hosts;
    const auto blocks = files_->GetBlockLocations(path, 0, UINT64_MAX);
    if (blocks.ok())
      for (const BlockLocation& block : *blocks) hosts.push_back(block.hosts.size());
    return hosts;
  }
  bool Eventually(const std::function<bool()>& condition, absl::Duration limit) {
    const SteadyTime deadline = env_->clock().Now() + limit;
    while (!condition()) {
      if (env_->clock().Now() > deadline) return false;
      env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(20));
    }
    return true;
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Env> env_ = NewRealEnv();
  GrpcTransport transport_{env_.get()};
  std::unique_ptr<MiniCluster> cluster_;
  std::unique_ptr<FileSystem> files_;
};

TEST_F(QuotaCluster, AWriterThatHitsAQuotaFailsAtOnceAndOthersAreUnharmed) {
  ASSERT_TRUE(files_->MakeDirectories("/q").ok());
  const absl::Status set = files_->SetQuota("/q", std::nullopt, 6 << 20);
  ASSERT_TRUE(set.ok()) << set;
  const std::string first(3 * kBlock / 2, 'a');
  ASSERT_TRUE(Put("/q/first", first).ok());
  EXPECT_EQ(files_->GetContentSummary("/q")->charged_bytes, 3 * first.size());

  const SteadyTime began = env_->clock().Now();
  const absl::Status refused = Put("/q/second", std::string(kBlock, 'b'));
  EXPECT_LT(env_->clock().Now() - began, absl::Seconds(5));
  EXPECT_TRUE(errors::IsLimitExceeded(refused)) << refused;
  EXPECT_EQ(errors::Reason(refused), "SPACE_QUOTA");
  EXPECT_EQ(refused.message(),
            "The DiskSpace quota of /q is exceeded: quota = 6291456 B = 6 MB but diskspace consumed = 7864320 B = 7.50 MB");
  EXPECT_EQ(Get("/q/first"), first);
  EXPECT_EQ(files_->GetContentSummary("/q")->charged_bytes, 3 * first.size());

  // In the middle of a file: what is written so far is not enough, and the writer says so.
  ASSERT_TRUE(files_->Delete("/q/first", false).ok());
  const absl::Status middle = Put("/q/long", std::string(4 * kBlock, 'c'));
  EXPECT_EQ(errors::Reason(middle), "SPACE_QUOTA") << middle;
  ASSERT_TRUE(files_->Delete("/q/long", false).ok());
  EXPECT_EQ(files_->GetContentSummary("/q")->charged_bytes, 0u);
  EXPECT_TRUE(Put("/q/second", std::string(kBlock, 'b')).ok());
  // Two blocks fit exactly.
  EXPECT_TRUE(Put("/q/third", std::string(kBlock, 'd')).ok());
  EXPECT_EQ(errors::Reason(Put("/q/fourth", "e")), "SPACE_QUOTA");
}

TEST_F(QuotaCluster, ReplicationChangesReachTheDataNodes) {
  const std::string data(5 * kBlock / 2, 'r');
  ASSERT_TRUE(Put("/f", data).ok());
  ASSERT_TRUE(files_->SetReplication("/f", 1).value());
  EXPECT_EQ(files_->GetFileStatus("/f")->replication, 1u);
  EXPECT_EQ(files_->GetContentSummary("/")->charged_bytes, data.size());
  EXPECT_TRUE(Eventually([&] { return Hosts("/f") == std::vector<size_t>{1, 1, 1}; }, absl::Seconds(60)));
  ASSERT_TRUE(files_->SetReplication("/f", 3).value());
  EXPECT_TRUE(Eventually([&] { return Hosts("/f") == std::vector<size_t>{3, 3, 3}; }, absl::Seconds(60)));
  EXPECT_EQ(Get("/f"), data);
  EXPECT_FALSE(files_->SetReplication("/", 2).value());
  const absl::Status refused = files_->SetReplication("/f", 600).status();
  EXPECT_EQ(refused.message(), "Requested replication factor of 600 exceeds maximum of 512 for /f (set by dfs.replication.max)");
}

TEST_F(QuotaCluster, ConcatJoinsClosedFilesOnly) {
  const std::string a(kBlock, 'a');
  const std::string b(kBlock + 7, 'b');
  ASSERT_TRUE(Put("/c/a", a).ok());
  ASSERT_TRUE(Put("/c/b", b).ok());
  auto open = files_->Create("/c/t");
  ASSERT_TRUE(open.ok());
  ASSERT_TRUE((*open)->Append("target").ok());
  const absl::Status refused = files_->Concat("/c/t", {"/c/a", "/c/b"});
  EXPECT_EQ(errors::Reason(refused), "TARGET_OPEN") << refused;
  ASSERT_TRUE((*open)->Close().ok());
  ASSERT_TRUE(files_->Concat("/c/t", {"/c/a", "/c/b"}).ok());
  EXPECT_EQ(Get("/c/t"), "target" + a + b);
  EXPECT_EQ(files_->List("/c")->size(), 1u);
  EXPECT_TRUE(errors::IsNotFound(files_->GetFileStatus("/c/a").status()));
  const auto located = files_->GetLocationsMany({"/c/t", "/c/a"});
  ASSERT_TRUE(located.ok());
  EXPECT_EQ((*located)[0]->blocks.size(), 4u);
  EXPECT_TRUE(errors::IsNotFound((*located)[1].status()));
}

}  // namespace
}  // namespace cairn::testing
