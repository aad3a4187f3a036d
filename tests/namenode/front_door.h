#pragma once

#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "common/block_token.h"
#include "namenode/frontdoor/client_service.h"
#include "tests/testing/fake_replica_plane.h"
#include "tests/testing/memory_namespace.h"
#include "tests/testing/sim_world.h"

namespace cairn::namenode {

// For a fixture to be made of: the native client's front door over a namespace in memory and a fake replica plane, in a simulated world.
class FrontDoor {
 protected:
  // DataNode d has the storages s1, s2 and so on.
  explicit FrontDoor(uint32_t storages, const ClientService::Options& options = {})
      : replicas_(storages), service_(options, Identity(), &access_, &replicas_, &leases_, {reader_.get()}, &process_->clock()) {
    v1::Mutation registered;
    registered.mutable_register_storages()->set_datanode_uuid("d");
    for (uint32_t i = 1; i <= storages; ++i) registered.mutable_register_storages()->add_storage_uuids(fmt::format("s{}", i));
    space_.Must(registered);
  }

  static ReplicaPlane::Identity Identity() {
    ReplicaPlane::Identity identity;
    identity.cluster_id = "cluster";
    identity.pool_id = std::string(cairn::testing::kTestPoolId);
    identity.epoch = Epoch(1);
    identity.keys.push_back(NewBlockTokenKey(1, std::string(32, 'k'), INT64_MAX));
    return identity;
  }

  // The request of `user`, by client `client`; with a sequence, in slot 0.
  template <class Request>
  Request From(const std::string& user, const std::string& client, Request request, uint64_t sequence = 0) {
    v1::RequestHeader& header = *request.mutable_header();
    header.set_client_id(std::string(cairn::testing::kTestClientId));
    header.set_user(user);
    header.set_client_name(client);
    header.set_sequence(sequence);
    if (sequence != 0) header.set_slot_opened_ms(absl::ToUnixMillis(process_->clock().WallNow()));
    return request;
  }
  // Makes a call and runs the world until it is answered.
  template <class Request, class Response>
  absl::StatusOr<Response> Send(void (ClientService::*call)(api::CallContext, Request, api::Done<Response>), Request request,
                                api::CallContext context = {}) {
    std::optional<absl::StatusOr<Response>> answer;
    (service_.*call)(std::move(context), std::move(request), [&](absl::StatusOr<Response> response) { answer = std::move(response); });
    world_.RunUntil([&] { return answer.has_value(); }, absl::Seconds(10));
    return answer.has_value() ? *std::move(answer) : absl::DeadlineExceededError("not answered");
  }

  cairn::testing::SimWorld world_{cairn::testing::SimOptions{.seed = 1}};
  cairn::testing::SimProcess* process_ = world_.AddMachine("nn")->StartProcess();
  std::unique_ptr<Executor> writer_ = process_->executors().NewExecutor("writer");
  std::unique_ptr<Executor> reader_ = process_->executors().NewExecutor("reader");
  cairn::testing::TestNamespace space_;
  cairn::testing::MemoryNamespace access_{&space_, writer_.get()};
  cairn::testing::FakeReplicaPlane replicas_;
  LeaseMonitor leases_{LeaseMonitor::Options(), &access_, reader_.get()};
  ClientService service_;
};

}  // namespace cairn::namenode
