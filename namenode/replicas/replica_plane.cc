#include "namenode/replicas/replica_plane.h"

#include <array>
#include <atomic>
#include <functional>
#include <utility>

#include "absl/container/btree_map.h"
#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/replicas/arrivals.h"
#include "namenode/replicas/block_inspector.h"
#include "namenode/replicas/block_locator.h"
#include "namenode/replicas/block_manager.h"
#include "namenode/replicas/cluster_report.h"
#include "namenode/replicas/command_session.h"
#include "namenode/replicas/datanode_registry.h"
#include "namenode/replicas/node_life.h"
#include "namenode/replicas/placement_policy.h"
#include "namenode/replicas/report_session.h"
#include "namenode/store/replica_store.h"

namespace cairn::namenode {
namespace {

constexpr absl::Duration kSyncInterval = absl::Seconds(1);
constexpr size_t kRowsAtOnce = 1000;
constexpr size_t kMostListed = 1000;

size_t PageLimit(uint32_t asked, size_t otherwise) { return asked == 0 ? otherwise : std::min<size_t>(asked, kMostListed); }

DatanodeRegistry::Options RegistryOptions(const ReplicaPlane::Options& options, const ReplicaPlane::Identity& identity) {
  DatanodeRegistry::Options result;
  result.cluster_id = identity.cluster_id;
  result.pool_id = identity.pool_id;
  result.epoch = identity.epoch;
  result.stale_after = options.stale_after;
  result.dead_after = options.dead_after;
  result.slow_nodes = options.slow_nodes;
  return result;
}

// All parts and who calls whom. Held by the face; whatever is posted or handed out holds it weakly, so that a
// stream's end that outlives the NameNode keeps no database open.
//
// `executor` owns the block manager and the command sessions; `store_executor` the store's writes and the
// report sessions. The registry and reads of the store are for all threads.
class Core : public ReportObserver, public std::enable_shared_from_this<Core> {
 public:
  Core(ReplicaPlane::Options options, ReplicaPlane::Identity identity, NamespaceForReplicas* space, Env* env, Executor* executor,
       Executor* store_executor, std::unique_ptr<ReplicaStore> store)
      : options_(std::move(options)),
        identity_(std::move(identity)),
        space_(space),
        clock_(&env->clock()),
        executor_(executor),
        store_executor_(store_executor),
        store_(std::move(store)),
        registry_(RegistryOptions(options_, identity_), clock_),
        locator_({store_.get(), &registry_, clock_, options_.acknowledged_grace, options_.dead_after}),
        inspector_({store_.get(), &registry_, clock_, options_.maintenance_minimum, options_.acknowledged_grace}),
        random_(env->NewRandom()) {
    for (const v1::BlockTokenKey& key : identity_.keys) newest_key_ = std::max(newest_key_, key.id());
  }

  absl::Status Start(Random random) {
    RETURN_IF_ERROR(ReadNextIds());
    RETURN_IF_ERROR(arrivals_.Read(*store_, *space_->Snapshot()));
    started_ = clock_->Now();
    life_ = std::make_unique<NodeLife>(&registry_, space_, clock_, [weak = weak_from_this()](const std::string& uuid) {
      if (const std::shared_ptr<Core> self = weak.lock())
        self->PostToBlocks([uuid](BlockManager& blocks) { blocks.OnNodeAdminChanged(uuid); });
    });
    RETURN_IF_ERROR(life_->Restore());
    if (options_.racks != nullptr) registry_.SetRacks(options_.racks);
    BlockManager::Parts parts{store_.get(), &registry_, space_, executor_, clock_, life_.get()};
    BlockManager::AskStorage ask = [weak = weak_from_this()](std::string node, std::string storage, BlockId block) {
      if (const std::shared_ptr<Core> self = weak.lock()) self->AskStorage(std::move(node), std::move(storage), block);
    };
    blocks_ = std::make_shared<BlockManager>(options_, identity_, parts, GenerationStamp(next_stamp_.load()), random, std::move(ask));
    if (options_.hosts != nullptr) life_->SetHosts(options_.hosts);  // The block manager hears of what that changes.
    ScheduleTick();
    ScheduleSync();
    return absl::OkStatus();
  }

