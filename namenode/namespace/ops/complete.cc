#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

void Answer(const FileEdit& edit, OpContext& ctx) {
  *ctx.result().mutable_inode() = edit.record();
  ctx.result().set_path(edit.path());
  ctx.result().set_parent_id(edit.inode().parent.value());
}

bool EndsIn(const FileEdit& edit, const v1::Mutation::Complete& op) {
  if (!op.has_last()) return !edit.last();
  const v1::Block& named = op.last().block();
  return edit.last() && edit.last()->id.value() == named.id() && edit.last()->record.generation_stamp() == named.generation_stamp() &&
         edit.last()->record.length_bytes() == named.length_bytes();
}

}  // namespace

absl::Status ApplyComplete(const v1::Mutation::Complete& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::Load(ctx, op.path(), op.inode_id()));
  if (edit.record().lease_holder().empty() && EndsIn(edit, op)) {
    Answer(edit, ctx);  // Closed before, just so.
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(edit.CheckLease());
  if (op.use_reserved_id() != 0) RETURN_IF_ERROR(edit.TakeReserved(op.has_previous() ? &op.previous() : nullptr, op.use_reserved_id()));
  if (op.has_last()) {
    RETURN_IF_ERROR(edit.CommitLast(op.last()));
  } else if (edit.last() && edit.last()->record.state() != v1::COMMITTED) {
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.reason = "NOT_COMMITTED";
    error.path = edit.path();
    error.block_id = edit.last()->id.value();
    error.message = fmt::format("{}: complete must name the last block, {}, which is being written", edit.path(), error.block_id);
    return MakeError(std::move(error));
  }
  edit.Close(FileEdit::ClosedBy::kWriter);
  RETURN_IF_ERROR(edit.Write());
  Answer(edit, ctx);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
