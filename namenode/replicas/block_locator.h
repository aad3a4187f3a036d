#pragma once

#include <string>

#include "cairn/namespace.pb.h"
#include "common/env/clock.h"
#include "common/ids.h"
#include "namenode/replicas/datanode_registry.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/store/replica_store.h"

namespace cairn::namenode {

// Answers where a block can be read, from the rows and the registry as they are; see ReplicaPlane::Locate.
// Thread-safe; may block on a disk read unless it is to reach into memory only.
class BlockLocator {
 public:
  struct Parts {  // The pointers outlive this.
    const ReplicaStore* store = nullptr;
    const DatanodeRegistry* registry = nullptr;
    const Clock* clock = nullptr;
    absl::Duration acknowledged_grace;
    absl::Duration dead_after;
  };
  explicit BlockLocator(Parts parts) : parts_(parts), started_(parts.clock->Now()) {}

  // `chance` spreads readers over equally good replicas.
  ReplicaPlane::Locations Locate(BlockId id, const v1::BlockRecord& record, const std::string& client_host, uint64_t chance,
                                 Reach reach) const;

 private:
  const Parts parts_;
  const SteadyTime started_;
};

}  // namespace cairn::namenode
