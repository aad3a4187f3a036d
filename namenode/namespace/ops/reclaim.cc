#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/ops/detach.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

constexpr uint32_t kDefaultEntries = 256;
// Keeps a step's effects well below 1 MiB.
constexpr uint32_t kMostEntries = 1024;

// One step through a detached subtree, depth first: a directory's files are freed in the order of their names, a directory found is
// descended into, an empty one goes and its parent is continued after its name. The cursor in the work row skips what is gone, so a step
// never walks over the tombstones of the steps before; in a swept directory it alone tells what is freed.
class Reclaim {
 public:
  Reclaim(OpContext& ctx, v1::ReclaimWork& work, uint32_t budget) : ctx_(ctx), work_(work), budget_(budget) {}

  // True when nothing is left.
  absl::StatusOr<bool> Run() {
    ASSIGN_OR_RETURN(std::optional<InodeAt> root, FindInodeAnywhere(ctx_.view(), InodeId(work_.root_inode_id())));
    if (!root) return true;
    if (root->parent != kDetachedInodeId)
      return CorruptRow(Family::kInodeById, InodeByIdKey(root->id()), "is to be reclaimed but was never detached");
    if (!root->is_directory()) return FreeFile(*root, /*in_swept_directory=*/false);
    if (work_.path().empty()) work_.add_path(root->record.id());
    while (budget_ > 0 && !work_.path().empty()) RETURN_IF_ERROR(Continue());
    return work_.path().empty();
  }

  uint32_t handled() const { return handled_; }

 private:
  void Spend(uint32_t entries) {
    handled_ += entries;
    budget_ -= std::min(budget_, entries);
  }

  // Goes on in the directory at the end of the cursor.
  absl::Status Continue() {
    const InodeId directory(work_.path(work_.path_size() - 1));
    std::vector<InodeAt> children;
    {
      const auto cursor = ctx_.view().Scan(Family::kInode, ChildrenBegin(directory, work_.after_name()), ChildrenEnd(directory));
      for (; cursor->Valid() && children.size() < budget_; cursor->Next()) {
        const std::optional<InodeKeyParts> parts = ParseInodeKey(cursor->key());
        v1::INodeRecord record;
        if (!parts || !record.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size())))
          return CorruptRow(Family::kInode, cursor->key(), "does not parse");
        children.push_back(InodeAt{parts->parent, std::string(parts->name), std::move(record)});
        if (children.back().is_directory()) break;
      }
      RETURN_IF_ERROR(cursor->status());
    }
    if (children.empty()) return RemoveDirectory(directory);
    ASSIGN_OR_RETURN(const bool swept, IsSwept(directory));
    for (const InodeAt& child : children) {
      if (budget_ == 0) return absl::OkStatus();
      if (child.is_directory()) {
        work_.add_path(child.record.id());
        work_.clear_after_name();
        return absl::OkStatus();
      }
      ASSIGN_OR_RETURN(const bool freed, FreeFile(child, swept));
      if (freed) work_.set_after_name(child.name);
    }
    return absl::OkStatus();
  }

  // The usage row stands as it was at the delete until the directory goes, so every step answers the same.
  absl::StatusOr<bool> IsSwept(InodeId directory) const {
    if (directory == kDetachedInodeId) return false;
    ASSIGN_OR_RETURN(const v1::UsageRecord usage, GetRecord<v1::UsageRecord>(ctx_.view(), Family::kUsage, UsageKey(directory)));
    return usage.children() >= kSweptEntries;
  }

  absl::Status RemoveDirectory(InodeId id) {
    ASSIGN_OR_RETURN(const std::optional<InodeAt> directory, FindInodeAnywhere(ctx_.view(), id));
    if (!directory) return CorruptRow(Family::kInodeById, InodeByIdKey(id), "is missing");
    ASSIGN_OR_RETURN(const bool swept, IsSwept(id));
    if (swept && handled_ > 0) {
      // The range may only be one that this batch has neither read nor written: as the first thing of the next step.
      budget_ = 0;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const bool in_swept, IsSwept(directory->parent));
    Transaction& txn = ctx_.Change();
    // To behind the last name that was freed; this step has looked only beyond it.
    if (swept) txn.DeleteRange(Family::kInode, ChildrenBegin(id, ""), ChildrenBegin(id, work_.after_name()));
    txn.Delete(Family::kUsage, UsageKey(id));
    RemoveInode(txn, *directory, in_swept);
    work_.mutable_path()->RemoveLast();
    work_.set_after_name(directory->name);
    return absl::OkStatus();
  }

  void RemoveInode(Transaction& txn, const InodeAt& inode, bool in_swept_directory) {
    if (!in_swept_directory) txn.Delete(Family::kInode, InodeKey(inode.parent, inode.name));
    txn.Delete(Family::kInodeById, InodeByIdKey(inode.id()));
    work_.set_freed_inodes(work_.freed_inodes() + 1);
    work_.set_left_inodes(work_.left_inodes() - std::min<uint64_t>(work_.left_inodes(), 1));
    Spend(1);
  }

  // Frees blocks from the end of the file, then the file; false if the budget ended before.
  absl::StatusOr<bool> FreeFile(const InodeAt& file, bool in_swept_directory) {
    Transaction& txn = ctx_.Change();
    v1::INodeRecord record = file.record;
    if (record.reserved_block_id() != 0) {
      RETURN_IF_ERROR(FreeBlock(BlockId(record.reserved_block_id())).status());
      record.set_reserved_block_id(0);
    }
    const uint64_t take = std::min<uint64_t>(record.block_count(), budget_);
    ASSIGN_OR_RETURN(const std::vector<BlockId> ids, BlockIds(ctx_.view(), record, record.block_count() - take, take));
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      ASSIGN_OR_RETURN(const uint64_t length, FreeBlock(*id));
      RETURN_IF_ERROR(DropLastBlockId(txn, record));
      record.set_length_bytes(record.length_bytes() - std::min(record.length_bytes(), length));
      work_.set_left_bytes(work_.left_bytes() - std::min(work_.left_bytes(), length));
    }
    if (record.block_count() > 0 || (budget_ == 0 && !ids.empty())) {
      PutInode(txn, InodeAt{file.parent, file.name, record});
      return false;
    }
    if (!record.lease_holder().empty()) txn.Delete(Family::kLease, LeaseKey(record.lease_holder(), file.id()));
    RemoveInode(txn, file, in_swept_directory);
    return true;
  }

  absl::StatusOr<uint64_t> FreeBlock(BlockId id) {
    ASSIGN_OR_RETURN(const ReleasedBlock released, ReleaseBlock(ctx_, id));
    if (released.is_freed) work_.set_freed_blocks(work_.freed_blocks() + 1);
    Spend(1);
    return released.length_bytes;
  }

  OpContext& ctx_;
  v1::ReclaimWork& work_;
  uint32_t budget_;
  uint32_t handled_ = 0;
};

}  // namespace

