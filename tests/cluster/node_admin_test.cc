// Operators at work on a whole cluster: a node is drained and taken away, safe mode, fsck.

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "common/error.h"
#include "common/rpc/grpc_client.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/contents.h"
#include "tests/testing/matchers.h"

namespace cairn::testing {
namespace {

class NodeAdmin : public ClusterTest {
 protected:
  void Start(size_t datanodes) {
    StartCluster(
        [this](namenode::NamenodeOptions* options) {
          if (changes_) changes_(options);
          options->replicas.drain_interval = absl::Milliseconds(200);
          options->replicas.repair_interval = absl::Milliseconds(100);
          options->replicas.stale_after = absl::Seconds(2);
          options->replicas.dead_after = absl::Seconds(4);
          options->replicas.acknowledged_grace = absl::Seconds(1);
          options->replicas.heartbeat_interval = absl::Milliseconds(200);
        },
        datanodes);
  }
  template <class Request, class Response>
  absl::StatusOr<Response> Admin(void (api::NamenodeAdmin::*call)(api::CallContext, Request, api::Done<Response>), Request request) {
    request.mutable_header()->set_user(env_->UserName());
    return Ask(cluster_->namenode()->admin_api(), call, std::move(request));
  }
  std::string UuidOf(size_t index) {
    const std::unique_ptr<api::DatanodeAdmin> admin = rpc::NewDatanodeAdmin(cluster_->datanode(index)->admin_address(), env_.get());
    const auto info = Ask(admin.get(), &api::DatanodeAdmin::GetDatanodeInfo, v1::GetDatanodeInfoRequest());
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? info->datanode_uuid() : "";
  }
  v1::DatanodeReport ReportOf(const std::string& uuid) {
    const auto report = Admin(&api::NamenodeAdmin::ClusterReport, v1::ClusterReportRequest());
    EXPECT_TRUE(report.ok()) << report.status();
    for (const v1::DatanodeReport& node : report->datanodes())
      if (node.info().uuid() == uuid) return node;
    return {};
  }
  absl::StatusOr<v1::SafeModeResponse> SafeMode() { return Admin(&api::NamenodeAdmin::SafeMode, v1::SafeModeRequest()); }
  // Of the next NameNode to start.
  NamenodeChanges changes_;

  struct Health {
    uint64_t files = 0, directories = 0, blocks = 0, missing = 0, under = 0, live = 0, pages = 0;
  };
  Health Fsck(const std::string& path) {
    Health health;
    v1::FsckRequest request;
    request.set_path(path);
    do {
      const auto page = Admin(&api::NamenodeAdmin::Fsck, request);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) return health;
      ++health.pages;
      health.directories += page->directories();
      for (const v1::FsckFile& file : page->files()) {
        ++health.files;
        for (const v1::FsckBlock& block : file.blocks()) {
          ++health.blocks;
          health.missing += block.missing() ? 1 : 0;
          health.under += block.under_replicated() ? 1 : 0;
          health.live += block.live();
        }
      }
      request.set_start_after(page->next());
    } while (!request.start_after().empty());
    return health;
  }
};

TEST_F(NodeAdmin, DrainedNodeIsTakenAwayAndNothingIsLost) {
  Start(4);
  for (uint64_t i = 0; i < 20; ++i) ASSERT_THAT(WriteFile(files_.get(), fmt::format("/d/{}", i), Content(i, 5000)), IsOk());
  auto open = files_->Create("/d/open");
  ASSERT_TRUE(open.ok());
  ASSERT_THAT((*open)->Append("some"), IsOk());
  ASSERT_THAT((*open)->Flush(), IsOk());
  const std::string uuid = UuidOf(0);
  v1::SetNodeAdminRequest request;
  request.set_node(uuid);
  request.set_action(v1::SetNodeAdminRequest::DECOMMISSION);
  const auto set = Admin(&api::NamenodeAdmin::SetNodeAdmin, request);
  ASSERT_TRUE(set.ok()) << set.status();
  // Also with the open file, whose other two replicas are elsewhere.
  EXPECT_TRUE(Eventually([&] { return ReportOf(uuid).admin_state() == v1::DECOMMISSIONED; }));
  ASSERT_THAT((*open)->Close(), IsOk());
  EXPECT_TRUE(Eventually([&] { return Fsck("/").under == 0; }));
  cluster_->StopDatanode(0);
  EXPECT_TRUE(Eventually([&] { return ReportOf(uuid).state() == v1::DEAD; }));
  const Health health = Fsck("/");
  EXPECT_EQ(health.files, 21u);
  EXPECT_EQ(health.directories, 2u);
  EXPECT_EQ(health.blocks, 21u);
  EXPECT_EQ(health.missing, 0u);
  EXPECT_EQ(health.under, 0u);
  EXPECT_GE(health.live, 63u);
  for (uint64_t i = 0; i < 20; ++i) {
    const auto read = ReadFile(files_.get(), fmt::format("/d/{}", i));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == Content(i, 5000));
  }
  // A new NameNode knows it, too.
  cluster_->StopNamenode();
  ASSERT_THAT(cluster_->StartNamenode(), IsOk());
  EXPECT_EQ(ReportOf(uuid).admin_state(), v1::DECOMMISSIONED);
  EXPECT_EQ(ReportOf(uuid).state(), v1::DEAD);
}

