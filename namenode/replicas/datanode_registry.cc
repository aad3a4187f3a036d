#include "namenode/replicas/datanode_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/api/datanode_namenode.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::namenode {
namespace {

constexpr size_t kSupersededKept = 8;

absl::Status Unregistered(const std::string& uuid) {
  return MakeError(ErrorKind::kUnregistered, fmt::format("DataNode {} is not registered: register first", uuid));
}

absl::Status OtherCluster(std::string message) {
  Error error;
  error.kind = ErrorKind::kInvalidArgument;
  error.reason = api::kOtherCluster;
  error.message = std::move(message);
  return MakeError(std::move(error));
}

// The worse of what the stream and the heartbeat say.
v1::StorageState Worse(v1::StorageState reported, v1::StorageState beaten) {
  return beaten == v1::STORAGE_STATE_UNSPECIFIED ? reported : std::max(reported, beaten);
}

}  // namespace

DatanodeRegistry::DatanodeRegistry(Options options, const Clock* clock)
    : options_(std::move(options)), clock_(clock), slow_nodes_(options_.slow_nodes) {}

v1::NodeState DatanodeRegistry::StateOf(const Node& node) const {
  if (node.incarnation.value() == 0 || !node.allowed) return v1::DEAD;  // Not here yet, or not to be.
  const absl::Duration silent = clock_->Now() - node.heard;
  if (silent >= options_.dead_after) return v1::DEAD;
  return silent >= options_.stale_after ? v1::STALE : v1::LIVE;
}

absl::Status DatanodeRegistry::CheckRegistration(const v1::RegisterRequest& request) const {
  MutexLock lock(mu_);
  return CheckLocked(request);
}

absl::Status DatanodeRegistry::CheckLocked(const v1::RegisterRequest& request) const {
  const std::string& uuid = request.datanode_uuid();
  const Incarnation incarnation(request.incarnation());
  if (uuid.empty() || incarnation.value() == 0)
    return MakeError(ErrorKind::kInvalidArgument, "a registration needs a uuid and an incarnation");
  if (!request.cluster_id().empty() && request.cluster_id() != options_.cluster_id)
    return OtherCluster(
        fmt::format("DataNode {} belongs to cluster {}, this NameNode to {}", uuid, request.cluster_id(), options_.cluster_id));
  if (!request.pool_id().empty() && request.pool_id() != options_.pool_id)
    return OtherCluster(fmt::format("DataNode {} belongs to another block pool", uuid));
  if (hosts_ != nullptr && !hosts_->Allows(request.info().transfer())) {
    Error error;
    error.kind = ErrorKind::kPermission;
    error.reason = "NOT_IN_HOSTS";
    error.key = "dfs.hosts";
    error.message = fmt::format("Datanode denied communication with namenode because the host is not in the include-list: {}",
                                AddressOf(request.info()));
    return MakeError(std::move(error));
  }
  for (const std::string& other : OthersAt(uuid, request.info())) {
    const Node& node = nodes_.at(other);
    if (node.stream_open && StateOf(node) == v1::LIVE)
      return MakeError(ErrorKind::kRetriable,
                       fmt::format("DataNode {} at {} cannot take the place of {}, which is connected: it is tried again", uuid,
                                   AddressOf(request.info()), other));
  }
  absl::btree_map<std::string, bool> seen;
  for (const v1::StorageStatistics& storage : request.storages()) {
    if (storage.storage_uuid().empty() || !seen.emplace(storage.storage_uuid(), true).second)
      return MakeError(ErrorKind::kInvalidArgument,
                       fmt::format("DataNode {} names storage '{}' twice or without uuid", uuid, storage.storage_uuid()));
    const auto number = numbers_.find(storage.storage_uuid());
    if (number == numbers_.end()) continue;
    const Owner& owner = owners_.at(number->second);
    if (owner.node->info.uuid() != uuid && StateOf(*owner.node) != v1::DEAD)
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("storage {} of DataNode {} is in use by DataNode {}",
                                                                storage.storage_uuid(), uuid, owner.node->info.uuid()));
  }
  const auto found = nodes_.find(uuid);
  if (found == nodes_.end() || found->second.incarnation == incarnation) return absl::OkStatus();
  const Node& node = found->second;
  const bool superseded = std::find(node.superseded.begin(), node.superseded.end(), incarnation) != node.superseded.end();
  const bool elsewhere = AddressOf(node.info) != AddressOf(request.info());
  // The last word of a process that is gone may come after the first of its successor: the one that is silent was that.
  if (StateOf(node) == v1::LIVE && (superseded || (elsewhere && node.stream_open)))
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("two DataNodes use the uuid {}: this one at {}, another is live at {}", uuid,
                                                              AddressOf(request.info()), AddressOf(node.info)));
  return absl::OkStatus();
}