  void Register(v1::RegisterRequest request, api::Done<v1::RegisterResponse> done);
  void Heartbeat(const v1::HeartbeatRequest& request, api::Done<v1::HeartbeatResponse> done);
  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler) {
    ReportSession::Parts parts{identity_.epoch, store_.get(), &registry_, clock_, options_.walk_period};
    return std::make_shared<ReportSession>(std::move(parts), weak_from_this(), store_executor_, std::move(handler));
  }
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler) {
    return std::make_shared<CommandSession>(identity_.epoch, blocks_, executor_, std::move(handler));
  }

  void CommitBlockRecovery(const v1::CommitBlockRecoveryRequest& request, api::Done<v1::CommitBlockRecoveryResponse> done);

  absl::StatusOr<std::vector<StorageNumber>> ChooseTargets(const ReplicaPlane::TargetRequest& request);
  ReplicaPlane::Locations Locate(BlockId id, const v1::BlockRecord& record, const std::string& client_host, Reach reach) {
    uint64_t chance = 0;
    {
      MutexLock lock(mu_);
      chance = random_.Next();
    }
    return locator_.Locate(id, record, client_host, chance, reach);
  }
  DatanodeRegistry& registry() { return registry_; }
  NodeLife& life() { return *life_; }
  const BlockInspector& inspector() const { return inspector_; }
  RejectionCounts rejections() const {
    RejectionCounts counts{};
    for (size_t i = 0; i < kRejections; ++i) counts[i] = rejected_[i].load(std::memory_order_relaxed);
    return counts;
  }
  void SetRacks(std::shared_ptr<const RackTable> racks) {
    registry_.SetRacks(std::move(racks));
    OnNodesChanged();  // Blocks may be on one rack now.
  }
  // However many nodes come at once, one word of it waits for the block manager.
  void OnNodesChanged() {
    if (nodes_changed_.exchange(true)) return;
    executor_->Post([weak = weak_from_this()] {
      const std::shared_ptr<Core> self = weak.lock();
      if (self == nullptr) return;
      self->nodes_changed_.store(false);
      self->blocks_->OnNodeCame();
      self->blocks_->RequestScan();
    });
  }
  ReplicaPlane::Arrival arrival() const { return arrivals_.Get(registry_, clock_->Now() - started_ >= options_.dead_after); }
  void SetSafeMode(bool on) {
    safe_mode_.store(on);
    PostToBlocks([on](BlockManager& blocks) { blocks.SetSafeMode(on); });
  }
  // Asks the block manager, on its executor.
  template <class T, class Call>
  void AskBlocks(Call call, ReplicaPlane::Done<T> done) {
    executor_->Post([weak = std::weak_ptr<BlockManager>(blocks_), call = std::move(call), done = std::move(done)]() mutable {
      const std::shared_ptr<BlockManager> blocks = weak.lock();
      if (blocks == nullptr) return done(MakeError(ErrorKind::kCancelled, "the NameNode is stopping"));
      done(call(*blocks));
    });
  }

