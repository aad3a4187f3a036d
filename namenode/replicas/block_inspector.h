#pragma once

#include "cairn/admin.pb.h"
#include "cairn/namespace.pb.h"
#include "common/env/clock.h"
#include "common/ids.h"
#include "namenode/replicas/datanode_registry.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/store/replica_store.h"

namespace cairn::namenode {

// Answers how a block fares, for fsck: the rules of block_states.h over the rows and the registry as they are, without what is only in the
// block manager's queues. Thread-safe; may block on a disk read.
class BlockInspector {
 public:
  struct Parts {  // The pointers outlive this.
    const ReplicaStore* store = nullptr;
    const DatanodeRegistry* registry = nullptr;
    const Clock* clock = nullptr;
    uint32_t maintenance_minimum = 1;
    absl::Duration acknowledged_grace;
  };
  explicit BlockInspector(Parts parts) : parts_(parts) {}

  // Replicas of a block that is well are only listed if `with_replicas`.
  absl::StatusOr<v1::FsckBlock> Inspect(BlockId id, const v1::BlockRecord& record, bool with_replicas) const;

 private:
  const Parts parts_;
};

}  // namespace cairn::namenode
