#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

// `earlier` bytes of the file come before the block.
void Answer(const FileEdit& edit, const BlockAt& block, OpContext& ctx) {
  v1::MutationResult& result = ctx.result();
  *result.mutable_inode() = edit.record();
  result.set_path(edit.path());
  *result.mutable_block() = ToBlock(block);
  *result.mutable_storages() = block.record.expected_storages();
  const bool is_last = edit.last() && edit.last()->id == block.id;
  result.set_offset_bytes(edit.record().length_bytes() - (is_last ? block.record.length_bytes() : 0));
}

bool IsEmptyAndOpen(const BlockAt& block) { return block.record.state() == v1::UNDER_CONSTRUCTION && block.record.length_bytes() == 0; }

bool IsCommittedAs(const BlockAt& block, const v1::Block& named) {
  return block.record.state() == v1::COMMITTED && block.id.value() == named.id() &&
         block.record.generation_stamp() == named.generation_stamp() && block.record.length_bytes() == named.length_bytes();
}

// True if this call was made before: the block before it is the one named, and the last is still untouched. As HDFS
// FSDirWriteFileOp.analyzeFileState.
absl::StatusOr<bool> IsRepeated(const v1::Mutation::AddBlock& op, const FileEdit& edit) {
  if (!edit.last() || !IsEmptyAndOpen(*edit.last())) return false;
  if (!op.has_previous()) return edit.record().block_count() == 1;
  ASSIGN_OR_RETURN(const std::optional<BlockAt> before, edit.Penultimate());
  return before && IsCommittedAs(*before, op.previous().block());
}

absl::Status CheckRoom(const v1::Mutation::AddBlock& op, const FileEdit& edit, uint64_t blocks_before, OpContext& ctx) {
  const uint64_t limit = ctx.limits().max_blocks_per_file();
  if (limit != 0 && blocks_before >= limit)
    return LimitExceeded("TOO_MANY_BLOCKS",
                         fmt::format("{}: File has reached the limit on maximum number of blocks: it has {}", edit.path(), blocks_before),
                         edit.path(), limit, kMaxBlocksPerFileKey);
  if (!op.targets().empty()) return edit.CheckQuota(edit.ChargeOfNewBlock());
  Error error;
  error.kind = ErrorKind::kInvalidArgument;
  error.reason = "NO_TARGETS";
  error.path = edit.path();
  error.message = fmt::format("{}: no storages were chosen for its new block", edit.path());
  return MakeError(std::move(error));
}

absl::Status Reserve(const v1::Mutation::AddBlock& op, FileEdit& edit, OpContext& ctx) {
  if (edit.reserved()) {
    Answer(edit, *edit.reserved(), ctx);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckRoom(op, edit, edit.record().block_count(), ctx));
  ASSIGN_OR_RETURN(const BlockAt block, edit.Allocate(/*reserve=*/true, op.targets()));
  RETURN_IF_ERROR(edit.Write());
  Answer(edit, block, ctx);
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyAddBlock(const v1::Mutation::AddBlock& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::Load(ctx, op.path(), op.inode_id()));
  RETURN_IF_ERROR(edit.CheckLease());
  if (op.use_reserved_id() != 0) {
    RETURN_IF_ERROR(edit.TakeReserved(op.has_previous() ? &op.previous() : nullptr, op.use_reserved_id()));
    if (edit.changed()) RETURN_IF_ERROR(edit.Write());
    Answer(edit, *edit.last(), ctx);
    return absl::OkStatus();
  }
  if (op.reserve()) return Reserve(op, edit, ctx);

  ASSIGN_OR_RETURN(const bool repeated, IsRepeated(op, edit));
  if (repeated) {
    Answer(edit, *edit.last(), ctx);
    return absl::OkStatus();
  }
  if (op.has_previous()) {
    RETURN_IF_ERROR(edit.CommitLast(op.previous()));
  } else if (edit.last() && edit.last()->record.state() != v1::COMMITTED) {
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.reason = "NOT_COMMITTED";
    error.path = edit.path();
    error.block_id = edit.last()->id.value();
    error.message = fmt::format("{}: block {} is still being written; a new one must name it as previous", edit.path(), error.block_id);
    return MakeError(std::move(error));
  }
  // A writer that asks anew has given up the block it had reserved.
  edit.DropReserved();
  RETURN_IF_ERROR(CheckRoom(op, edit, edit.record().block_count(), ctx));
  ASSIGN_OR_RETURN(const BlockAt block, edit.Allocate(/*reserve=*/false, op.targets()));
  RETURN_IF_ERROR(edit.Write());
  Answer(edit, block, ctx);
  return absl::OkStatus();
}

absl::Status ApplyAbandonBlock(const v1::Mutation::AbandonBlock& op, OpContext& ctx) {
  absl::StatusOr<FileEdit> loaded = FileEdit::Load(ctx, op.path(), op.inode_id());
  // The file is gone, and its blocks with it: there is nothing left to give up.
  if (KindOf(loaded.status()) == ErrorKind::kLeaseExpired) return absl::OkStatus();
  RETURN_IF_ERROR(loaded.status());
  FileEdit& edit = *loaded;
  RETURN_IF_ERROR(edit.CheckLease());
  const BlockId id(op.block().id());
  ASSIGN_OR_RETURN(const std::optional<v1::BlockRecord> stored, FindRecord<v1::BlockRecord>(ctx.view(), Family::kBlock, BlockKey(id)));
  *ctx.result().mutable_inode() = edit.record();
  ctx.result().set_path(edit.path());
  if (!stored) return absl::OkStatus();  // Abandoned before.
  ASSIGN_OR_RETURN(const BlockAt* const block, edit.Writable(id));
  if (block->record.closed_length_bytes() > 0) {
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.reason = "APPENDED";
    error.path = edit.path();
    error.block_id = id.value();
    error.message = fmt::format("{}: block {} holds {} bytes of a time before this writer; it cannot be abandoned", edit.path(), id.value(),
                                block->record.closed_length_bytes());
    return MakeError(std::move(error));
  }
  ctx.result().set_existed(true);
  *ctx.result().mutable_block() = ToBlock(*block);
  if (edit.reserved() && edit.reserved()->id == id) {
    edit.DropReserved();
  } else {
    edit.DropLast();
  }
  RETURN_IF_ERROR(edit.Write());
  *ctx.result().mutable_inode() = edit.record();
  return absl::OkStatus();
}

}  // namespace cairn::namenode
