#include "tests/testing/sim_cluster.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/src/file_system.h"
#include "common/check.h"
#include "namenode/namenode_directory.h"

namespace cairn::testing {
namespace {

constexpr char kNamenodeDirectory[] = "/namenode";
constexpr char kDataDirectory[] = "/data";

void MustBeOk(const absl::Status& status, const std::string& what) {
  CAIRN_CHECK(status.ok(), what + ": " + std::string(status.message()));
}

}  // namespace

SimCluster::SimCluster(SimClusterOptions options) : options_(options), world_({.seed = options.seed}) {
  namenode_.machine = world_.AddMachine("namenode");
  client_service_ = std::make_unique<SimService<api::ClientNamenode>>(namenode_.machine);
  datanode_service_ = std::make_unique<SimService<api::DatanodeNamenode>>(namenode_.machine);
  admin_service_ = std::make_unique<SimService<api::NamenodeAdmin>>(namenode_.machine);
  SimProcess* formatter = namenode_.machine->StartProcess();
  MustBeOk(namenode::NamenodeDirectory::Format(kNamenodeDirectory, {}, formatter), "format");
  formatter->Kill();
  StartNamenode();
  datanodes_.resize(options_.datanodes);
  for (size_t i = 0; i < datanodes_.size(); ++i) {
    datanodes_[i].machine = world_.AddMachine("datanode" + std::to_string(i));
    datanodes_[i].peer_service = std::make_unique<SimService<api::InterDatanode>>(datanodes_[i].machine);
    StartDatanode(&datanodes_[i]);
  }
  client_machine_ = world_.AddMachine("client");
  client_process_ = client_machine_->StartProcess();
  client_api_ = std::make_unique<SimClientNamenode>(client_process_, client_service_.get());
  admin_api_ = std::make_unique<SimNamenodeAdmin>(client_process_, admin_service_.get());
  const bool up =
      RunUntil([&] { return std::all_of(datanodes_.begin(), datanodes_.end(), [](const Daemon& d) { return d.datanode->Ready().ok(); }); },
               absl::Minutes(1));
  CAIRN_CHECK(up, "the simulated cluster did not come up");
}

SimCluster::~SimCluster() {
  client_api_.reset();
  for (Daemon& daemon : datanodes_) daemon.datanode.reset();
  client_service_->Withdraw();
  datanode_service_->Withdraw();
  admin_service_->Withdraw();
  namenode_.namenode.reset();
}

void SimCluster::StartNamenode() {
  namenode_.process = namenode_.machine->StartProcess();
  namenode::NamenodeOptions options;
  options.directory = kNamenodeDirectory;
  options.store.simulated = true;
  options.store.block_cache_bytes = 8 << 20;
  options.clients.default_block_size_bytes = options_.block_size_bytes;
  options.clients.default_replication = options_.replication;
  options.clients.limits.min_block_size_bytes = 4096;
  options.replicas.block_cache_bytes = 4 << 20;
  options.replicas.heartbeat_interval = absl::Seconds(1);
  options.replicas.stale_after = options_.dead_after / 2;
  options.replicas.dead_after = options_.dead_after;
  options.replicas.acknowledged_grace = absl::Seconds(10);
  options.clients.limits.lease_soft_limit = options_.lease_soft_limit;
  options.leases.hard_limit = options_.lease_hard_limit;
  options.replicas.recovery_round = options_.recovery_round;
  namenode_.registry = std::make_unique<metrics::Registry>();
  auto started = namenode::Namenode::Start(std::move(options), namenode_.process, namenode_.registry.get());
  MustBeOk(started.status(), "NameNode");
  namenode_.namenode = *std::move(started);
  client_service_->Serve(namenode_.process, namenode_.namenode->client_api());
  datanode_service_->Serve(namenode_.process, namenode_.namenode->datanode_api());
  admin_service_->Serve(namenode_.process, namenode_.namenode->admin_api());
}

void SimCluster::StartDatanode(Daemon* daemon) {
  daemon->process = daemon->machine->StartProcess();
  datanode::DatanodeOptions options;
  options.storage.directories = {kDataDirectory};
  options.storage.max_block_bytes = 64 << 20;
  options.transfer.block_capacity = options.storage.max_block_bytes;
  options.transfer.io_threads = 1;
  options.transfer.tell_slow = options_.tell_slow;
  options.lanes.report.gather = options_.report_gather;
  options.transfer_bind = {daemon->machine->address(), 9866};
  options.transfer_advertised = {daemon->machine->name(), 9866};
  options.http_advertised = {daemon->machine->name(), 9864};
  options.admin_advertised = {daemon->machine->name(), 9868};
  options.peers = PeersOf(daemon);
  const auto channel = [&] { return std::make_unique<SimDatanodeNamenode>(daemon->process, datanode_service_.get()); };
  datanode::NamenodeChannels channels{channel(), channel(), channel(), channel()};
  daemon->registry = std::make_unique<metrics::Registry>();
  auto started = datanode::Datanode::Start(std::move(options), std::move(channels), daemon->process, daemon->registry.get());
  MustBeOk(started.status(), daemon->machine->name());
  daemon->datanode = *std::move(started);
}

datanode::DatanodePeers SimCluster::PeersOf(Daemon* daemon) {
  datanode::DatanodePeers peers;
  peers.serve = [daemon](api::DatanodeAdmin*, api::InterDatanode* peer) -> absl::StatusOr<HostPort> {
    daemon->peer_service->Serve(daemon->process, peer);
    return HostPort{daemon->machine->address(), 9868};
  };
  peers.withdraw = [daemon] { daemon->peer_service->Withdraw(); };
  peers.resolve = [this, caller = daemon->process](const v1::Endpoint& admin) -> std::shared_ptr<api::InterDatanode> {
    for (const Daemon& other : datanodes_) {
      if (other.machine != nullptr && other.machine->name() == admin.host())
        return std::make_shared<SimInterDatanode>(caller, other.peer_service.get());
    }
    return nullptr;
  };
  return peers;
}

void SimCluster::Down(Daemon* daemon, bool power_cut, absl::Duration down_for) {
  if (daemon->restart_at) return;
  if (power_cut)
    daemon->machine->PowerCut();
  else
    daemon->machine->Kill();
  daemon->restart_at = world_.Now() + down_for;
  world_.executor().PostAt(*daemon->restart_at, [] {});  // Time has to stop there.
}

void SimCluster::PowerCutAll(absl::Duration down_for) {
  for (Daemon* daemon : AllDaemons()) Down(daemon, true, down_for);
}

std::vector<SimCluster::Daemon*> SimCluster::AllDaemons() {
  std::vector<Daemon*> all = {&namenode_};
  for (Daemon& daemon : datanodes_) all.push_back(&daemon);
  return all;
}

bool SimCluster::ReapIsDue() const {
  const auto due = [this](const Daemon& d) { return d.restart_at && (d.running() || *d.restart_at <= world_.Now()); };
  return due(namenode_) || std::any_of(datanodes_.begin(), datanodes_.end(), due);
}

void SimCluster::Reap() {
  for (Daemon* daemon : AllDaemons()) {
    if (!daemon->restart_at) continue;
    // What is left of the killed process; it can do no more harm.
    daemon->datanode.reset();
    daemon->namenode.reset();
    if (*daemon->restart_at > world_.Now()) continue;
    daemon->restart_at.reset();
    if (daemon == &namenode_)
      StartNamenode();
    else
      StartDatanode(daemon);
  }
}

bool SimCluster::RunUntil(absl::AnyInvocable<bool()> done, absl::Duration limit) {
  const SteadyTime deadline = world_.Now() + limit;
  for (;;) {
    bool is_done = false;
    const bool stopped = world_.RunUntil([&] { return (is_done = done()) || ReapIsDue(); }, deadline);
    if (is_done) return true;
    if (ReapIsDue())
      Reap();
    else if (!stopped)
      return false;
  }
}

bool SimCluster::AllUp() const {
  return !namenode_.restart_at &&
         std::none_of(datanodes_.begin(), datanodes_.end(), [](const Daemon& d) { return d.restart_at.has_value(); });
}

ClientOptions SimCluster::OptionsOfClients() const {
  ClientOptions options;
  options.user = "sim";
  options.close_sync = options_.close_sync;
  options.packet_bytes = 64 << 10;
  options.window_bytes = 256 << 10;
  options.retry_budget = options_.retry_budget;
  options.call_timeout = absl::Seconds(5);
  options.socket_timeout = absl::Seconds(10);
  return options;
}

std::shared_ptr<client::ClientCore> SimCluster::NewClientCore() {
  return std::make_shared<client::ClientCore>(OptionsOfClients(), client_process_, client_api_.get(), nullptr);
}

std::shared_ptr<client::ClientCore> SimCluster::NewClientCoreOn(SimMachine* machine) {
  SimProcess* const process = machine->StartProcess();
  const auto api = std::make_shared<SimClientNamenode>(process, client_service_.get());
  return std::make_shared<client::ClientCore>(OptionsOfClients(), process, api.get(), api);
}

void SimCluster::AskFromElsewhere() {
  SimProcess* const asking = world_.AddMachine("operator")->StartProcess();
  asking_api_ = std::make_unique<SimClientNamenode>(asking, client_service_.get());
  admin_api_ = std::make_unique<SimNamenodeAdmin>(asking, admin_service_.get());
}

v1::ClusterReportResponse SimCluster::Report() {
  auto answer = std::make_shared<std::optional<absl::StatusOr<v1::ClusterReportResponse>>>();
  api::CallContext context;
  context.deadline = world_.Now() + absl::Seconds(5);
  admin_api_->ClusterReport(std::move(context), {}, [answer](absl::StatusOr<v1::ClusterReportResponse> r) { *answer = std::move(r); });
  RunUntil([&] { return answer->has_value(); }, absl::Seconds(6));
  return answer->has_value() && (*answer)->ok() ? ***answer : v1::ClusterReportResponse();
}

bool SimCluster::Settle(absl::Duration limit) {
  const SteadyTime deadline = world_.Now() + limit;
  int quiet = 0;
  while (world_.Now() < deadline) {
    const v1::ClusterReportResponse report = Report();
    uint64_t pending = report.under_replicated_blocks() + report.missing_blocks() + report.pending_deletion_blocks();
    for (const v1::DatanodeReport& node : report.datanodes())
      pending += node.pending_deletion_blocks() + (node.state() == v1::LIVE ? 0 : 1);
    const bool all_known = static_cast<size_t>(report.datanodes_size()) == datanodes_.size();
    quiet = AllUp() && all_known && pending == 0 ? quiet + 1 : 0;
    if (quiet >= 15) return true;  // Seconds: longer than any delay before a repair or a deletion begins.
    RunFor(absl::Seconds(1));
  }
  return false;
}

size_t SimCluster::FinalizedReplicas(uint64_t block_id) {
  size_t count = 0;
  for (Daemon& daemon : datanodes_) {
    if (daemon.datanode == nullptr) continue;
    const auto replica = daemon.datanode->store().Describe(BlockId(block_id));
    if (replica && replica->state == datanode::ReplicaState::kFinalized && !replica->corrupt) ++count;
  }
  return count;
}

size_t SimCluster::ReplicaFiles(uint64_t block_id) {
  const std::string name = fmt::format("blk_{}", block_id);
  size_t count = 0;
  for (Daemon& daemon : datanodes_) {
    if (daemon.datanode == nullptr) continue;
    LocalFileSystem& files = daemon.process->files();
    const std::string blocks = std::string(kDataDirectory) + "/blocks";
    for (const std::string& first : files.List(blocks).value_or(std::vector<std::string>()))
      for (const std::string& second : files.List(blocks + "/" + first).value_or(std::vector<std::string>()))
        if (files.Exists(fmt::format("{}/{}/{}/{}", blocks, first, second, name)).value_or(false)) ++count;
  }
  return count;
}

}  // namespace cairn::testing
