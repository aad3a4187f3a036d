#include "namenode/namenode.h"

#include <atomic>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/config.h"
#include "common/env/watchdog.h"
#include "common/env/watched_executor.h"
#include "common/log.h"
#include "common/reconfiguration.h"
#include "common/status.h"
#include "namenode/checkpoints.h"
#include "namenode/disk_watch.h"
#include "namenode/frontdoor/admin_service.h"
#include "namenode/frontdoor/caller_resolver.h"
#include "namenode/frontdoor/client_service.h"
#include "namenode/frontdoor/group_mapping.h"
#include "namenode/frontdoor/hadoop_door.h"
#include "namenode/journal/local_journal.h"
#include "namenode/lease_monitor.h"
#include "namenode/limit_watch.h"
#include "namenode/namenode_directory.h"
#include "namenode/namenode_metrics.h"
#include "namenode/namespace/op_context.h"
#include "namenode/namespace_access.h"
#include "namenode/namespace_gateway.h"
#include "namenode/namespace_writer.h"
#include "namenode/reclaimer.h"
#include "namenode/replicas/host_list.h"
#include "namenode/replicas/rack_script.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/replication_spreader.h"
#include "namenode/retry_sweeper.h"
#include "namenode/safe_mode.h"
#include "namenode/safe_mode_watch.h"
#include "namenode/token_keys.h"
#include "namenode/trash_emptier.h"

