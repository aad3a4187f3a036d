#include <memory>
#include <optional>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/lease_rules.h"
#include "namenode/namespace/ops/detach.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

void Answer(const FileEdit& edit, bool closed, OpContext& ctx) {
  *ctx.result().mutable_inode() = edit.record();
  ctx.result().set_path(edit.path());
  ctx.result().set_parent_id(edit.inode().parent.value());
  ctx.result().set_done(closed);
}

// Its writer wanted it to vanish if he does not close it.
absl::Status Vanish(const FileEdit& edit, OpContext& ctx) {
  Answer(edit, /*closed=*/true, ctx);
  ctx.result().set_deleted(true);
  const InodeAt& file = edit.inode();
  return Detach(ctx, WalkedInode{file.parent, file.name, std::make_shared<v1::INodeRecord>(file.record)}, edit.ancestors());
}

}  // namespace

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
  if (edit.record().delete_if_abandoned()) return Vanish(edit, ctx);
  ASSIGN_OR_RETURN(const bool closed, TakeFromWriter(edit));
  Answer(edit, closed, ctx);
  return absl::OkStatus();
}

absl::Status ApplyRecoverLease(const v1::Mutation::RecoverLease& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkExisting(ctx.view(), op.path(), ctx.caller()));
  // A takeover is asked for by a call that was let in; HDFS asks the right to write only of recoverLease.
  if (op.by_force()) RETURN_IF_ERROR(ctx.caller().CheckTarget(walk, kWriteRight));
  if (walk.last().is_directory()) return MakeError(ErrorKind::kIsDirectory, fmt::format("Path is not a file: {}", walk.path()));
  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::LoadAt(ctx, walk));
  const v1::INodeRecord& file = edit.record();
  ctx.result().set_existed(!file.lease_holder().empty());
  if (file.lease_holder().empty() || file.lease_holder() == kRecoveryHolder) {
    Answer(edit, file.lease_holder().empty(), ctx);
    return absl::OkStatus();
  }
  if (!op.by_force()) {
    absl::Status refused = CheckNotBeingWritten(ctx, kRecoverLease, edit.path(), file, op.lease_seen());
    if (ReasonOf(refused) != kMayBeTakenOver) return refused;
    if (file.delete_if_abandoned()) return Vanish(edit, ctx);
  }
  ASSIGN_OR_RETURN(const bool closed, TakeFromWriter(edit));
  Answer(edit, closed, ctx);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
