// The half of DatanodeRegistry that is about what operators want of nodes, and about nodes that take each other's place.

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/replicas/datanode_registry.h"

namespace cairn::namenode {

std::string AddressOf(const v1::DatanodeInfo& info) { return fmt::format("{}:{}", info.transfer().host(), info.transfer().port()); }

void DatanodeRegistry::Restore(const std::string& uuid, const v1::NodeAdminRecord& record, const std::vector<KnownStorage>& storages) {
  MutexLock lock(mu_);
  Node& node = nodes_[uuid];
  node.info = record.info();
  node.info.set_uuid(uuid);
  node.info.set_admin_state(record.state());
  node.admin = record;
  node.heard = clock_->Now();
  node.swept = v1::DEAD;
  for (const KnownStorage& known : storages) {
    Storage& storage = node.storages[known.uuid];
    storage.number = known.number;
    storage.statistics.set_storage_uuid(known.uuid);
    owners_[known.number] = {&node, &storage};
    numbers_[known.uuid] = known.number;
  }
}

void DatanodeRegistry::SetAdmin(const std::string& uuid, const v1::NodeAdminRecord& record) {
  MutexLock lock(mu_);
  const auto found = nodes_.find(uuid);
  if (found == nodes_.end()) return;
  found->second.admin = record;
  found->second.info.set_admin_state(record.state());
  rack_count_holds_until_ = SteadyTime();
}

std::optional<v1::NodeAdminRecord> DatanodeRegistry::AdminOf(const std::string& uuid) const {
  MutexLock lock(mu_);
  const auto found = nodes_.find(uuid);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second.admin);
}

std::optional<v1::DatanodeInfo> DatanodeRegistry::InfoOf(const std::string& uuid) const {
  MutexLock lock(mu_);
  const auto found = nodes_.find(uuid);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second.info);
}

std::vector<std::pair<std::string, v1::NodeAdminRecord>> DatanodeRegistry::Administered() const {
  MutexLock lock(mu_);
  std::vector<std::pair<std::string, v1::NodeAdminRecord>> nodes;
  for (const auto& [uuid, node] : nodes_)
    if (node.admin.state() != v1::NODE_NORMAL) nodes.emplace_back(uuid, node.admin);
  return nodes;
}

std::vector<std::string> DatanodeRegistry::AllNodes() const {
  MutexLock lock(mu_);
  std::vector<std::string> uuids;
  for (const auto& [uuid, node] : nodes_) uuids.push_back(uuid);
  return uuids;
}

absl::StatusOr<std::string> DatanodeRegistry::Find(const std::string& name) const {
  MutexLock lock(mu_);
  if (nodes_.contains(name)) return name;
  std::vector<std::string> at_host;
  for (const auto& [uuid, node] : nodes_) {
    if (AddressOf(node.info) == name) return uuid;
    if (node.info.transfer().host() == name) at_host.push_back(uuid);
  }
  if (at_host.size() == 1) return at_host.front();
  if (at_host.empty()) return MakeError(ErrorKind::kNotFound, fmt::format("no DataNode '{}' is known here", name));
  return MakeError(ErrorKind::kInvalidArgument,
                   fmt::format("{} DataNodes are at {}: host:port or a uuid says which", at_host.size(), name));
}

void DatanodeRegistry::SetHosts(std::shared_ptr<const HostList> hosts) {
  MutexLock lock(mu_);
  hosts_ = std::move(hosts);
  for (auto& [uuid, node] : nodes_) node.allowed = hosts_ == nullptr || hosts_->Allows(node.info.transfer());
}

std::string DatanodeRegistry::RackOfHost(const std::string& host) const {
  MutexLock lock(mu_);
  const auto found = rack_of_host_.find(host);
  if (found != rack_of_host_.end()) return found->second;
  return racks_ == nullptr ? std::string() : racks_->RackOf(host);
}

void DatanodeRegistry::CountRacksLocked() const {
  constexpr absl::Duration kHolds = absl::Seconds(1);
  const SteadyTime now = clock_->Now();
  if (now < rack_count_holds_until_) return;
  std::set<std::string_view> racks;
  racks_are_known_ = true;
  for (const auto& [uuid, node] : nodes_) {
    if (StateOf(node) == v1::DEAD) continue;
    if (node.admin.state() == v1::NODE_NORMAL) racks.insert(node.info.rack());
    racks_are_known_ = racks_are_known_ && (racks_ == nullptr || racks_->Answers(node.info.transfer().host()));
  }
  rack_count_ = racks_are_known_ ? racks.size() : std::min<size_t>(racks.size(), 1);
  rack_count_holds_until_ = now + kHolds;
}

size_t DatanodeRegistry::RackCount() const {
  MutexLock lock(mu_);
  CountRacksLocked();
  return rack_count_;
}

bool DatanodeRegistry::RacksAreKnown() const {
  MutexLock lock(mu_);
  CountRacksLocked();
  return racks_are_known_;
}

void DatanodeRegistry::SetRacks(std::shared_ptr<const RackTable> racks) {
  MutexLock lock(mu_);
  racks_ = std::move(racks);
  if (racks_ == nullptr) return;
  rack_count_holds_until_ = SteadyTime();
  rack_of_host_.clear();
  for (auto& [uuid, node] : nodes_) {
    node.info.set_rack(racks_->RackOf(node.info.transfer().host()));
    rack_of_host_[node.info.transfer().host()] = node.info.rack();
  }
}

bool DatanodeRegistry::MayHoldMore(const std::string& uuid) const {
  MutexLock lock(mu_);
  const auto found = nodes_.find(uuid);
  if (found == nodes_.end()) return false;
  const Node& node = found->second;
  if (node.incarnation == Incarnation()) return true;
  if (StateOf(node) == v1::DEAD) return false;
  return HasToWalk(node) || !node.stream_open || node.last.unacknowledged_events() > 0;
}

bool DatanodeRegistry::HasReported(const std::string& uuid) const {
  MutexLock lock(mu_);
  const auto found = nodes_.find(uuid);
  if (found == nodes_.end()) return replaced_.contains(uuid);
  const Node& node = found->second;
  if (!node.allowed || node.admin.state() == v1::DECOMMISSIONED || node.admin.state() == v1::IN_MAINTENANCE) return true;
  return node.incarnation != Incarnation() && StateOf(node) != v1::DEAD && !HasToWalk(node);
}

bool DatanodeRegistry::WalkIsDue(const std::vector<std::string>& uuids) const {
  MutexLock lock(mu_);
  for (const std::string& uuid : uuids) {
    const auto found = nodes_.find(uuid);
    if (found != nodes_.end() && StateOf(found->second) != v1::DEAD && HasToWalk(found->second)) return true;
  }
  return false;
}

std::vector<std::string> DatanodeRegistry::OthersAt(const std::string& uuid, const v1::DatanodeInfo& info) const {
  std::vector<std::string> others;
  if (info.transfer().port() == 0) return others;
  for (const auto& [other, node] : nodes_)
    if (other != uuid && AddressOf(node.info) == AddressOf(info)) others.push_back(other);
  return others;
}

void DatanodeRegistry::Erase(const std::string& uuid, std::vector<StorageNumber>* storages) {
  const auto found = nodes_.find(uuid);
  for (const auto& [storage_uuid, storage] : found->second.storages) {
    storages->push_back(storage.number);
    owners_.erase(storage.number);
    numbers_.erase(storage_uuid);
  }
  nodes_.erase(found);
  slow_nodes_.Forget(uuid);
  replaced_.insert(uuid);
}

}  // namespace cairn::namenode
