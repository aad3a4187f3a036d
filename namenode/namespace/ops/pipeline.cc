#include <set>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

absl::Status BadPipeline(ErrorKind kind, std::string_view reason, const FileEdit& edit, const BlockAt& block, std::string what) {
  Error error;
  error.kind = kind;
  error.reason = std::string(reason);
  error.path = edit.path();
  error.block_id = block.id.value();
  error.message = fmt::format("{}: block {}: {}", edit.path(), block.id.value(), what);
  return MakeError(std::move(error));
}

}  // namespace

absl::Status ApplyUpdateBlockForPipeline(const v1::Mutation::UpdateBlockForPipeline& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::Load(ctx, op.path(), op.inode_id()));
  RETURN_IF_ERROR(edit.CheckLease());
  ASSIGN_OR_RETURN(const BlockAt* const block, edit.Writable(BlockId(op.block().id())));
  ASSIGN_OR_RETURN(const uint64_t stamp, TakeNumber(ctx.Change(), kMetaNextGenerationStamp, 1));
  v1::MutationResult& result = ctx.result();
  *result.mutable_block() = ToBlock(*block);
  result.mutable_block()->set_generation_stamp(stamp);
  result.set_path(edit.path());
  *result.mutable_storages() = block->record.expected_storages();
  return absl::OkStatus();
}

absl::Status ApplyUpdatePipeline(const v1::Mutation::UpdatePipeline& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::Load(ctx, op.path(), op.inode_id()));
  RETURN_IF_ERROR(edit.CheckLease());
  const BlockId id(op.old_block().id());
  ASSIGN_OR_RETURN(BlockAt* const block, edit.Writable(id));
  const v1::Block& next = op.new_block();
  if (next.id() != id.value())
    return BadPipeline(ErrorKind::kInvalidArgument, "WRONG_BLOCK", edit, *block,
                       fmt::format("the new block has another id, {}", next.id()));
  const std::vector<uint32_t> storages(op.storages().begin(), op.storages().end());
  if (storages.empty() || std::set<uint32_t>(storages.begin(), storages.end()).size() != storages.size())
    return BadPipeline(ErrorKind::kInvalidArgument, "BAD_PIPELINE", edit, *block, "a pipeline needs storages, each once");
  const std::vector<uint32_t> expected(block->record.expected_storages().begin(), block->record.expected_storages().end());
  const uint64_t stamp = block->record.generation_stamp();
  v1::MutationResult& result = ctx.result();
  result.set_path(edit.path());
  if (next.generation_stamp() == stamp && storages == expected && next.length_bytes() <= block->record.length_bytes()) {
    *result.mutable_block() = ToBlock(*block);  // Said before.
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const uint64_t next_stamp, GetNumber(ctx.view(), kMetaNextGenerationStamp));
  if (next.generation_stamp() <= stamp)
    return BadPipeline(ErrorKind::kStaleGeneration, "STAMP", edit, *block,
                       fmt::format("stamp {} is not above its own, {}", next.generation_stamp(), stamp));
  if (next.generation_stamp() >= next_stamp)
    return BadPipeline(ErrorKind::kInvalidArgument, "STAMP", edit, *block,
                       fmt::format("stamp {} was never given out", next.generation_stamp()));
  if (next.length_bytes() < block->record.length_bytes())
    return BadPipeline(ErrorKind::kInvalidArgument, "SHORTER_THAN_SYNCED", edit, *block,
                       fmt::format("{} bytes were named, {} are acknowledged already", next.length_bytes(), block->record.length_bytes()));
  RETURN_IF_ERROR(edit.RaiseLength(*block, next.length_bytes()));
  block->record.set_generation_stamp(next.generation_stamp());
  block->record.clear_append_from_stamp();
  *block->record.mutable_expected_storages() = op.storages();
  edit.Changed(*block);
  RETURN_IF_ERROR(edit.Write());
  *result.mutable_block() = ToBlock(*block);
  return absl::OkStatus();
}

absl::Status ApplyFsync(const v1::Mutation::Fsync& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::Load(ctx, op.path(), op.inode_id()));
  RETURN_IF_ERROR(edit.CheckLease());
  if (op.use_reserved_id() != 0) RETURN_IF_ERROR(edit.TakeReserved(op.has_previous() ? &op.previous() : nullptr, op.use_reserved_id()));
  if (op.has_last_block()) {
    ASSIGN_OR_RETURN(BlockAt* const block, edit.Writable(BlockId(op.last_block().id())));
    if (block->record.state() == v1::RESERVED)
      return BadPipeline(ErrorKind::kInvalidArgument, "RESERVED", edit, *block, "it is no part of the file until use_reserved_id names it");
    if (op.last_block().generation_stamp() != block->record.generation_stamp())
      return BadPipeline(
          ErrorKind::kStaleGeneration, "STAMP", edit, *block,
          fmt::format("stamp {} was named, it has {}", op.last_block().generation_stamp(), block->record.generation_stamp()));
    RETURN_IF_ERROR(edit.RaiseLength(*block, op.last_block().length_bytes()));
    if (op.synced()) edit.RaiseSynced(*block, op.last_block().length_bytes());
  }
  ctx.result().set_path(edit.path());
  if (edit.changed()) return edit.Write();
  return absl::OkStatus();
}

}  // namespace cairn::namenode
