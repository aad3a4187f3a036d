#include <set>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/block_replication.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

struct Source {
  WalkedInode inode;
  std::vector<BlockId> ids;
  std::vector<v1::BlockRecord> blocks;
};

absl::Status Bad(std::string_view reason, const std::string& path, std::string message) {
  return PathError(ErrorKind::kInvalidArgument, reason, path, std::move(message));
}

absl::Status NotAFile(const std::string& path) {
  return PathError(ErrorKind::kIsDirectory, "", path, fmt::format("concat: Path is not a file: {}", path));
}

// One source by its path, with what HDFS asks of it (FSDirConcatOp.verifySrcFiles). A source in the target's directory costs one Get.
absl::StatusOr<WalkedInode> FindSource(const std::string& path, const PathWalk& target, const OpContext& ctx) {
  PathWalk source;
  ASSIGN_OR_RETURN(source.components, SplitPath(path));
  const bool together = source.components.size() == target.components.size() &&
                        std::equal(source.components.begin(), source.components.end() - 1, target.components.begin());
  if (!together) {
    ASSIGN_OR_RETURN(source, WalkExisting(ctx.view(), path, ctx.caller()));
    if (source.last().is_directory()) return NotAFile(source.path());
    return Bad("OTHER_DIRECTORY", source.path(),
               fmt::format("Source file {} is not in the same directory with the target {}", source.path(), target.path()));
  }
  const InodeId parent = target.parent().id();
  const std::string& name = source.components.back();
  ASSIGN_OR_RETURN(std::shared_ptr<const v1::INodeRecord> record,
                   FindShared<v1::INodeRecord>(ctx.view(), Family::kInode, InodeKey(parent, name)));
  source.inodes.assign(target.inodes.begin(), target.inodes.end() - 1);
  if (record == nullptr) return PathNotFound(source);
  source.inodes.push_back(WalkedInode{parent, name, std::move(record)});
  // It is read, and it goes.
  RETURN_IF_ERROR(ctx.caller().CheckTarget(source, kReadRight));
  RETURN_IF_ERROR(ctx.caller().CheckParent(source, kWriteRight));
  const WalkedInode& found = source.last();
  if (found.is_directory()) return NotAFile(source.path());
  if (found.id() == target.last().id())
    return Bad("IS_TARGET", source.path(), fmt::format("concat: the src file {} is the same with the target file {}", path, target.path()));
  if (!found.record->lease_holder().empty() || found.record->block_count() == 0)
    return Bad(found.record->block_count() == 0 ? "SOURCE_EMPTY" : "SOURCE_OPEN", source.path(),
               fmt::format("concat: source file {} is invalid or empty or underConstruction", source.path()));
  const uint64_t most = target.last().record->block_size_bytes();
  if (found.record->block_size_bytes() > most)
    return Bad(
        "BLOCK_SIZE", source.path(),
        fmt::format("concat: source file {} has preferred block size {} which is greater than the target file's preferred block size {}",
                    source.path(), found.record->block_size_bytes(), most));
  return found;
}

absl::StatusOr<std::vector<Source>> FindSources(const v1::Mutation::Concat& op, const PathWalk& target, const OpContext& ctx) {
  std::vector<Source> sources;
  std::set<InodeId> seen;
  uint64_t moved = 0;
  for (const std::string& path : op.sources()) {
    ASSIGN_OR_RETURN(WalkedInode found, FindSource(path, target, ctx));
    if (!seen.insert(found.id()).second) return Bad("SAME_SOURCE_TWICE", path, "concat: at least two of the source files are the same");
    moved += found.record->block_count();
    sources.push_back(Source{std::move(found), {}, {}});
  }
  const uint64_t limit = ctx.limits().max_blocks_per_file();
  const uint64_t after = target.last().record->block_count() + moved;
  if (limit != 0 && after > limit)
    return LimitExceeded("TOO_MANY_BLOCKS",
                         fmt::format("{}: File has reached the limit on maximum number of blocks: it would have {}", target.path(), after),
                         target.path(), limit, kMaxBlocksPerFileKey);
  if (moved > kMaxBlocksOfConcat)
    return Bad(
        "TOO_MANY_BLOCKS_AT_ONCE", target.path(),
        fmt::format("concat: {} blocks are too many to be moved at once (at most {}): name fewer sources", moved, kMaxBlocksOfConcat));
  for (Source& source : sources) {
    ASSIGN_OR_RETURN(source.ids, BlockIds(ctx.view(), *source.inode.record, 0, source.inode.record->block_count()));
    for (const BlockId id : source.ids) {
      ASSIGN_OR_RETURN(v1::BlockRecord block, GetBlock(ctx.view(), id));
      if (block.state() != v1::COMMITTED)
        return Bad("SOURCE_OPEN", JoinPath({source.inode.name}),
                   fmt::format("concat: block {} of source file {} is not committed", id.value(), source.inode.name));
      source.blocks.push_back(std::move(block));
    }
  }
  return sources;
}