TEST_F(NodeAdmin, SafeModeTakesNoChangesButReadsAndKeepsLeases) {
  Start(3);
  ASSERT_THAT(WriteFile(files_.get(), "/kept", "content"), IsOk());
  auto open = files_->Create("/open");
  ASSERT_TRUE(open.ok());
  ASSERT_THAT((*open)->Append("some"), IsOk());
  v1::SafeModeRequest request;
  request.set_action(v1::SafeModeRequest::ENTER);
  auto answer = Admin(&api::NamenodeAdmin::SafeMode, request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->on());
  EXPECT_EQ(answer->nodes_size(), 3);
  ClientOptions impatient;
  impatient.retry_budget = absl::Milliseconds(500);
  const std::unique_ptr<FileSystem> other = Connect(impatient);
  const absl::Status refused = other->MakeDirectories("/new");
  EXPECT_THAT(refused, HasKind(ErrorKind::kSafeMode));
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("Name node is in safe mode"));
  const auto read = ReadFile(other.get(), "/kept");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, "content");
  request.set_action(v1::SafeModeRequest::LEAVE);
  answer = Admin(&api::NamenodeAdmin::SafeMode, request);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->on());
  EXPECT_THAT(other->MakeDirectories("/new"), IsOk());
  EXPECT_THAT((*open)->Close(), IsOk());
}

TEST_F(NodeAdmin, LostBlocksAreNamedWithTheirFilesAndARestartServesAtOnce) {
  Start(3);
  for (int i = 0; i < 5; ++i) {
    CreateOptions options;
    options.replication = 1;
    auto writer = files_->Create(fmt::format("/one/{}", i), options);
    ASSERT_TRUE(writer.ok());
    ASSERT_THAT((*writer)->Append("x"), IsOk());
    ASSERT_THAT((*writer)->Close(), IsOk());
  }
  ASSERT_THAT(WriteFile(files_.get(), "/three", "content"), IsOk());
  ASSERT_TRUE(Eventually([&] { return Fsck("/").live == 8; }));
  for (size_t i = 0; i < 2; ++i) cluster_->StopDatanode(i);
  cluster_->StopNamenode();
  ASSERT_THAT(cluster_->StartNamenode(), IsOk());
  // No changes are refused because not everyone is here yet.
  EXPECT_THAT(files_->MakeDirectories("/at-once"), IsOk());
  ASSERT_TRUE(Eventually([&] { return Fsck("/three").blocks == 1 && Fsck("/three").missing == 0; }));
  const uint64_t lost = 5 - ReplicaFiles(2).size() + 1;
  ASSERT_TRUE(Eventually([&] { return Fsck("/one").missing == lost; }));
  ASSERT_TRUE(Eventually([&] {
    const auto state = Admin(&api::NamenodeAdmin::SafeMode, v1::SafeModeRequest());
    return state.ok() && state->missing_blocks() == lost && state->missing_size() == static_cast<int>(lost);
  }));
  const auto state = Admin(&api::NamenodeAdmin::SafeMode, v1::SafeModeRequest());
  EXPECT_FALSE(state->on());
  for (const v1::BadBlock& block : state->missing()) EXPECT_THAT(block.path(), ::testing::StartsWith("/one/"));
}