absl::StatusOr<DatanodeRegistry::Registered> DatanodeRegistry::Register(const v1::RegisterRequest& request,
                                                                        const std::vector<StorageNumber>& numbers) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckLocked(request));
  const std::string& uuid = request.datanode_uuid();
  Registered result;
  v1::NodeAdminRecord inherited;
  for (const std::string& other : OthersAt(uuid, request.info())) {
    if (nodes_.at(other).admin.state() != v1::NODE_NORMAL) inherited = nodes_.at(other).admin;
    Erase(other, &result.replaced);
    result.replaced_nodes.push_back(other);
  }
  Node& node = nodes_[uuid];
  if (node.admin.state() == v1::NODE_NORMAL) node.admin = std::move(inherited);
  node.allowed = true;
  if (node.incarnation != Incarnation(request.incarnation())) {
    result.new_incarnation = true;
    if (node.incarnation.value() != 0) slow_nodes_.Restarted(uuid, clock_->Now());
    node.slow = false;
    std::erase(node.superseded, Incarnation(request.incarnation()));
    if (node.incarnation.value() != 0) node.superseded.push_back(node.incarnation);
    if (node.superseded.size() > kSupersededKept) node.superseded.erase(node.superseded.begin());
    node.incarnation = Incarnation(request.incarnation());
    // A process that already knew this epoch when it first came has held no command of an older one.
    node.marked = request.highest_epoch() >= options_.epoch.value();
    node.stream_open = false;
    for (auto& [storage_uuid, storage] : node.storages) {
      storage.floor = kNothingWalked;
      storage.reported = v1::FAILED;  // Until this incarnation names it.
      storage.statistics.set_state(v1::FAILED);
    }
  }
  node.info = request.info();
  node.info.set_uuid(uuid);
  node.info.set_admin_state(node.admin.state());
  if (racks_ != nullptr) node.info.set_rack(racks_->RackOf(node.info.transfer().host()));
  rack_count_holds_until_ = SteadyTime();
  rack_of_host_[node.info.transfer().host()] = node.info.rack();
  node.heard = clock_->Now();
  for (int i = 0; i < request.storages_size(); ++i) {
    const v1::StorageStatistics& statistics = request.storages(i);
    const StorageNumber number = numbers[static_cast<size_t>(i)];
    const auto owner = owners_.find(number);
    if (owner != owners_.end() && owner->second.node != &node) owner->second.node->storages.erase(statistics.storage_uuid());
    std::erase(result.replaced, number);  // A volume that was moved is still there.
    const bool known = node.storages.contains(statistics.storage_uuid());
    Storage& storage = node.storages[statistics.storage_uuid()];
    if (!known || result.new_incarnation) {
      result.new_storages.push_back(number);
      storage.reported = v1::HEALTHY;
    }
    storage.number = number;
    storage.statistics = statistics;
    owners_[number] = {&node, &storage};
    numbers_[statistics.storage_uuid()] = number;
  }
  return result;
}

DatanodeRegistry::Node* DatanodeRegistry::CurrentNode(const std::string& uuid, Incarnation incarnation) {
  const auto found = nodes_.find(uuid);
  return found == nodes_.end() || found->second.incarnation != incarnation ? nullptr : &found->second;
}

absl::Status DatanodeRegistry::Heartbeat(const v1::HeartbeatRequest& request, bool* new_storages) {
  MutexLock lock(mu_);
  Node* node = CurrentNode(request.datanode_uuid(), Incarnation(request.incarnation()));
  if (node == nullptr || !node->allowed) return Unregistered(request.datanode_uuid());
  node->heard = clock_->Now();
  node->chosen = 0;
  *new_storages = false;
  for (const v1::StorageStatistics& statistics : request.storages()) {
    const auto storage = node->storages.find(statistics.storage_uuid());
    if (storage == node->storages.end()) {
      *new_storages = true;
    } else {
      storage->second.statistics = statistics;
    }
  }
  slow_nodes_.Heard(request.datanode_uuid(), request.slow_peers(), node->heard);
  node->last = request;
  node->last.clear_storages();
  node->last.clear_slow_peers();
  return absl::OkStatus();
}

absl::Status DatanodeRegistry::Heard(const std::string& uuid, Incarnation incarnation) {
  MutexLock lock(mu_);
  Node* node = CurrentNode(uuid, incarnation);
  if (node == nullptr) return Unregistered(uuid);
  node->heard = clock_->Now();
  return absl::OkStatus();
}

void DatanodeRegistry::SetReportStreamOpen(const std::string& uuid, Incarnation incarnation, bool open) {
  MutexLock lock(mu_);
  if (Node* node = CurrentNode(uuid, incarnation)) node->stream_open = open;
}