namespace cairn::namenode {

// In the order they start; each stands on those above it. Destroyed in the opposite order, executors first of all that run on them: an
// executor's end waits for its task and drops the rest.
struct Namenode::Parts {
  NamenodeOptions options;
  Env* env = nullptr;
  SafeMode safe_mode;
  std::unique_ptr<DiskReserve> reserve;
  std::unique_ptr<NamenodeDirectory> directory;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Executor> watchdog_executor;
  std::unique_ptr<Watchdog> watchdog;
  std::unique_ptr<Executor> writer_executor;
  std::unique_ptr<Executor> replicas_executor;
  std::unique_ptr<Executor> replica_store_executor;
  std::unique_ptr<Executor> background_executor;
  std::unique_ptr<Executor> checkpoint_executor;
  std::unique_ptr<Executor> admin_executor;  // Of its own: a long checkpoint holds no operator up.
  std::unique_ptr<Executor> topology_executor;
  std::unique_ptr<Executor> audit_executor;
  std::vector<std::unique_ptr<Executor>> readers;
  std::unique_ptr<NamespaceWriter> writer;
  std::unique_ptr<DiskWatch> disk;
  std::unique_ptr<StoredNamespace> space;
  std::unique_ptr<NamespaceGateway> gateway;
  std::unique_ptr<RackScript> rack_script;
  std::unique_ptr<ReplicaPlane> replicas;
  std::unique_ptr<SafeModeWatch> safe_mode_watch;
  std::unique_ptr<Reclaimer> reclaimer;
  std::unique_ptr<ReplicationSpreader> spreader;
  std::unique_ptr<LimitWatch> limits;
  std::unique_ptr<LeaseMonitor> leases;
  std::unique_ptr<RetrySweeper> retries;
  std::unique_ptr<TrashEmptier> trash;
  std::unique_ptr<GroupMapping> groups;
  std::unique_ptr<AuditLog> audit;
  std::unique_ptr<ClientService> clients;
  std::unique_ptr<Checkpoints> checkpoints;
  std::unique_ptr<AdminService> admin;
  std::unique_ptr<HadoopDoor> hadoop;
  std::unique_ptr<NamenodeMetrics> metrics;
  std::vector<std::unique_ptr<metrics::Registry::Callback>> gauges;
  Reconfiguration* reconfiguration = nullptr;  // main()'s.
  bool stopped = false;
};

namespace {

// The files of dfs.hosts and dfs.hosts.exclude. If neither is configured, everyone may come and nobody is excluded: what such files once
// said is over.
absl::StatusOr<std::shared_ptr<const HostList>> LoadHostList(LocalFileSystem* files, const std::string& hosts, const std::string& exclude) {
  std::string hosts_text, exclude_text;
  for (const auto& [key, file, text] : {std::tuple{"dfs.hosts", &hosts, &hosts_text}, {"dfs.hosts.exclude", &exclude, &exclude_text}}) {
    if (file->empty()) continue;
    absl::StatusOr<std::string> read = files->ReadWhole(*file);
    if (!read.ok()) return Annotate(read.status(), key);
    *text = *std::move(read);
  }
  absl::StatusOr<HostList> list = HostList::Parse(hosts_text, exclude_text);
  if (!list.ok()) return Annotate(list.status(), "dfs.hosts, dfs.hosts.exclude");
  return std::make_shared<const HostList>(*std::move(list));
}

absl::StatusOr<std::shared_ptr<const RackTable>> LoadRacks(LocalFileSystem* files, const std::string& name) {
  constexpr char kKey[] = "net.topology.table.file.name";
  if (name.empty()) return std::shared_ptr<const RackTable>();
  const absl::StatusOr<std::string> text = files->ReadWhole(name);
  if (!text.ok()) return Annotate(text.status(), kKey);
  absl::StatusOr<RackTable> table = RackTable::Parse(*text);
  if (!table.ok()) return Annotate(table.status(), fmt::format("{}: {}", kKey, name));
  return std::make_shared<const RackTable>(*std::move(table));
}

// Calls `stop` with a callback and waits for it.
template <class Stop>
void StopAndWait(Env* env, Stop stop) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  stop([done, env] {
    done->store(true);
    env->Wake();
  });
  env->BlockUntil([&] { return done->load(); }, SteadyTime::Infinite());
}

TrashEmptier::Options TrashOptionsOf(const NamenodeOptions& options) {
  TrashEmptier::Options trash = options.trash;
  trash.limits = ToMutationLimits(options.clients.limits);
  return trash;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Namenode>> Namenode::Start(NamenodeOptions options, Env* env, metrics::Registry* registry) {
  auto owned = std::make_unique<Parts>();
  Parts& parts = *owned;
  parts.options = std::move(options);
  parts.env = env;
  std::unique_ptr<Namenode> namenode(new Namenode(std::move(owned)));

  absl::StatusOr<GroupMapping::Overrides> overrides = ParseGroupOverrides(parts.options.group_overrides);
  if (!overrides.ok()) return Annotate(overrides.status(), "hadoop.user.group.static.mapping.overrides");
  parts.options.groups.overrides = *std::move(overrides);
  if (parts.options.clients.superuser.empty()) parts.options.clients.superuser = env->UserName();

  const uint64_t reserve_bytes = parts.options.store.simulated ? 0 : parts.options.disk_reserve_bytes;
  parts.reserve = std::make_unique<DiskReserve>(parts.options.directory, reserve_bytes, &env->files());
  ASSIGN_OR_RETURN(parts.directory, NamenodeDirectory::Open(parts.options.directory, parts.options.store, env, parts.reserve.get()));
  MetaStore& store = parts.directory->store();
  ReplicaPlane::Identity identity;
  identity.cluster_id = parts.directory->cluster_id();
  identity.pool_id = parts.directory->pool_id();
  identity.epoch = parts.directory->epoch();
  ASSIGN_OR_RETURN(identity.keys, RotateTokenKeys(&store, identity.epoch, parts.options.clients.token_lifetime, env));

  parts.journal = std::make_unique<LocalJournal>(&store);
  parts.watchdog_executor = env->executors().NewExecutor("nn-watchdog");
  parts.watchdog = std::make_unique<Watchdog>(parts.watchdog_executor.get());
  const auto watched = [env, watchdog = parts.watchdog.get()](const std::string& name) {
    return std::make_unique<WatchedExecutor>(env->executors().NewExecutor(name), watchdog, name);
  };
  parts.writer_executor = watched("nn-writer");
  parts.replicas_executor = watched("nn-replicas");
  parts.replica_store_executor = watched("nn-replstore");
  parts.background_executor = watched("nn-background");
  // These may take long: checkpoints, and what operators and programs are waited for.
  parts.checkpoint_executor = env->executors().NewExecutor("nn-checkpoints");
  parts.admin_executor = env->executors().NewExecutor("nn-admin");
  std::vector<Executor*> readers;
  for (size_t i = 0; i < parts.options.readers; ++i) {
    parts.readers.push_back(watched(fmt::format("nn-reader-{}", i)));
    readers.push_back(parts.readers.back().get());
  }

  parts.writer =
      std::make_unique<NamespaceWriter>(parts.options.writer, &store, parts.journal.get(), parts.writer_executor.get(), &env->clock());
  DiskWatch::Options disk = parts.options.disk;
  disk.directory = parts.options.directory;
  disk.reserve = parts.reserve.get();
  parts.disk =
      std::make_unique<DiskWatch>(disk, &env->files(), &store, parts.journal.get(), parts.writer.get(), parts.writer_executor.get());
  parts.space = std::make_unique<StoredNamespace>(&store, parts.writer.get(), &parts.safe_mode);
  parts.gateway = std::make_unique<NamespaceGateway>(parts.space.get());
  ReplicaPlane::Options replicas = parts.options.replicas;
  replicas.directory = parts.directory->replicas_directory();
  replicas.simulated = parts.options.store.simulated;
  const auto load_hosts = [files = &env->files(), hosts = parts.options.hosts_file, exclude = parts.options.exclude_file] {
    return LoadHostList(files, hosts, exclude);
  };
  ASSIGN_OR_RETURN(replicas.hosts, load_hosts());
  const auto load_racks = [files = &env->files(), name = parts.options.racks_file] { return LoadRacks(files, name); };
  ASSIGN_OR_RETURN(replicas.racks, load_racks());
  if (!parts.options.rack_script.program.empty() && parts.options.run_program) {
    parts.topology_executor = env->executors().NewExecutor("nn-topology");
    parts.rack_script =
        std::make_unique<RackScript>(parts.options.rack_script, replicas.racks, parts.options.run_program, parts.topology_executor.get(),
                                     [&parts](std::shared_ptr<const RackTable> racks) { parts.replicas->SetRacks(std::move(racks)); });
    replicas.racks = parts.rack_script->racks();
    replicas.on_host = [script = parts.rack_script.get()](const std::string& host) { script->Ask(host); };
  }
  ASSIGN_OR_RETURN(replicas.keep_unknown_replicas, KeepsUnknownReplicas(*store.Snapshot()));
  ASSIGN_OR_RETURN(parts.replicas, ReplicaPlane::Open(replicas, identity, parts.gateway.get(), env, parts.replicas_executor.get(),
                                                      parts.replica_store_executor.get()));
  parts.safe_mode.SetListener([plane = parts.replicas.get()](bool on) { plane->SetSafeMode(on); });
  if (parts.options.safe_mode_at_start) parts.safe_mode.EnterAtStart(env->clock().WallNow());
  parts.safe_mode_watch =
      std::make_unique<SafeModeWatch>(parts.options.safe_mode, &parts.safe_mode, parts.replicas.get(), parts.background_executor.get());

  parts.reclaimer = std::make_unique<Reclaimer>(parts.options.reclaimer, parts.space.get(), parts.background_executor.get());
  parts.spreader =
      std::make_unique<ReplicationSpreader>(ReplicationSpreader::Options(), parts.space.get(), parts.background_executor.get());
  parts.options.leases.soft_limit = parts.options.clients.limits.lease_soft_limit;
  parts.leases = std::make_unique<LeaseMonitor>(parts.options.leases, parts.space.get(), parts.background_executor.get());
  parts.leases->SetOnRecovering([replicas = parts.replicas.get()](std::vector<BlockId> blocks) { replicas->OnBlocksChanged(blocks); });
  parts.retries = std::make_unique<RetrySweeper>(parts.options.retries, parts.space.get(), parts.background_executor.get());
  parts.limits = std::make_unique<LimitWatch>(parts.space.get());
  parts.trash = std::make_unique<TrashEmptier>(TrashOptionsOf(parts.options), parts.space.get(), parts.background_executor.get());
  parts.groups =
      std::make_unique<GroupMapping>(parts.options.groups, [env](const std::string& user) { return env->GroupsOf(user); }, &env->clock());
  parts.options.clients.groups = parts.groups.get();
  parts.clients = std::make_unique<ClientService>(parts.options.clients, identity, parts.space.get(), parts.replicas.get(),
                                                  parts.leases.get(), readers, &env->clock());
  parts.admin = std::make_unique<AdminService>(
      parts.replicas.get(),
      [&store](v1::ClusterReportResponse* report) {
        report->set_inodes(store.EstimatedRows(Family::kInode));
        report->set_blocks(store.EstimatedRows(Family::kBlock));
      },
      &env->clock(), parts.options.software_version);
  parts.checkpoints = std::make_unique<Checkpoints>(parts.options.checkpoints, parts.directory.get(), env, parts.checkpoint_executor.get());
  parts.admin->SetNamespace(parts.space.get(), parts.checkpoints.get());
  parts.admin->SetLeases(parts.leases.get(), parts.admin_executor.get());
  parts.admin->SetHostFiles(load_hosts,
                            [load_racks, script = parts.rack_script.get()]() -> absl::StatusOr<std::shared_ptr<const RackTable>> {
                              ASSIGN_OR_RETURN(std::shared_ptr<const RackTable> table, load_racks());
                              if (script == nullptr) return table;
                              script->AskAgain(std::move(table));
                              return script->racks();
                            });
  parts.admin->SetSafeMode(&parts.safe_mode);
  parts.admin->SetDefaultReplication(parts.options.clients.default_replication);
  parts.admin->SetReclaimer(parts.reclaimer.get());
  parts.admin->SetSuperuserCheck([callers = &parts.clients->callers()](const std::string& user) {
    const ResolvedCaller caller = callers->Resolve(user);
    return caller.superuser || !caller.enforced;
  });
  HadoopDoor::Parts hadoop;
  hadoop.clients = parts.clients.get();
  hadoop.admin = parts.admin.get();
  hadoop.space = parts.space.get();
  hadoop.replicas = parts.replicas.get();
  hadoop.reader = readers.front();
  hadoop.clock = &env->clock();
  hadoop.pool_id = parts.directory->pool_id();
  hadoop.min_replication = parts.options.replicas.min_replication;
  parts.hadoop = std::make_unique<HadoopDoor>(std::move(hadoop));
  parts.metrics = std::make_unique<NamenodeMetrics>(registry, parts.writer.get(), parts.disk.get(), parts.reclaimer.get(),
                                                    parts.leases.get(), parts.replicas.get(), &store);
  parts.writer->SetObserver([observe = ObserveCommits(
                                 parts.replicas.get(), [reclaimer = parts.reclaimer.get()] { reclaimer->Kick(); },
                                 [spreader = parts.spreader.get()] { spreader->Kick(); }),
                             limits = parts.limits.get(),
                             rows = parts.metrics->RowsObserver()](const std::vector<NamespaceWriter::Applied>& batch) mutable {
    observe(batch);
    limits->OnCommit(batch);
    rows(batch);
  });
  for (const auto& [name, key] :
       {std::pair{"directory_items", kMaxDirectoryItemsKey}, std::pair{"blocks_per_file", kMaxBlocksPerFileKey}}) {
    parts.gauges.push_back(registry->NewCallbackGauge(
        "cairn_near_limit", "Directories and files at 80 % of a limit or more.", {{"limit", name}},
        [limits = parts.limits.get(), limit_key = key] { return static_cast<double>(limits->Near(limit_key)); }));
  }
  parts.gauges.push_back(
      registry->NewCallbackGauge("cairn_replication_works", "Files whose changed replication is still to be written to their blocks.", {},
                                 [spreader = parts.spreader.get()] { return static_cast<double>(spreader->stats().pending); }));
  parts.gauges.push_back(registry->NewCallbackCounter(
      "cairn_lane_overdue_steps_total", "Tasks of an executor that took longer than 10 s; each is in the log with its stack.", {},
      [watchdog = parts.watchdog.get()] { return static_cast<double>(watchdog->overdue_steps()); }));
  parts.writer->SetCommitObserver(parts.metrics->CommitObserver());
  parts.clients->SetCallObserver(parts.metrics->CallObserver());
  if (!parts.options.audit.file.empty()) {
    parts.audit_executor = env->executors().NewExecutor("nn-audit");
    ASSIGN_OR_RETURN(parts.audit, AuditLog::Open(parts.options.audit, parts.audit_executor.get()));
    parts.clients->SetAuditLog(parts.audit.get());
    parts.metrics->AddAuditLog(registry, parts.audit.get());
  }

  parts.watchdog->Start();
  parts.disk->Start();
  parts.reclaimer->Start();
  parts.spreader->Start();
  parts.leases->Start();
  parts.retries->Start();
  parts.trash->Start();
  parts.safe_mode_watch->Start();
  return namenode;
}

Namenode::Namenode(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Namenode::~Namenode() { Stop(); }

api::ClientNamenode* Namenode::client_api() { return parts_->clients.get(); }
api::DatanodeNamenode* Namenode::datanode_api() { return parts_->replicas.get(); }
api::NamenodeAdmin* Namenode::admin_api() { return parts_->admin.get(); }
ipc::Handler* Namenode::hadoop_api() { return parts_->hadoop.get(); }
const std::string& Namenode::cluster_id() const { return parts_->directory->cluster_id(); }

void Namenode::UseReconfiguration(Reconfiguration* reconfiguration) {
  parts_->reconfiguration = reconfiguration;
  parts_->admin->SetReconfiguration(reconfiguration, parts_->admin_executor.get());
  reconfiguration->SetTaker([parts = parts_.get()](const Config& config) {
    const NamenodeOptions options = NamenodeOptionsFrom(config);
    parts->clients->Reload(options.clients);
    parts->leases->SetLimits(options.clients.limits.lease_soft_limit, options.leases.hard_limit);
    parts->trash->Reload(TrashOptionsOf(options));
    parts->writer->SetGather(options.writer.gather);
    parts->disk->SetReserved(options.disk.reserved_bytes);
    parts->replicas->SetSlowNodes(options.replicas.slow_nodes);
    if (const auto level = log::LevelFromName(config.GetString("cairn.log.level"))) log::SetLevel(*level);
  });
}

void Namenode::Reconfigure() {
  Reconfiguration* const reconfiguration = parts_->reconfiguration;
  if (reconfiguration != nullptr) parts_->admin_executor->Post([reconfiguration] { reconfiguration->Reload(); });
}

absl::Status Namenode::Ready() const {
  if (const absl::Status disk = parts_->disk->status(); !disk.ok())
    return absl::UnavailableError("read-only: " + std::string(disk.message()));
  if (parts_->writer->read_only()) return absl::UnavailableError("read-only: a commit failed; see the log");
  return absl::OkStatus();
}

void Namenode::Stop() {
  Parts& parts = *parts_;
  if (std::exchange(parts.stopped, true)) return;
  Env* const env = parts.env;
  const auto stop = [env](auto& part) {
    if (part != nullptr) StopAndWait(env, [&part](auto then) { part->Stop(std::move(then)); });
  };
  parts.metrics.reset();  // Nobody asks the parts any more.
  parts.gauges.clear();
  stop(parts.safe_mode_watch);
  stop(parts.reclaimer);
  stop(parts.spreader);
  stop(parts.leases);
  stop(parts.retries);
  stop(parts.trash);
  stop(parts.disk);
  stop(parts.writer);
  parts.safe_mode.SetListener(nullptr);
  stop(parts.replicas);
  parts.readers.clear();
  if (parts.audit != nullptr) StopAndWait(env, [&parts](auto then) { parts.audit->Flush(std::move(then)); });
  parts.audit_executor.reset();
  parts.topology_executor.reset();  // It may still be waiting for a program: that has its bound.
  parts.admin_executor.reset();
  parts.checkpoint_executor.reset();
  parts.background_executor.reset();
  parts.replica_store_executor.reset();
  parts.replicas_executor.reset();
  parts.writer_executor.reset();
  parts.watchdog_executor.reset();
  parts.watchdog.reset();
  parts.hadoop.reset();
  parts.admin.reset();
  parts.checkpoints.reset();
  parts.clients.reset();
  parts.trash.reset();
  parts.groups.reset();
  parts.audit.reset();
  parts.retries.reset();
  parts.leases.reset();
  parts.limits.reset();
  parts.spreader.reset();
  parts.reclaimer.reset();
  parts.safe_mode_watch.reset();
  parts.replicas.reset();
  parts.rack_script.reset();
  parts.gateway.reset();
  parts.space.reset();
  parts.disk.reset();
  parts.writer.reset();
  parts.journal.reset();
  parts.directory.reset();
  parts.reserve.reset();
}

}  // namespace cairn::namenode
