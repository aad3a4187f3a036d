#include "namenode/frontdoor/call_limits.h"

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace/retry_table.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

absl::Status Bad(std::string message) { return MakeError(ErrorKind::kInvalidArgument, std::move(message)); }

}  // namespace

v1::Mutation::Limits ToMutationLimits(const CallLimits& limits) {
  v1::Mutation::Limits out;
  out.set_max_component_bytes(limits.max_component_bytes);
  out.set_max_path_bytes(limits.max_path_bytes);
  out.set_max_depth(limits.max_depth);
  out.set_max_directory_entries(limits.max_directory_entries);
  out.set_min_replication(limits.min_replication);
  out.set_max_replication(limits.max_replication);
  out.set_min_block_size_bytes(limits.min_block_size_bytes);
  out.set_max_block_size_bytes(limits.max_block_size_bytes);
  out.set_max_blocks_per_file(limits.max_blocks_per_file);
  out.set_permissions_enabled(limits.permissions_enabled);
  return out;
}

absl::Status CheckReadHeader(const v1::RequestHeader& header) {
  if (!header.client_id().empty() && header.client_id().size() != kClientIdBytes)
    return Bad(fmt::format("header: a client id has {} bytes, not {}", kClientIdBytes, header.client_id().size()));
  if (header.user().size() > kMaxUserBytes)
    return Bad(fmt::format("header: a user name of {} bytes is too long (at most {})", header.user().size(), kMaxUserBytes));
  if (header.client_name().size() > kMaxClientNameBytes)
    return Bad(fmt::format("header: a client name of {} bytes is too long (at most {})", header.client_name().size(), kMaxClientNameBytes));
  return absl::OkStatus();
}

absl::Status CheckMutationHeader(const v1::RequestHeader& header) {
  RETURN_IF_ERROR(CheckReadHeader(header));
  if (header.client_id().empty()) return Bad(fmt::format("header: a client id of {} bytes is missing", kClientIdBytes));
  if (header.slot() >= kMaxSlots) return Bad(fmt::format("header: slot {} is not below {}", header.slot(), kMaxSlots));
  if (header.user().empty()) return Bad("header: the user is missing");
  return absl::OkStatus();
}

absl::Status CheckDeleteMany(const v1::DeleteManyRequest& request) {
  if (request.paths_size() > kMaxDeletePaths)
    return Bad(fmt::format("deleteMany: {} paths are too many for one call (at most {})", request.paths_size(), kMaxDeletePaths));
  size_t bytes = 0;
  for (const std::string& path : request.paths()) bytes += path.size();
  if (bytes > kMaxDeletePathBytes)
    return Bad(fmt::format("deleteMany: {} bytes of paths are too many for one call (at most {})", bytes, kMaxDeletePathBytes));
  return absl::OkStatus();
}

}  // namespace cairn::namenode