  // Runs `call` on the block manager, on its executor.
  template <class Call>
  void PostToBlocks(Call call) {
    executor_->Post([weak = std::weak_ptr<BlockManager>(blocks_), call = std::move(call)]() mutable {
      if (const std::shared_ptr<BlockManager> blocks = weak.lock()) call(*blocks);
    });
  }
  // A mass of freed blocks must not stand before what else is asked of the block manager: beyond some, it is left to the scan, which finds
  // what no block row knows at its own pace.
  void OnFreed(std::vector<BlockId> freed) {
    constexpr size_t kMostWaiting = 8192;
    if (freed_waiting_.load() + freed.size() > kMostWaiting) return PostToBlocks([](BlockManager& blocks) { blocks.RequestScan(); });
    freed_waiting_.fetch_add(freed.size());
    executor_->Post([weak = weak_from_this(), freed = std::move(freed)] {
      const std::shared_ptr<Core> self = weak.lock();
      if (self == nullptr) return;
      self->freed_waiting_.fetch_sub(freed.size());
      self->blocks_->OnFreed(freed);
    });
  }
  absl::StatusOr<std::vector<ReplicaRow>> RowsOn(const std::string& storage_uuid) const;
  void FillReport(v1::ClusterReportResponse* report) const;
  ReplicaPlane::Figures figures() const { return blocks_->figures(); }
  void Stop(absl::AnyInvocable<void()> then);

  // ReportObserver, on store_executor_.
  void OnReportsOpened(const std::shared_ptr<ReportSession>& session) override;
  void OnReportEffects(const std::string& datanode_uuid, Incarnation incarnation, ReportEffects effects) override;
  void OnReportsLost(const std::string& datanode_uuid) override {
    PostToBlocks([datanode_uuid](BlockManager& blocks) { blocks.OnReportsLost(datanode_uuid); });
  }
  void OnReportsClosed(const ReportSession& session) override {
    const auto found = report_sessions_.find(session.datanode_uuid());
    if (found != report_sessions_.end() && found->second.get() == &session) report_sessions_.erase(found);
  }

 private:
  absl::Status ReadNextIds();
  void FinishRegister(const v1::RegisterRequest& request, const std::vector<StorageNumber>& numbers, api::Done<v1::RegisterResponse> done);
  void AskStorage(std::string datanode_uuid, std::string storage_uuid, BlockId block);
  void ScheduleTick();
  void ScheduleSync();
  void Sync();
  void MendRows();
  void DropRows(StorageNumber storage);

  // Runs `call` on this, on the store's executor.
  template <class Call>
  void PostToStore(Call call) {
    store_executor_->Post([weak = weak_from_this(), call = std::move(call)]() mutable {
      if (const std::shared_ptr<Core> self = weak.lock()) call(*self);
    });
  }

  const ReplicaPlane::Options options_;
  const ReplicaPlane::Identity identity_;
  NamespaceForReplicas* const space_;
  const Clock* const clock_;
  Executor* const executor_;
  Executor* const store_executor_;
  const std::unique_ptr<ReplicaStore> store_;
  DatanodeRegistry registry_;  // Thread-safe; for any thread.
  const BlockLocator locator_;
  const BlockInspector inspector_;
  std::unique_ptr<NodeLife> life_;        // Set by Start, as blocks_.
  std::shared_ptr<BlockManager> blocks_;  // Set by Start, before any other thread sees this.
  uint32_t newest_key_ = 0;               // Set by the constructor.
  std::atomic<uint64_t> next_block_id_ = 0;
  std::atomic<size_t> freed_waiting_ = 0;
  std::atomic<uint64_t> next_stamp_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> safe_mode_ = false;
  std::atomic<bool> nodes_changed_ = false;
  Arrivals arrivals_;                                          // Set by Start, before any other thread sees this.
  SteadyTime started_;                                         // Set by Start, before any other thread sees this.
  std::array<std::atomic<uint64_t>, kRejections> rejected_{};  // Thread-safe; for any thread.
  Mutex mu_;
  Random random_ ABSL_GUARDED_BY(mu_);
  // Belong to store_executor_.
  absl::btree_map<std::string, std::shared_ptr<ReportSession>> report_sessions_;
  bool unsynced_ = false;
};

absl::Status Core::ReadNextIds() {
  ASSIGN_OR_RETURN(const Counters counters, ReadCounters(*space_->Snapshot()));
  next_block_id_.store(counters.next_block_id.value());
  next_stamp_.store(counters.next_generation_stamp.value());
  return absl::OkStatus();
}

// --- registration and heartbeat