absl::StatusOr<PathWalk> FindTarget(const std::string& path, const OpContext& ctx) {
  ASSIGN_OR_RETURN(PathWalk target, WalkExisting(ctx.view(), path, ctx.caller()));
  RETURN_IF_ERROR(ctx.caller().CheckTarget(target, kWriteRight));
  if (target.last().is_directory()) return NotAFile(target.path());
  const v1::INodeRecord& record = *target.last().record;
  bool open = !record.lease_holder().empty();
  if (!open && record.block_count() > 0) {
    ASSIGN_OR_RETURN(const BlockId id, BlockIdAt(ctx.view(), record, record.block_count() - 1));
    ASSIGN_OR_RETURN(const v1::BlockRecord last, GetBlock(ctx.view(), id));
    open = last.state() != v1::COMMITTED;
  }
  if (open) return Bad("TARGET_OPEN", target.path(), fmt::format("concat: target file {} is under construction", target.path()));
  return target;
}

}  // namespace

absl::Status ApplyConcat(const v1::Mutation::Concat& op, OpContext& ctx) {
  if (op.sources().empty()) return Bad("NO_SOURCES", op.target(), fmt::format("concat to {}: No sources given", op.target()));
  if (op.sources_size() > kMaxSourcesOfConcat)
    return Bad("TOO_MANY_SOURCES", op.target(),
               fmt::format("concat: {} sources are too many for one call (at most {})", op.sources_size(), kMaxSourcesOfConcat));
  ASSIGN_OR_RETURN(const PathWalk target, FindTarget(op.target(), ctx));
  ASSIGN_OR_RETURN(std::vector<Source> sources, FindSources(op, target, ctx));

  InodeAt file = target.last().Copy();
  const uint32_t replication = file.record.replication();
  UsageDelta delta;
  delta.files = -static_cast<int64_t>(sources.size());
  for (const Source& source : sources) {
    const v1::INodeRecord& record = *source.inode.record;
    const uint64_t charged = ChargedAt(record.charged_bytes(), record.replication(), replication);
    delta.charged_bytes += static_cast<int64_t>(charged - record.charged_bytes());
    file.record.set_charged_bytes(file.record.charged_bytes() + charged);
    file.record.set_length_bytes(file.record.length_bytes() + record.length_bytes());
  }
  const std::vector<InodeId> ancestors = target.ancestors();
  RETURN_IF_ERROR(ctx.CheckQuota(ancestors, delta));

  Transaction& txn = ctx.Change();
  for (Source& source : sources) {
    for (size_t i = 0; i < source.ids.size(); ++i) {
      v1::BlockRecord& block = source.blocks[i];
      block.set_inode_id(file.record.id());
      block.set_index(file.record.block_count());
      if (SettleReplication(block, replication)) ctx.BlockChanged(source.ids[i]);
      PutBlock(txn, source.ids[i], block);
      AppendBlockId(txn, file.record, source.ids[i]);
    }
    const InodeId id = source.inode.id();
    if (source.ids.size() > kMaxInlineBlocks)
      for (uint64_t i = 0; i < source.ids.size(); ++i) txn.Delete(Family::kFileBlock, FileBlockKey(id, i));
    txn.Delete(Family::kInode, InodeKey(source.inode.parent, source.inode.name));
    txn.Delete(Family::kInodeById, InodeByIdKey(id));
  }
  file.record.set_modification_time_ms(ctx.now_ms());
  PutInode(txn, file);
  RETURN_IF_ERROR(ctx.NoteGrowth(file.id(), target.last().record->block_count(), file.record.block_count(),
                                 ctx.limits().max_blocks_per_file(), kMaxBlocksPerFileKey));
  ctx.AddUsage(ancestors, delta);
  ctx.AddChildren(file.parent, -static_cast<int64_t>(sources.size()));
  ctx.TouchDirectory(file.parent);
  ctx.result().set_path(target.path());
  *ctx.result().mutable_inode() = file.record;
  return absl::OkStatus();
}

}  // namespace cairn::namenode
