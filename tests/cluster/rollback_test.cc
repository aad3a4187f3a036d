// An old backup of the namespace is restored under running DataNodes: what was written since is kept until an operator confirms.

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/testing/contents.h"
#include "tests/testing/grpc_transport.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::testing {
namespace {

namespace fs = std::filesystem;

class Rollback : public ::testing::Test {
 protected:
  void SetUp() override {
    MiniClusterOptions options;
    options.directory = directory_.path();
    options.namenode = [](namenode::NamenodeOptions* namenode) { namenode->clients.default_block_size_bytes = 1 << 20; };
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
  template <class Request, class Response>
  absl::StatusOr<Response> Ask(void (api::NamenodeAdmin::*call)(api::CallContext, Request, api::Done<Response>), Request request = {}) {
    auto answer = std::make_shared<absl::StatusOr<Response>>(absl::UnknownError("not answered"));
    auto done = std::make_shared<std::atomic<bool>>(false);
    (cluster_->namenode()->admin_api()->*call)({}, std::move(request), [answer, done, this](absl::StatusOr<Response> result) {
      *answer = std::move(result);
      done->store(true);
      env_->Wake();
    });
    env_->BlockUntil([&] { return done->load(); }, SteadyTime::Infinite());
    return *std::move(answer);
  }
  size_t ReplicaFiles() {
    size_t count = 0;
    for (size_t i = 0; i < cluster_->datanode_count(); ++i)
      for (const auto& entry : fs::recursive_directory_iterator(cluster_->data_directory(i)))
        if (entry.is_regular_file() && entry.path().filename().string().starts_with("blk_")) ++count;
    return count;
  }
  double Metric(const std::string& name) {
    const std::string text = cluster_->namenode_metrics().Text();
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  bool Eventually(const std::function<bool()>& condition, absl::Duration limit) {
    const SteadyTime deadline = env_->clock().Now() + limit;
    while (!condition()) {
      if (env_->clock().Now() > deadline) return false;
      env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(50));
    }
    return true;
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Env> env_ = NewRealEnv();
  GrpcTransport transport_{env_.get()};
  std::unique_ptr<MiniCluster> cluster_;
  std::unique_ptr<FileSystem> files_;
};

TEST_F(Rollback, KeepsWhatWasWrittenSinceUntilAnOperatorConfirms) {
  const std::string old_content = Content(1, 3 << 20);
  ASSERT_TRUE(WriteFile(files_.get(), "/old", old_content).ok());
  const auto saved = Ask<v1::SaveNamespaceRequest, v1::SaveNamespaceResponse>(&api::NamenodeAdmin::SaveNamespace);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(Ask<v1::ConfirmRollbackRequest>(&api::NamenodeAdmin::ConfirmRollback)->was_kept(), false);
  ASSERT_TRUE(WriteFile(files_.get(), "/new", Content(2, 2 << 20)).ok());
  ASSERT_TRUE(Eventually([&] { return ReplicaFiles() == 15; }, absl::Seconds(30))) << ReplicaFiles();

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
  ASSERT_TRUE(Eventually([&] { return Metric("cairn_blocks{state=\"quarantined\"}") == 2; }, absl::Seconds(60)))
      << cluster_->namenode_metrics().Text();
  EXPECT_EQ(Metric("cairn_unknown_replicas_kept"), 1);
  EXPECT_TRUE(*ReadFile(files_.get(), "/old") == old_content);
  EXPECT_EQ(KindOf(files_->GetFileStatus("/new").status()), ErrorKind::kNotFound);
  // New files take no id that was given out before, and go on living.
  const std::string newer_content = Content(3, 2 << 20);
  ASSERT_TRUE(WriteFile(files_.get(), "/newer", newer_content).ok());
  ASSERT_TRUE(Eventually([&] { return ReplicaFiles() == 21; }, absl::Seconds(30))) << ReplicaFiles();
  EXPECT_EQ(Metric("cairn_reclaim_pending_blocks"), 0);

  const auto confirmed = Ask<v1::ConfirmRollbackRequest>(&api::NamenodeAdmin::ConfirmRollback);
  ASSERT_TRUE(confirmed.ok()) << confirmed.status();
  EXPECT_TRUE(confirmed->was_kept());
  EXPECT_EQ(confirmed->unknown_blocks(), 2u);
  EXPECT_TRUE(Eventually([&] { return ReplicaFiles() == 15; }, absl::Seconds(60))) << ReplicaFiles();
  EXPECT_TRUE(*ReadFile(files_.get(), "/old") == old_content);
  EXPECT_TRUE(*ReadFile(files_.get(), "/newer") == newer_content);
  EXPECT_FALSE(Ask<v1::ConfirmRollbackRequest>(&api::NamenodeAdmin::ConfirmRollback)->was_kept());
}

}  // namespace
}  // namespace cairn::testing