void Core::Register(v1::RegisterRequest request, api::Done<v1::RegisterResponse> done) {
  if (absl::Status allowed = registry_.CheckRegistration(request); !allowed.ok()) return done(std::move(allowed));
  std::vector<StorageNumber> numbers;
  std::vector<std::string> uuids;
  for (const v1::StorageStatistics& storage : request.storages()) {
    uuids.push_back(storage.storage_uuid());
    if (std::optional<StorageNumber> number = registry_.NumberOf(request.datanode_uuid(), storage.storage_uuid()))
      numbers.push_back(*number);
  }
  if (numbers.size() == uuids.size()) return FinishRegister(request, numbers, std::move(done));
  std::string uuid = request.datanode_uuid();
  space_->RegisterStorages(std::move(uuid), std::move(uuids),
                           [weak = weak_from_this(), request = std::move(request),
                            done = std::move(done)](absl::StatusOr<std::vector<StorageNumber>> given) mutable {
                             const std::shared_ptr<Core> self = weak.lock();
                             if (!self || self->stopped_) return done(MakeError(ErrorKind::kCancelled, "the NameNode is stopping"));
                             if (!given.ok()) return done(given.status());
                             if (given->size() != static_cast<size_t>(request.storages_size()))
                               return done(absl::InternalError("storages were not all given numbers"));
                             self->FinishRegister(request, *given, std::move(done));
                           });
}

void Core::FinishRegister(const v1::RegisterRequest& request, const std::vector<StorageNumber>& numbers,
                          api::Done<v1::RegisterResponse> done) {
  absl::StatusOr<DatanodeRegistry::Registered> registered = registry_.Register(request, numbers);
  if (!registered.ok()) return done(registered.status());
  const auto ahead_of_us = [&] {
    return request.highest_block_id() > next_block_id_.load() || request.highest_generation_stamp() > next_stamp_.load();
  };
  if (ahead_of_us() && ReadNextIds().ok() && ahead_of_us()) {  // What we remember may be a second old.
    // The DataNode heard of ids that this namespace has not given out: it was rolled back, and what it does
    // not know may be precious.
    PostToBlocks([](BlockManager& blocks) { blocks.KeepUnknown(); });
    space_->OnRolledBack(request.highest_block_id(), request.highest_generation_stamp());
  }
  PostToStore([uuid = request.datanode_uuid()](Core& self) {
    const auto session = self.report_sessions_.find(uuid);
    if (session == self.report_sessions_.end()) return;
    const std::shared_ptr<ReportSession> held = session->second;
    held->OnRegistered();
  });
  if (!registered->replaced_nodes.empty()) {
    // One that comes back all the same has to say everything again.
    PostToStore([replaced = registered->replaced_nodes](Core& self) {
      ReplicaStore::Batch batch;
      for (const std::string& uuid : replaced) batch.ForgetPosition(uuid);
      IgnoreError(self.store_->Write(std::move(batch)), "then its rows are not dropped either");
    });
  }
  for (StorageNumber storage : registered->replaced) PostToStore([storage](Core& self) { self.DropRows(storage); });
  life_->OnRegistered(request.datanode_uuid(), registered->replaced_nodes);
  if (options_.on_host) options_.on_host(request.info().transfer().host());
  OnNodesChanged();
  v1::RegisterResponse response;
  response.set_cluster_id(identity_.cluster_id);
  response.set_pool_id(identity_.pool_id);
  response.set_epoch(identity_.epoch.value());
  for (const v1::BlockTokenKey& key : identity_.keys) *response.add_keys() = key;
  response.set_heartbeat_interval_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.heartbeat_interval)));
  done(std::move(response));
}