absl::Status ApplyReclaimStep(const v1::Mutation::ReclaimStep& op, OpContext& ctx) {
  std::vector<uint64_t> ids = {op.work_id()};
  ids.insert(ids.end(), op.more_work_ids().begin(), op.more_work_ids().end());
  uint32_t budget = op.max_entries() == 0 ? kDefaultEntries : std::min(op.max_entries(), kMostEntries);
  uint32_t handled = 0;
  bool all_done = true;
  for (const uint64_t id : ids) {
    if (budget == 0) {
      all_done = false;
      break;
    }
    v1::ReclaimProgress& progress = *ctx.result().add_reclaimed();
    progress.set_work_id(id);
    const std::string key = WorkKey(id);
    ASSIGN_OR_RETURN(std::optional<v1::WorkRecord> work, FindRecord<v1::WorkRecord>(ctx.view(), Family::kWork, key));
    if (!work || !work->has_reclaim()) {
      progress.set_done(true);
      continue;
    }
    Reclaim reclaim(ctx, *work->mutable_reclaim(), budget);
    ASSIGN_OR_RETURN(const bool done, reclaim.Run());
    if (done) {
      ctx.Change().Delete(Family::kWork, key);
    } else {
      PutRecord(ctx.Change(), Family::kWork, key, *work);
      progress.set_left_inodes(work->reclaim().left_inodes());
      progress.set_left_bytes(work->reclaim().left_bytes());
    }
    progress.set_done(done);
    all_done = all_done && done;
    handled += reclaim.handled();
    budget -= std::min(budget, reclaim.handled());
    if (!done) break;  // It had the rest of the step.
  }
  ctx.result().set_done(all_done);
  ctx.result().set_next(handled);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
