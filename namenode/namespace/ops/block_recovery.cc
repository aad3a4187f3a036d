#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

absl::Status Refused(ErrorKind kind, std::string_view reason, const std::string& path, BlockId block, const std::string& what) {
  Error error;
  error.kind = kind;
  error.reason = std::string(reason);
  error.path = path;
  error.block_id = block.value();
  error.message = fmt::format("{}{}recovery of block {}: {}", path, path.empty() ? "" : ": ", block.value(), what);
  return MakeError(std::move(error));
}

bool AllIn(const google::protobuf::RepeatedField<uint32_t>& wanted, const google::protobuf::RepeatedField<uint32_t>& there) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](uint32_t storage) { return std::find(there.begin(), there.end(), storage) != there.end(); });
}

// Whether the block may end as the primary says. What is certain is kept: bytes of an earlier close and synced ones always, bytes that
// were acknowledged otherwise unless every storage that could hold them has been asked.
absl::Status CheckOutcome(const v1::Mutation::CommitBlockRecovery& op, const FileEdit& edit) {
  const BlockId id = edit.last()->id;
  const v1::BlockRecord& block = edit.last()->record;
  const std::string& path = edit.path();
  if (op.drop()) {
    if (!AllIn(block.expected_storages(), op.empty()))
      return Refused(ErrorKind::kInvalidArgument, "NOT_ALL_ANSWERED", path, id,
                     fmt::format("it cannot be dropped: {} of {} storages said that they hold no byte of it", op.empty_size(),
                                 block.expected_storages_size()));
    if (block.closed_length_bytes() > 0 || block.has_truncate_to_bytes())
      return Refused(ErrorKind::kInvalidArgument, "DATA_LOST", path, id, "it cannot be dropped: it was part of a closed file");
    if (block.synced_length_bytes() > 0)
      return Refused(ErrorKind::kInvalidArgument, "DATA_LOST", path, id,
                     fmt::format("it cannot be dropped: {} bytes of it had been synced", block.synced_length_bytes()));
    return absl::OkStatus();
  }
  const uint64_t length = op.block().length_bytes();
  if (op.storages().empty() || !AllIn(op.storages(), block.expected_storages()))
    return Refused(ErrorKind::kInvalidArgument, "NOT_EXPECTED_STORAGE", path, id,
                   "it has to end on storages of its pipeline, at least one");
  if (block.has_truncate_to_bytes()) {
    if (length == block.truncate_to_bytes()) return absl::OkStatus();
    return Refused(ErrorKind::kInvalidArgument, "WRONG_LENGTH", path, id,
                   fmt::format("it is to be cut to {} bytes, not to {}", block.truncate_to_bytes(), length));
  }
  if (length > edit.record().block_size_bytes())
    return Refused(ErrorKind::kInvalidArgument, "LONGER_THAN_BLOCK", path, id,
                   fmt::format("{} bytes were named, a block holds {}", length, edit.record().block_size_bytes()));
  if (length < block.closed_length_bytes())
    return Refused(ErrorKind::kInvalidArgument, "DATA_LOST", path, id,
                   fmt::format("{} bytes were found, {} had been closed", length, block.closed_length_bytes()));
  if (length < block.synced_length_bytes())
    return Refused(ErrorKind::kInvalidArgument, "DATA_LOST", path, id,
                   fmt::format("{} bytes were found, {} had been synced", length, block.synced_length_bytes()));
  if (length < block.length_bytes() && !AllIn(block.expected_storages(), op.answered()))
    return Refused(
        ErrorKind::kInvalidArgument, "SHORTER_THAN_SYNCED", path, id,
        fmt::format("{} bytes were found, {} are acknowledged, and not all storages have been asked", length, block.length_bytes()));
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyStartBlockRecovery(const v1::Mutation::StartBlockRecovery& op, OpContext& ctx) {
  const BlockId id(op.block_id());
  ASSIGN_OR_RETURN(std::optional<v1::BlockRecord> block, FindRecord<v1::BlockRecord>(ctx.view(), Family::kBlock, BlockKey(id)));
  if (!block || block->state() != v1::UNDER_RECOVERY)
    return Refused(ErrorKind::kStaleGeneration, "NOT_UNDER_RECOVERY", fmt::format("inode {}", op.inode_id()), id, "there is nothing to do");
  ASSIGN_OR_RETURN(const uint64_t recovery_id, TakeNumber(ctx.Change(), kMetaNextGenerationStamp, 1));
  block->set_recovery_id(recovery_id);
  PutBlock(ctx.Change(), id, *block);
  *ctx.result().mutable_block_record() = *block;
  *ctx.result().mutable_block() = ToBlock({id, *block});
  return absl::OkStatus();
}

absl::Status ApplyCommitBlockRecovery(const v1::Mutation::CommitBlockRecovery& op, OpContext& ctx) {
  const BlockId id(op.block().id());
  ASSIGN_OR_RETURN(const std::optional<v1::BlockRecord> block, FindRecord<v1::BlockRecord>(ctx.view(), Family::kBlock, BlockKey(id)));
  if (!block) return Refused(ErrorKind::kLeaseExpired, "BLOCK_GONE", "", id, "there is no such block any more");
  if (block->state() == v1::COMMITTED && block->generation_stamp() == op.recovery_id() && !op.drop() &&
      block->length_bytes() == op.block().length_bytes()) {
    ctx.result().set_done(true);
    return absl::OkStatus();  // Said before.
  }
  if (block->state() != v1::UNDER_RECOVERY || block->recovery_id() != op.recovery_id())
    return Refused(ErrorKind::kStaleGeneration, "RECOVERY_ID", fmt::format("inode {}", block->inode_id()), id,
                   fmt::format("a round under id {} is over; the block is at stamp {}, recovery id {}", op.recovery_id(),
                               block->generation_stamp(), block->recovery_id()));
  ASSIGN_OR_RETURN(FileEdit edit, FileEdit::Load(ctx, "", block->inode_id()));
  if (!edit.last() || edit.last()->id != id)
    return MakeError(ErrorKind::kCorruptMetadata, fmt::format("{}: block {} is under recovery but not the last", edit.path(), id.value()));
  if (!op.drop() && op.block().generation_stamp() != op.recovery_id())
    return Refused(ErrorKind::kInvalidArgument, "STAMP", edit.path(), id,
                   fmt::format("stamp {} is not the recovery id {}", op.block().generation_stamp(), op.recovery_id()));
  RETURN_IF_ERROR(CheckOutcome(op, edit));
  if (op.drop()) {
    edit.DropLast();
  } else {
    edit.SettleLast(op.block(), op.storages());
  }
  edit.Close(FileEdit::ClosedBy::kNamenode);
  RETURN_IF_ERROR(edit.Write());
  *ctx.result().mutable_inode() = edit.record();
  ctx.result().set_path(edit.path());
  ctx.result().set_parent_id(edit.inode().parent.value());
  ctx.result().set_done(true);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
