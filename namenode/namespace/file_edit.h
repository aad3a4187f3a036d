#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "namenode/namespace/op_context.h"

namespace cairn::namenode {

struct BlockAt {
  BlockId id;
  v1::BlockRecord record;
};

v1::Block ToBlock(const BlockAt& block);
v1::FreedBlock ToFreed(const BlockAt& block);

// Holder of the leases of files whose last block is being recovered: the NameNode itself. No client may bear this name.
inline constexpr std::string_view kRecoveryHolder = "cairn-namenode-recovery";

// A file that is being written, and what one mutation does to its blocks: changed in memory, each step checked, and written at the end by
// Write(). So a verb may combine steps (commit the block before, take the reserved one, commit that), and a refusal of the last has
// written nothing.
//
// Keeps two sums exact: the record's length is that of its blocks together, its charged bytes those of its blocks and of the
// reserved one; Write() adds the difference to every directory above.
class FileEdit {
 public:
  // By id if there is one, else by path. kLeaseExpired with reason FILE_GONE if it is gone or deleted; kIsDirectory.
  static absl::StatusOr<FileEdit> Load(OpContext& ctx, const std::string& path, uint64_t inode_id);
  // The file at the end of a complete walk.
  static absl::StatusOr<FileEdit> LoadAt(OpContext& ctx, const PathWalk& walk);

  // A file that this mutation has just inserted; `ancestors` are the directories above it.
  static FileEdit ForNew(OpContext& ctx, InodeAt inode, std::vector<InodeId> ancestors, std::string path) {
    return FileEdit(ctx, std::move(inode), std::move(ancestors), std::move(path));
  }

  // kLeaseExpired unless the mutation's client_name is writing this file.
  absl::Status CheckLease() const;

  const v1::INodeRecord& record() const { return inode_.record; }
  const InodeAt& inode() const { return inode_; }
  // As it stands in the namespace, which may be elsewhere than where the client opened it.
  const std::string& path() const { return path_; }
  // The directories above it.
  const std::vector<InodeId>& ancestors() const { return ancestors_; }
  const std::optional<BlockAt>& last() const { return last_; }
  const std::optional<BlockAt>& reserved() const { return reserved_; }
  absl::StatusOr<std::optional<BlockAt>> Penultimate() const;

  // The writer says that the last block is finished. OK also if it is already committed just so.
  absl::Status CommitLast(const v1::Mutation::Commit& commit);
  // Commits the last block and makes the reserved one the next. OK also if that was done before.
  absl::Status TakeReserved(const v1::Mutation::Commit* previous, uint64_t reserved_id);
  // The last block, or the reserved one, being written under this id; kLeaseExpired if it is neither.
  absl::StatusOr<BlockAt*> Writable(BlockId id);
  // Raises a writable block's length; a smaller one is an older word and changes nothing.
  absl::Status RaiseLength(BlockAt& block, uint64_t length_bytes);
  // So many bytes of a writable block, no more than its length, are on disk.
  void RaiseSynced(BlockAt& block, uint64_t length_bytes);
  void Changed(const BlockAt& block) { touched_.push_back(block.id); }
  // Whether there is anything to Write.
  bool changed() const { return !touched_.empty() || !freed_.empty(); }

  // Whether the quotas above allow what this edit has charged so far, and so much more. Before the first write.
  absl::Status CheckQuota(uint64_t more_charged_bytes) const;
  // What a new block charges: a whole one, on all its replicas.
  uint64_t ChargeOfNewBlock() const { return record().block_size_bytes() * record().replication(); }
  // A new block on these targets, RESERVED or as the file's next. Takes an id and a stamp: only after all checks, CheckQuota among them.
  absl::StatusOr<BlockAt> Allocate(bool reserve, const google::protobuf::RepeatedField<uint32_t>& targets);
  void DropReserved();
  void DropLast();
  // DropLast, and the one before it is the last then.
  absl::Status DropToPrevious();
  // The file is written by `holder` from here on; whoever held its lease has lost it.
  void GiveLease(std::string_view holder);
  // Gives the lease back. Modified now. Only its writer's own close makes it a file that a writer has closed.
  enum class ClosedBy { kWriter, kNamenode };
  void Close(ClosedBy by);
  void Touch() { inode_.record.set_modification_time_ms(ctx_->now_ms()); }

  // The committed last block is written on, on these storages and under a new stamp; charged as a whole block again. Only after all checks.
  absl::Status ReopenLast(const google::protobuf::RepeatedField<uint32_t>& storages);
  // The last block has to be recovered, to the length that is found; the NameNode holds the lease meanwhile. Takes the
  // recovery id of the first round: only after all checks.
  absl::Status RecoverLast();
  // The same for a committed block, which is cut: the pipeline is then where it is held.
  absl::Status CutLast(const google::protobuf::RepeatedField<uint32_t>& storages, uint64_t length_bytes);
  // What recovery has found becomes the last block.
  void SettleLast(const v1::Block& found, const google::protobuf::RepeatedField<uint32_t>& storages);

  // Writes the record, the blocks and the usage of the directories above; fills changed_blocks and freed of the result.
  absl::Status Write();

 private:
  FileEdit(OpContext& ctx, InodeAt inode, std::vector<InodeId> ancestors, std::string path)
      : ctx_(&ctx),
        inode_(std::move(inode)),
        blocks_before_(record().block_count()),
        length_before_(record().length_bytes()),
        charged_before_(record().charged_bytes()),
        ancestors_(std::move(ancestors)),
        path_(std::move(path)) {}

  absl::Status LoadBlocks();
  absl::Status LoadLast();
  absl::Status CheckAcknowledged(const v1::Mutation::Commit& commit, const BlockAt& block) const;
  void Charge(BlockAt& block, uint64_t charged_bytes);
  void Free(const BlockAt& block);
  bool IsChanged(BlockId id) const;

  OpContext* ctx_;
  InodeAt inode_;
  const uint64_t blocks_before_;
  const uint64_t length_before_;
  const uint64_t charged_before_;
  std::vector<InodeId> ancestors_;
  std::string path_;
  std::optional<BlockAt> last_;
  std::optional<BlockAt> reserved_;
  // The last block before a reserved or new one was appended, if it changed.
  std::vector<BlockAt> older_;
  std::vector<BlockId> touched_;
  std::vector<BlockAt> freed_;
  std::optional<BlockId> appended_;
  std::optional<BlockId> allocated_;
  uint64_t dropped_ = 0;  // Blocks taken off the end.
};

}  // namespace cairn::namenode