void Core::Heartbeat(const v1::HeartbeatRequest& request, api::Done<v1::HeartbeatResponse> done) {
  bool new_storages = false;
  if (absl::Status known = registry_.Heartbeat(request, &new_storages); !known.ok()) return done(std::move(known));
  v1::HeartbeatResponse response;
  response.set_epoch(identity_.epoch.value());
  response.set_next_block_id(next_block_id_.load());
  response.set_next_generation_stamp(next_stamp_.load());
  response.set_register_again(new_storages);
  response.set_newest_key_id(newest_key_);
  response.set_balancer_bytes_per_second(blocks_->balancer_bandwidth());
  response.set_slow(registry_.IsSlow(request.datanode_uuid()));
  done(std::move(response));
}

// --- block recovery

void Core::CommitBlockRecovery(const v1::CommitBlockRecoveryRequest& request, api::Done<v1::CommitBlockRecoveryResponse> done) {
  if (absl::Status known = registry_.Heard(request.datanode_uuid(), Incarnation(request.incarnation())); !known.ok())
    return done(std::move(known));
  const BlockId block(request.block().id());
  const GenerationStamp id(request.recovery_id());
  if (request.has_error()) {
    PostToBlocks([block, id, why = request.error().message()](BlockManager& blocks) { blocks.OnRecoveryFailed(block, id, why); });
    return done(v1::CommitBlockRecoveryResponse());
  }
  v1::Mutation::CommitBlockRecovery found;
  *found.mutable_block() = request.block();
  found.set_recovery_id(request.recovery_id());
  found.set_drop(request.drop());
  for (const std::string& uuid : request.storage_uuids()) {
    const std::optional<StorageNumber> number = registry_.NumberOf(uuid);
    if (!number) return done(MakeError(ErrorKind::kUnregistered, "storage " + uuid + " has not registered with this NameNode"));
    found.add_storages(static_cast<uint32_t>(number->value()));
  }
  for (const v1::CommitBlockRecoveryRequest::StorageOutcome& outcome : request.outcomes()) {
    const std::optional<StorageNumber> number = registry_.NumberOf(outcome.storage_uuid());
    if (!number || !outcome.answered()) continue;
    found.add_answered(static_cast<uint32_t>(number->value()));
    if (!outcome.found() || outcome.replica().length_bytes() == 0) found.add_empty(static_cast<uint32_t>(number->value()));
  }
  space_->CommitBlockRecovery(std::move(found), [weak = weak_from_this(), block, id, done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) return done(v1::CommitBlockRecoveryResponse());
    if (const std::shared_ptr<Core> self = weak.lock(); self && !self->stopped_) {
      self->PostToBlocks(
          [block, id, why = std::string(status.message())](BlockManager& blocks) { blocks.OnRecoveryFailed(block, id, why); });
    }
    done(std::move(status));
  });
}

absl::StatusOr<std::vector<StorageNumber>> Core::ChooseTargets(const ReplicaPlane::TargetRequest& request) {
  PlacementRequest placement;
  placement.replication = request.replication;
  placement.block_size_bytes = request.block_size_bytes;
  placement.client_host = request.client_host;
  placement.excluded = request.excluded;
  for (StorageNumber storage : request.existing)
    if (std::optional<StorageStanding> standing = registry_.StandingOf(storage)) placement.holding.push_back(standing->datanode_uuid);
  const std::vector<PlacementNode> nodes = registry_.PlacementNodes();
  std::optional<Random> random;
  {
    MutexLock lock(mu_);
    random.emplace(random_.Next());
  }
  RejectionCounts rejected{};
  absl::StatusOr<std::vector<StorageNumber>> placed = PlaceBlock(nodes, placement, &*random, &rejected);
  for (size_t i = 0; i < kRejections; ++i)
    if (rejected[i] > 0) rejected_[i].fetch_add(rejected[i], std::memory_order_relaxed);
  ASSIGN_OR_RETURN(std::vector<StorageNumber> targets, std::move(placed));
  for (StorageNumber target : targets) registry_.NoteChosen(target);
  return targets;
}

// --- report streams

