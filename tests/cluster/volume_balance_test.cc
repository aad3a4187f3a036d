// A data directory is added to a DataNode that runs, and what it holds spreads over both.

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/reconfiguration.h"
#include "common/rpc/grpc_client.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/contents.h"
#include "tests/testing/matchers.h"

namespace cairn::testing {
namespace {

constexpr uint64_t kVolumeBytes = 64 << 20;
constexpr uint64_t kFileBytes = (1 << 20) - 777;
constexpr int kFiles = 40;
constexpr int kDeleted = 10;  // The last ones.

constexpr char kMoves[] =
    "cairn.datanode.volume-balance.threshold-percent: 10\n"
    "cairn.datanode.volume-balance.bytes-per-second: 20m\n";

class VolumeBalance : public ClusterTest {
 protected:
  // One DataNode of two directories, of which the file of its configuration names the first.
  void Start() {
    first_ = directory_.path() + "/volume-1";
    second_ = directory_.path() + "/volume-2";
    file_ = fmt::format("dfs.datanode.data.dir: {}\n{}", first_, kMoves);
    const auto space = env_->files().SpaceOf(directory_.path());
    ASSERT_TRUE(space.ok()) << space.status();
    // Of a large disk only so much is ours, so that a few megabytes are a share of it.
    reserved_ = space->capacity_bytes - kVolumeBytes;
    reconfiguration_ =
        std::make_unique<Reconfiguration>(*Load(), [this] { return Load(); }, &env_->clock(), Reconfiguration::Daemon::kDatanode);
    MiniClusterOptions options;
    options.directory = directory_.path();
    options.datanodes = 1;
    options.namenode = [](namenode::NamenodeOptions* namenode) { namenode->clients.default_block_size_bytes = 1 << 20; };
    options.datanode = [this](size_t, datanode::DatanodeOptions* datanode) {
      datanode->storage.directories = directories_;
      datanode->storage.reserved_bytes = reserved_;
      datanode->storage.max_block_bytes = 1 << 20;
      datanode->storage.mover.check_interval = absl::Milliseconds(200);
      datanode->storage.mover.bytes_per_second = 20 << 20;
      datanode->storage.keeper.drain = absl::Minutes(10);
      datanode->reconfiguration = reconfiguration_.get();
    };
    directories_ = {first_};
    auto started = MiniCluster::Start(std::move(options), &transport_, env_.get());
    ASSERT_TRUE(started.ok()) << started.status();
    cluster_ = *std::move(started);
    files_ = ConnectForOneCopy();
    ASSERT_NE(files_, nullptr);
  }
  std::unique_ptr<FileSystem> ConnectForOneCopy() {
    ClientOptions options;
    options.replication = 1;
    return Connect(std::move(options));
  }
  absl::StatusOr<Config> Load() {
    Config config;
    if (absl::Status added = config.AddYaml(file_, "cairn.yaml"); !added.ok()) return added;
    return config;
  }
  absl::StatusOr<v1::ReconfigureResponse> Reconfigure() {
    const std::unique_ptr<api::DatanodeAdmin> admin = rpc::NewDatanodeAdmin(cluster_->datanode(0)->admin_address(), env_.get());
    v1::ReconfigureRequest request;
    request.mutable_header()->set_user(env_->UserName());
    request.set_action(v1::ReconfigureRequest::START);
    return Ask(admin.get(), &api::DatanodeAdmin::Reconfigure, request);
  }
  static std::string PathOf(int file) { return fmt::format("/ckpt/{}", file); }
  static std::string ContentOf(int file) { return Content(static_cast<uint64_t>(file), kFileBytes); }
  // What is wrong with the first files.
  std::string Wrong(FileSystem* files) {
    for (int i = 0; i < kFiles - kDeleted; ++i) {
      const auto read = ReadFile(files, PathOf(i));
      if (!read.ok()) return fmt::format("{}: {}", PathOf(i), read.status().ToString());
      if (*read != ContentOf(i)) return fmt::format("{}: other bytes", PathOf(i));
    }
    return "";
  }
  // Names of replica files below both directories, with those that are there twice twice.
  std::multiset<std::string> Files() {
    std::multiset<std::string> found;
    for (const std::string& root : {first_, second_}) {
      std::error_code gone;
      auto entry = std::filesystem::recursive_directory_iterator(root, gone);
      for (; !gone && entry != std::filesystem::recursive_directory_iterator(); entry.increment(gone))
        if (entry->path().filename().string().starts_with("blk_")) found.insert(entry->path().filename().string());
    }
    return found;
  }

  std::string first_, second_, file_;
  std::vector<std::string> directories_;
  uint64_t reserved_ = 0;
  std::unique_ptr<Reconfiguration> reconfiguration_;
};

TEST_F(VolumeBalance, VolumeThatIsAddedBecomesEvenWhileClientsReadAndDelete) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (int i = 0; i < kFiles; ++i) ASSERT_TRUE(WriteFile(files_.get(), PathOf(i), ContentOf(i)).ok()) << i;
  file_ = fmt::format("dfs.datanode.data.dir: {},{}\n{}", first_, second_, kMoves);
  directories_ = {first_, second_};
  const auto added = Reconfigure();
  ASSERT_TRUE(added.ok()) << added.status();
  ASSERT_EQ(added->error(), "");

