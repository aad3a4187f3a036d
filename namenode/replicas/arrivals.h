#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "namenode/replicas/datanode_registry.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/store/replica_store.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// Who is awaited after a start: the DataNodes of which replicas were known before it, or, where all that was known is lost, all that ever
// registered. A new one that comes and goes keeps nobody waiting. Immutable but for Read; thread-safe after that.
class Arrivals {
 public:
  // Once, before any node registers. Reads a row of each storage that ever registered.
  absl::Status Read(const ReplicaStore& store, const ReadView& view);
  // `is_late`: who has not come by now is lost.
  ReplicaPlane::Arrival Get(const DatanodeRegistry& registry, bool is_late) const;

 private:
  std::vector<std::string> expected_;  // Uuids.
};

}  // namespace cairn::namenode
