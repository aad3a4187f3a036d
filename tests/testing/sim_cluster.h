#pragma once

// A whole cluster of the product's own parts in one thread: a NameNode, DataNodes and a client on a SimWorld. Only common/env and the
// transport are exchanged.
//
//   SimCluster cluster({.seed = 3});
//   auto files = cluster.NewFileSystem();          // Blocking calls run the world, and bring dead daemons back when due.
//   cluster.PowerCutDatanode(1, absl::Seconds(5));  // Also from a task, in the middle of a call; it restarts after 5 s.
//   cluster.RunUntil([&] { return ...; }, absl::Minutes(1));
//
// Daemons are killed from tasks, but stopped, destroyed and started again only between tasks, by Reap(): RunUntil calls it, and
// whoever waits otherwise has to. One thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "cairn/file_system.h"
#include "client/src/client_core.h"
#include "common/metrics.h"
#include "datanode/datanode.h"
#include "namenode/namenode.h"
#include "tests/testing/sim_network.h"
#include "tests/testing/sim_rpc.h"
#include "tests/testing/sim_world.h"

namespace cairn::testing {

struct SimClusterOptions {
  uint64_t seed = 1;
  size_t datanodes = 4;
  uint64_t block_size_bytes = 1 << 20;
  uint32_t replication = 3;
  absl::Duration dead_after = absl::Seconds(20);
  CloseSync close_sync = CloseSync::kData;
  absl::Duration retry_budget = absl::Minutes(5);
  absl::Duration lease_soft_limit = absl::Minutes(1);
  absl::Duration lease_hard_limit = absl::Minutes(10);
  absl::Duration recovery_round = absl::Seconds(10);  // The first; each further one takes twice as long.
  bool tell_slow = false;                             // DataNodes that are found slow say so to writers.
  absl::Duration report_gather = absl::Milliseconds(10);
};

class SimCluster {
 public:
  explicit SimCluster(SimClusterOptions options);  // Formats, starts all, waits until every DataNode is registered.
  ~SimCluster();
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  SimWorld& world() { return world_; }
  size_t datanode_count() const { return datanodes_.size(); }
  SimMachine* namenode_machine() { return namenode_.machine; }
  SimMachine* datanode_machine(size_t index) { return datanodes_[index].machine; }
  SimMachine* client_machine() { return client_machine_; }
  // Null while they are down.
  namenode::Namenode* namenode() { return namenode_.namenode.get(); }
  datanode::Datanode* datanode(size_t index) { return datanodes_[index].datanode.get(); }

  // kill -9, or a power cut; the daemon comes back after `down_for`. No effect while it is down. From tasks too.
  void KillNamenode(absl::Duration down_for) { Down(&namenode_, false, down_for); }
  void PowerCutNamenode(absl::Duration down_for) { Down(&namenode_, true, down_for); }
  void KillDatanode(size_t index, absl::Duration down_for) { Down(&datanodes_[index], false, down_for); }
  void PowerCutDatanode(size_t index, absl::Duration down_for) { Down(&datanodes_[index], true, down_for); }
  // All daemons lose power at the same moment.
  void PowerCutAll(absl::Duration down_for);

  // Runs the world until done(), bringing daemons back meanwhile. False when `limit` passed first. Not from a task.
  bool RunUntil(absl::AnyInvocable<bool()> done, absl::Duration limit);
  void RunFor(absl::Duration duration) {
    RunUntil([] { return false; }, duration);
  }
  bool AllUp() const;

  // Of one client process; its core is for coroutines, on its executors.
  std::shared_ptr<client::ClientCore> NewClientCore();
  // The same as a process of its own on `machine`, which may be killed or cut off.
  std::shared_ptr<client::ClientCore> NewClientCoreOn(SimMachine* machine);
  // Waits until every block has all its replicas and no deletion is pending, as the NameNode sees it.
  bool Settle(absl::Duration limit);
  v1::ClusterReportResponse Report();
  // Replicas of a block that are FINALIZED on DataNodes that run.
  size_t FinalizedReplicas(uint64_t block_id);
  // Files of a block's replicas on the disks of DataNodes that run.
  size_t ReplicaFiles(uint64_t block_id);

