// A DataNode's admin port over real gRPC: what operators and other DataNodes ask.

#include <memory>

#include "common/error.h"
#include "common/rpc/grpc_client.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/testing/matchers.h"

namespace cairn::testing {
namespace {

class DatanodeAdmin : public ClusterTest {
 protected:
  void SetUp() override { StartCluster(nullptr, 1); }
};

TEST_F(DatanodeAdmin, TellsWhatItIsAndDoes) {
  const HostPort address = cluster_->datanode(0)->admin_address();
  ASSERT_NE(address.port, 0);
  const std::unique_ptr<api::DatanodeAdmin> admin = rpc::NewDatanodeAdmin(address, env_.get());
  const auto info = Ask(admin.get(), &api::DatanodeAdmin::GetDatanodeInfo, v1::GetDatanodeInfoRequest());
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->cluster_id(), cluster_->namenode()->cluster_id());
  EXPECT_NE(info->datanode_uuid(), "");
  EXPECT_TRUE(info->registered());
  EXPECT_GE(info->epoch(), 1u);
  ASSERT_EQ(info->storages_size(), 1);
  EXPECT_EQ(info->storages(0).state(), v1::HEALTHY);
  EXPECT_GT(info->storages(0).remaining_bytes(), 0u);
  EXPECT_EQ(info->info().admin().port(), address.port);  // As it was advertised in the registration.
  ASSERT_EQ(info->lanes_size(), 4);
  for (const v1::LaneAge& lane : info->lanes()) EXPECT_GE(lane.last_step_ms(), 0) << lane.lane();
  EXPECT_GT(info->header().namenode_time_ms(), 0);
}

TEST_F(DatanodeAdmin, ArmsNoFaultUnlessTheDaemonAllowsThem) {
  const std::unique_ptr<api::DatanodeAdmin> admin = rpc::NewDatanodeAdmin(cluster_->datanode(0)->admin_address(), env_.get());
  v1::SetFaultRequest request;
  request.set_name("datanode.heartbeat.answer");
  request.set_action("error");
  request.mutable_header()->set_user(env_->UserName());
  const auto refused = Ask(admin.get(), &api::DatanodeAdmin::SetFault, request);
  EXPECT_THAT(refused, HasKind(ErrorKind::kPermission));
  EXPECT_THAT(std::string(refused.status().message()), ::testing::Not(::testing::HasSubstr("Superuser")));
}

TEST_F(DatanodeAdmin, ChangesAreForSuperusers) {
  const std::unique_ptr<api::DatanodeAdmin> admin = rpc::NewDatanodeAdmin(cluster_->datanode(0)->admin_address(), env_.get());
  v1::SetFaultRequest fault;
  fault.mutable_header()->set_user("nobody-special");
  v1::ReconfigureRequest start;
  start.mutable_header()->set_user("nobody-special");
  start.set_action(v1::ReconfigureRequest::START);
  const std::string words = "Access denied for user nobody-special. Superuser privilege is required";
  const auto of_fault = Ask(admin.get(), &api::DatanodeAdmin::SetFault, fault);
  EXPECT_THAT(of_fault, HasKind(ErrorKind::kPermission));
  EXPECT_EQ(of_fault.status().message(), words);
  const auto of_start = Ask(admin.get(), &api::DatanodeAdmin::Reconfigure, start);
  EXPECT_THAT(of_start, HasKind(ErrorKind::kPermission));
  EXPECT_EQ(of_start.status().message(), words);
  start.mutable_header()->set_user(env_->UserName());
  EXPECT_THAT(Ask(admin.get(), &api::DatanodeAdmin::Reconfigure, start), HasKind(ErrorKind::kUnsupported));  // Here; not forbidden.
}

TEST_F(DatanodeAdmin, AnswersOtherDatanodesOfItsReplicas) {
  const HostPort address = cluster_->datanode(0)->admin_address();
  v1::Endpoint endpoint;
  endpoint.set_host(address.host);
  endpoint.set_port(address.port);
  const api::InterDatanodeResolver resolve = rpc::NewInterDatanodeResolver(env_.get());
  const std::shared_ptr<api::InterDatanode> peer = resolve(endpoint);
  EXPECT_EQ(peer, resolve(endpoint));  // One channel for both.
  v1::InitReplicaRecoveryRequest request;
  request.mutable_block()->set_id(1ull << 40);
  request.mutable_block()->set_generation_stamp(1001);
  request.set_recovery_id(1002);
  request.set_storage_uuid(cluster_->datanode(0)->store().Statistics()[0].storage_uuid());
  auto answer = Ask(peer.get(), &api::InterDatanode::InitReplicaRecovery, request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->found());
  request.set_storage_uuid("DS-elsewhere");
  answer = Ask(peer.get(), &api::InterDatanode::InitReplicaRecovery, request);
  EXPECT_THAT(answer, HasKind(ErrorKind::kReplicaNotFound));
}

}  // namespace
}  // namespace cairn::testing
