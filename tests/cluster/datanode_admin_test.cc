// A DataNode's admin port over real gRPC: what operators and other DataNodes ask.

#include <atomic>
#include <memory>
#include <optional>

#include "common/error.h"
#include "common/rpc/grpc_client.h"
#include "tests/testing/grpc_transport.h"
#include "tests/testing/matchers.h"
#include "tests/testing/mini_cluster.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::testing {
namespace {

class DatanodeAdmin : public ::testing::Test {
 protected:
  void SetUp() override {
    MiniClusterOptions options;
    options.directory = directory_.path();
    options.datanodes = 1;
    auto started = MiniCluster::Start(std::move(options), &transport_, env_.get());
    ASSERT_TRUE(started.ok()) << started.status();
    cluster_ = *std::move(started);
  }
  template <class Response, class Api, class Request>
  absl::StatusOr<Response> Ask(Api* api, void (Api::*method)(api::CallContext, Request, api::Done<Response>), Request request) {
    struct Answer {
      std::optional<absl::StatusOr<Response>> result;
      std::atomic<bool> done{false};
    };
    auto answer = std::make_shared<Answer>();
    api::CallContext context;
    context.deadline = env_->clock().Now() + absl::Seconds(30);
    (api->*method)(std::move(context), std::move(request), [answer, env = env_.get()](absl::StatusOr<Response> result) {
      answer->result.emplace(std::move(result));
      answer->done.store(true);
      env->Wake();
    });
    env_->BlockUntil([answer] { return answer->done.load(); }, SteadyTime::Infinite());
    return std::move(*answer->result);
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Env> env_ = NewRealEnv();
  GrpcTransport transport_{env_.get()};
  std::unique_ptr<MiniCluster> cluster_;
};

TEST_F(DatanodeAdmin, TellsWhatItIsAndDoes) {
  const HostPort address = cluster_->datanode(0)->admin_address();
  ASSERT_NE(address.port, 0);
  const std::unique_ptr<api::DatanodeAdmin> admin = rpc::NewDatanodeAdmin(address, env_.get());
  const auto info = Ask<v1::GetDatanodeInfoResponse>(admin.get(), &api::DatanodeAdmin::GetDatanodeInfo, v1::GetDatanodeInfoRequest());
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
  EXPECT_THAT(Ask<v1::SetFaultResponse>(admin.get(), &api::DatanodeAdmin::SetFault, request), HasKind(ErrorKind::kPermission));
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
  auto answer = Ask<v1::InitReplicaRecoveryResponse>(peer.get(), &api::InterDatanode::InitReplicaRecovery, request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->found());
  request.set_storage_uuid("DS-elsewhere");
  answer = Ask<v1::InitReplicaRecoveryResponse>(peer.get(), &api::InterDatanode::InitReplicaRecovery, request);
  EXPECT_THAT(answer, HasKind(ErrorKind::kReplicaNotFound));
}

}  // namespace
}  // namespace cairn::testing
