#include "namenode/safe_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
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