// Stuck for nobody: what is lost is named at once, safe mode ends by itself, and what is there can be read.
TEST_F(NodeAdmin, SafeModeAtTheStartNamesWhatIsLostAndEndsByItself) {
  constexpr int kFiles = 407;
  constexpr int kLost = 17;
  Start(3);
  AtOnce(4, [this](int thread) {
    for (int i = thread; i < kFiles; i += 4) ASSERT_THAT(WriteFile(files_.get(), fmt::format("/f/{}", i), fmt::format("{}", i)), IsOk());
  });
  auto open = files_->Create("/open");
  ASSERT_TRUE(open.ok());
  std::set<std::string> lost;
  for (int i = 0; i < kLost; ++i) {
    const std::string path = fmt::format("/f/{}", i);
    const auto blocks = files_->GetBlockLocations(path, 0, 100);
    ASSERT_TRUE(blocks.ok() && blocks->size() == 1) << path;
    lost.insert(fmt::format("blk_{}", blocks->front().block_id));
  }
  for (size_t i = 0; i < 3; ++i) cluster_->StopDatanode(i);
  cluster_->StopNamenode();
  for (size_t i = 0; i < 3; ++i) {
    for (const std::filesystem::path& file : ReplicaFiles(i))
      if (lost.contains(file.filename().string())) std::filesystem::remove(file);
  }
  changes_ = [](namenode::NamenodeOptions* options) {
    options->safe_mode_at_start = true;
    options->safe_mode.extension = absl::Seconds(3);
  };
  ASSERT_THAT(cluster_->StartNamenode(), IsOk());
  ClientOptions impatient;
  impatient.retry_budget = absl::Milliseconds(300);
  const std::unique_ptr<FileSystem> other = Connect(impatient);
  const absl::Status refused = other->MakeDirectories("/new");
  EXPECT_THAT(refused, HasKind(ErrorKind::kSafeMode));
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("DataNodes have reported"));
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("try again"));
  for (size_t i = 0; i < 3; ++i) ASSERT_THAT(cluster_->StartDatanode(i), IsOk());

  std::set<std::string> named;
  ASSERT_TRUE(Eventually([&] {
    const auto state = SafeMode();
    named.clear();
    if (!state.ok()) return false;
    for (const v1::BadBlock& block : state->missing()) named.insert(block.path());
    return named.size() == kLost && state->nodes_reported() == 3;
  }));
  for (int i = 0; i < kLost; ++i) EXPECT_TRUE(named.contains(fmt::format("/f/{}", i)));
  const auto state = SafeMode();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->nodes_expected(), 3u);
  EXPECT_EQ(state->nodes_size(), 3);
  EXPECT_TRUE(Eventually([&] { return SafeMode().ok() && !SafeMode()->on(); }));
  EXPECT_THAT(other->MakeDirectories("/new"), IsOk());
  int readable = 0;
  for (int i = 0; i < kFiles; ++i) {
    const auto read = ReadFile(other.get(), fmt::format("/f/{}", i));
    if (i < kLost) {
      EXPECT_FALSE(read.ok()) << i;
      EXPECT_EQ(ReasonOf(read.status()), "BLOCK_MISSING") << read.status();
    } else {
      ASSERT_TRUE(read.ok()) << i << ": " << read.status();
      readable += *read == fmt::format("{}", i) ? 1 : 0;
    }
  }
  EXPECT_EQ(readable, kFiles - kLost);
  EXPECT_THAT((*open)->Append(" more"), IsOk());  // Its lease was renewed all along.
  EXPECT_THAT((*open)->Close(), IsOk());
}

