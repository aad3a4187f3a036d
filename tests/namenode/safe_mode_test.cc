#include "namenode/safe_mode.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/safe_mode_watch.h"
#include "tests/namenode/replica_cluster.h"

namespace cairn::namenode::testing {
namespace {

using ::testing::HasSubstr;

TEST(SafeMode, RefusesChangesWithAKindThatIsTriedAgainAndLetsNodesIn) {
  namenode::SafeMode safe_mode;
  v1::Mutation mkdirs, storages, meta;
  mkdirs.mutable_mkdirs()->set_path("/a");
  storages.mutable_register_storages();
  meta.mutable_set_meta();
  EXPECT_TRUE(safe_mode.Check(mkdirs).ok());
  safe_mode.Enter("ann", absl::FromUnixSeconds(5));
  safe_mode.Enter("bob", absl::FromUnixSeconds(6));  // It is on already.
  const absl::Status refused = safe_mode.Check(mkdirs);
  EXPECT_EQ(KindOf(refused), ErrorKind::kSafeMode);
  EXPECT_TRUE(IsRetriable(refused));
  EXPECT_EQ(ReasonOf(refused), "SAFE_MODE");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Cannot mkdirs. Name node is in safe mode. It was turned on manually by ann"));
  EXPECT_TRUE(safe_mode.Check(storages).ok());
  EXPECT_TRUE(safe_mode.Check(meta).ok());
  EXPECT_TRUE(safe_mode.state().on);
  EXPECT_EQ(safe_mode.state().since, absl::FromUnixSeconds(5));
  safe_mode.Leave();
  EXPECT_TRUE(safe_mode.Check(mkdirs).ok());
  EXPECT_FALSE(safe_mode.state().on);
}

TEST(SafeMode, AutomaticOneEndsByItselfUnlessAnOperatorMakesItHis) {
  namenode::SafeMode safe_mode;
  std::vector<bool> heard;
  safe_mode.SetListener([&heard](bool on) { heard.push_back(on); });
  v1::Mutation mkdirs;
  mkdirs.mutable_mkdirs()->set_path("/a");
  safe_mode.EnterAtStart(absl::FromUnixSeconds(5));
  safe_mode.Expect(4, 3, absl::InfiniteFuture());
  absl::Status refused = safe_mode.Check(mkdirs);
  EXPECT_EQ(KindOf(refused), ErrorKind::kSafeMode);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("3 of 4 DataNodes have reported; it ends by itself"));
  EXPECT_EQ(ErrorOf(refused)->key, "dfs.namenode.safemode.extension");
  safe_mode.Expect(4, 4, absl::FromUnixSeconds(60));
  EXPECT_THAT(std::string(safe_mode.Check(mkdirs).message()), HasSubstr("turned off automatically at 1970-01-01T00:01:00Z"));
  EXPECT_TRUE(safe_mode.LeaveAutomatic());
  EXPECT_FALSE(safe_mode.LeaveAutomatic());
  EXPECT_TRUE(safe_mode.Check(mkdirs).ok());

  safe_mode.EnterAtStart(absl::FromUnixSeconds(5));
  safe_mode.Enter("ann", absl::FromUnixSeconds(6));
  EXPECT_FALSE(safe_mode.LeaveAutomatic());
  EXPECT_TRUE(safe_mode.state().on);
  EXPECT_EQ(safe_mode.state().user, "ann");
  safe_mode.Leave();
  EXPECT_EQ(heard, (std::vector<bool>{true, false, true, true, false}));
}

class SafeModeWatchTest : public ::testing::Test {
 protected:
  // Three nodes with a block each; the NameNode starts again, in safe mode, and waits for them.
  void Restart() {
    cluster_.StartNamenode();
    cluster_.ConnectAll();
    cluster_.Settle();
    for (size_t i = 0; i < 3; ++i) cluster_.Write({i}, 1);
    cluster_.Settle();
    cluster_.RestartNamenode();
    executor_ = cluster_.process()->executors().NewExecutor("watch");
    safe_mode_.SetListener([this](bool on) { cluster_.plane->SetSafeMode(on); });
    safe_mode_.EnterAtStart(cluster_.process()->clock().WallNow());
    SafeModeWatch::Options options;
    options.extension = absl::Seconds(20);
    watch_ = std::make_unique<SafeModeWatch>(options, &safe_mode_, cluster_.plane.get(), executor_.get());
    watch_->Start();
  }
  void TearDown() override {
    bool stopped = false;
    watch_->Stop([&stopped] { stopped = true; });
    EXPECT_TRUE(cluster_.world.RunUntil([&stopped] { return stopped; }, absl::Seconds(1)));
    executor_.reset();
  }

  ReplicaCluster cluster_{3};
  namenode::SafeMode safe_mode_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<SafeModeWatch> watch_;
};

TEST_F(SafeModeWatchTest, EndsAWhileAfterAllThatAreExpectedHaveReported) {
  Restart();
  cluster_.nodes[0]->Connect(cluster_.plane.get());
  cluster_.nodes[1]->Connect(cluster_.plane.get());
  cluster_.world.RunFor(absl::Seconds(40));
  SafeMode::State state = safe_mode_.state();
  EXPECT_TRUE(state.on);
  EXPECT_EQ(state.nodes_expected, 3u);
  EXPECT_EQ(state.nodes_reported, 2u);
  EXPECT_EQ(state.ends, absl::InfiniteFuture());
  cluster_.nodes[2]->Connect(cluster_.plane.get());
  cluster_.world.RunFor(absl::Seconds(15));
  state = safe_mode_.state();
  EXPECT_TRUE(state.on);
  EXPECT_EQ(state.nodes_reported, 3u);
  EXPECT_LT(state.ends, cluster_.process()->clock().WallNow() + absl::Seconds(20));
  cluster_.world.RunFor(absl::Seconds(10));
  EXPECT_FALSE(safe_mode_.state().on);
}

TEST_F(SafeModeWatchTest, WaitsForNobodyWhoIsDead) {
  Restart();
  cluster_.nodes[0]->Connect(cluster_.plane.get());
  cluster_.world.RunFor(absl::Seconds(55));
  EXPECT_TRUE(safe_mode_.state().on);
  cluster_.world.RunFor(absl::Seconds(30));
  EXPECT_FALSE(safe_mode_.state().on);
}

TEST(SafeMode, NothingIsRepairedOrDeletedUntilItIsLeft) {
  ReplicaCluster cluster(3);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId garbage = cluster.Write({0, 1}, 2);
  cluster.Settle();
  cluster.plane->SetSafeMode(true);
  const BlockId short_one = cluster.Write({0}, 2);
  cluster.Free(garbage);
  cluster.world.RunFor(absl::Minutes(1));
  EXPECT_EQ(cluster.Copies(short_one), 1u);
  EXPECT_EQ(cluster.Copies(garbage), 2u);
  EXPECT_EQ(cluster.Locate(short_one).size(), 1u);
  v1::ClusterReportResponse report;
  cluster.plane->FillReport(&report);
  EXPECT_TRUE(report.safe_mode());
  EXPECT_EQ(report.under_replicated_blocks(), 1u);  // Known, and waiting.
  EXPECT_EQ(report.repairs_waiting(), 1u);
  cluster.plane->SetSafeMode(false);
  cluster.world.RunFor(absl::Seconds(20));
  EXPECT_EQ(cluster.Copies(short_one), 2u);
  EXPECT_EQ(cluster.Copies(garbage), 0u);
}

}  // namespace
}  // namespace cairn::namenode::testing
