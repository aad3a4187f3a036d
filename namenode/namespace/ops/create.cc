#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/block_replication.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/lease_rules.h"
#include "namenode/namespace/ops/detach.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

constexpr std::string_view kMinBlockSizeKey = "dfs.namenode.fs-limits.min-block-size";
constexpr std::string_view kMaxBlockSizeKey = "cairn.block.max-size";

absl::Status OutOfRange(const std::string& path, const std::string& message, uint64_t limit, std::string_view key) {
  Error error;
  error.kind = ErrorKind::kInvalidArgument;
  error.reason = "BLOCK_SIZE_OUT_OF_RANGE";
  error.message = fmt::format("{}: {}", path, message);
  error.path = path;
  error.limit = static_cast<int64_t>(limit);
  error.key = std::string(key);
  return MakeError(std::move(error));
}

absl::Status CheckAttributes(const v1::Mutation::Create& op, const v1::Mutation::Limits& limits) {
  RETURN_IF_ERROR(CheckReplication(limits, op.replication(), op.path()));
  const uint64_t least = std::max<uint64_t>(limits.min_block_size_bytes(), 1);
  const uint64_t most = limits.max_block_size_bytes();
  if (op.block_size_bytes() < least)
    return OutOfRange(op.path(),
                      fmt::format("Specified block size is less than configured minimum value ({}): {} < {}", kMinBlockSizeKey,
                                  op.block_size_bytes(), least),
                      least, kMinBlockSizeKey);
  if (most != 0 && op.block_size_bytes() > most)
    return OutOfRange(op.path(),
                      fmt::format("Specified block size is more than configured maximum value ({}): {} > {}", kMaxBlockSizeKey,
                                  op.block_size_bytes(), most),
                      most, kMaxBlockSizeKey);
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyCreate(const v1::Mutation::Create& op, OpContext& ctx) {
  const std::string& holder = ctx.mutation().client_name();
  RETURN_IF_ERROR(CheckHolder("create", op.path(), holder));
  ASSIGN_OR_RETURN(const PathWalk walk, WalkPath(ctx.view(), op.path(), ctx.caller()));
  RETURN_IF_ERROR(ctx.caller().CheckAncestor(walk, kWriteRight));
  const std::string path = walk.path();
  if (walk.complete() && walk.last().is_directory())
    return PathError(ErrorKind::kAlreadyExists, "IS_DIRECTORY", path, fmt::format("{} already exists as a directory", path));
  if (!walk.has_parent() && !op.create_parent()) return ParentNotFound(walk);
  RETURN_IF_ERROR(CheckAttributes(op, ctx.limits()));
  if (walk.complete()) {
    if (!op.overwrite()) RETURN_IF_ERROR(CheckNotBeingWritten(ctx, kCreateFile, path, *walk.last().record, op.lease_seen()));
    if (!op.overwrite())
      return PathError(ErrorKind::kAlreadyExists, "", path, fmt::format("{} for client {} already exists", path, holder));
    RETURN_IF_ERROR(ctx.caller().CheckTarget(walk, kWriteRight));
  } else {
    RETURN_IF_ERROR(CheckMissing(ctx, walk));
  }
  if (op.with_first_block() && op.targets().empty())
    return PathError(ErrorKind::kInvalidArgument, "NO_TARGETS", path, fmt::format("{}: a first block without targets", path));
  UsageDelta added;
  added.files = 1;
  if (!walk.complete()) added.directories = static_cast<int64_t>(walk.missing()) - 1;
  if (op.with_first_block()) added.charged_bytes = static_cast<int64_t>(op.block_size_bytes() * op.replication());
  if (walk.complete()) {  // What is replaced leaves first.
    ASSIGN_OR_RETURN(const UsageDelta replaced, TotalsOf(ctx, walk.last()));
    added += -replaced;
  }
  RETURN_IF_ERROR(ctx.CheckQuota(walk.ancestors(), added));

  if (walk.complete()) RETURN_IF_ERROR(Detach(ctx, walk.last(), walk.ancestors()));
  ASSIGN_OR_RETURN(const MadeDirectories made, MakeDirectories(ctx, walk, walk.components.size() - 1, op.parent_mode(), op.parent_mode()));
  ASSIGN_OR_RETURN(v1::INodeRecord record, NewInode(ctx, v1::FILE, op.mode(), made.group));
  record.set_replication(op.replication());
  record.set_block_size_bytes(op.block_size_bytes());
  record.set_lease_holder(holder);
  record.set_delete_if_abandoned(op.delete_if_abandoned());
  record.set_never_closed(true);
  const InodeAt file{made.parent, walk.components.back(), std::move(record)};
  InsertInode(ctx, file, made.ancestors);
  v1::LeaseRecord lease;
  lease.set_since_ms(ctx.now_ms());
  lease.set_delete_if_abandoned(op.delete_if_abandoned());
  PutRecord(ctx.Change(), Family::kLease, LeaseKey(holder, file.id()), lease);

  v1::MutationResult& result = ctx.result();
  result.set_path(path);
  result.set_parent_id(made.parent.value());
  if (!op.with_first_block()) {
    *result.mutable_inode() = file.record;
    return absl::OkStatus();
  }
  FileEdit edit = FileEdit::ForNew(ctx, file, made.ancestors, path);
  ASSIGN_OR_RETURN(const BlockAt block, edit.Allocate(/*reserve=*/false, op.targets()));
  RETURN_IF_ERROR(edit.Write());
  *result.mutable_inode() = edit.record();
  *result.mutable_block() = ToBlock(block);
  *result.mutable_storages() = op.targets();
  return absl::OkStatus();
}

}  // namespace cairn::namenode
