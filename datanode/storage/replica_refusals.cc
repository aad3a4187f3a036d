#include "datanode/storage/replica_refusals.h"

#include <fmt/format.h>

#include "common/error.h"
#include "common/fault_points.h"

namespace cairn::datanode {

absl::Status ReplicaNotFound(BlockId id) {
  return MakeError(ErrorKind::kReplicaNotFound, fmt::format("no replica of block {}", id.value()));
}

absl::Status StaleReplica(BlockId id, GenerationStamp have, GenerationStamp least, const std::string& most) {
  return MakeError(ErrorKind::kStaleGeneration,
                   fmt::format("block {}: our replica has stamp {}, asked for {}{}", id.value(), have.value(), least.value(), most));
}

bool AcceptsOlderStamps() { return !FaultPoint("datanode.stamp.accept_older").ok(); }

}  // namespace cairn::datanode
