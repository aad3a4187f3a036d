#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/block_replication.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

// A file of no more blocks is done in its first mutation, without `work`.
constexpr uint64_t kBlocksAtOnce = 64;
constexpr uint32_t kDefaultBlocks = 256;
// Keeps a step's effects well below 1 MiB.
constexpr uint32_t kMostBlocks = 1024;

absl::Status Settle(OpContext& ctx, BlockId id, uint32_t replication) {
  ASSIGN_OR_RETURN(v1::BlockRecord block, GetBlock(ctx.view(), id));
  if (!SettleReplication(block, replication)) return absl::OkStatus();
  PutBlock(ctx.Change(), id, block);
  ctx.BlockChanged(id);
  return absl::OkStatus();
}

// Blocks [first, first + count) of the file, and the reserved one with the last of them; how many there were.
absl::StatusOr<uint64_t> SettleBlocks(OpContext& ctx, const v1::INodeRecord& file, uint64_t first, uint64_t count) {
  ASSIGN_OR_RETURN(const std::vector<BlockId> ids, BlockIds(ctx.view(), file, first, count));
  for (const BlockId id : ids) RETURN_IF_ERROR(Settle(ctx, id, file.replication()));
  if (first + ids.size() >= file.block_count() && file.reserved_block_id() != 0)
    RETURN_IF_ERROR(Settle(ctx, BlockId(file.reserved_block_id()), file.replication()));
  return ids.size();
}

}  // namespace

absl::Status ApplySetReplication(const v1::Mutation::SetReplication& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkExisting(ctx.view(), op.path(), ctx.caller()));
  RETURN_IF_ERROR(ctx.caller().CheckTarget(walk, kWriteRight));
  RETURN_IF_ERROR(CheckReplication(ctx.limits(), op.replication(), walk.path()));
  InodeAt file = walk.last().Copy();
  v1::MutationResult& result = ctx.result();
  result.set_path(walk.path());
  const uint32_t before = file.record.replication();
  if (file.is_directory() || before == op.replication()) {
    *result.mutable_inode() = std::move(file.record);
    return absl::OkStatus();
  }
  const uint64_t charged = ChargedAt(file.record.charged_bytes(), before, op.replication());
  UsageDelta delta;
  delta.charged_bytes = static_cast<int64_t>(charged - file.record.charged_bytes());
  const std::vector<InodeId> ancestors = walk.ancestors();
  RETURN_IF_ERROR(ctx.CheckQuota(ancestors, delta));

  file.record.set_replication(op.replication());
  file.record.set_charged_bytes(charged);
  PutInode(ctx.Change(), file);
  ctx.AddUsage(ancestors, delta);
  *result.mutable_inode() = file.record;
  if (file.record.block_count() <= kBlocksAtOnce) return SettleBlocks(ctx, file.record, 0, kBlocksAtOnce).status();
  ASSIGN_OR_RETURN(const uint64_t work_id, TakeNumber(ctx.Change(), kMetaNextWorkId, 1));
  v1::WorkRecord work;
  work.set_created_ms(ctx.now_ms());
  work.mutable_replication()->set_inode_id(file.record.id());
  work.mutable_replication()->set_replication(op.replication());
  PutRecord(ctx.Change(), Family::kWork, WorkKey(work_id), work);
  return absl::OkStatus();
}

absl::Status ApplySpreadReplication(const v1::Mutation::SpreadReplication& op, OpContext& ctx) {
  const std::string key = WorkKey(op.work_id());
  ASSIGN_OR_RETURN(std::optional<v1::WorkRecord> work, FindRecord<v1::WorkRecord>(ctx.view(), Family::kWork, key));
  if (!work || !work->has_replication()) {
    ctx.result().set_done(true);
    return absl::OkStatus();
  }
  v1::ReplicationWork& cursor = *work->mutable_replication();
  ASSIGN_OR_RETURN(const std::optional<InodeAt> file, FindInodeAnywhere(ctx.view(), InodeId(cursor.inode_id())));
  bool gone = !file;
  if (!gone) {
    ASSIGN_OR_RETURN(const Ancestry ancestry, AncestryOf(ctx.view(), file->parent, file->name));
    gone = ancestry.detached;
  }
  uint64_t handled = 0;
  if (!gone) {
    // By what the file's record says now: a later change may have overtaken this one.
    const uint32_t count = op.max_blocks() == 0 ? kDefaultBlocks : std::min(op.max_blocks(), kMostBlocks);
    ASSIGN_OR_RETURN(handled, SettleBlocks(ctx, file->record, cursor.next_index(), count));
    cursor.set_next_index(cursor.next_index() + handled);
  }
  const bool done = gone || cursor.next_index() >= file->record.block_count();
  if (done) {
    ctx.Change().Delete(Family::kWork, key);
  } else {
    PutRecord(ctx.Change(), Family::kWork, key, *work);
  }
  ctx.result().set_done(done);
  ctx.result().set_next(static_cast<uint32_t>(handled));
  return absl::OkStatus();
}

}  // namespace cairn::namenode
