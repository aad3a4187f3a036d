#include "namenode/namespace/ops/detach.h"

#include "namenode/namespace/file_edit.h"

namespace cairn::namenode {
namespace {

// Frees a file whose blocks' ids stand in its record: as many rows as it takes to move it away, and nothing is left to be done.
absl::Status FreeSmallFile(OpContext& ctx, const WalkedInode& file) {
  const v1::INodeRecord& record = *file.record;
  std::vector<BlockId> ids;
  for (const uint64_t id : record.blocks()) ids.emplace_back(id);
  if (record.reserved_block_id() != 0) ids.emplace_back(record.reserved_block_id());
  Transaction& txn = ctx.Change();
  for (const BlockId id : ids) RETURN_IF_ERROR(ReleaseBlock(ctx, id).status());
  if (!record.lease_holder().empty()) txn.Delete(Family::kLease, LeaseKey(record.lease_holder(), file.id()));
  txn.Delete(Family::kInode, InodeKey(file.parent, file.name));
  txn.Delete(Family::kInodeById, InodeByIdKey(file.id()));
  return absl::OkStatus();
}

absl::Status MoveAway(OpContext& ctx, const WalkedInode& inode, const UsageDelta& total) {
  Transaction& txn = ctx.Change();
  txn.Delete(Family::kInode, InodeKey(inode.parent, inode.name));
  InodeAt moved{kDetachedInodeId, DetachedName(inode.id()), *inode.record};
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
  work.mutable_reclaim()->set_root_inode_id(inode.record->id());
  work.mutable_reclaim()->set_left_inodes(static_cast<uint64_t>(total.directories + total.files));
  work.mutable_reclaim()->set_left_bytes(static_cast<uint64_t>(total.length_bytes));
  PutRecord(txn, Family::kWork, WorkKey(work_id), work);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReleasedBlock> ReleaseBlock(OpContext& ctx, BlockId id) {
  ASSIGN_OR_RETURN(v1::BlockRecord record, GetBlock(ctx.view(), id));
  ReleasedBlock released;
  released.length_bytes = record.state() == v1::RESERVED ? 0 : record.length_bytes();
  released.is_freed = record.owners() <= 1;
  if (released.is_freed) {
    ctx.Change().Delete(Family::kBlock, BlockKey(id));
    *ctx.result().add_freed() = ToFreed(BlockAt{id, std::move(record)});
  } else {
    record.set_owners(record.owners() - 1);
    PutBlock(ctx.Change(), id, record);
  }
  return released;
}

absl::StatusOr<UsageDelta> TotalsOf(const OpContext& ctx, const WalkedInode& inode) {
  UsageDelta total;
  if (!inode.is_directory()) {
    total.files = 1;
    total.length_bytes = static_cast<int64_t>(inode.record->length_bytes());
    total.charged_bytes = static_cast<int64_t>(inode.record->charged_bytes());
    return total;
  }
  ASSIGN_OR_RETURN(const v1::UsageRecord usage, ctx.UsageOf(inode.id()));
  total.directories = static_cast<int64_t>(usage.directories()) + 1;
  total.files = static_cast<int64_t>(usage.files());
  total.length_bytes = static_cast<int64_t>(usage.length_bytes());
  total.charged_bytes = static_cast<int64_t>(usage.charged_bytes());
  return total;
}

absl::Status Detach(OpContext& ctx, const WalkedInode& inode, const std::vector<InodeId>& ancestors) {
  ASSIGN_OR_RETURN(const UsageDelta total, TotalsOf(ctx, inode));
  const bool is_small = !inode.is_directory() && inode.record->block_count() <= kMaxInlineBlocks;
  RETURN_IF_ERROR(is_small ? FreeSmallFile(ctx, inode) : MoveAway(ctx, inode, total));
  ctx.AddUsage(ancestors, -total);
  ctx.AddChildren(inode.parent, -1);
  ctx.TouchDirectory(inode.parent);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
