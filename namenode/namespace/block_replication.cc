#include "namenode/namespace/block_replication.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"

namespace cairn::namenode {

absl::Status CheckReplication(const v1::Mutation::Limits& limits, uint32_t replication, const std::string& path) {
  const uint32_t least = std::max(limits.min_replication(), 1u);
  const uint32_t most = limits.max_replication();
  const bool too_high = most != 0 && replication > most;
  if (replication >= least && !too_high) return absl::OkStatus();
  Error error;
  error.kind = ErrorKind::kInvalidArgument;
  error.reason = "REPLICATION_OUT_OF_RANGE";
  error.path = path;
  error.limit = too_high ? most : least;
  error.key = too_high ? "dfs.replication.max" : "dfs.namenode.replication.min";
  error.message = fmt::format("Requested replication factor of {} {} of {} for {} (set by {})", replication,
                              too_high ? "exceeds maximum" : "is less than the required minimum", error.limit, path, error.key);
  return MakeError(std::move(error));
}

uint64_t ChargedAt(uint64_t charged_bytes, uint32_t replication, uint32_t new_replication) {
  return charged_bytes / std::max(replication, 1u) * new_replication;
}

bool SettleReplication(v1::BlockRecord& block, uint32_t replication) {
  if (block.replication() == replication) return false;
  block.set_charged_bytes(ChargedAt(block.charged_bytes(), block.replication(), replication));
  block.set_replication(replication);
  return true;
}

}  // namespace cairn::namenode
