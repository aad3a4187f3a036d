#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/lease_rules.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {

absl::Status CheckHolding(const OpContext& ctx, const FileEdit& edit, const BlockAt& block, const HeldBlock& held) {
  const std::string& path = edit.path();
  // A block of another id or stamp than the front door looked for: the file has changed since, and it has to look again.
  if (block.id.value() != held.block_id || block.record.generation_stamp() != held.generation_stamp)
    return PathError(ErrorKind::kRetriable, "CHANGED_MEANWHILE", path,
                     fmt::format("{}: the file changed while its last block was looked for", path));
  const std::set<uint32_t> distinct(held.storages.begin(), held.storages.end());
  const size_t needed = std::max<size_t>(ctx.limits().min_replication(), 1);
  if (distinct.size() >= needed && distinct.size() == static_cast<size_t>(held.storages.size())) return absl::OkStatus();
  return PathError(ErrorKind::kNotReplicatedYet, "NOT_SUFFICIENTLY_REPLICATED", path,
                   fmt::format("{}: block {} of the file is not sufficiently replicated yet: {} replicas can be reached, "
                               "dfs.namenode.replication.min asks for {}",
                               path, block.id.value(), distinct.size(), needed));
}

absl::Status ApplyAppend(const v1::Mutation::Append& op, OpContext& ctx) {
  const std::string& holder = ctx.mutation().client_name();
  RETURN_IF_ERROR(CheckHolder("append", op.path(), holder));
  ASSIGN_OR_RETURN(const PathWalk walk, WalkPath(ctx.view(), op.path(), ctx.caller()));
  RETURN_IF_ERROR(ctx.caller().CheckTarget(walk, kWriteRight));
  const std::string path = walk.path();
  if (!walk.complete())
    return PathError(ErrorKind::kNotFound, "", path, fmt::format("Failed to append to non-existent file {} for client {}", path, holder));
  if (walk.last().is_directory())
    return PathError(ErrorKind::kAlreadyExists, "IS_DIRECTORY", path,
                     fmt::format("Cannot append to directory {}; already exists as a directory", path));
  RETURN_IF_ERROR(CheckNotBeingWritten(ctx, kAppendFile, path, *walk.last().record, op.lease_seen()));
  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::LoadAt(ctx, walk));
  const bool goes_on = edit.last() && !op.new_block() && edit.last()->record.length_bytes() < edit.record().block_size_bytes();
  if (goes_on) {
    RETURN_IF_ERROR(CheckHolding(ctx, edit, *edit.last(), {op.block_id(), op.generation_stamp(), op.holding()}));
    RETURN_IF_ERROR(edit.CheckQuota(edit.ChargeOfNewBlock() - edit.last()->record.charged_bytes()));
    ctx.result().set_old_generation_stamp(edit.last()->record.generation_stamp());
    RETURN_IF_ERROR(edit.ReopenLast(op.holding()));
  }
  edit.GiveLease(holder);
  RETURN_IF_ERROR(edit.Write());

  v1::MutationResult& result = ctx.result();
  *result.mutable_inode() = edit.record();
  result.set_path(path);
  result.set_parent_id(edit.inode().parent.value());
  if (!goes_on) return absl::OkStatus();
  *result.mutable_block() = ToBlock(*edit.last());
  *result.mutable_storages() = edit.last()->record.expected_storages();
  result.set_offset_bytes(edit.record().length_bytes() - edit.last()->record.length_bytes());
  return absl::OkStatus();
}

}  // namespace cairn::namenode
