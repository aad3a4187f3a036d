#include "namenode/namespace/ops/detach.h"

namespace cairn::namenode {

absl::StatusOr<UsageDelta> TotalsOf(const OpContext& ctx, const InodeAt& inode) {
  UsageDelta total;
  if (!inode.is_directory()) {
    total.files = 1;
    total.length_bytes = static_cast<int64_t>(inode.record.length_bytes());
    total.charged_bytes = static_cast<int64_t>(inode.record.charged_bytes());
    return total;
  }
  ASSIGN_OR_RETURN(const v1::UsageRecord usage, ctx.UsageOf(inode.id()));
  total.directories = static_cast<int64_t>(usage.directories()) + 1;
  total.files = static_cast<int64_t>(usage.files());
  total.length_bytes = static_cast<int64_t>(usage.length_bytes());
  total.charged_bytes = static_cast<int64_t>(usage.charged_bytes());
  return total;
}

absl::Status Detach(OpContext& ctx, const InodeAt& inode, const std::vector<InodeId>& ancestors) {
  ASSIGN_OR_RETURN(const UsageDelta total, TotalsOf(ctx, inode));
  Transaction& txn = ctx.Change();
  txn.Delete(Family::kInode, InodeKey(inode.parent, inode.name));
  InodeAt moved{kDetachedInodeId, DetachedName(inode.id()), inode.record};
  if (!moved.record.lease_holder().empty()) {
    txn.Delete(Family::kLease, LeaseKey(moved.record.lease_holder(), inode.id()));
    moved.record.clear_lease_holder();
    moved.record.clear_delete_if_abandoned();
  }
  PutInode(txn, moved);
  PutLink(txn, moved.id(), moved.parent, moved.name);

  ASSIGN_OR_RETURN(const uint64_t work_id, TakeNumber(txn, kMetaNextWorkId, 1));
  v1::WorkRecord work;
  work.set_created_ms(ctx.now_ms());
  work.mutable_reclaim()->set_root_inode_id(inode.record.id());
  work.mutable_reclaim()->set_left_inodes(static_cast<uint64_t>(total.directories + total.files));
  work.mutable_reclaim()->set_left_bytes(static_cast<uint64_t>(total.length_bytes));
  PutRecord(txn, Family::kWork, WorkKey(work_id), work);

  ctx.AddUsage(ancestors, -total);
  ctx.AddChildren(inode.parent, -1);
  ctx.TouchDirectory(inode.parent);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