void DatanodeRegistry::SetMarked(const std::string& uuid, Incarnation incarnation) {
  MutexLock lock(mu_);
  if (Node* node = CurrentNode(uuid, incarnation)) node->marked = true;
}

void DatanodeRegistry::SetFloor(StorageNumber number, Incarnation incarnation, uint64_t floor) {
  MutexLock lock(mu_);
  const auto owner = owners_.find(number);
  if (owner == owners_.end() || owner->second.node->incarnation != incarnation) return;
  Node* const node = owner->second.node;
  owner->second.storage->floor = floor;
  const bool complete = std::all_of(node->storages.begin(), node->storages.end(),
                                    [](const auto& entry) { return entry.second.floor == 0 || entry.second.reported >= v1::FAILED; });
  if (floor == 0 && complete) {
    node->ever_walked = true;
    node->walked = clock_->Now();
  }
}

void DatanodeRegistry::SetStorageState(StorageNumber number, v1::StorageState state) {
  MutexLock lock(mu_);
  const auto owner = owners_.find(number);
  if (owner == owners_.end()) return;
  v1::StorageState& reported = owner->second.storage->reported;
  // That it cannot be read says nothing new of one that is gone: its rows would count again.
  if (state != v1::UNAVAILABLE || reported < v1::FAILED) reported = state;
}

DatanodeRegistry::Changes DatanodeRegistry::Sweep() {
  MutexLock lock(mu_);
  Changes changes;
  for (auto& [uuid, node] : nodes_) {
    const v1::NodeState state = StateOf(node);
    if (state == v1::DEAD && node.swept != v1::DEAD) changes.died.push_back(uuid);
    if (state != v1::DEAD && node.swept == v1::DEAD) changes.returned.push_back(uuid);
    node.swept = state;
  }
  JudgeSpeed();
  return changes;
}

std::optional<StorageStanding> DatanodeRegistry::StandingOf(StorageNumber number) const {
  MutexLock lock(mu_);
  const auto owner = owners_.find(number);
  if (owner == owners_.end()) return std::nullopt;
  const Node* const node = owner->second.node;
  const Storage* const storage = owner->second.storage;
  StorageStanding standing;
  standing.storage = number;
  standing.datanode_uuid = node->info.uuid();
  standing.host = node->info.transfer().host();
  standing.rack = node->info.rack();
  standing.incarnation = node->incarnation;
  standing.node = StateOf(*node);
  standing.state = Worse(storage->reported, storage->statistics.state());
  standing.marked = node->marked;
  standing.floor = storage->floor;
  standing.remaining_bytes = storage->statistics.remaining_bytes();
  standing.silent = clock_->Now() - node->heard;
  standing.admin = node->admin.state();
  return standing;
}

std::optional<StorageHealth> DatanodeRegistry::HealthOf(StorageNumber number, std::string_view client_host,
                                                        std::string_view client_rack) const {
  MutexLock lock(mu_);
  const auto owner = owners_.find(number);
  if (owner == owners_.end()) return std::nullopt;
  const Node& node = *owner->second.node;
  if (node.incarnation.value() == 0) return std::nullopt;  // Known of, but it has not registered.
  const Storage& storage = *owner->second.storage;
  return StorageHealth{StateOf(node),
                       Worse(storage.reported, storage.statistics.state()),
                       storage.floor,
                       !client_host.empty() && node.info.transfer().host() == client_host,
                       !client_rack.empty() && node.info.rack() == client_rack,
                       node.admin.state() != v1::NODE_NORMAL,
                       Avoided(node)};
}

std::optional<v1::StorageLocation> DatanodeRegistry::LocationOf(StorageNumber number) const {
  MutexLock lock(mu_);
  const auto owner = owners_.find(number);
  if (owner == owners_.end()) return std::nullopt;
  std::optional<v1::StorageLocation> location(std::in_place);
  location->set_storage_uuid(owner->second.storage->statistics.storage_uuid());
  *location->mutable_datanode() = owner->second.node->info;
  return location;
}

std::optional<StorageNumber> DatanodeRegistry::NumberOf(const std::string& storage_uuid) const {
  MutexLock lock(mu_);
  const auto found = numbers_.find(storage_uuid);
  return found == numbers_.end() ? std::nullopt : std::optional<StorageNumber>(found->second);
}

std::optional<StorageNumber> DatanodeRegistry::NumberOf(const std::string& datanode_uuid, const std::string& storage_uuid) const {
  MutexLock lock(mu_);
  const auto node = nodes_.find(datanode_uuid);
  if (node == nodes_.end()) return std::nullopt;
  const auto storage = node->second.storages.find(storage_uuid);
  return storage == node->second.storages.end() ? std::nullopt : std::optional<StorageNumber>(storage->second.number);
}

