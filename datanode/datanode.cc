#include "datanode/datanode.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/config.h"
#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "common/transfer/ops.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kTransferBudget = absl::Minutes(10);  // Of one repair copy; the NameNode asks another node before that.

void SetEndpoint(const HostPort& advertised, v1::Endpoint* endpoint) {
  endpoint->set_host(advertised.host);
  endpoint->set_port(advertised.port);
}

}  // namespace

DatanodeOptions DatanodeOptionsFrom(const Config& config) {
  DatanodeOptions options;
  options.storage.directories = config.GetDirectories("dfs.datanode.data.dir");
  options.storage.reserved_bytes = config.GetBytes("dfs.datanode.du.reserved");
  options.storage.max_block_bytes = config.GetBytes("cairn.block.max-size");
  options.storage.max_replicas = static_cast<size_t>(config.GetInt("cairn.datanode.replicas.max"));
  options.storage.tolerated_failed_volumes = static_cast<size_t>(config.GetInt("dfs.datanode.failed.volumes.tolerated"));
  options.storage.max_slow_excluded = static_cast<size_t>(config.GetInt("dfs.datanode.max.slowdisks.to.exclude"));
  options.storage.deleter.unlinks_per_second = static_cast<double>(config.GetInt("cairn.datanode.delete.unlinks-per-second"));
  options.storage.deleter.yielding.share = static_cast<double>(config.GetInt("cairn.datanode.delete.busy-percent")) / 100;
  options.storage.deleter.yielding.patience = config.GetDuration("cairn.datanode.delete.patience");
  options.storage.deleter.bytes_per_second = static_cast<double>(config.GetBytes("cairn.datanode.delete.bytes-per-second"));

  options.transfer.max_streams = static_cast<size_t>(config.GetInt("dfs.datanode.max.transfer.threads"));
  options.transfer.block_capacity = options.storage.max_block_bytes;
  options.transfer.io_threads = static_cast<size_t>(config.GetInt("cairn.datanode.transfer.threads"));
  options.transfer.window_bytes = config.GetBytes("cairn.datanode.stream.window");
  options.transfer.memory_bytes = config.GetBytes("cairn.datanode.transfer.memory");
  options.transfer.read_packet_bytes = config.GetBytes("cairn.datanode.read.packet-size");
  options.transfer.transfer_packet_bytes = config.GetBytes("cairn.datanode.transfer.packet-size");
  options.transfer.connect_timeout = config.GetDuration("cairn.datanode.connect.timeout");
  options.transfer.socket_timeout = config.GetDuration("dfs.client.socket-timeout");
  options.transfer.write_timeout = config.GetDuration("dfs.datanode.socket.write.timeout");
  options.transfer.keep_alive = config.GetDuration("dfs.datanode.socket.reuse.keepalive");
  options.transfer.balance_bytes_per_second = config.GetBytes("dfs.datanode.balance.bandwidthPerSec");
  options.transfer.sync_on_close = config.GetBool("dfs.datanode.synconclose");
  options.transfer.peers.enabled = config.GetBool("dfs.datanode.peer.stats.enabled");
  options.transfer.peers.min_peers = static_cast<size_t>(config.GetInt("dfs.datanode.min.outlier.detection.nodes"));
  options.transfer.peers.min_samples = static_cast<uint32_t>(config.GetInt("dfs.datanode.peer.metrics.min.outlier.detection.samples"));
  options.transfer.peers.floor = config.GetDuration("dfs.datanode.slowpeer.low.threshold.ms");
  options.transfer.tell_slow = config.GetBool("dfs.pipeline.slownode");

  options.lanes.heartbeat.interval = config.GetDuration("dfs.heartbeat.interval");
  options.lanes.report.gather = config.GetDuration("cairn.datanode.report.gather");
  options.lanes.report.walk_period = config.GetDuration("cairn.datanode.walk.interval");
  options.lanes.command.max_backlog = static_cast<uint64_t>(config.GetInt("cairn.datanode.delete.backlog"));
  options.lanes.command.max_moves = static_cast<size_t>(config.GetInt("dfs.datanode.balance.max.concurrent.moves"));
  options.storage.scanner.period = config.GetDuration("dfs.datanode.scan.period.hours");
  options.storage.scanner.bytes_per_second = config.GetBytes("dfs.block.scanner.volume.bytes.per.second");
  options.storage.mover.threshold_percent = static_cast<double>(config.GetInt("cairn.datanode.volume-balance.threshold-percent"));
  options.storage.mover.bytes_per_second = config.GetBytes("cairn.datanode.volume-balance.bytes-per-second");
  options.stale_after = config.GetDuration("dfs.namenode.stale.datanode.interval");
  options.max_events = static_cast<size_t>(config.GetInt("cairn.datanode.events.max"));
  options.max_event_bytes = config.GetBytes("cairn.datanode.events.max-bytes");
  options.permissions_enabled = config.GetBool("dfs.permissions.enabled");
  options.supergroup = config.GetString("dfs.permissions.superusergroup");
  options.accept_empty_tokens = config.GetString("cairn.block.token.empty") == "accept";

  options.transfer_bind = *config.GetAddress("dfs.datanode.address");
  options.transfer_advertised = config.GetAddress("cairn.datanode.advertised-address").value_or(HostPort{});
  options.http_advertised = config.GetAddress("cairn.datanode.http-advertised-address").value_or(HostPort{});
  options.admin_advertised = config.GetAddress("cairn.datanode.grpc-advertised-address").value_or(HostPort{});
  const std::string host = config.GetString("dfs.datanode.hostname");
  const std::pair<HostPort*, std::string_view> advertised[] = {{&options.transfer_advertised, "dfs.datanode.address"},
                                                               {&options.http_advertised, "dfs.datanode.http.address"},
                                                               {&options.admin_advertised, "cairn.datanode.grpc-bind-address"}};
  for (const auto& [address, bind_key] : advertised) {
    if (address->host.empty()) address->host = host;
    if (address->port == 0) address->port = config.GetAddress(bind_key)->port;
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Datanode>> Datanode::Start(DatanodeOptions options, NamenodeChannels channels, Env* env,
                                                          metrics::Registry* registry) {
  std::unique_ptr<Datanode> datanode(new Datanode(std::move(options), std::move(channels), env));
  RETURN_IF_ERROR(datanode->Open());
  // Before the lanes, which observe it from their first answer on.
  datanode->report_latency_ = registry->NewHistogram("cairn_report_ack_lag_seconds",
                                                     "From a replica's event until the NameNode had applied it; the oldest of each answer.",
                                                     metrics::LatencyBuckets());
  RETURN_IF_ERROR(datanode->ServePeers());
  datanode->StartLanes();
  datanode->metrics_ = std::make_unique<DatanodeMetrics>(registry, datanode->storage_.store.get(), datanode->events_.get(),
                                                         &datanode->transfer_->counters(), datanode->lanes_.get());
  datanode->metrics_->AddPeers(registry, datanode->transfer_.get(), &env->clock());
  return datanode;
}

Datanode::Datanode(DatanodeOptions options, NamenodeChannels channels, Env* env)
    : options_(std::move(options)), channels_(std::move(channels)), env_(env) {
  events_ = std::make_unique<EventLog>(&env_->clock(), options_.max_events, options_.max_event_bytes);
}

Datanode::~Datanode() { Stop(); }

absl::Status Datanode::Open() {
  ASSIGN_OR_RETURN(storage_, OpenBlockStore(options_.storage, env_, events_.get()));
  for (const std::string& failure : storage_.failures) log::Warning("a data directory is left out: {}", failure);
  const VersionRecord node = storage_.identity->Get();

  for (HostPort* advertised : {&options_.transfer_advertised, &options_.http_advertised, &options_.admin_advertised})
    if (advertised->host.empty()) advertised->host = env_->network().HostName();
  tokens_ = std::make_unique<KeyringTokenVerifier>(&env_->clock(), options_.accept_empty_tokens);
  TransferOptions transfer = options_.transfer;
  transfer.pool_id = node.pool_id;
  transfer.datanode_uuid = node.datanode_uuid;
  transfer.advertised = options_.transfer_advertised;
  transfer_ = std::make_unique<TransferServer>(env_, storage_.store.get(), tokens_.get(), std::move(transfer));
  RETURN_IF_ERROR(transfer_->Start(options_.transfer_bind));
  if (options_.transfer_advertised.port == 0) options_.transfer_advertised.port = transfer_->local().port;
  return absl::OkStatus();
}

absl::Status Datanode::ServePeers() {
  identity_.datanode_uuid = storage_.identity->Get().datanode_uuid;
  identity_.incarnation = Incarnation(env_->NewRandom().Next());
  started_ = env_->clock().Now();
  replica_recovery_ = std::make_unique<ReplicaRecoveryService>(storage_.store.get(), tokens_.get(),
                                                               [node = storage_.identity] { return node->Get().pool_id; });
  recovery_executor_ = env_->executors().NewExecutor("recovery");
  recoveries_ = std::make_unique<BlockRecoveries>(options_.recoveries, identity_, recovery_executor_.get(), channels_.command.get(),
                                                  replica_recovery_.get(), options_.peers.resolve);
  admin_ = std::make_unique<AdminService>([this](v1::GetDatanodeInfoResponse* info) { Describe(info); }, &env_->clock());
  admin_->SetSuperuserCheck([this, ours = env_->UserName()](const std::string& user) {
    if (!options_.permissions_enabled || user == ours) return true;
    const absl::StatusOr<std::vector<std::string>> groups = env_->GroupsOf(user);
    return groups.ok() && std::find(groups->begin(), groups->end(), options_.supergroup) != groups->end();
  });
  if (options_.reconfiguration != nullptr) {
    reconfigure_ = std::make_unique<ReconfigureCall>(
        env_, options_.reconfiguration, storage_.volumes,
        [this](const DatanodeOptions& options) { transfer_->SetMaxStreams(options.transfer.max_streams); });
    admin_->SetReconfigurer([this](v1::ReconfigureRequest request, api::Done<v1::ReconfigureResponse> done) {
      reconfigure_->Call(std::move(request), std::move(done));
    });
  }
  if (!options_.peers.serve) return absl::OkStatus();
  ASSIGN_OR_RETURN(admin_address_, options_.peers.serve(admin_.get(), replica_recovery_.get()));
  admin_served_ = true;
  if (options_.admin_advertised.port == 0) options_.admin_advertised.port = admin_address_.port;
  return absl::OkStatus();
}

void Datanode::StartLanes() {
  NamenodeLanes::Options options = options_.lanes;
  options.identity = identity_;
  v1::DatanodeInfo& info = options.registration.info;
  info.set_rack(options_.rack);
  SetEndpoint(options_.transfer_advertised, info.mutable_transfer());
  SetEndpoint(options_.http_advertised, info.mutable_http());
  SetEndpoint(options_.admin_advertised, info.mutable_admin());

  NamenodeLanes::Callbacks callbacks;
  callbacks.active_streams = [this] { return static_cast<uint32_t>(transfer_->counters().active_streams.load()); };
  callbacks.transfer = [this](v1::CommandDown::Transfer command, CommandLane::TransferDone done) {
    Transfer(std::move(command), std::move(done));
  };
  callbacks.slow_peers = [this] { return transfer_->peers().Slow(env_->clock().Now()); };
  callbacks.slow = [this](bool slow) { TakeSlow(slow); };
  callbacks.balance_bandwidth = [this](uint64_t bytes_per_second) { transfer_->SetBalanceBandwidth(bytes_per_second); };
  callbacks.recover = [this](v1::CommandDown::Recover command, CommandLane::RecoverDone done) {
    recoveries_->Recover(std::move(command), std::move(done));
  };
  callbacks.keys = [this](std::vector<v1::BlockTokenKey> keys) { TakeKeys(std::move(keys)); };
  callbacks.shutdown = [this](const std::string& reason) {
    log::Warning("the NameNode shuts this node down: {}", reason);
    if (options_.on_shutdown) options_.on_shutdown();
  };
  callbacks.report_applied = [latency = report_latency_](absl::Duration took) mutable { latency.Observe(took); };
  callbacks.refused = [](const absl::Status& status) {
    log::Error("the NameNode refuses this node, which goes on asking; an operator has to look: {}", std::string(status.message()));
  };
  callbacks.other_cluster = [this](const absl::Status& status) {
    const absl::Status why = Annotate(
        status, fmt::format("data director{} {} cannot be used with this NameNode; check cairn.namenode.grpc-address, or set "
                            "dfs.datanode.data.dir to another directory",
                            options_.storage.directories.size() == 1 ? "y" : "ies", fmt::join(options_.storage.directories, ", ")));
    if (options_.on_other_cluster) return options_.on_other_cluster(why);
    log::Error("{}", std::string(why.message()));
  };
  const NamenodeLanes::Channels channels{channels_.registration.get(), channels_.heartbeat.get(), channels_.report.get(),
                                         channels_.command.get()};
  lanes_ = std::make_unique<NamenodeLanes>(std::move(options), env_, channels, storage_.store.get(), storage_.identity, events_.get(),
                                           std::move(callbacks));
  lanes_made_.store(true, std::memory_order_release);
  lanes_->Start();
}

// A registration's answer, and the only news of the pool that a new node gets; AdoptCluster has been called before.
void Datanode::TakeKeys(std::vector<v1::BlockTokenKey> keys) {
  tokens_->SetKeys(std::move(keys));
  transfer_->SetPool(storage_.identity->Get().pool_id);
  serving_.store(true);
}

// On the heartbeat's lane alone.
void Datanode::TakeSlow(bool slow) {
  if (!transfer_->SetSlow(slow)) return;
  if (slow) log::Warning("other DataNodes wait for this one far longer than for each other; dfsadmin -report -slownodes has their words");
  if (!slow) log::Info("other DataNodes do not find this one slow any more");
}

void Datanode::Describe(v1::GetDatanodeInfoResponse* info) const {
  const VersionRecord node = storage_.identity->Get();
  const auto milliseconds = [](absl::Duration d) { return static_cast<uint64_t>(absl::ToInt64Milliseconds(d)); };
  info->set_software_version(options_.lanes.registration.software_version);
  info->set_datanode_uuid(node.datanode_uuid);
  info->set_cluster_id(node.cluster_id);
  info->set_incarnation(identity_.incarnation.value());
  v1::DatanodeInfo* addresses = info->mutable_info();
  addresses->set_uuid(node.datanode_uuid);
  addresses->set_rack(options_.rack);
  SetEndpoint(options_.transfer_advertised, addresses->mutable_transfer());
  SetEndpoint(options_.http_advertised, addresses->mutable_http());
  SetEndpoint(options_.admin_advertised, addresses->mutable_admin());
  for (v1::StorageStatistics& storage : storage_.store->Statistics()) *info->add_storages() = std::move(storage);
  info->set_uptime_ms(milliseconds(env_->clock().Now() - started_));
  info->set_epoch(node.highest_epoch);
  info->set_replicas(storage_.store->replica_count());
  info->set_active_streams(transfer_->counters().active_streams.load(std::memory_order_relaxed));
  info->set_pending_deletion_blocks(storage_.store->pending_deletion_blocks());
  info->set_pending_deletion_bytes(storage_.store->pending_deletion_bytes());
  info->set_unacknowledged_events(events_->kept());
  info->set_recoveries(recoveries_->running());
  info->set_balancer_bytes_per_second(transfer_->balance_pace().bytes_per_second());
  BlockStore::VolumeMoves moves = storage_.store->volume_moves();
  info->set_volume_moved_replicas(moves.replicas);
  info->set_volume_moved_bytes(moves.bytes);
  info->set_volume_moves_failed(moves.failed);
  info->set_volume_move(std::move(moves.under_way));
  if (!lanes_made_.load(std::memory_order_acquire)) return;
  info->set_registered(lanes_->registered());
  info->set_command_queue(lanes_->command().queued());
  info->set_overdue_steps(lanes_->watchdog().overdue_steps());
  info->set_last_overdue_step(lanes_->watchdog().last_overdue().step);
  const std::map<std::string, absl::Duration> ages = lanes_->watchdog().LastSteps();
  for (const char* lane : {"registration", "heartbeat", "report", "command"}) {
    v1::LaneAge* age = info->add_lanes();
    age->set_lane(lane);
    const auto found = ages.find(lane);
    age->set_last_step_ms(found == ages.end() ? -1 : absl::ToInt64Milliseconds(found->second));
  }
}

void Datanode::Transfer(v1::CommandDown::Transfer command, CommandLane::TransferDone done) {
  TransferRequest request;
  request.block = BlockId(command.block().id());
  request.stamp = GenerationStamp(command.block().generation_stamp());
  request.token = command.token();
  request.traffic_class = command.traffic_class();
  request.deadline = env_->clock().Now() + kTransferBudget;
  if (request.traffic_class == v1::BALANCING)
    request.deadline = request.deadline + transfer_->balance_pace().PatienceFor(command.block().length_bytes());
  for (const v1::StorageLocation& target : command.targets()) {
    request.targets.push_back(transfer::MakeTarget(target.datanode()));
    request.storage_uuids.push_back(target.storage_uuid());
  }
  transfer_->Transfer(std::move(request), std::move(done));
}

absl::Status Datanode::Ready() const {
  if (!lanes_->registered() || !serving_.load()) return absl::UnavailableError("not registered with the NameNode yet");
  const absl::Duration silent = lanes_->heartbeat().since_answer();
  if (silent > options_.stale_after) {
    return absl::UnavailableError(fmt::format("the NameNode has not answered for {}; it takes this node for stale after {}",
                                              absl::FormatDuration(absl::Trunc(silent, absl::Milliseconds(1))),
                                              absl::FormatDuration(options_.stale_after)));
  }
  size_t failed = 0;
  for (const v1::StorageStatistics& storage : storage_.store->Statistics()) failed += storage.state() == v1::FAILED ? 1 : 0;
  if (failed > options_.storage.tolerated_failed_volumes) {
    return absl::UnavailableError(fmt::format("{} volumes have failed, and dfs.datanode.failed.volumes.tolerated is {}", failed,
                                              options_.storage.tolerated_failed_volumes));
  }
  return absl::OkStatus();
}

void Datanode::Reconfigure() {
  if (reconfigure_ == nullptr) return;
  v1::ReconfigureRequest request;
  request.set_action(v1::ReconfigureRequest::START);
  reconfigure_->Call(std::move(request), [](absl::StatusOr<v1::ReconfigureResponse> response) {
    IgnoreError(response.status(), "what was refused is in the log already");
  });
}

void Datanode::Stop() {
  if (std::exchange(stopped_, true)) return;
  // Before the admin port, which waits for the answers of what it has taken.
  if (reconfigure_ != nullptr) reconfigure_->Close();
  if (admin_served_ && options_.peers.withdraw) options_.peers.withdraw();
  if (transfer_ != nullptr && !transfer_->stopped()) {
    transfer_->StopAndThen([this] { env_->Wake(); });
    env_->BlockUntil([this] { return transfer_->stopped(); }, SteadyTime::Infinite());
  }
  metrics_.reset();
  lanes_.reset();
  // What is still under way finds no one, and the next primary begins anew.
  if (recoveries_ != nullptr) recoveries_->Close();
  recovery_executor_.reset();
  recoveries_.reset();
  options_.peers = {};
  channels_ = {};
  transfer_.reset();
  storage_.store.reset();
  reconfigure_.reset();
  admin_.reset();
  replica_recovery_.reset();
}

}  // namespace cairn::datanode
