#pragma once

#include <string>
#include <string_view>

#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/op_context.h"

namespace cairn::namenode {

// Reasons of kBeingWritten, for programs; as HDFS's AlreadyBeingCreatedException and RecoveryInProgressException.
inline constexpr std::string_view kAlreadyOpenByYou = "ALREADY_OPEN_BY_YOU";
inline constexpr std::string_view kHeldByOther = "HELD_BY_OTHER";
// Its holder was silent for longer than the soft limit: whoever wants the file may take it over (RecoverLease) and ask again.
inline constexpr std::string_view kMayBeTakenOver = "MAY_BE_TAKEN_OVER";
inline constexpr std::string_view kRecovering = "RECOVERING";  // Its last block is being recovered: ask again in a second.
inline constexpr std::string_view kTruncating = "BUSY";        // The same because of a truncate.

// HDFS's names of operations in its messages about leases.
inline constexpr std::string_view kCreateFile = "CREATE_FILE";
inline constexpr std::string_view kAppendFile = "APPEND_FILE";
inline constexpr std::string_view kTruncateFile = "TRUNCATE_FILE";
inline constexpr std::string_view kRecoverLease = "RECOVER_LEASE";

// OK if the file is closed, else kBeingWritten: why `operation` cannot have it. `seen` is what the front door saw of the lease; it counts
// only if the file's holder is still the one that was seen.
absl::Status CheckNotBeingWritten(const OpContext& ctx, std::string_view operation, const std::string& path, const v1::INodeRecord& file,
                                  const v1::Mutation::LeaseSeen& seen);

// A client's name as the holder of a lease: kInvalidArgument if it is missing, too long, or the NameNode's own.
absl::Status CheckHolder(std::string_view operation, const std::string& path, std::string_view holder);

// Takes a file that is being written from its holder. True: its blocks allow that it is closed, which it is. False: its last block has to
// be recovered first; the NameNode holds the lease meanwhile, and the file is closed when that is done.
absl::StatusOr<bool> TakeFromWriter(FileEdit& edit);

}  // namespace cairn::namenode
