#include <optional>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/lease_rules.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {

absl::Status ApplyTruncate(const v1::Mutation::Truncate& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkExisting(ctx.view(), op.path(), ctx.caller()));
  RETURN_IF_ERROR(ctx.caller().CheckTarget(walk, kWriteRight));
  const std::string path = walk.path();
  if (walk.last().is_directory()) return MakeError(ErrorKind::kIsDirectory, fmt::format("Path is not a file: {}", path));
  RETURN_IF_ERROR(CheckNotBeingWritten(ctx, kTruncateFile, path, *walk.last().record, op.lease_seen()));
  const uint64_t length = walk.last().record->length_bytes();
  if (op.new_length_bytes() > length)
    return PathError(ErrorKind::kInvalidArgument, "LARGER_THAN_FILE", path,
                     fmt::format("{}: Cannot truncate to a larger file size. Current size: {}, truncate size: {}.", path, length,
                                 op.new_length_bytes()));
  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::LoadAt(ctx, walk));
  std::optional<uint64_t> cut;  // Inside the block that becomes the last.
  if (op.new_length_bytes() < length) {
    // The blocks beyond the new end go whole. `edit` changes in memory only: a refusal below has written nothing.
    while (edit.last() && edit.record().length_bytes() - edit.last()->record.length_bytes() >= op.new_length_bytes())
      RETURN_IF_ERROR(edit.DropToPrevious());
    if (edit.record().length_bytes() > op.new_length_bytes()) {
      cut = edit.last()->record.length_bytes() - (edit.record().length_bytes() - op.new_length_bytes());
      RETURN_IF_ERROR(CheckHolding(ctx, edit, *edit.last(), {op.block_id(), op.generation_stamp(), op.holding()}));
      RETURN_IF_ERROR(edit.CutLast(op.holding(), *cut));
    }
    edit.Touch();
    RETURN_IF_ERROR(edit.Write());
  }
  *ctx.result().mutable_inode() = edit.record();
  ctx.result().set_path(path);
  ctx.result().set_parent_id(edit.inode().parent.value());
  ctx.result().set_done(!cut);
  if (cut) *ctx.result().mutable_block() = ToBlock(*edit.last());
  return absl::OkStatus();
}

}  // namespace cairn::namenode
