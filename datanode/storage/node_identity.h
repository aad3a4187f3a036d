#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/ids.h"
#include "datanode/storage/version_file.h"

namespace cairn::datanode {

// Who this DataNode is and what it has heard, kept in VERSION of every volume; the highest figures of all volumes count. Thread-safe.
// Calls marked (disk) block, and return only when the news is on disk.
class NodeIdentity {
 public:
  virtual ~NodeIdentity() = default;
  // A copy; storage_uuid is empty. Memory only.
  virtual VersionRecord Get() const = 0;
  // (disk) The cluster of the first registration, for ever. kInvalidArgument for another one, naming both.
  virtual absl::Status AdoptCluster(std::string cluster_id, std::string pool_id) = 0;
  // (disk) Never falls.
  virtual absl::Status RememberEpoch(Epoch epoch) = 0;
  // (disk, rarely) Written when a figure is 2^16 above the written one.
  virtual absl::Status RememberIds(BlockId next_block, GenerationStamp next_stamp) = 0;
};

}  // namespace cairn::datanode
