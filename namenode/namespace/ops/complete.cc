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
  edit.Close();
  RETURN_IF_ERROR(edit.Write());
  Answer(edit, ctx);
  return absl::OkStatus();
}

absl::Status ApplyExpireLease(const v1::Mutation::ExpireLease& op, OpContext& ctx) {
  const InodeId id(op.inode_id());
  const std::string lease_key = LeaseKey(op.holder(), id);
  ASSIGN_OR_RETURN(const std::optional<v1::LeaseRecord> lease, FindRecord<v1::LeaseRecord>(ctx.view(), Family::kLease, lease_key));
  ctx.result().set_existed(lease.has_value());
  if (!lease) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<InodeAt> inode, FindInodeAnywhere(ctx.view(), id));
  bool leads_nowhere = !inode || inode->record.lease_holder() != op.holder();
  if (!leads_nowhere) {
    ASSIGN_OR_RETURN(const Ancestry ancestry, AncestryOf(ctx.view(), inode->parent, inode->name));
    leads_nowhere = ancestry.detached;
  }
  if (leads_nowhere) {
    ctx.Change().Delete(Family::kLease, lease_key);
    return absl::OkStatus();
  }

  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::Load(ctx, "", op.inode_id()));
  if (edit.last() && edit.last()->record.state() != v1::COMMITTED) {
    const v1::BlockRecord& last = edit.last()->record;
    const bool never_set_up = last.state() == v1::UNDER_CONSTRUCTION && last.length_bytes() == 0 && last.expected_storages().empty();
    if (!never_set_up) {
      Error error;
      error.kind = ErrorKind::kBeingWritten;
      error.reason = "NEEDS_RECOVERY";
      error.path = edit.path();
      error.block_id = edit.last()->id.value();
      error.message = fmt::format("{}: {} was silent for {} ms, but block {} has to be recovered before the file can be closed",
                                  edit.path(), op.holder(), op.observed_idle_ms(), error.block_id);
      return MakeError(std::move(error));
    }
    edit.DropLast();
  }
  edit.Close();
  RETURN_IF_ERROR(edit.Write());
  Answer(edit, ctx);
  ctx.result().set_done(true);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