  std::atomic<bool> over{false};
  std::atomic<int> rounds{0};
  std::string wrong;
  std::string not_deleted;
  double missing = 0;
  std::thread reader([&] {
    const std::unique_ptr<FileSystem> files = ConnectForOneCopy();
    while (!over.load() && wrong.empty()) {
      wrong = Wrong(files.get());
      rounds.fetch_add(1);
    }
  });
  std::thread deleter([&] {
    const std::unique_ptr<FileSystem> files = ConnectForOneCopy();
    for (int i = kFiles - kDeleted; i < kFiles; ++i) {
      const auto deleted = files->Delete(PathOf(i), false);
      if (!deleted.ok() || !*deleted) not_deleted += PathOf(i) + " ";
      env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(50));
    }
  });
  const bool even = Eventually(
      [&] {
        missing = std::max(missing, OfNamenode("cairn_blocks{state=\"missing\"}"));
        const datanode::BlockStore::VolumeMoves moves = cluster_->datanode(0)->store().volume_moves();
        return moves.replicas >= 10 && moves.under_way.empty() && rounds.load() >= 3;
      },
      absl::Minutes(2));
  over.store(true);
  reader.join();
  deleter.join();
  EXPECT_TRUE(even) << cluster_->datanode(0)->store().volume_moves().replicas << " moved";
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(not_deleted, "");
  EXPECT_EQ(missing, 0);
  // What was deleted goes, wherever it had come to, and all else is there once.
  EXPECT_TRUE(Eventually([&] { return Files().size() == kFiles - kDeleted; }, absl::Minutes(1))) << Files().size();
  const std::multiset<std::string> there = Files();
  EXPECT_EQ(std::set<std::string>(there.begin(), there.end()).size(), there.size());
  const std::vector<v1::StorageStatistics> volumes = cluster_->datanode(0)->store().Statistics();
  ASSERT_EQ(volumes.size(), 2u);
  EXPECT_GE(volumes[1].replicas(), 8u);
  EXPECT_EQ(volumes[0].replicas() + volumes[1].replicas(), static_cast<uint64_t>(kFiles - kDeleted));
  EXPECT_EQ(cluster_->datanode(0)->store().volume_moves().failed, 0u);
  EXPECT_GE(OfDatanode(0, "cairn_volume_moved_replicas_total"), 10);
  EXPECT_GT(OfDatanode(0, "cairn_volume_moved_bytes_total"), 0);
  EXPECT_EQ(OfDatanode(0, "cairn_volume_moves_failed_total"), 0);

  const std::unique_ptr<api::DatanodeAdmin> admin = rpc::NewDatanodeAdmin(cluster_->datanode(0)->admin_address(), env_.get());
  const auto info = Ask(admin.get(), &api::DatanodeAdmin::GetDatanodeInfo, v1::GetDatanodeInfoRequest());
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_GE(info->volume_moved_replicas(), 10u);
  EXPECT_GT(info->volume_moved_bytes(), 0u);

  cluster_->StopDatanode(0);
  ASSERT_TRUE(cluster_->StartDatanode(0).ok());
  ASSERT_TRUE(cluster_->WaitReady(absl::Minutes(1)).ok());
  EXPECT_EQ(Wrong(files_.get()), "");
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_blocks{state=\"under_replicated\"}") == 0; }));
  EXPECT_EQ(OfNamenode("cairn_blocks{state=\"missing\"}"), 0);
}

TEST_F(VolumeBalance, NodeThatStopsAnswersAReconfigurationThatWaits) {
  ASSERT_NO_FATAL_FAILURE(Start());
  auto writer = files_->Create("/open");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(Content(1, 5000)).ok());
  ASSERT_TRUE((*writer)->Flush().ok());
  file_ = fmt::format("dfs.datanode.data.dir: {}\n", second_);  // The writer is on the first, and does not end.
  absl::StatusOr<v1::ReconfigureResponse> answer = absl::UnknownError("not answered");
  std::thread asks([&] { answer = Reconfigure(); });
  ASSERT_TRUE(Eventually([&] { return cluster_->datanode(0)->store().Statistics().size() == 2; }));
  const SteadyTime began = env_->clock().Now();
  cluster_->StopDatanode(0);
  EXPECT_LT(env_->clock().Now() - began, absl::Seconds(30));
  asks.join();
  EXPECT_THAT(answer, HasKind(ErrorKind::kCancelled));
  (*writer)->Abort();
  directories_ = {first_};
  ASSERT_TRUE(cluster_->StartDatanode(0).ok());
}

}  // namespace
}  // namespace cairn::testing
