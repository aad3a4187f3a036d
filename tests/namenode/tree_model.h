#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/namespace.pb.h"
#include "common/error.h"

namespace cairn::testing {

struct ModelBlock {
  uint64_t id = 0;
  uint64_t stamp = 0;
  uint64_t length = 0;
  v1::BlockUCState state = v1::UNDER_CONSTRUCTION;
  std::vector<uint32_t> storages;
  uint32_t replication = 0;
  uint64_t charged = 0;
  int64_t committed_ms = 0;
  uint64_t recovery_id = 0;             // Under recovery: of its latest round.
  std::optional<uint64_t> truncate_to;  // Under recovery because of a truncate.
  // Opened again by an append: what was closed before, and the stamp of that time while the new pipeline is not known to stand.
  uint64_t closed_length = 0;
  uint64_t append_from = 0;
  uint64_t synced = 0;  // On disk, as its writer was told; of one that is not committed.
};

struct ModelNode {
  uint64_t id = 0;
  bool is_directory = true;
  uint32_t mode = 0;
  std::string owner;
  std::string group;
  // Of directories.
  std::optional<int64_t> name_quota;
  std::optional<int64_t> space_quota;
  std::map<std::pair<int, std::string>, std::string> xattrs;  // By name space and name.
  int64_t modified_ms = 0;
  int64_t accessed_ms = 0;
  // Of files.
  uint32_t replication = 0;
  uint64_t block_size = 0;
  std::vector<ModelBlock> blocks;
  std::optional<ModelBlock> reserved;
  std::string holder;
  bool vanishes = false;      // While it is written: it is deleted if its writer gives it up.
  bool never_closed = false;  // By a writer.

  uint64_t length() const;
  uint64_t charged() const;
};

// What the namespace must answer. Of a success only those fields are compared that have a value.
struct Expected {
  ErrorKind refused = ErrorKind::kNone;
  bool acted = false;
  // The answer depends on background work that the model does not follow: only this kind of refusal may be (kNone: none).
  bool unpredictable = false;
  ErrorKind or_refused = ErrorKind::kNone;
  std::optional<std::string> reason;  // Of a refusal.
  std::optional<std::string> path;
  std::optional<uint64_t> inode_id;
  std::optional<bool> existed;
  std::optional<bool> done;
  std::optional<std::string> codes;
  std::optional<uint32_t> next;
  std::optional<ModelBlock> block;  // Its id, stamp and length.
  std::optional<uint64_t> offset;
  std::optional<std::vector<uint32_t>> storages;
  std::optional<uint64_t> old_stamp;
  std::optional<uint64_t> recovery_id;
  std::optional<std::vector<uint32_t>> storage_numbers;
};

inline Expected Refused(ErrorKind kind, std::optional<std::string> reason = std::nullopt) {
  Expected expected;
  expected.refused = kind;
  expected.reason = std::move(reason);
  return expected;
}

// "" if `actual` is what was expected, else what differs.
std::string Difference(const Expected& expected, const absl::StatusOr<v1::MutationResult>& actual);

// The namespace as its users think of it: a map of whole paths. It knows nothing of rows, parents' ids, kept totals or detached subtrees;
// what the namespace keeps by increments is counted here anew each time. It predicts every answer of Apply, by kind where it is a refusal,
// also that of repeated calls. Copyable: what may have happened before a crash is tried on a copy.
class TreeModel {
 public:
  TreeModel();

  Expected Apply(const v1::Mutation& mutation);
  // An unpredictable mutation has acted.
  void Acted(const v1::Mutation& mutation);

  const std::map<std::string, ModelNode>& nodes() const { return nodes_; }
  // One line a path with everything that is kept there, and the totals of directories; in the form of DumpNamespace.
  std::map<std::string, std::string> Lines() const;
  // All else that is kept and that the model follows; in the form of NamespaceDump::counters.
  std::string Counters() const;
  uint64_t next_inode() const { return next_inode_; }
  uint64_t next_stamp() const { return next_stamp_; }
  uint64_t blocks() const;  // Of all files, reserved ones too.

  static bool IsBelow(const std::string& path, const std::string& directory);
  static std::string ParentOf(const std::string& path);

 private:
  struct Row {
    uint64_t sequence = 0;
    uint64_t hash = 0;
    int64_t last_used_ms = 0;
    Expected answer;
  };
  // Where a path leads: how many of its components exist.
  struct Walk {
    ErrorKind error = ErrorKind::kNone;
    std::vector<std::string> components;
    size_t existing = 0;
    bool complete() const { return existing == components.size(); }
    bool has_parent() const { return !components.empty() && existing + 1 >= components.size(); }
    std::string Prefix(size_t count) const;
    std::string path() const { return Prefix(components.size()); }
  };
  // A file that is being written, changed on a copy.
  struct Edit {
    std::string path;
    ModelNode file;
  };

