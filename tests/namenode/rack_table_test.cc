#include "namenode/replicas/rack_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/namenode/replica_cluster.h"

namespace cairn::namenode::testing {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const RackTable> Racks(const std::string& text) {
  absl::StatusOr<RackTable> table = RackTable::Parse(text);
  EXPECT_TRUE(table.ok()) << table.status();
  return std::make_shared<const RackTable>(*std::move(table));
}

TEST(RackTable, ReadsHostsAndRacksAndNamesTheLineThatIsWrong) {
  const std::shared_ptr<const RackTable> table = Racks("# racks\nA.example.com  /dc1/r1 # left\n\nb\t/r2\r\n");
  EXPECT_EQ(table->size(), 2u);
  EXPECT_EQ(table->RackOf("a.EXAMPLE.com"), "/dc1/r1");
  EXPECT_EQ(table->RackOf("b"), "/r2");
  EXPECT_EQ(table->RackOf("c"), kDefaultRack);
  for (const char* bad : {"ok /r\na", "ok /r\na r", "ok /r\na /r b", "ok /r\na /"}) {
    const absl::Status status = RackTable::Parse(bad).status();
    EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("line 2")) << bad;
  }
}

TEST(Racks, TableGoesBeforeWhatNodesSayAndCopiesAreOnTwo) {
  ReplicaCluster cluster(4);
  cluster.options.racks = Racks("dn0 /a\ndn1 /a\ndn2 /b\ndn3 /b\n");
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  v1::ClusterReportResponse report;
  cluster.plane->FillReport(&report);
  EXPECT_EQ(report.datanodes(0).info().rack(), "/a");
  EXPECT_EQ(report.datanodes(3).info().rack(), "/b");
  for (int i = 0; i < 50; ++i) {
    ReplicaPlane::TargetRequest request;
    request.replication = 2;
    request.block_size_bytes = 100;
    const auto targets = cluster.plane->ChooseTargets(request);
    ASSERT_TRUE(targets.ok() && targets->size() == 2);
    EXPECT_NE(cluster.plane->LocationOf((*targets)[0])->datanode().rack(), cluster.plane->LocationOf((*targets)[1])->datanode().rack());
  }
  cluster.plane->SetRacks(Racks("dn0 /c\n"));
  EXPECT_EQ(cluster.plane->LocationOf(*cluster.plane->NumberOf("s0"))->datanode().rack(), "/c");
  EXPECT_EQ(cluster.plane->LocationOf(*cluster.plane->NumberOf("s1"))->datanode().rack(), kDefaultRack);
}

TEST(Racks, ClientOnADeadNodesHostReadsFromItsRackFirst) {
  ReplicaCluster cluster(4);
  cluster.options.racks = Racks("dn0 /a\ndn1 /a\ndn2 /b\ndn3 /b\n");
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.Write({1, 2, 3}, 3);
  cluster.nodes[0]->Disconnect();
  cluster.world.RunFor(absl::Seconds(70));
  for (int i = 0; i < 100; ++i) {
    const ReplicaPlane::Locations located = cluster.plane->Locate(block, *cluster.space.Block(block), "dn0");
    ASSERT_EQ(located.locations.size(), 3u);
    EXPECT_EQ(located.locations[0].datanode().uuid(), "dn1");
  }
}

TEST(Racks, NodesThatLeaveAreReadFromLast) {
  ReplicaCluster cluster(3);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  const BlockId block = cluster.Write({0, 1, 2}, 3);
  cluster.Settle();
  v1::SetNodeAdminRequest request;
  request.set_node("dn1");
  request.set_action(v1::SetNodeAdminRequest::DECOMMISSION);
  cluster.plane->SetNodeAdmin(request, [](const absl::StatusOr<v1::SetNodeAdminResponse>& set) { EXPECT_TRUE(set.ok()); });
  for (int i = 0; i < 20; ++i) {
    const ReplicaPlane::Locations located = cluster.plane->Locate(block, *cluster.space.Block(block), "dn1");
    ASSERT_EQ(located.locations.size(), 3u);
    EXPECT_EQ(located.locations[2].datanode().uuid(), "dn1");
  }
}

TEST(Placement, EveryRefusalIsCountedByItsReason) {
  ReplicaCluster cluster(3);
  for (auto& node : cluster.nodes) node->remaining_bytes = 50;
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  ReplicaPlane::TargetRequest request;
  request.block_size_bytes = 100;
  const auto targets = cluster.plane->ChooseTargets(request);
  EXPECT_EQ(KindOf(targets.status()), ErrorKind::kNoTargets);
  EXPECT_EQ(ReasonOf(targets.status()), "NO_SPACE");
  const RejectionCounts counts = cluster.plane->placement_rejections();
  for (size_t i = 0; i < kRejections; ++i) EXPECT_EQ(counts[i], static_cast<Rejection>(i) == Rejection::kNoSpace ? 3u : 0u) << i;
}

}  // namespace
}  // namespace cairn::namenode::testing
