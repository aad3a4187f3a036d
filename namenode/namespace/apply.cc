#include "namenode/namespace/apply.h"

#include <algorithm>

#include "common/error.h"
#include "namenode/namespace/ops/ops.h"
#include "namenode/namespace/retry_table.h"

namespace cairn::namenode {
namespace {

absl::Status Dispatch(const v1::Mutation& mutation, const std::string& codes_before, OpContext& ctx) {
  switch (mutation.op_case()) {
    case v1::Mutation::kCreate: return ApplyCreate(mutation.create(), ctx);
    case v1::Mutation::kAddBlock: return ApplyAddBlock(mutation.add_block(), ctx);
    case v1::Mutation::kAbandonBlock: return ApplyAbandonBlock(mutation.abandon_block(), ctx);
    case v1::Mutation::kUpdateBlockForPipeline: return ApplyUpdateBlockForPipeline(mutation.update_block_for_pipeline(), ctx);
    case v1::Mutation::kUpdatePipeline: return ApplyUpdatePipeline(mutation.update_pipeline(), ctx);
    case v1::Mutation::kFsync: return ApplyFsync(mutation.fsync(), ctx);
    case v1::Mutation::kComplete: return ApplyComplete(mutation.complete(), ctx);
    case v1::Mutation::kMkdirs: return ApplyMkdirs(mutation.mkdirs(), ctx);
    case v1::Mutation::kRename: return ApplyRename(mutation.rename(), ctx);
    case v1::Mutation::kDelete: return ApplyDelete(mutation.delete_(), ctx);
    case v1::Mutation::kDeleteMany: return ApplyDeleteMany(mutation.delete_many(), codes_before, ctx);
    case v1::Mutation::kExpireLease: return ApplyExpireLease(mutation.expire_lease(), ctx);
    case v1::Mutation::kReclaimStep: return ApplyReclaimStep(mutation.reclaim_step(), ctx);
    case v1::Mutation::kRegisterStorages: return ApplyRegisterStorages(mutation.register_storages(), ctx);
    case v1::Mutation::kSweepRetries: return ApplySweepRetries(mutation.sweep_retries(), ctx);
    case v1::Mutation::kSetMeta: return ApplySetMeta(mutation.set_meta(), ctx);
    case v1::Mutation::kConcat: return ApplyConcat(mutation.concat(), ctx);
    case v1::Mutation::kSetReplication: return ApplySetReplication(mutation.set_replication(), ctx);
    case v1::Mutation::kSpreadReplication: return ApplySpreadReplication(mutation.spread_replication(), ctx);
    case v1::Mutation::kSetQuota: return ApplySetQuota(mutation.set_quota(), ctx);
    case v1::Mutation::kSetPermission: return ApplySetPermission(mutation.set_permission(), ctx);
    case v1::Mutation::kSetOwner: return ApplySetOwner(mutation.set_owner(), ctx);
    case v1::Mutation::kSetTimes: return ApplySetTimes(mutation.set_times(), ctx);
    case v1::Mutation::kSetXattr: return ApplySetXattr(mutation.set_xattr(), ctx);
    case v1::Mutation::kRemoveXattr: return ApplyRemoveXattr(mutation.remove_xattr(), ctx);
    case v1::Mutation::kAppend: return ApplyAppend(mutation.append(), ctx);
    case v1::Mutation::kTruncate: return ApplyTruncate(mutation.truncate(), ctx);
    case v1::Mutation::kRecoverLease: return ApplyRecoverLease(mutation.recover_lease(), ctx);
    case v1::Mutation::kStartBlockRecovery: return ApplyStartBlockRecovery(mutation.start_block_recovery(), ctx);
    case v1::Mutation::kCommitBlockRecovery: return ApplyCommitBlockRecovery(mutation.commit_block_recovery(), ctx);
    case v1::Mutation::OP_NOT_SET: break;
  }
  return MakeError(ErrorKind::kUnsupported, "the mutation holds no operation that is known here");
}

// A refusal is an answer; a store that fails is not.
absl::StatusOr<v1::MutationResult> RefusalOrError(const absl::Status& status) {
  const ErrorKind kind = KindOf(status);
  if (kind == ErrorKind::kNone || kind == ErrorKind::kCorruptMetadata) return status;
  v1::MutationResult result;
  *result.mutable_error() = ToDetail(status);
  return result;
}

}  // namespace

absl::StatusOr<v1::MutationResult> Apply(const v1::Mutation& mutation, Transaction& txn) {
  ASSIGN_OR_RETURN(const uint64_t last_time, GetNumber(txn, kMetaLastMutationTime));
  const int64_t now_ms = std::max(mutation.time_ms(), static_cast<int64_t>(last_time));

  RetryLookup retry;
  if (mutation.sequence() != 0) {
    absl::StatusOr<RetryLookup> found = FindRetry(mutation, now_ms, txn);
    if (!found.ok()) return RefusalOrError(found.status());
    if (found->answer) return *std::move(found->answer);
    retry = *std::move(found);
  }

  v1::MutationResult result;
  OpContext ctx(mutation, now_ms, txn, result);
  if (const absl::Status status = Dispatch(mutation, retry.codes_before, ctx); !status.ok()) return RefusalOrError(status);
  if (!ctx.acted()) return result;
  RETURN_IF_ERROR(ctx.Flush());
  // No answer shows them, and a kept row should not hold them again.
  if (result.has_inode()) result.mutable_inode()->clear_xattrs();
  if (mutation.sequence() != 0) KeepRetry(mutation, now_ms, result, txn);
  if (now_ms > static_cast<int64_t>(last_time)) PutNumber(txn, kMetaLastMutationTime, static_cast<uint64_t>(now_ms));
  return result;
}

void WriteEmptyNamespace(std::string_view cluster_id, std::string_view pool_id, std::string_view owner, std::string_view group,
                         int64_t time_ms, Transaction& txn) {
  InodeAt root{kRootParentId, "", {}};
  root.record.set_id(kRootInodeId.value());
  root.record.set_type(v1::DIRECTORY);
  root.record.set_mode(0755);
  root.record.set_owner(std::string(owner));
  root.record.set_group(std::string(group));
  root.record.set_modification_time_ms(time_ms);
  root.record.set_created_ms(time_ms);
  PutInode(txn, root);
  PutLink(txn, root.id(), root.parent, root.name);
  PutRecord(txn, Family::kUsage, UsageKey(root.id()), v1::UsageRecord());
  txn.Put(Family::kMeta, kMetaClusterId, cluster_id);
  txn.Put(Family::kMeta, kMetaPoolId, pool_id);
  PutNumber(txn, kMetaNextInodeId, kRootInodeId.value() + 1);
  PutNumber(txn, kMetaNextBlockId, kFirstBlockId.value());
  PutNumber(txn, kMetaNextGenerationStamp, kFirstGenerationStamp.value());
  PutNumber(txn, kMetaNextWorkId, 1);
  PutNumber(txn, kMetaNextStorageNumber, 1);
  PutNumber(txn, kMetaEpoch, 0);
  PutNumber(txn, kMetaLayoutVersion, kNamespaceLayoutVersion);
  PutNumber(txn, kMetaLastMutationTime, static_cast<uint64_t>(time_ms));
}

}  // namespace cairn::namenode