void Core::OnReportsOpened(const std::shared_ptr<ReportSession>& session) {
  const auto found = report_sessions_.find(session->datanode_uuid());
  const std::shared_ptr<ReportSession> older = found == report_sessions_.end() ? nullptr : found->second;
  report_sessions_[session->datanode_uuid()] = session;
  unsynced_ = true;  // So that it hears soon what is durable of an earlier connection's events.
  if (older) older->End(MakeError(ErrorKind::kCancelled, "a newer report stream of this DataNode"));
}

void Core::OnReportEffects(const std::string& datanode_uuid, Incarnation incarnation, ReportEffects effects) {
  unsynced_ = true;
  if (effects.marked) registry_.SetMarked(datanode_uuid, incarnation);
  for (StorageNumber storage : effects.removed) DropRows(storage);
  PostToBlocks([incarnation, effects = std::move(effects)](BlockManager& blocks) { blocks.OnReportEffects(incarnation, effects); });
}

void Core::DropRows(StorageNumber storage) {
  // One that came back meanwhile is walked, and that walk finds what is left.
  const std::optional<StorageStanding> standing = registry_.StandingOf(storage);
  if (standing && standing->state != v1::REMOVED) return;
  absl::StatusOr<std::vector<ReplicaRow>> rows = store_->ReplicasOn(storage, 0, kNothingWalked, kRowsAtOnce);
  if (!rows.ok() || rows->empty()) return;
  ReplicaStore::Batch batch;
  std::vector<BlockId> blocks;
  for (const ReplicaRow& row : *rows) {
    batch.Delete(storage, row.block);
    blocks.push_back(row.block);
  }
  if (!store_->Write(std::move(batch)).ok()) return;  // The rows of a removed storage count for nothing.
  PostToBlocks([blocks = std::move(blocks)](BlockManager& manager) { manager.Judge(blocks); });
  PostToStore([storage](Core& self) { self.DropRows(storage); });
}

void Core::AskStorage(std::string datanode_uuid, std::string storage_uuid, BlockId block) {
  PostToStore([datanode_uuid = std::move(datanode_uuid), storage_uuid = std::move(storage_uuid), block](Core& self) {
    const auto session = self.report_sessions_.find(datanode_uuid);
    if (session == self.report_sessions_.end()) return;
    const std::shared_ptr<ReportSession> held = session->second;
    held->RequestBlock(storage_uuid, block);
  });
}

// --- time

void Core::ScheduleTick() {
  executor_->PostAt(clock_->Now() + options_.repair_interval, [weak = weak_from_this()] {
    const std::shared_ptr<Core> self = weak.lock();
    if (!self || self->stopped_) return;
    IgnoreError(self->ReadNextIds(), "the ids known so far are low enough");
    self->blocks_->Tick();
    self->ScheduleTick();
  });
}

void Core::ScheduleSync() {
  store_executor_->PostAt(clock_->Now() + kSyncInterval, [weak = weak_from_this()] {
    const std::shared_ptr<Core> self = weak.lock();
    if (!self || self->stopped_) return;
    self->Sync();
    self->ScheduleSync();
  });
}

void Core::MendRows() {
  for (const auto& [storage, block] : store_->TakeDamaged()) {
    const std::optional<v1::StorageLocation> location = registry_.LocationOf(storage);
    if (!location) continue;
    log::Warning("replica database: the row of block {} on storage {} is damaged; asking its DataNode", block.value(),
                 location->storage_uuid());
    AskStorage(location->datanode().uuid(), location->storage_uuid(), block);
  }
}

void Core::Sync() {
  MendRows();
  const absl::btree_map<std::string, std::shared_ptr<ReportSession>> sessions = report_sessions_;
  if (unsynced_) {
    unsynced_ = false;
    if (absl::Status synced = store_->Sync(); synced.ok()) {
      for (const auto& [uuid, session] : sessions) session->OnDurable(session->applied());
    }
  }
  for (const auto& [uuid, session] : sessions) session->Tick();
}

// --- the rest

