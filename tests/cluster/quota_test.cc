// Quotas, replication and joined files on a whole cluster: what a writer hears, what is charged, and where the replicas end up.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "common/error.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/contents.h"

namespace cairn::testing {
namespace {

constexpr uint64_t kBlock = 1 << 20;

class QuotaCluster : public ClusterTest {
 protected:
  void SetUp() override {
    StartCluster([](namenode::NamenodeOptions* namenode) {
      namenode->clients.default_block_size_bytes = kBlock;
      namenode->clients.limits.permissions_enabled = false;
      namenode->replicas.acknowledged_grace = absl::Seconds(1);
    });
  }

  absl::Status Put(const std::string& path, const std::string& data) { return WriteFile(files_.get(), path, data); }
  std::string Get(const std::string& path) {
    const absl::StatusOr<std::string> data = ReadFile(files_.get(), path);
    return data.ok() ? *data : std::string(data.status().message());
  }
  // The number of DataNodes that each block is on.
  std::vector<size_t> Hosts(const std::string& path) {
    std::vector<size_t> hosts;
    const auto blocks = files_->GetBlockLocations(path, 0, UINT64_MAX);
    if (blocks.ok())
      for (const BlockLocation& block : *blocks) hosts.push_back(block.hosts.size());
    return hosts;
  }
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
