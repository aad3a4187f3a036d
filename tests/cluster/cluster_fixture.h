#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cairn/file_system.h"
#include "tests/testing/grpc_transport.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::testing {

// A cluster in this process behind gRPC, in a directory of the test's own, and a client of it.
class ClusterTest : public ::testing::Test {
 protected:
  using NamenodeChanges = std::function<void(namenode::NamenodeOptions*)>;

  // Fails the test, fatally, if it does not come up.
  void StartCluster(NamenodeChanges namenode, size_t datanodes = 3, ClientOptions client = {}) {
    MiniClusterOptions options;
    options.directory = directory_.path();
    options.datanodes = datanodes;
    options.namenode = std::move(namenode);
    auto started = MiniCluster::Start(std::move(options), &transport_, env_.get());
    ASSERT_TRUE(started.ok()) << started.status();
    cluster_ = *std::move(started);
    auto files = FileSystem::Connect(transport_.uri(), std::move(client));
    ASSERT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
  }
  void TearDown() override {
    files_.reset();
    cluster_.reset();
  }

  // Another client.
  std::unique_ptr<FileSystem> Connect(ClientOptions options = {}) {
    auto files = FileSystem::Connect(transport_.uri(), std::move(options));
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? *std::move(files) : nullptr;
  }
  // Runs `each` with 0 to count - 1, each in a thread of its own.
  static void AtOnce(int count, const std::function<void(int)>& each) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) threads.emplace_back([&each, i] { each(i); });
    for (std::thread& thread : threads) thread.join();
  }

  // Nobody tells when what is waited for has come about, so this looks again and again.
  bool Eventually(const std::function<bool()>& condition, absl::Duration limit = absl::Seconds(30)) {
    const SteadyTime deadline = env_->clock().Now() + limit;
    while (!condition()) {
      if (env_->clock().Now() > deadline) return false;
      env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(10));
    }
    return true;
  }

  // Makes an api call and waits for its answer.
  template <class Api, class Request, class Response>
  absl::StatusOr<Response> Ask(Api* api, void (Api::*call)(api::CallContext, Request, api::Done<Response>), Request request = {}) {
    struct Answer {
      absl::StatusOr<Response> result = absl::UnknownError("not answered");
      std::atomic<bool> done{false};
    };
    auto answer = std::make_shared<Answer>();
    api::CallContext context;
    context.deadline = env_->clock().Now() + absl::Minutes(1);
    (api->*call)(std::move(context), std::move(request), [answer, env = env_.get()](absl::StatusOr<Response> result) {
      answer->result = std::move(result);
      answer->done.store(true);
      env->Wake();
    });
    env_->BlockUntil([answer] { return answer->done.load(); }, SteadyTime::Infinite());
    return std::move(answer->result);
  }

  // A series of the text format; -1 if it is not there.
  static double ValueOf(const metrics::Registry& registry, const std::string& series) {
    const std::string text = "\n" + registry.Text();
    const size_t at = text.find("\n" + series + " ");
    if (at == std::string::npos) return -1;
    return std::strtod(text.c_str() + at + series.size() + 2, nullptr);
  }
  double OfNamenode(const std::string& series) { return ValueOf(cluster_->namenode_metrics(), series); }
  double OfDatanode(size_t index, const std::string& series) { return ValueOf(cluster_->datanode_metrics(index), series); }

  // All replica files of a DataNode.
  std::vector<std::filesystem::path> ReplicaFiles(size_t index) {
    std::vector<std::filesystem::path> found;
    std::error_code gone;  // Directories may go while they are walked.
    auto entry = std::filesystem::recursive_directory_iterator(cluster_->data_directory(index), gone);
    for (; !gone && entry != std::filesystem::recursive_directory_iterator(); entry.increment(gone))
      if (entry->path().filename().string().starts_with("blk_")) found.push_back(entry->path());
    return found;
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Env> env_ = NewRealEnv();
  GrpcTransport transport_{env_.get()};
  std::unique_ptr<MiniCluster> cluster_;
  std::unique_ptr<FileSystem> files_;
};

}  // namespace cairn::testing
