// Quotas as operators and users meet them: in the words of the command line, and in a writer that is in the middle of a file.

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "client/cli/dfs_remove.h"
#include "client/cli/dfs_transfer.h"
#include "client/cli/dfs_usage.h"
#include "client/cli/dfsadmin_quota.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/contents.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBlock = 1 << 20;

class QuotaVerbs : public ClusterTest {
 protected:
  void SetUp() override {
    StartCluster([](namenode::NamenodeOptions* namenode) {
      namenode->clients.default_block_size_bytes = kBlock;
      namenode->clients.limits.permissions_enabled = false;
    });
  }
  int Admin(const std::vector<std::string>& words) { return Run("cairn dfsadmin", cli::QuotaVerbs(), words, ""); }
  int Dfs(const std::vector<std::string>& words, const std::string& input = "") {
    std::vector<cli::Verb> verbs = cli::TransferVerbs();
    for (auto more : {cli::RemoveVerbs(), cli::UsageVerbs()}) verbs.insert(verbs.end(), more.begin(), more.end());
    return Run("cairn dfs", verbs, words, input);
  }
  uint64_t Charged(const std::string& path) {
    const auto summary = files_->GetContentSummary(path);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? summary->charged_bytes : 0;
  }

  std::string out_, err_;

 private:
  int Run(const std::string& group, const std::vector<cli::Verb>& verbs, const std::vector<std::string>& words, const std::string& input) {
    std::ostringstream out, err;
    cli::Shell shell;
    shell.files = files_.get();
    shell.out = &out;
    shell.err = &err;
    shell.user = "ann";
    shell.now = [this] { return env_->clock().WallNow(); };
    shell.read_input = [&input, at = size_t{0}](std::span<char> into) mutable {
      const size_t count = input.copy(into.data(), into.size(), at);
      at += count;
      return static_cast<long>(count);
    };
    const int code = cli::RunVerb(group, verbs, words, &shell);
    out_ = out.str();
    err_ = err.str();
    return code;
  }
};

TEST_F(QuotaVerbs, APutThatExceedsTheQuotaFailsAtOnceAndNothingElseIsHarmed) {
  ASSERT_TRUE(files_->MakeDirectories("/q").ok());
  ASSERT_EQ(Admin({"-setSpaceQuota", "6m", "/q"}), 0) << err_;
  const std::string first = Content(1, 3 * kBlock / 2);
  ASSERT_EQ(Dfs({"-put", "-", "/q/first"}, first), 0) << err_;
  EXPECT_EQ(Charged("/q"), 3 * first.size());

  const SteadyTime began = env_->clock().Now();
  EXPECT_EQ(Dfs({"-put", "-", "/q/second"}, Content(2, kBlock)), 1);
  EXPECT_LT(env_->clock().Now() - began, absl::Seconds(5));
  EXPECT_THAT(err_, HasSubstr("put: "));
  EXPECT_THAT(err_, HasSubstr("The DiskSpace quota of /q is exceeded: quota = 6291456 B = 6 MB but diskspace consumed = 7864320 B = "
                              "7.50 MB"));
  EXPECT_EQ(files_->List("/q")->size(), 1u);  // Not even the copy's own name.
  EXPECT_TRUE(*ReadFile(files_.get(), "/q/first") == first);
  EXPECT_EQ(Charged("/q"), 3 * first.size());
  ASSERT_EQ(Dfs({"-count", "-q", "/q"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("6291456"));
  EXPECT_THAT(out_, HasSubstr("1572864"));  // What is left of it.

  ASSERT_EQ(Dfs({"-rm", "-skipTrash", "/q/first"}), 0) << err_;
  EXPECT_EQ(Charged("/q"), 0u);
  EXPECT_EQ(Dfs({"-put", "-", "/q/second"}, Content(2, kBlock)), 0) << err_;
  EXPECT_EQ(Charged("/q"), 3 * kBlock);
}

TEST_F(QuotaVerbs, AWriterThatMeetsTheQuotaHearsOfItAtOnceAndItsFileEndsWithTheLastFullBlock) {
  ASSERT_TRUE(files_->MakeDirectories("/q").ok());
  ASSERT_EQ(Admin({"-setSpaceQuota", "6m", "/q"}), 0) << err_;
  const std::string data = Content(3, 4 * kBlock);
  auto writer = files_->Create("/q/partial");
  ASSERT_TRUE(writer.ok()) << writer.status();
  const SteadyTime began = env_->clock().Now();
  absl::Status status = (*writer)->Append(data);
  if (status.ok()) status = (*writer)->Close();
  EXPECT_LT(env_->clock().Now() - began, absl::Seconds(5));
  EXPECT_TRUE(errors::IsLimitExceeded(status)) << status;
  EXPECT_EQ(errors::Reason(status), "SPACE_QUOTA");
  EXPECT_EQ(errors::Reason((*writer)->Close()), "SPACE_QUOTA");  // And stays so.
  writer->reset();

  EXPECT_TRUE(Eventually([&] { return files_->RecoverLease("/q/partial").value_or(false); }));
  const auto left = files_->GetFileStatus("/q/partial");
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_FALSE(left->under_construction);
  EXPECT_EQ(left->length_bytes, 2 * kBlock);
  EXPECT_TRUE(*ReadFile(files_.get(), "/q/partial") == data.substr(0, 2 * kBlock));
  EXPECT_EQ(Charged("/q"), 3 * left->length_bytes);
  ASSERT_EQ(Dfs({"-rm", "-skipTrash", "/q/partial"}), 0) << err_;
  EXPECT_EQ(Dfs({"-put", "-", "/q/partial"}, data.substr(0, kBlock)), 0) << err_;
}

}  // namespace
}  // namespace cairn::testing