absl::StatusOr<std::vector<ReplicaRow>> Core::RowsOn(const std::string& storage_uuid) const {
  std::vector<ReplicaRow> all;
  const std::optional<StorageNumber> storage = registry_.NumberOf(storage_uuid);
  if (!storage) return all;
  for (uint64_t from = 0;;) {
    ASSIGN_OR_RETURN(const std::vector<ReplicaRow> rows, store_->ReplicasOn(*storage, from, kNothingWalked, kRowsAtOnce));
    all.insert(all.end(), rows.begin(), rows.end());
    if (rows.size() < kRowsAtOnce) return all;
    from = rows.back().block.value() + 1;
  }
}

void Core::FillReport(v1::ClusterReportResponse* report) const {
  registry_.FillReport(report);
  blocks_->FillReport(report);
  AddFigures(figures(), report);
  report->set_safe_mode(safe_mode_.load());
  report->set_cluster_id(identity_.cluster_id);
}

void Core::Stop(absl::AnyInvocable<void()> then) {
  stopped_ = true;
  executor_->Post([self = shared_from_this(), then = std::move(then)]() mutable {
    self->blocks_->EndSessions(MakeError(ErrorKind::kCancelled, "the NameNode is stopping"));
    Executor* const store_executor = self->store_executor_;
    store_executor->Post([self = std::move(self), then = std::move(then)]() mutable {
      const absl::btree_map<std::string, std::shared_ptr<ReportSession>> sessions = self->report_sessions_;
      for (const auto& [uuid, session] : sessions) session->End(MakeError(ErrorKind::kCancelled, "the NameNode is stopping"));
      IgnoreError(self->store_->Sync(), "what is not durable is asked for again");
      Executor* const executor = self->executor_;
      self.reset();
      executor->Post(std::move(then));
    });
  });
}

