#include "namenode/frontdoor/admin_service.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "tests/namenode/replica_cluster.h"

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

}  // namespace
}  // namespace cairn::namenode::testing