// The last block of an open file whose writer has died is only on the node that is to go.
TEST_F(NodeAdmin, DrainWaitsForARecoveryAndNamesItsFile) {
  changes_ = [](namenode::NamenodeOptions* options) {
    options->leases.hard_limit = absl::Seconds(3);
    options->clients.limits.lease_soft_limit = absl::Seconds(2);
    options->leases.unsaid_limit = absl::Seconds(2);
    options->leases.check_interval = absl::Milliseconds(200);
  };
  Start(3);
  std::unique_ptr<FileSystem> dying = Connect();
  CreateOptions options;
  options.replication = 1;
  auto open = dying->Create("/open", options);
  ASSERT_TRUE(open.ok());
  ASSERT_THAT((*open)->Append("some"), IsOk());
  ASSERT_THAT((*open)->Sync(), IsOk());
  const auto blocks = files_->GetBlockLocations("/open", 0, 100);
  ASSERT_TRUE(blocks.ok() && blocks->size() == 1 && blocks->front().hosts.size() == 1);
  v1::SetNodeAdminRequest request;
  request.set_node(blocks->front().hosts.front());
  request.set_action(v1::SetNodeAdminRequest::DECOMMISSION);
  const auto set = Admin(&api::NamenodeAdmin::SetNodeAdmin, request);
  ASSERT_TRUE(set.ok()) << set.status();
  const std::string uuid = set->datanode().uuid();
  ASSERT_TRUE(Eventually([&] { return ReportOf(uuid).open_blocks_left() == 1; }));
  v1::ListNodeBlockersRequest what;
  what.set_node(uuid);
  const auto blockers = Admin(&api::NamenodeAdmin::ListNodeBlockers, what);
  ASSERT_TRUE(blockers.ok() && blockers->blockers_size() == 1);
  EXPECT_EQ(blockers->blockers(0).path(), "/open");
  EXPECT_THAT(blockers->blockers(0).reason(), ::testing::AnyOf("OPEN", "UNDER_RECOVERY"));
  EXPECT_EQ(ReportOf(uuid).admin_state(), v1::DECOMMISSIONING);
  (*open)->Abort();  // And says nothing more.
  EXPECT_TRUE(Eventually([&] { return ReportOf(uuid).admin_state() == v1::DECOMMISSIONED; }, absl::Seconds(60)));
  const auto read = ReadFile(files_.get(), "/open");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, "some");
}

// The files of hosts are taken out of the configuration.
TEST_F(NodeAdmin, NodesThatOnlyFilesHaveDrainedAreBackWhenThereAreNoFiles) {
  const std::string exclude = std::string(directory_.path()) + "/exclude";
  std::ofstream(exclude) << "# none\n";
  changes_ = [&exclude](namenode::NamenodeOptions* options) { options->exclude_file = exclude; };
  Start(3);
  const std::string uuid = UuidOf(0);
  const v1::Endpoint at = ReportOf(uuid).info().transfer();
  std::ofstream(exclude) << fmt::format("{}:{}\n", at.host(), at.port());
  const auto refreshed = Admin(&api::NamenodeAdmin::RefreshNodes, v1::RefreshNodesRequest());
  ASSERT_TRUE(refreshed.ok()) << refreshed.status();
  EXPECT_EQ(refreshed->nodes_changed(), 1u);
  EXPECT_TRUE(Eventually([&] { return ReportOf(uuid).admin_state() == v1::DECOMMISSIONED; }));
  cluster_->StopNamenode();
  changes_ = nullptr;
  ASSERT_THAT(cluster_->StartNamenode(), IsOk());
  EXPECT_TRUE(Eventually([&] { return ReportOf(uuid).admin_state() == v1::NODE_NORMAL && ReportOf(uuid).state() == v1::LIVE; }));
}

}  // namespace
}  // namespace cairn::testing
