#include "namenode/frontdoor/admin_service.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "tests/namenode/replica_cluster.h"
#include "tests/testing/builders.h"
#include "tests/testing/fake_replica_plane.h"
#include "tests/testing/memory_namespace.h"
#include "tests/testing/sim_world.h"

namespace cairn::namenode::testing {
namespace {

TEST(AdminService, ReportJoinsBothPlanes) {
  ReplicaCluster cluster(2);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Write({0}, 1);
  cluster.Settle();
  AdminService service(
      cluster.plane.get(), [](v1::ClusterReportResponse* report) { report->set_inodes(12); }, &cluster.world.clock(), "1.2.3");
  std::optional<absl::StatusOr<v1::ClusterReportResponse>> answer;
  service.ClusterReport({}, {}, [&](absl::StatusOr<v1::ClusterReportResponse> response) { answer = std::move(response); });
  ASSERT_TRUE(answer.has_value() && answer->ok());
  const v1::ClusterReportResponse& report = **answer;
  ASSERT_EQ(report.datanodes_size(), 2);
  EXPECT_EQ(report.datanodes(0).info().transfer().host(), "dn0");
  EXPECT_EQ(report.datanodes(1).info().transfer().host(), "dn1");
  EXPECT_EQ(report.datanodes(0).state(), v1::LIVE);
  EXPECT_EQ(report.datanodes(0).storages_size(), 1);
  EXPECT_GE(report.datanodes(0).last_walk_ms(), 0);
  EXPECT_EQ(report.inodes(), 12u);
  EXPECT_EQ(report.cluster_id(), "cluster");
  EXPECT_EQ(report.software_version(), "1.2.3");
}

// Of each block it says much.
class WordyPlane : public cairn::testing::FakeReplicaPlane {
 public:
  WordyPlane() : FakeReplicaPlane(3) {}
  absl::StatusOr<v1::FsckBlock> Inspect(BlockId id, const v1::BlockRecord&, bool) override {
    v1::FsckBlock block;
    block.mutable_block()->set_id(id.value());
    block.add_replicas()->mutable_location()->set_storage_uuid(std::string(4000, 's'));
    return block;
  }
};

class FsckCall : public ::testing::Test {
 protected:
  static constexpr int kBlocks = 1500;  // Of a file that does not fit into one page.

  FsckCall() {
    service_.SetNamespace(&access_, nullptr);
    service_.SetLeases(nullptr, executor_.get());
  }
  // All of that path, page by page.
  struct Seen {
    std::vector<std::string> whole;  // Files of which a last part came.
    std::set<uint64_t> blocks;
    int pages = 0;
  };
  void Go(const std::string& path, Seen* seen) {
    v1::FsckRequest request;
    request.set_path(path);
    do {
      std::optional<absl::StatusOr<v1::FsckResponse>> page;
      service_.Fsck({}, request, [&page](absl::StatusOr<v1::FsckResponse> response) { page = std::move(response); });
      ASSERT_TRUE(world_.RunUntil([&page] { return page.has_value(); }, absl::Seconds(10)));
      ASSERT_TRUE(page->ok()) << page->status();
      EXPECT_LT((*page)->ByteSizeLong(), size_t{3} << 20);
      for (const v1::FsckFile& file : (*page)->files()) {
        if (!file.more_blocks()) seen->whole.push_back(file.path());
        for (const v1::FsckBlock& block : file.blocks()) EXPECT_TRUE(seen->blocks.insert(block.block().id()).second);
      }
      request.set_start_after((*page)->next());
      request.set_start_block((*page)->next_block());
      ASSERT_LT(++seen->pages, 20);
    } while (!request.start_after().empty());
  }

