#include "namenode/frontdoor/call_limits.h"

#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "common/utf8.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/retry_table.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

absl::Status Bad(std::string message) { return MakeError(ErrorKind::kInvalidArgument, std::move(message)); }

absl::Status CheckPaths(std::string_view call, const google::protobuf::RepeatedPtrField<std::string>& paths, int most, size_t most_bytes) {
  if (paths.size() > most) return Bad(fmt::format("{}: {} paths are too many for one call (at most {})", call, paths.size(), most));
  size_t bytes = 0;
  for (const std::string& path : paths) bytes += path.size();
  if (bytes > most_bytes) return Bad(fmt::format("{}: {} bytes of paths are too many for one call (at most {})", call, bytes, most_bytes));
  return absl::OkStatus();
}

}  // namespace

v1::Mutation::Limits ToMutationLimits(const CallLimits& limits) {
  v1::Mutation::Limits out;
  out.set_max_component_bytes(limits.max_component_bytes);
  out.set_max_path_bytes(limits.max_path_bytes);
  out.set_max_depth(limits.max_depth);
  out.set_forbidden_characters(limits.forbidden_characters);
  out.set_max_directory_entries(limits.max_directory_entries);
  out.set_min_replication(limits.min_replication);
  out.set_max_replication(limits.max_replication);
  out.set_min_block_size_bytes(limits.min_block_size_bytes);
  out.set_max_block_size_bytes(limits.max_block_size_bytes);
  out.set_max_blocks_per_file(limits.max_blocks_per_file);
  out.set_max_xattrs(limits.max_xattrs);
  out.set_max_xattr_bytes(limits.max_xattr_bytes);
  out.set_permissions_enabled(limits.permissions_enabled);
  out.set_lease_soft_limit_ms(absl::ToInt64Milliseconds(limits.lease_soft_limit));
  return out;
}

absl::Status CheckReadHeader(const v1::RequestHeader& header) {
  if (!header.client_id().empty() && header.client_id().size() != kClientIdBytes)
    return Bad(fmt::format("header: a client id has {} bytes, not {}", kClientIdBytes, header.client_id().size()));
  if (header.user().size() > kMaxUserBytes)
    return Bad(fmt::format("header: a user name of {} bytes is too long (at most {})", header.user().size(), kMaxUserBytes));
  if (header.client_name().size() > kMaxClientNameBytes)
    return Bad(fmt::format("header: a client name of {} bytes is too long (at most {})", header.client_name().size(), kMaxClientNameBytes));
  // Kept in rows, which could not be read again; gRPC does not let such names through, Hadoop IPC does.
  if (!IsUtf8(header.user()) || !IsUtf8(header.client_name())) return Bad("header: a user or client name is not UTF-8");
  // It would be taken for the holder of every file that is being recovered.
  if (header.client_name() == kRecoveryHolder)
    return Bad(fmt::format("header: the client name {} is the NameNode's own; a client needs another", kRecoveryHolder));
  return absl::OkStatus();
}

absl::Status CheckMutationHeader(const v1::RequestHeader& header) {
  RETURN_IF_ERROR(CheckReadHeader(header));
  if (header.client_id().empty()) return Bad(fmt::format("header: a client id of {} bytes is missing", kClientIdBytes));
  if (header.slot() >= kMaxSlots) return Bad(fmt::format("header: slot {} is not below {}", header.slot(), kMaxSlots));
  if (header.user().empty()) return Bad("header: the user is missing");
  if (header.sequence() != 0 && header.slot_opened_ms() <= 0) {
    // Once its row is swept, a repetition of this call could not be told from a new one, and would act twice.
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.reason = "SLOT_OPENED_MISSING";
    error.message = fmt::format(
        "header: call {} in slot {} does not say when its slot was opened; take the NameNode's time from any answer, as of "
        "getServerDefaults",
        header.sequence(), header.slot());
    return MakeError(std::move(error));
  }
  return absl::OkStatus();
}

absl::Status CheckDeleteMany(const v1::DeleteManyRequest& request) {
  return CheckPaths("deleteMany", request.paths(), kMaxDeletePaths, kMaxDeletePathBytes);
}

absl::Status CheckLocatedPaths(const v1::GetLocationsManyRequest& request) {
  return CheckPaths("getLocationsMany", request.paths(), kMaxLocatedPaths, kMaxLocatedPathBytes);
}

}  // namespace cairn::namenode