  // With a mutation: as its caller, who must be able to enter each directory.
  Walk WalkTo(const std::string& path, const v1::Mutation* by = nullptr) const;
  Expected Dispatch(const v1::Mutation& m, const std::string& codes_before);
  Expected Create(const v1::Mutation& m);
  Expected Mkdirs(const v1::Mutation& m);
  Expected Rename(const v1::Mutation& m);
  Expected Delete(const v1::Mutation& m);
  Expected DeleteMany(const v1::Mutation& m, const std::string& codes_before);
  Expected SweepRetries(const v1::Mutation& m);
  Expected RegisterStorages(const v1::Mutation& m);
  Expected SetMeta(const v1::Mutation& m);
  // Of the writers of files: tree_model_files.cc.
  Expected AddBlock(const v1::Mutation& m);
  Expected AbandonBlock(const v1::Mutation& m);
  Expected UpdateBlockForPipeline(const v1::Mutation& m);
  Expected UpdatePipeline(const v1::Mutation& m);
  Expected Fsync(const v1::Mutation& m);
  Expected Complete(const v1::Mutation& m);
  // Files taken from their writers, opened again, cut, recovered: tree_model_leases.cc.
  Expected Append(const v1::Mutation& m);
  Expected Truncate(const v1::Mutation& m);
  Expected ExpireLease(const v1::Mutation& m);
  Expected RecoverLease(const v1::Mutation& m);
  Expected StartBlockRecovery(const v1::Mutation& m);
  Expected CommitBlockRecovery(const v1::Mutation& m);
  // Why somebody cannot have a file that is being written.
  static Expected BeingWritten(const v1::Mutation& m, const ModelNode& file, const v1::Mutation::LeaseSeen& seen);
  // Whether a front door that found a block so knows enough to go on with it.
  static Expected CheckHolding(const v1::Mutation& m, const ModelBlock& block, uint64_t id, uint64_t stamp,
                               const google::protobuf::RepeatedField<uint32_t>& holding);

  // Who may do what, and attributes: tree_model_attributes.cc.
  static bool May(const v1::Mutation& m, const ModelNode& node, uint32_t rights);
  static ErrorKind MayEnter(const v1::Mutation& m, const ModelNode& directory);
  ErrorKind MayChange(const v1::Mutation& m, const Walk& walk, uint32_t rights) const;
  ErrorKind MayMake(const v1::Mutation& m, const Walk& walk) const;
  ErrorKind MayRemove(const v1::Mutation& m, const Walk& walk) const;
  Expected SetAttributes(const v1::Mutation& m);
  Expected ChangeXattr(const v1::Mutation& m);
  // What bounds a subtree: tree_model_quota.cc.
  Expected SetQuota(const v1::Mutation& m);
  Expected SetReplication(const v1::Mutation& m);
  Expected Concat(const v1::Mutation& m);
  // Whether every directory above `path` (nearest to a first that is passed over: `shared`) may take so much more.
  ErrorKind CheckQuota(const std::string& path, int64_t names, int64_t charged, const std::string& shared = "") const;
  // Names and charged bytes of what stands at a path, with all below it.
  std::pair<int64_t, int64_t> Weight(const std::string& path) const;

  ErrorKind DeleteOne(const v1::Mutation& m, const std::string& path, bool recursive, bool* existed);
  ErrorKind CheckName(const v1::Mutation& m, const Walk& walk, size_t index) const;
  ErrorKind CheckMissing(const v1::Mutation& m, const Walk& walk) const;
  void MakeDirectories(const v1::Mutation& m, const Walk& walk, size_t until, uint32_t mode, uint32_t parent_mode);
  ModelNode NewNode(const v1::Mutation& m, bool directory, uint32_t mode, const std::string& group);
  void Insert(const std::string& path, ModelNode node);
  // Its modification time, unless a user has set it to later.
  void Touch(const std::string& directory);
  void Remove(const std::string& path);  // With all below it.
  uint64_t ChildrenOf(const std::string& path) const;
  const std::string* PathOfId(uint64_t id) const;
  // Of a file that is there; nullptr if it is of none.
  const ModelBlock* FindBlock(uint64_t id, std::string* path) const;

  ErrorKind Load(const std::string& path, uint64_t inode_id, Edit* edit) const;
  static bool Holds(const v1::Mutation& m, const ModelNode& file) { return !m.client_name().empty() && file.holder == m.client_name(); }
  ErrorKind Commit(const v1::Mutation& m, const v1::Mutation::Commit& commit, ModelNode* file, bool* changed) const;
  ErrorKind TakeReserved(const v1::Mutation& m, const v1::Mutation::Commit* previous, uint64_t id, ModelNode* file, bool* changed) const;
  ModelBlock Allocate(const ModelNode& file, v1::BlockUCState state, const google::protobuf::RepeatedField<uint32_t>& targets);
  void Close(ModelNode* file, bool by_writer) const;
  // It is deleted, as its writer wanted.
  Expected Vanish(const std::string& path);
  // The file is closed, or its last block's recovery begins.
  Expected TakeFromWriter(const std::string& path);
  void Store(const Edit& edit) { nodes_[edit.path] = edit.file; }

  std::map<std::string, ModelNode> nodes_;
  std::map<std::pair<std::string, uint32_t>, Row> rows_;
  struct Storage {
    uint32_t number = 0;
    std::string node;
  };
  std::map<std::string, Storage> storages_;
  std::map<std::string, std::string> meta_;
  // Files that were being written when a directory above them was deleted: their leases go when they are reclaimed.
  std::set<std::pair<std::string, uint64_t>> left_leases_;
  // Blocks of deleted files, by id: their rows stay until they are reclaimed.
  std::map<uint64_t, ModelBlock> left_blocks_;
  uint64_t next_inode_;
  uint64_t next_block_;
  uint64_t next_stamp_;
  uint32_t next_storage_ = 1;
  int64_t last_ms_;
  int64_t now_ms_ = 0;  // Of the mutation being applied.
};

}  // namespace cairn::testing