  cairn::testing::SimWorld world_{cairn::testing::SimOptions{.seed = 1}};
  const std::unique_ptr<Executor> executor_ = world_.executors().NewExecutor("admin");
  cairn::testing::TestNamespace space_;
  cairn::testing::MemoryNamespace access_{&space_, executor_.get()};
  WordyPlane plane_;
  AdminService service_{&plane_, nullptr, &world_.clock(), ""};
};

TEST_F(FsckCall, AFileOfManyBlocksComesInPartsThatFitIntoMessages) {
  space_.WriteFile("/d/a", {5});
  space_.WriteFile("/d/big", std::vector<uint64_t>(kBlocks, 1));
  space_.WriteFile("/d/c", {5});
  for (const char* const path : {"/", "/d", "/d/big"}) {
    Seen seen;
    ASSERT_NO_FATAL_FAILURE(Go(path, &seen));
    EXPECT_GE(seen.pages, 3);
    const bool alone = path == std::string("/d/big");
    EXPECT_EQ(seen.blocks.size(), alone ? kBlocks : kBlocks + 2u) << path;
    EXPECT_EQ(seen.whole, alone ? std::vector<std::string>{"/d/big"} : (std::vector<std::string>{"/d/a", "/d/big", "/d/c"})) << path;
  }
}

// The walk stands behind a directory then, or at the end of all; the file has more.
TEST_F(FsckCall, GoesOnInAFileThatIsTheLastOfItsDirectory) {
  space_.WriteFile("/p/d/big", std::vector<uint64_t>(kBlocks, 1));
  for (const bool followed : {false, true}) {
    if (followed) space_.WriteFile("/p/e", {5});
    for (const char* const path : {"/", "/p", "//p/", "/p/d", "/p/d/big"}) {
      Seen seen;
      ASSERT_NO_FATAL_FAILURE(Go(path, &seen));
      const bool with_e = followed && !std::string_view(path).starts_with("/p/d");
      EXPECT_EQ(seen.blocks.size(), kBlocks + (with_e ? 1u : 0u)) << path;
      EXPECT_EQ(seen.whole.size(), with_e ? 2u : 1u) << path;
    }
  }
}

TEST(AdminService, SetFaultIsForSuperusers) {
  EnableFaultPoints();
  AdminService service(nullptr, nullptr, nullptr, "");
  service.SetSuperuserCheck([](const std::string& user) { return user == "root"; });
  v1::SetFaultRequest request;
  request.mutable_header()->set_user("ann");
  request.set_name("admin.test");
  absl::Status status;
  service.SetFault({}, request, [&](const absl::StatusOr<v1::SetFaultResponse>& response) { status = response.status(); });
  EXPECT_EQ(KindOf(status), ErrorKind::kPermission);
  EXPECT_EQ(status.message(), "Access denied for user ann. Superuser privilege is required");
}

TEST(AdminService, ABandwidthThatNobodyCanKeepToIsRefused) {
  class Plane : public cairn::testing::FakeReplicaPlane {
   public:
    Plane() : FakeReplicaPlane(1) {}
    void SetBalancerBandwidth(uint64_t bytes_per_second) override { set.push_back(bytes_per_second); }
    std::vector<uint64_t> set;
  };
  cairn::testing::SimWorld world({.seed = 1});
  Plane plane;
  AdminService service(&plane, nullptr, &world.clock(), "1");
  const auto set = [&service](uint64_t bytes_per_second) {
    v1::SetBalancerBandwidthRequest request;
    request.set_bytes_per_second(bytes_per_second);
    absl::Status status;
    service.SetBalancerBandwidth({}, request,
                                 [&](const absl::StatusOr<v1::SetBalancerBandwidthResponse>& response) { status = response.status(); });
    return status;
  };
  const absl::Status refused = set(1024);
  EXPECT_EQ(KindOf(refused), ErrorKind::kInvalidArgument);
  EXPECT_EQ(std::string(refused.message()), "1024 bytes per second: at least 65536 are needed, or 0 for what is configured");
  EXPECT_TRUE(set(0).ok());
  EXPECT_TRUE(set(65536).ok());
  EXPECT_EQ(plane.set, (std::vector<uint64_t>{0, 65536}));
}

TEST(AdminService, SetFaultArmsAndRefusesNonsense) {
  EnableFaultPoints();
  AdminService service(nullptr, nullptr, nullptr, "");
  v1::SetFaultRequest request;
  request.set_name("admin.test");
  request.set_action("no such action");
  absl::Status status;
  service.SetFault({}, request, [&](const absl::StatusOr<v1::SetFaultResponse>& response) { status = response.status(); });
  EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument);
}

// The admin service over a reclaimer whose namespace is in memory.
class ReclaimCalls : public ::testing::Test {
 protected:
  ReclaimCalls() {
    service_.SetReclaimer(&reclaimer_);
    service_.SetSuperuserCheck([](const std::string& user) { return user == "root"; });
    for (int i = 0; i < 10; ++i) space_.WriteFile("/d/" + std::to_string(i), {5});
    space_.now_ms = absl::ToUnixMillis(process_->clock().WallNow());
    space_.Must(cairn::testing::DeleteMutation("/d", true));
  }
  absl::StatusOr<v1::ReclaimResponse> Call(v1::ReclaimRequest::Action action, uint64_t pace = 0, const std::string& user = "root") {
    v1::ReclaimRequest request;
    request.mutable_header()->set_user(user);
    request.set_action(action);
    request.set_entries_per_second(pace);
    std::optional<absl::StatusOr<v1::ReclaimResponse>> answer;
    service_.Reclaim({}, request, [&](absl::StatusOr<v1::ReclaimResponse> response) { answer = std::move(response); });
    world_.RunUntil([&] { return answer.has_value(); }, absl::Seconds(10));
    return answer.has_value() ? *answer : absl::DeadlineExceededError("not answered");
  }