  // From now on Ask and AskAdmin come from a machine of their own, so that they are answered while the client's is cut off.
  void AskFromElsewhere();
  // Asks the NameNode, blocking (runs the world, brings daemons back).
  template <class Request, class Response>
  absl::StatusOr<Response> Ask(void (api::ClientNamenode::*call)(api::CallContext, Request, api::Done<Response>), Request request);
  template <class Request, class Response>
  absl::StatusOr<Response> AskAdmin(void (api::NamenodeAdmin::*call)(api::CallContext, Request, api::Done<Response>), Request request);

 private:
  template <class Api, class Request, class Response>
  absl::StatusOr<Response> AskOf(Api* api, void (Api::*call)(api::CallContext, Request, api::Done<Response>), Request request);

  struct Daemon {
    SimMachine* machine = nullptr;
    SimProcess* process = nullptr;
    std::unique_ptr<metrics::Registry> registry;
    std::unique_ptr<namenode::Namenode> namenode;
    std::unique_ptr<datanode::Datanode> datanode;
    std::unique_ptr<SimService<api::InterDatanode>> peer_service;  // Of a DataNode.
    std::optional<SteadyTime> restart_at;                          // Set while it is down.
    bool running() const { return namenode != nullptr || datanode != nullptr; }
  };

  ClientOptions OptionsOfClients() const;
  void Down(Daemon* daemon, bool power_cut, absl::Duration down_for);
  void StartNamenode();
  void StartDatanode(Daemon* daemon);
  datanode::DatanodePeers PeersOf(Daemon* daemon);
  bool ReapIsDue() const;
  void Reap();
  std::vector<Daemon*> AllDaemons();

  const SimClusterOptions options_;
  SimWorld world_;
  Daemon namenode_;
  std::vector<Daemon> datanodes_;
  SimMachine* client_machine_ = nullptr;
  std::unique_ptr<SimService<api::ClientNamenode>> client_service_;
  std::unique_ptr<SimService<api::DatanodeNamenode>> datanode_service_;
  std::unique_ptr<SimService<api::NamenodeAdmin>> admin_service_;
  SimProcess* client_process_ = nullptr;
  std::unique_ptr<SimClientNamenode> client_api_;
  std::unique_ptr<SimClientNamenode> asking_api_;  // Null: the client's.
  std::unique_ptr<SimNamenodeAdmin> admin_api_;
};

template <class Api, class Request, class Response>
absl::StatusOr<Response> SimCluster::AskOf(Api* api, void (Api::*call)(api::CallContext, Request, api::Done<Response>), Request request) {
  for (int tries = 0; tries < 100; ++tries) {
    auto answer = std::make_shared<std::optional<absl::StatusOr<Response>>>();
    api::CallContext context;
    context.deadline = world_.Now() + absl::Seconds(10);
    (api->*call)(std::move(context), request, [answer](absl::StatusOr<Response> response) { *answer = std::move(response); });
    RunUntil([&] { return answer->has_value(); }, absl::Seconds(11));
    if (answer->has_value() && (**answer).status().code() != absl::StatusCode::kUnavailable) return std::move(**answer);
    RunFor(absl::Seconds(1));
  }
  return absl::UnavailableError("the NameNode does not answer");
}

template <class Request, class Response>
absl::StatusOr<Response> SimCluster::Ask(void (api::ClientNamenode::*call)(api::CallContext, Request, api::Done<Response>),
                                         Request request) {
  return AskOf<api::ClientNamenode>(asking_api_ != nullptr ? asking_api_.get() : client_api_.get(), call, std::move(request));
}

template <class Request, class Response>
absl::StatusOr<Response> SimCluster::AskAdmin(void (api::NamenodeAdmin::*call)(api::CallContext, Request, api::Done<Response>),
                                              Request request) {
  return AskOf<api::NamenodeAdmin>(admin_api_.get(), call, std::move(request));
}

}  // namespace cairn::testing
