#include "namenode/namespace/file_edit.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/check.h"
#include "common/error.h"
#include "namenode/namespace/block_replication.h"
#include "namenode/namespace/ops/detach.h"

namespace cairn::namenode {
namespace {

absl::Status BlockError(ErrorKind kind, std::string_view reason, const std::string& path, BlockId block, const std::string& what) {
  Error error;
  error.kind = kind;
  error.reason = std::string(reason);
  error.path = path;
  error.block_id = block.value();
  error.message = fmt::format("{}: block {}: {}", path, block.value(), what);
  return MakeError(std::move(error));
}

bool IsAmong(const google::protobuf::RepeatedField<uint32_t>& storages, uint32_t storage) {
  return std::find(storages.begin(), storages.end(), storage) != storages.end();
}

absl::Status Gone(const std::string& path, uint64_t inode_id) {
  return PathError(ErrorKind::kLeaseExpired, "FILE_GONE", path,
                   inode_id == 0 ? fmt::format("{}: the file does not exist any more", path)
                                 : fmt::format("{} (inode {}): the file does not exist any more", path, inode_id));
}

}  // namespace

v1::Block ToBlock(const BlockAt& block) {
  v1::Block out;
  out.set_id(block.id.value());
  out.set_generation_stamp(block.record.generation_stamp());
  out.set_length_bytes(block.record.length_bytes());
  return out;
}

v1::FreedBlock ToFreed(const BlockAt& block) {
  v1::FreedBlock freed;
  *freed.mutable_block() = ToBlock(block);
  *freed.mutable_expected_storages() = block.record.expected_storages();
  return freed;
}

absl::StatusOr<FileEdit> FileEdit::Load(OpContext& ctx, const std::string& path, uint64_t inode_id) {
  // Mostly it stands where the caller knows it: down from the root one asks for the directories' rows, which are in memory, and for its
  // own alone. The lease is the right.
  const absl::StatusOr<PathWalk> walk = WalkPath(ctx.view(), path, Caller::Trusted());
  if (walk.ok() && walk->complete() && !walk->last().is_directory() && (inode_id == 0 || walk->last().id().value() == inode_id))
    return LoadAt(ctx, *walk);
  std::optional<InodeAt> inode;
  if (inode_id != 0) {
    ASSIGN_OR_RETURN(inode, FindInodeAnywhere(ctx.view(), InodeId(inode_id)));
  } else {
    RETURN_IF_ERROR(walk.status());
    if (walk->complete()) inode = walk->last().Copy();
  }
  if (!inode) return Gone(path, inode_id);
  ASSIGN_OR_RETURN(Ancestry ancestry, AncestryOf(ctx.view(), inode->parent, inode->name));
  if (ancestry.detached) return Gone(path, inode_id);  // Before what it is: that is known only until it is reclaimed.
  std::reverse(ancestry.names.begin(), ancestry.names.end());
  if (inode->is_directory()) {
    const std::string at = JoinPath(ancestry.names);
    return PathError(ErrorKind::kIsDirectory, "", at,
                     fmt::format("{} (inode {}) is a directory, not a file that is written", at, inode->record.id()));
  }
  std::reverse(ancestry.directories.begin(), ancestry.directories.end());

  FileEdit edit(ctx, *std::move(inode), std::move(ancestry.directories), JoinPath(ancestry.names));
  RETURN_IF_ERROR(edit.LoadBlocks());
  return edit;
}

absl::StatusOr<FileEdit> FileEdit::LoadAt(OpContext& ctx, const PathWalk& walk) {
  FileEdit edit(ctx, walk.last().Copy(), walk.ancestors(), walk.path());
  RETURN_IF_ERROR(edit.LoadBlocks());
  return edit;
}

absl::Status FileEdit::LoadBlocks() {
  RETURN_IF_ERROR(LoadLast());
  if (record().reserved_block_id() == 0) return absl::OkStatus();
  const BlockId id(record().reserved_block_id());
  ASSIGN_OR_RETURN(v1::BlockRecord reserved, GetBlock(ctx_->view(), id));
  SettleReplication(reserved, record().replication());
  reserved_ = BlockAt{id, std::move(reserved)};
  return absl::OkStatus();
}

absl::Status FileEdit::LoadLast() {
  last_.reset();
  if (record().block_count() == dropped_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const BlockId id, BlockIdAt(ctx_->view(), record(), record().block_count() - dropped_ - 1));
  ASSIGN_OR_RETURN(v1::BlockRecord block, GetBlock(ctx_->view(), id));
  SettleReplication(block, record().replication());
  last_ = BlockAt{id, std::move(block)};
  return absl::OkStatus();
}

absl::Status FileEdit::CheckLease() const {
  const std::string& caller = ctx_->mutation().client_name();
  const std::string& holder = record().lease_holder();
  if (!caller.empty() && caller != kRecoveryHolder && holder == caller) return absl::OkStatus();
  Error error;
  error.kind = ErrorKind::kLeaseExpired;
  error.reason = holder.empty() ? "FILE_CLOSED" : "OTHER_HOLDER";
  error.path = path_;
  if (holder.empty()) {
    error.message = fmt::format("{} (inode {}) is closed: {} does not write it", path_, record().id(), caller);
  } else if (holder == kRecoveryHolder) {
    error.message = fmt::format("{} (inode {}) was taken from its writer, and its last block is being recovered: {} does not write it",
                                path_, record().id(), caller);
  } else {
    error.message = fmt::format("{} (inode {}) is written by {}, not by {}", path_, record().id(), holder, caller);
  }
  return MakeError(std::move(error));
}

absl::StatusOr<std::optional<BlockAt>> FileEdit::Penultimate() const {
  std::optional<BlockAt> block;
  if (record().block_count() < 2) return block;
  ASSIGN_OR_RETURN(const BlockId id, BlockIdAt(ctx_->view(), record(), record().block_count() - 2));
  ASSIGN_OR_RETURN(v1::BlockRecord block_record, GetBlock(ctx_->view(), id));
  block.emplace(BlockAt{id, std::move(block_record)});
  return block;
}

absl::Status FileEdit::CheckAcknowledged(const v1::Mutation::Commit& commit, const BlockAt& block) const {
  const google::protobuf::RepeatedField<uint32_t>& acknowledged = commit.acknowledged();
  size_t count = 0;
  for (auto storage = acknowledged.begin(); storage != acknowledged.end(); ++storage) {
    if (!IsAmong(block.record.expected_storages(), *storage))
      return BlockError(ErrorKind::kInvalidArgument, "NOT_EXPECTED_STORAGE", path_, block.id,
                        fmt::format("storage {} acknowledged it but is not in its pipeline", *storage));
    count += std::find(acknowledged.begin(), storage, *storage) == storage;  // Named twice it is still one.
  }
  const size_t needed = std::max<size_t>(ctx_->limits().min_replication(), 1);
  if (count < needed)
    return BlockError(ErrorKind::kNotReplicatedYet, "TOO_FEW_ACKNOWLEDGED", path_, block.id,
                      fmt::format("{} storages acknowledged it, dfs.namenode.replication.min asks for {}", count, needed));
  return absl::OkStatus();
}

absl::Status FileEdit::CommitLast(const v1::Mutation::Commit& commit) {
  const BlockId named(commit.block().id());
  if (!last_ || last_->id != named)
    return BlockError(ErrorKind::kInvalidArgument, "WRONG_BLOCK", path_, named,
                      last_ ? fmt::format("the last block is {}", last_->id.value()) : "the file has no blocks");
  v1::BlockRecord& block = last_->record;
  if (commit.block().generation_stamp() != block.generation_stamp())
    return BlockError(ErrorKind::kStaleGeneration, "STAMP", path_, named,
                      fmt::format("stamp {} was named, it has {}", commit.block().generation_stamp(), block.generation_stamp()));
  const uint64_t length = commit.block().length_bytes();
  switch (block.state()) {
    case v1::COMMITTED:
      if (length == block.length_bytes()) return absl::OkStatus();
      return BlockError(ErrorKind::kInvalidArgument, "COMMITTED", path_, named,
                        fmt::format("committed with {} bytes, now {} were named", block.length_bytes(), length));
    case v1::UNDER_RECOVERY: return BlockError(ErrorKind::kLeaseExpired, "UNDER_RECOVERY", path_, named, "it is being recovered");
    case v1::UNDER_CONSTRUCTION: break;
    default:
      return BlockError(ErrorKind::kCorruptMetadata, "", path_, named,
                        fmt::format("it is in state {} as the file's last", v1::BlockUCState_Name(block.state())));
  }
  if (length < block.length_bytes())
    return BlockError(ErrorKind::kInvalidArgument, "SHORTER_THAN_SYNCED", path_, named,
                      fmt::format("{} bytes were named, {} are acknowledged already", length, block.length_bytes()));
  if (length > record().block_size_bytes())
    return BlockError(ErrorKind::kInvalidArgument, "LONGER_THAN_BLOCK", path_, named,
                      fmt::format("{} bytes were named, a block holds {}", length, record().block_size_bytes()));
  RETURN_IF_ERROR(CheckAcknowledged(commit, *last_));

  inode_.record.set_length_bytes(record().length_bytes() - block.length_bytes() + length);
  block.set_length_bytes(length);
  block.set_state(v1::COMMITTED);
  block.set_committed_ms(ctx_->now_ms());
  block.clear_closed_length_bytes();
  block.clear_synced_length_bytes();
  block.clear_append_from_stamp();
  // In the order of the pipeline, whatever the order of the acknowledgements.
  google::protobuf::RepeatedField<uint32_t>& pipeline = *block.mutable_expected_storages();
  pipeline.erase(
      std::remove_if(pipeline.begin(), pipeline.end(), [&](uint32_t storage) { return !IsAmong(commit.acknowledged(), storage); }),
      pipeline.end());
  Charge(*last_, length * block.replication());
  Changed(*last_);
  return absl::OkStatus();
}

absl::Status FileEdit::TakeReserved(const v1::Mutation::Commit* previous, uint64_t reserved_id) {
  const BlockId id(reserved_id);
  if (last_ && last_->id == id) {
    // Taken by an earlier call; the one before it must have been committed just so.
    ASSIGN_OR_RETURN(const std::optional<BlockAt> before, Penultimate());
    const bool same = previous == nullptr || (before && before->id.value() == previous->block().id() &&
                                              before->record.length_bytes() == previous->block().length_bytes());
    if (same) return absl::OkStatus();
    return BlockError(ErrorKind::kInvalidArgument, "WRONG_BLOCK", path_, id, "it was taken after another block than the one named");
  }
  if (!reserved_ || reserved_->id != id)
    return BlockError(ErrorKind::kInvalidArgument, "NOT_RESERVED", path_, id, "it is not reserved for this file");
  if (last_) {
    if (previous != nullptr) {
      RETURN_IF_ERROR(CommitLast(*previous));
    } else if (last_->record.state() != v1::COMMITTED) {
      return BlockError(ErrorKind::kInvalidArgument, "NOT_COMMITTED", path_, last_->id, "it must be committed before the next is taken");
    }
    older_.push_back(*last_);
  } else if (previous != nullptr) {
    return BlockError(ErrorKind::kInvalidArgument, "WRONG_BLOCK", path_, BlockId(previous->block().id()), "the file has no blocks");
  }
  last_ = std::exchange(reserved_, std::nullopt);
  last_->record.set_state(v1::UNDER_CONSTRUCTION);
  last_->record.set_index(record().block_count());
  inode_.record.set_reserved_block_id(0);
  inode_.record.set_length_bytes(record().length_bytes() + last_->record.length_bytes());
  appended_ = id;
  Changed(*last_);
  return absl::OkStatus();
}

absl::StatusOr<BlockAt*> FileEdit::Writable(BlockId id) {
  BlockAt* block = last_ && last_->id == id ? &*last_ : reserved_ && reserved_->id == id ? &*reserved_ : nullptr;
  if (block == nullptr)
    return BlockError(ErrorKind::kLeaseExpired, "WRONG_BLOCK", path_, id, "it is not the block that this file's writer may change");
  if (block->record.state() != v1::UNDER_CONSTRUCTION && block->record.state() != v1::RESERVED)
    return BlockError(ErrorKind::kLeaseExpired, v1::BlockUCState_Name(block->record.state()), path_, id,
                      "it is not being written any more");
  return block;
}

absl::Status FileEdit::RaiseLength(BlockAt& block, uint64_t length_bytes) {
  if (length_bytes > record().block_size_bytes())
    return BlockError(ErrorKind::kInvalidArgument, "LONGER_THAN_BLOCK", path_, block.id,
                      fmt::format("{} bytes were named, a block holds {}", length_bytes, record().block_size_bytes()));
  if (length_bytes <= block.record.length_bytes()) return absl::OkStatus();
  // The bytes of a reserved block are no part of the file yet.
  if (block.record.state() != v1::RESERVED)
    inode_.record.set_length_bytes(record().length_bytes() - block.record.length_bytes() + length_bytes);
  block.record.set_length_bytes(length_bytes);
  block.record.clear_append_from_stamp();  // More bytes are acknowledged: its pipeline stands.
  Changed(block);
  return absl::OkStatus();
}

void FileEdit::RaiseSynced(BlockAt& block, uint64_t length_bytes) {
  if (length_bytes <= block.record.synced_length_bytes()) return;
  block.record.set_synced_length_bytes(length_bytes);
  Changed(block);
}

absl::Status FileEdit::CheckQuota(uint64_t more_charged_bytes) const {
  UsageDelta added;
  added.charged_bytes = static_cast<int64_t>(record().charged_bytes() + more_charged_bytes - charged_before_);
  return ctx_->CheckQuota(ancestors_, added);
}

absl::StatusOr<BlockAt> FileEdit::Allocate(bool reserve, const google::protobuf::RepeatedField<uint32_t>& targets) {
  ASSIGN_OR_RETURN(const uint64_t id, TakeNumber(ctx_->Change(), kMetaNextBlockId, kBlockIdStep));
  ASSIGN_OR_RETURN(const uint64_t stamp, TakeNumber(ctx_->Change(), kMetaNextGenerationStamp, 1));
  BlockAt block{BlockId(id), {}};
  allocated_ = block.id;
  block.record.set_inode_id(record().id());
  block.record.set_index(record().block_count());
  block.record.set_generation_stamp(stamp);
  block.record.set_state(reserve ? v1::RESERVED : v1::UNDER_CONSTRUCTION);
  block.record.set_replication(record().replication());
  block.record.set_owners(1);
  *block.record.mutable_expected_storages() = targets;
  Charge(block, ChargeOfNewBlock());
  Changed(block);
  if (reserve) {
    reserved_ = block;
    inode_.record.set_reserved_block_id(id);
  } else {
    if (last_) older_.push_back(*last_);
    last_ = block;
    appended_ = block.id;
  }
  return block;
}

void FileEdit::Charge(BlockAt& block, uint64_t charged_bytes) {
  inode_.record.set_charged_bytes(record().charged_bytes() - block.record.charged_bytes() + charged_bytes);
  block.record.set_charged_bytes(charged_bytes);
}

void FileEdit::Free(const BlockAt& block) {
  inode_.record.set_charged_bytes(record().charged_bytes() - block.record.charged_bytes());
  freed_.push_back(block);
}

bool FileEdit::IsChanged(BlockId id) const { return std::find(touched_.begin(), touched_.end(), id) != touched_.end(); }

void FileEdit::DropReserved() {
  if (!reserved_) return;
  Free(*reserved_);
  reserved_.reset();
  inode_.record.set_reserved_block_id(0);
}

void FileEdit::DropLast() {
  Free(*last_);
  inode_.record.set_length_bytes(record().length_bytes() - last_->record.length_bytes());
  last_.reset();
  ++dropped_;
}

absl::Status FileEdit::DropToPrevious() {
  DropLast();
  return LoadLast();
}

void FileEdit::GiveLease(std::string_view holder) {
  if (!record().lease_holder().empty()) ctx_->Change().Delete(Family::kLease, LeaseKey(record().lease_holder(), inode_.id()));
  inode_.record.set_lease_holder(std::string(holder));
  inode_.record.clear_delete_if_abandoned();
  v1::LeaseRecord lease;
  lease.set_since_ms(ctx_->now_ms());
  PutRecord(ctx_->Change(), Family::kLease, LeaseKey(holder, inode_.id()), lease);
}

void FileEdit::Close(ClosedBy by) {
  DropReserved();
  ctx_->Change().Delete(Family::kLease, LeaseKey(record().lease_holder(), inode_.id()));
  inode_.record.clear_lease_holder();
  inode_.record.clear_delete_if_abandoned();
  if (by == ClosedBy::kWriter) inode_.record.clear_never_closed();
  Touch();
}

absl::Status FileEdit::ReopenLast(const google::protobuf::RepeatedField<uint32_t>& storages) {
  ASSIGN_OR_RETURN(const uint64_t stamp, TakeNumber(ctx_->Change(), kMetaNextGenerationStamp, 1));
  v1::BlockRecord& block = last_->record;
  block.set_append_from_stamp(block.generation_stamp());
  block.set_closed_length_bytes(block.length_bytes());
  block.set_generation_stamp(stamp);
  block.set_state(v1::UNDER_CONSTRUCTION);
  block.clear_committed_ms();
  *block.mutable_expected_storages() = storages;
  Charge(*last_, record().block_size_bytes() * block.replication());
  Changed(*last_);
  return absl::OkStatus();
}

absl::Status FileEdit::RecoverLast() {
  ASSIGN_OR_RETURN(const uint64_t recovery_id, TakeNumber(ctx_->Change(), kMetaNextGenerationStamp, 1));
  DropReserved();
  v1::BlockRecord& block = last_->record;
  block.set_state(v1::UNDER_RECOVERY);
  block.set_recovery_id(recovery_id);
  Changed(*last_);
  GiveLease(kRecoveryHolder);
  return absl::OkStatus();
}

absl::Status FileEdit::CutLast(const google::protobuf::RepeatedField<uint32_t>& storages, uint64_t length_bytes) {
  last_->record.set_truncate_to_bytes(length_bytes);
  last_->record.clear_committed_ms();
  *last_->record.mutable_expected_storages() = storages;
  return RecoverLast();
}

void FileEdit::SettleLast(const v1::Block& found, const google::protobuf::RepeatedField<uint32_t>& storages) {
  v1::BlockRecord& block = last_->record;
  inode_.record.set_length_bytes(record().length_bytes() - block.length_bytes() + found.length_bytes());
  block.set_length_bytes(found.length_bytes());
  block.set_generation_stamp(found.generation_stamp());
  block.set_state(v1::COMMITTED);
  block.set_committed_ms(ctx_->now_ms());
  *block.mutable_expected_storages() = storages;
  block.clear_recovery_id();
  block.clear_truncate_to_bytes();
  block.clear_closed_length_bytes();
  block.clear_synced_length_bytes();
  block.clear_append_from_stamp();
  Charge(*last_, found.length_bytes() * block.replication());
  Changed(*last_);
}

absl::Status FileEdit::Write() {
  Transaction& txn = ctx_->Change();
  for (const BlockAt& block : freed_) RETURN_IF_ERROR(ReleaseBlock(*ctx_, block.id).status());
  const auto put_if_changed = [&](const BlockAt& block) {
    if (!IsChanged(block.id)) return;
    CAIRN_CHECK(block.record.owners() <= 1, "a file may not write on a block that others own, too");
    PutBlock(txn, block.id, block.record);
  };
  for (const BlockAt& block : older_) put_if_changed(block);
  for (const std::optional<BlockAt>* block : {&last_, &reserved_})
    if (*block) put_if_changed(**block);
  for (const BlockId id : touched_)
    if (id != allocated_) ctx_->BlockChanged(id);  // Nobody can have a replica of a new one yet.
  for (uint64_t i = 0; i < dropped_; ++i) RETURN_IF_ERROR(DropLastBlockId(txn, inode_.record));
  if (appended_) AppendBlockId(txn, inode_.record, *appended_);
  PutInode(txn, inode_);
  RETURN_IF_ERROR(
      ctx_->NoteGrowth(inode_.id(), blocks_before_, record().block_count(), ctx_->limits().max_blocks_per_file(), kMaxBlocksPerFileKey));

  UsageDelta delta;
  delta.length_bytes = static_cast<int64_t>(record().length_bytes() - length_before_);
  delta.charged_bytes = static_cast<int64_t>(record().charged_bytes() - charged_before_);
  ctx_->AddUsage(ancestors_, delta);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