class ReplicaPlaneImpl final : public ReplicaPlane {
 public:
  explicit ReplicaPlaneImpl(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  void Register(api::CallContext, v1::RegisterRequest request, api::Done<v1::RegisterResponse> done) override {
    core_->Register(std::move(request), std::move(done));
  }
  void Heartbeat(api::CallContext, v1::HeartbeatRequest request, api::Done<v1::HeartbeatResponse> done) override {
    core_->Heartbeat(request, std::move(done));
  }
  void CommitBlockRecovery(api::CallContext, v1::CommitBlockRecoveryRequest request,
                           api::Done<v1::CommitBlockRecoveryResponse> done) override {
    core_->CommitBlockRecovery(request, std::move(done));
  }
  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(api::CallContext,
                                                          std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler) override {
    return core_->Reports(std::move(handler));
  }
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(api::CallContext,
                                                            std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler) override {
    return core_->Commands(std::move(handler));
  }
  absl::StatusOr<std::vector<StorageNumber>> ChooseTargets(const TargetRequest& request) override { return core_->ChooseTargets(request); }
  Locations Locate(BlockId id, const v1::BlockRecord& record, const std::string& client_host, Reach reach) override {
    return core_->Locate(id, record, client_host, reach);
  }
  std::optional<v1::StorageLocation> LocationOf(StorageNumber storage) override { return core_->registry().LocationOf(storage); }
  std::optional<StorageNumber> NumberOf(const std::string& storage_uuid) override { return core_->registry().NumberOf(storage_uuid); }
  void OnBlocksChanged(const std::vector<BlockId>& blocks) override {
    core_->PostToBlocks([blocks](BlockManager& manager) { manager.Judge(blocks); });
  }
  void OnBlocksFreed(const std::vector<v1::FreedBlock>& freed) override {
    std::vector<BlockId> blocks;
    for (const v1::FreedBlock& block : freed) blocks.push_back(BlockId(block.block().id()));
    core_->OnFreed(std::move(blocks));
  }
  void OnBadReplica(const v1::Block& block, const std::string& storage_uuid) override {
    core_->PostToBlocks([block, storage_uuid](BlockManager& manager) { manager.OnBadReplica(block, storage_uuid); });
  }
  void DeleteUnknownReplicas() override {
    core_->PostToBlocks([](BlockManager& blocks) { blocks.DeleteUnknown(); });
  }
  absl::StatusOr<std::vector<ReplicaRow>> RowsOn(const std::string& storage_uuid) const override { return core_->RowsOn(storage_uuid); }
  void SetNodeAdmin(v1::SetNodeAdminRequest request, Done<v1::SetNodeAdminResponse> done) override {
    core_->life().Set(request, std::move(done));
  }
  void SetRacks(std::shared_ptr<const RackTable> racks) override { core_->SetRacks(std::move(racks)); }
  void SetSlowNodes(const SlowNodes::Options& options) override { core_->registry().SetSlowNodes(options); }
  Arrival arrival() const override { return core_->arrival(); }
  RejectionCounts placement_rejections() const override { return core_->rejections(); }
  void SetSafeMode(bool on) override { core_->SetSafeMode(on); }
  absl::StatusOr<v1::FsckBlock> Inspect(BlockId id, const v1::BlockRecord& record, bool with_replicas) override {
    return core_->inspector().Inspect(id, record, with_replicas);
  }
  uint32_t SetHosts(std::shared_ptr<const HostList> hosts) override { return core_->life().SetHosts(std::move(hosts)); }
  void ListNodeBlockers(v1::ListNodeBlockersRequest request, Done<v1::ListNodeBlockersResponse> done) override {
    absl::StatusOr<std::string> uuid = core_->registry().Find(request.node());
    if (!uuid.ok()) return done(uuid.status());
    core_->AskBlocks<v1::ListNodeBlockersResponse>([uuid = *std::move(uuid), limit = PageLimit(request.limit(), 100)](
                                                       const BlockManager& blocks) { return blocks.NodeBlockers(uuid, limit); },
                                                   std::move(done));
  }
  void ListBadBlocks(v1::ListBadBlocksRequest request, Done<v1::ListBadBlocksResponse> done) override {
    core_->AskBlocks<v1::ListBadBlocksResponse>(
        [request = std::move(request)](const BlockManager& blocks) {
          return blocks.BadBlocks(request.kind(), BlockId(request.start_after()), PageLimit(request.limit(), kMostListed));
        },
        std::move(done));
  }
  void Balance(v1::BalanceRequest request, Done<v1::BalanceResponse> done) override {
    core_->AskBlocks<v1::BalanceResponse>([request = std::move(request)](BlockManager& blocks) { return blocks.Balance(request); },
                                          std::move(done));
  }
  void SetBalancerBandwidth(uint64_t bytes_per_second) override {
    core_->PostToBlocks([bytes_per_second](BlockManager& blocks) { blocks.SetBalancerBandwidth(bytes_per_second); });
  }
  Figures figures() const override { return core_->figures(); }
  void FillReport(v1::ClusterReportResponse* report) override { core_->FillReport(report); }
  void Stop(absl::AnyInvocable<void()> then) override { core_->Stop(std::move(then)); }

 private:
  const std::shared_ptr<Core> core_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicaPlane>> ReplicaPlane::Open(Options options, Identity identity, NamespaceForReplicas* space, Env* env,
                                                                 Executor* executor, Executor* store_executor) {
  ReplicaStore::Options store_options;
  store_options.directory = options.directory;
  store_options.block_cache_bytes = options.block_cache_bytes;
  store_options.simulated = options.simulated;
  store_options.cluster_id = identity.cluster_id;
  store_options.pool_id = identity.pool_id;
  ASSIGN_OR_RETURN(std::unique_ptr<ReplicaStore> store, ReplicaStore::Open(store_options, env));
  auto core = std::make_shared<Core>(std::move(options), std::move(identity), space, env, executor, store_executor, std::move(store));
  RETURN_IF_ERROR(core->Start(env->NewRandom()));
  return std::make_unique<ReplicaPlaneImpl>(std::move(core));
}

}  // namespace cairn::namenode