  cairn::testing::SimWorld world_{cairn::testing::SimOptions{.seed = 1}};
  cairn::testing::SimProcess* process_ = world_.AddMachine("nn")->StartProcess();
  std::unique_ptr<Executor> writer_ = process_->executors().NewExecutor("writer");
  std::unique_ptr<Executor> executor_ = process_->executors().NewExecutor("background");
  cairn::testing::TestNamespace space_;
  cairn::testing::MemoryNamespace access_{&space_, writer_.get()};
  Reclaimer reclaimer_{{}, &access_, executor_.get()};
  AdminService service_{nullptr, nullptr, &process_->clock(), ""};
};

TEST_F(ReclaimCalls, PauseResumePaceAndStatus) {
  auto answer = Call(v1::ReclaimRequest::PAUSE);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->paused());
  reclaimer_.Start();
  world_.RunFor(absl::Seconds(5));
  answer = Call(v1::ReclaimRequest::STATUS);
  EXPECT_TRUE(answer->paused());
  EXPECT_EQ(answer->works(), 1u);
  EXPECT_EQ(answer->left_inodes(), 11u);
  EXPECT_EQ(answer->left_bytes(), 50u);
  EXPECT_GE(answer->oldest_age_ms(), 5'000u);
  EXPECT_EQ(Call(v1::ReclaimRequest::PACE, 12)->pace(), 12u);
  EXPECT_FALSE(Call(v1::ReclaimRequest::RESUME)->paused());
  world_.RunFor(absl::Seconds(5));
  answer = Call(v1::ReclaimRequest::STATUS);
  EXPECT_EQ(answer->works(), 0u);
  EXPECT_EQ(answer->entries_freed(), 21u);
  EXPECT_EQ(answer->blocks_freed(), 10u);
  EXPECT_EQ(answer->pace(), 12u);
  EXPECT_GT(answer->entries_per_second(), 0);
}

TEST_F(ReclaimCalls, OnlySuperusersChangeAnything) {
  for (const auto action : {v1::ReclaimRequest::PAUSE, v1::ReclaimRequest::RESUME, v1::ReclaimRequest::PACE}) {
    const absl::Status refused = Call(action, 1, "ada").status();
    EXPECT_EQ(KindOf(refused), ErrorKind::kPermission);
    EXPECT_EQ(refused.message(), "Access denied for user ada. Superuser privilege is required");
  }
  const auto status = Call(v1::ReclaimRequest::STATUS, 0, "ada");
  EXPECT_TRUE(status.ok()) << status.status();
  EXPECT_FALSE(status->paused());
  EXPECT_EQ(status->pace(), 0u);
}

}  // namespace
}  // namespace cairn::namenode::testing
