// An old backup of the namespace is restored under running DataNodes: what was written since is kept until an operator confirms.

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/contents.h"

namespace cairn::testing {
namespace {

namespace fs = std::filesystem;

class Rollback : public ClusterTest {
 protected:
  void SetUp() override {
    StartCluster([](namenode::NamenodeOptions* namenode) { namenode->clients.default_block_size_bytes = 1 << 20; });
  }
  template <class Request, class Response>
  absl::StatusOr<Response> AskAdmin(void (api::NamenodeAdmin::*call)(api::CallContext, Request, api::Done<Response>)) {
    return Ask(cluster_->namenode()->admin_api(), call);
  }
  size_t AllReplicaFiles() {
    size_t count = 0;
    for (size_t i = 0; i < cluster_->datanode_count(); ++i) count += ReplicaFiles(i).size();
    return count;
  }
};

TEST_F(Rollback, KeepsWhatWasWrittenSinceUntilAnOperatorConfirms) {
  const std::string old_content = Content(1, 3 << 20);
  ASSERT_TRUE(WriteFile(files_.get(), "/old", old_content).ok());
  const auto saved = AskAdmin(&api::NamenodeAdmin::SaveNamespace);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(AskAdmin(&api::NamenodeAdmin::ConfirmRollback)->was_kept(), false);
  ASSERT_TRUE(WriteFile(files_.get(), "/new", Content(2, 2 << 20)).ok());
  ASSERT_TRUE(Eventually([&] { return AllReplicaFiles() == 15; }, absl::Seconds(30))) << AllReplicaFiles();

  // A restart in between, so that the DataNodes have met a higher epoch than the backup's.
  cluster_->StopNamenode();
  ASSERT_TRUE(cluster_->StartNamenode().ok());
  ASSERT_TRUE(cluster_->WaitReady(absl::Minutes(1)).ok());
  cluster_->StopNamenode();
  const std::string name_directory = directory_.path() + "/namenode";
  const fs::path backup = directory_.path() + "/backup";
  fs::copy(saved->path(), backup, fs::copy_options::recursive);
  fs::remove_all(name_directory);
  fs::copy(backup, name_directory, fs::copy_options::recursive);
  const absl::Status started = cluster_->StartNamenode();
  ASSERT_TRUE(started.ok()) << started;

  // The DataNodes take to it, and report six replicas of two blocks that it does not know.
  ASSERT_TRUE(Eventually([&] { return OfNamenode("cairn_blocks{state=\"quarantined\"}") == 2; }, absl::Seconds(60)))
      << cluster_->namenode_metrics().Text();
  EXPECT_EQ(OfNamenode("cairn_unknown_replicas_kept"), 1);
  EXPECT_TRUE(*ReadFile(files_.get(), "/old") == old_content);
  EXPECT_EQ(KindOf(files_->GetFileStatus("/new").status()), ErrorKind::kNotFound);
  // New files take no id that was given out before, and go on living.
  const std::string newer_content = Content(3, 2 << 20);
  ASSERT_TRUE(WriteFile(files_.get(), "/newer", newer_content).ok());
  ASSERT_TRUE(Eventually([&] { return AllReplicaFiles() == 21; }, absl::Seconds(30))) << AllReplicaFiles();
  EXPECT_EQ(OfNamenode("cairn_reclaim_pending_blocks"), 0);

  const auto confirmed = AskAdmin(&api::NamenodeAdmin::ConfirmRollback);
  ASSERT_TRUE(confirmed.ok()) << confirmed.status();
  EXPECT_TRUE(confirmed->was_kept());
  EXPECT_EQ(confirmed->unknown_blocks(), 2u);
  EXPECT_TRUE(Eventually([&] { return AllReplicaFiles() == 15; }, absl::Seconds(60))) << AllReplicaFiles();
  EXPECT_TRUE(*ReadFile(files_.get(), "/old") == old_content);
  EXPECT_TRUE(*ReadFile(files_.get(), "/newer") == newer_content);
  EXPECT_FALSE(AskAdmin(&api::NamenodeAdmin::ConfirmRollback)->was_kept());
}

}  // namespace
}  // namespace cairn::testing
