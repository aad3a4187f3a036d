#pragma once

// The verbs of the namespace, one a file. Each checks everything before its first change and fills the result; a refusal is a Status with a
// kind. kCorruptMetadata, or a Status without a kind, means that the store itself failed.

#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/op_context.h"

namespace cairn::namenode {

// A new file under construction, with its first block if asked. An existing file is kAlreadyExists, or kBeingWritten while it is under
// construction; with `overwrite` it is deleted in the same mutation, as HDFS does, also while it is being written: its writer then
// finds it gone. An existing directory is kAlreadyExists.
absl::Status ApplyCreate(const v1::Mutation::Create& op, OpContext& ctx);

// Commits the block before and allocates the next; or allocates it RESERVED; or takes the reserved one. Asked again with the same
// previous block while the new one is still empty, it answers that block again.
absl::Status ApplyAddBlock(const v1::Mutation::AddBlock& op, OpContext& ctx);

// Drops the last block, or the reserved one. A block or a file that is gone already is no error; a block that an append opened again is.
absl::Status ApplyAbandonBlock(const v1::Mutation::AbandonBlock& op, OpContext& ctx);

// A new stamp for a pipeline that is being rebuilt; the block keeps its own until UpdatePipeline.
absl::Status ApplyUpdateBlockForPipeline(const v1::Mutation::UpdateBlockForPipeline& op, OpContext& ctx);

// The block goes on under a higher stamp on these storages. The old block's stamp is not compared (HDFS-17299 sends the new one).
absl::Status ApplyUpdatePipeline(const v1::Mutation::UpdatePipeline& op, OpContext& ctx);

// Raises the length that survives the writer.
absl::Status ApplyFsync(const v1::Mutation::Fsync& op, OpContext& ctx);

// Commits the last block and closes the file. Of a closed file: OK if it ends in just that block.
absl::Status ApplyComplete(const v1::Mutation::Complete& op, OpContext& ctx);

// An existing directory is fine. A file in its place is kAlreadyExists.
absl::Status ApplyMkdirs(const v1::Mutation::Mkdirs& op, OpContext& ctx);

// To exactly `destination`: moving into an existing directory is the caller's business. Onto itself: kAlreadyExists, or nothing to do with
// `overwrite`. `overwrite` replaces a file by a file (also one being written, as a delete would), and an empty directory by a directory.
absl::Status ApplyRename(const v1::Mutation::Rename& op, OpContext& ctx);

// Detaches a subtree: constant work, however large it is. What is not there answers existed = false.
absl::Status ApplyDelete(const v1::Mutation::Delete& op, OpContext& ctx);

// A code for each path, appended to `codes_before`, which earlier mutations of the same call answered.
absl::Status ApplyDeleteMany(const v1::Mutation::DeleteMany& op, const std::string& codes_before, OpContext& ctx);

// Mode, owner and group, times, extended attributes of an inode. What is as it should be already is not written. Attributes leave the
// modification time alone. See permission.h and xattrs.h for who may.
absl::Status ApplySetPermission(const v1::Mutation::SetPermission& op, OpContext& ctx);
// Owner: superusers only. Group: the owner, to one he is in.
absl::Status ApplySetOwner(const v1::Mutation::SetOwner& op, OpContext& ctx);
absl::Status ApplySetTimes(const v1::Mutation::SetTimes& op, OpContext& ctx);
absl::Status ApplySetXattr(const v1::Mutation::SetXattr& op, OpContext& ctx);
absl::Status ApplyRemoveXattr(const v1::Mutation::RemoveXattr& op, OpContext& ctx);

// Takes a file from a holder that fell silent or gave it up. One that was created with delete_if_abandoned is deleted (`done`, `deleted`);
// else it is closed at once (`done`) if its blocks are all committed, or the last was never
// set up (no storage, no byte); else its last block is to be recovered, and it is closed then. A lease that leads nowhere any more is
// dropped.
absl::Status ApplyExpireLease(const v1::Mutation::ExpireLease& op, OpContext& ctx);

// Sets, changes or takes away a directory's quotas; only a superuser may. A quota below what is used is fine.
absl::Status ApplySetQuota(const v1::Mutation::SetQuota& op, OpContext& ctx);

// Sets how many replicas a file is to have, and charges the difference at once; the blocks of a long file are rewritten as `work`. Result:
// the inode; a directory has no replication and is left alone.
absl::Status ApplySetReplication(const v1::Mutation::SetReplication& op, OpContext& ctx);
// Rewrites up to max_blocks rows of one such file.
absl::Status ApplySpreadReplication(const v1::Mutation::SpreadReplication& op, OpContext& ctx);

// Moves the blocks of closed files to the end of a closed file of the same directory, and removes those files (as HDFS FSDirConcatOp). The
// target may be empty, the sources not. kInvalidArgument with a reason for each condition, TARGET_OPEN and SOURCE_OPEN among them.
inline constexpr int kMaxSourcesOfConcat = 1000;
// Keeps its effects below 1 MiB.
inline constexpr uint64_t kMaxBlocksOfConcat = 4096;
absl::Status ApplyConcat(const v1::Mutation::Concat& op, OpContext& ctx);

// The same by path: by force, as HDFS's recoverLease; or because somebody wants it whose front door saw its holder silent for longer than
// the soft limit, else kBeingWritten. `done`: it is closed. Of a closed file: OK. Who forces it wants what is there: it is closed even if
// it was created with delete_if_abandoned, which else lets it be deleted here, too.
absl::Status ApplyRecoverLease(const v1::Mutation::RecoverLease& op, OpContext& ctx);

// Opens a closed file for more. Its last block, if it is not full, is written on under a new stamp where it is held; else nothing but the
// lease changes. kBeingWritten with a reason of lease_rules.h; kNotReplicatedYet if too few of its replicas can be reached.
absl::Status ApplyAppend(const v1::Mutation::Append& op, OpContext& ctx);

// Cuts a closed file. At the border of a block at once (`done`); inside a block, this block is recovered to the new length first, and the
// file is under construction until then. kInvalidArgument if it would grow.
absl::Status ApplyTruncate(const v1::Mutation::Truncate& op, OpContext& ctx);

// Another round of the recovery of a block: its row takes a new recovery id, before any DataNode hears of it. kStaleGeneration if it is not
// under recovery.
absl::Status ApplyStartBlockRecovery(const v1::Mutation::StartBlockRecovery& op, OpContext& ctx);

// What the round of this recovery id has come to: the block is COMMITTED so, or dropped, and the file is closed. kStaleGeneration if
// another round has begun. Never cut: bytes of an earlier close; acknowledged bytes, unless all expected storages have answered.
absl::Status ApplyCommitBlockRecovery(const v1::Mutation::CommitBlockRecovery& op, OpContext& ctx);

// Where the front door found a block, and at which stamp.
struct HeldBlock {
  uint64_t block_id;
  uint64_t generation_stamp;
  const google::protobuf::RepeatedField<uint32_t>& storages;
};
// kRetriable if `block` is not the one that was looked for; kNotReplicatedYet if fewer storages than dfs.namenode.replication.min hold it.
absl::Status CheckHolding(const OpContext& ctx, const FileEdit& edit, const BlockAt& block, const HeldBlock& held);

// A deleted directory of at least kSweptEntries is swept: the `inode` rows of its entries stay until all are freed and then go as one
// range. Not a smaller one: every range tombstone makes reads of its family a little slower until it is compacted away.
inline constexpr uint64_t kSweptEntries = 1024;
// Frees up to max_entries inodes and blocks of detached subtrees, one work after the other. Only one step of a work may be in a batch: the
// rows of a large directory go as a range, which the batch must not have touched otherwise.
absl::Status ApplyReclaimStep(const v1::Mutation::ReclaimStep& op, OpContext& ctx);

// Numbers for storages, in the order asked; the same number for the same uuid for ever.
absl::Status ApplyRegisterStorages(const v1::Mutation::RegisterStorages& op, OpContext& ctx);

// Drops retry rows that were last used before unused_since_ms; looks at max_rows from start_after.
absl::Status ApplySweepRetries(const v1::Mutation::SweepRetries& op, OpContext& ctx);

// Sets one value of family meta, and raises counters: a counter is never set back.
absl::Status ApplySetMeta(const v1::Mutation::SetMeta& op, OpContext& ctx);

}  // namespace cairn::namenode