std::vector<StorageNumber> DatanodeRegistry::StoragesOf(const std::string& datanode_uuid) const {
  MutexLock lock(mu_);
  std::vector<StorageNumber> storages;
  const auto node = nodes_.find(datanode_uuid);
  if (node == nodes_.end()) return storages;
  for (const auto& [uuid, storage] : node->second.storages) storages.push_back(storage.number);
  std::sort(storages.begin(), storages.end());
  return storages;
}

bool DatanodeRegistry::HasToWalk(const Node& node) {
  return std::any_of(node.storages.begin(), node.storages.end(), [](const auto& entry) {
    const Storage& storage = entry.second;
    return storage.floor != 0 && Worse(storage.reported, storage.statistics.state()) < v1::FAILED;
  });
}

bool DatanodeRegistry::WalkIsDue() const {
  MutexLock lock(mu_);
  for (const auto& [uuid, node] : nodes_) {
    if (StateOf(node) != v1::DEAD && HasToWalk(node)) return true;
  }
  return false;
}

std::vector<PlacementNode> DatanodeRegistry::PlacementNodes() const {
  MutexLock lock(mu_);
  std::vector<PlacementNode> nodes;
  for (const auto& [uuid, node] : nodes_) {
    PlacementNode candidate;
    candidate.datanode_uuid = uuid;
    candidate.host = node.info.transfer().host();
    candidate.address = AddressOf(node.info);
    candidate.rack = node.info.rack();
    candidate.state = StateOf(node);
    candidate.admin = node.admin.state();
    candidate.slow = Avoided(node);
    candidate.active_streams = node.last.active_streams() + node.chosen;
    for (const auto& [storage_uuid, storage] : node.storages) {
      if (Worse(storage.reported, storage.statistics.state()) != v1::HEALTHY) continue;
      candidate.storages.push_back(
          {storage.number, storage.statistics.read_only() ? 0 : storage.statistics.remaining_bytes(), storage.statistics.capacity_bytes()});
    }
    nodes.push_back(std::move(candidate));
  }
  return nodes;
}

void DatanodeRegistry::NoteChosen(StorageNumber number) {
  MutexLock lock(mu_);
  const auto owner = owners_.find(number);
  if (owner != owners_.end()) ++owner->second.node->chosen;
}

void DatanodeRegistry::FillReport(v1::ClusterReportResponse* report) const {
  MutexLock lock(mu_);
  const SteadyTime now = clock_->Now();
  std::vector<v1::DatanodeReport> nodes;
  for (const auto& [uuid, node] : nodes_) {
    v1::DatanodeReport entry;
    *entry.mutable_info() = node.info;
    entry.set_state(StateOf(node));
    for (const auto& [storage_uuid, storage] : node.storages) {
      *entry.add_storages() = storage.statistics;
      entry.mutable_storages(entry.storages_size() - 1)->set_state(Worse(storage.reported, storage.statistics.state()));
    }
    entry.set_last_contact_ms(absl::ToInt64Milliseconds(now - node.heard));
    entry.set_last_walk_ms(node.ever_walked ? absl::ToInt64Milliseconds(now - node.walked) : -1);
    entry.set_active_streams(node.last.active_streams());
    entry.set_unacknowledged_events(node.last.unacknowledged_events());
    entry.set_pending_deletion_blocks(node.last.pending_deletion_blocks());
    entry.set_pending_deletion_bytes(node.last.pending_deletion_bytes());
    entry.set_command_queue(node.last.command_queue());
    entry.set_heartbeat_interval_ms(node.last.last_interval_ms());
    entry.set_overdue_steps(node.last.overdue_steps());
    entry.set_last_overdue_step(node.last.last_overdue_step());
    entry.set_admin_state(node.admin.state());
    entry.set_admin_since_ms(node.admin.since_ms());
    entry.set_maintenance_until_ms(node.admin.until_ms());
    entry.set_not_allowed(!node.allowed);
    FillSpeed(uuid, node, &entry);
    entry.set_walk_is_due(StateOf(node) != v1::DEAD && HasToWalk(node));
    nodes.push_back(std::move(entry));
  }
  std::sort(nodes.begin(), nodes.end(), [](const v1::DatanodeReport& a, const v1::DatanodeReport& b) {
    const v1::Endpoint& x = a.info().transfer();
    const v1::Endpoint& y = b.info().transfer();
    return std::make_tuple(x.host(), x.port(), a.info().uuid()) < std::make_tuple(y.host(), y.port(), b.info().uuid());
  });
  for (v1::DatanodeReport& entry : nodes) *report->add_datanodes() = std::move(entry);
}

}  // namespace cairn::namenode
