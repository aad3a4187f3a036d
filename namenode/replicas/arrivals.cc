#include "namenode/replicas/arrivals.h"

#include <set>

#include "common/status.h"
#include "namenode/namespace/datanode_rows.h"

namespace cairn::namenode {

absl::Status Arrivals::Read(const ReplicaStore& store, const ReadView& view) {
  std::set<std::string> expected;
  ASSIGN_OR_RETURN(const auto storages, RegisteredStorages(view));
  for (const auto& [number, record] : storages) {
    ASSIGN_OR_RETURN(const std::vector<ReplicaRow> rows, store.ReplicasOn(number, 0, kNothingWalked, 1));
    if (!rows.empty() || store.started_empty()) expected.insert(record.datanode_uuid());
  }
  expected_.assign(expected.begin(), expected.end());
  return absl::OkStatus();
}

ReplicaPlane::Arrival Arrivals::Get(const DatanodeRegistry& registry, bool is_late) const {
  ReplicaPlane::Arrival arrival;
  arrival.expected = static_cast<uint32_t>(expected_.size());
  for (const std::string& uuid : expected_) arrival.reported += registry.HasReported(uuid) ? 1 : 0;
  arrival.complete = (arrival.reported == arrival.expected || is_late) && !registry.WalkIsDue(expected_);
  return arrival;
}

}  // namespace cairn::namenode
