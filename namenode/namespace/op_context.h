#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/permission.h"
#include "namenode/namespace/records.h"

namespace cairn::namenode {

// What one entry, or one subtree, adds to the usage of every directory above it.
struct UsageDelta {
  int64_t directories = 0;
  int64_t files = 0;
  int64_t length_bytes = 0;
  int64_t charged_bytes = 0;

  UsageDelta& operator+=(const UsageDelta& other);
  UsageDelta operator-() const { return {-directories, -files, -length_bytes, -charged_bytes}; }
  bool operator==(const UsageDelta&) const = default;
};

// A value for each of a few directories, in the order of their ids. References hold until the next directory is added.
template <class Value>
class ByDirectory {
 public:
  Value& operator[](InodeId directory) {
    const auto place = Place(directory);
    if (place != rows_.end() && place->first == directory) return place->second;
    return rows_.emplace(place, directory, Value())->second;
  }
  const Value* Find(InodeId directory) const {
    const auto place = const_cast<ByDirectory*>(this)->Place(directory);
    return place != rows_.end() && place->first == directory ? &place->second : nullptr;
  }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  void clear() { rows_.clear(); }

 private:
  using Rows = absl::InlinedVector<std::pair<InodeId, Value>, 6>;  // As many as most paths have above them.
  typename Rows::iterator Place(InodeId directory) {
    return std::lower_bound(rows_.begin(), rows_.end(), directory, [](const auto& row, InodeId id) { return row.first < id; });
  }

  Rows rows_;
};

// What the verbs of namespace/ops share while one mutation is applied: the inputs, the answer, and the changes to directories that
// are summed up and written once at the end, however often the mutation touched them.
//
// A verb checks everything first, then changes; after the first change it may fail only with kCorruptMetadata. Lives for one Apply.
class OpContext {
 public:
  OpContext(const v1::Mutation& mutation, int64_t now_ms, Transaction& txn, v1::MutationResult& result)
      : mutation_(mutation), caller_(mutation), now_ms_(now_ms), txn_(txn), result_(result) {}

  const v1::Mutation& mutation() const { return mutation_; }
  // Who asks: every verb that takes a path walks and checks with it; see permission.h.
  const Caller& caller() const { return caller_; }
  const v1::Mutation::Limits& limits() const { return mutation_.limits(); }
  int64_t now_ms() const { return now_ms_; }
  // For reading. Usage must be read through UsageOf: the transaction lacks what is summed up here.
  const ReadView& view() const { return txn_; }
  // For writing: the mutation acts from here on.
  Transaction& Change() {
    acted_ = true;
    return txn_;
  }
  bool acted() const { return acted_; }
  v1::MutationResult& result() { return result_; }

  absl::StatusOr<v1::UsageRecord> UsageOf(InodeId directory) const;
  // Sets a directory's quotas, with Flush.
  void SetQuota(InodeId directory, std::optional<int64_t> namespace_quota, std::optional<int64_t> space_quota_bytes);
  // Whether `delta` may be added to each of `ancestors`, the root first, after what was added before. kQuota with reason NAMESPACE_QUOTA or
  // SPACE_QUOTA, the directory's path and its quota as limit, of the nearest that says no (as HDFS: FSDirectory.verifyQuota). Only what
  // grows is checked.
  absl::Status CheckQuota(const std::vector<InodeId>& ancestors, const UsageDelta& delta) const;
  // `ancestors`: every directory above the entry, in any order.
  void AddUsage(const std::vector<InodeId>& ancestors, const UsageDelta& delta);
  void AddChildren(InodeId directory, int64_t count);
  // Sets a directory's modification time to now.
  void TouchDirectory(InodeId directory);

  // Notes a block whose row changed, for the replica plane.
  void BlockChanged(BlockId id) { result_.add_changed_blocks(id.value()); }

  // Notes in the result that a directory's entries or a file's blocks grew from `before` to `after`, if that comes near `limit` (0: none):
  // when it reaches 80 % of it, and then each time it has grown by another step, so that one who forgot is told again.
  absl::Status NoteGrowth(InodeId id, uint64_t before, uint64_t after, uint64_t limit, std::string_view key);

  // Writes what was summed up.
  absl::Status Flush();

 private:
  struct Quotas {
    std::optional<int64_t> names;
    std::optional<int64_t> space_bytes;
  };
  struct DirectoryChange {
    UsageDelta subtree;
    int64_t children = 0;
    bool touched = false;
    std::optional<Quotas> quotas;
  };

  // As the transaction has it, without what is summed up here; lives until Flush, or the next row is asked for.
  absl::StatusOr<const v1::UsageRecord*> UsageRow(InodeId directory) const;

  const v1::Mutation& mutation_;
  const Caller caller_;
  const int64_t now_ms_;
  Transaction& txn_;
  v1::MutationResult& result_;
  bool acted_ = false;
  ByDirectory<DirectoryChange> directories_;
  // Rows as the transaction has them, each asked for once.
  mutable ByDirectory<std::shared_ptr<const v1::UsageRecord>> usage_rows_;
};

inline constexpr std::string_view kMaxDirectoryItemsKey = "dfs.namenode.fs-limits.max-directory-items";
inline constexpr std::string_view kMaxBlocksPerFileKey = "dfs.namenode.fs-limits.max-blocks-per-file";

// What counts as near a limit: 80 % of it.
inline constexpr bool IsNearLimit(uint64_t count, uint64_t limit) { return limit != 0 && count >= limit - limit / 5; }

// Errors that name a limit and the key that raises it. `reason` says which: NAME_TOO_LONG, PATH_TOO_LONG, PATH_TOO_DEEP, DIRECTORY_FULL,
// TOO_MANY_BLOCKS, TOO_MANY_XATTRS, XATTR_TOO_BIG.
absl::Status LimitExceeded(std::string_view reason, std::string message, std::string path, uint64_t limit, std::string_view key);

// Lengths and depth of a new name, that it holds no forbidden character, and that it is not reserved: ".snapshot" anywhere, ".reserved"
// below the root (as HDFS).
absl::Status CheckName(const v1::Mutation::Limits& limits, std::string_view name, const std::string& path, size_t depth);

// A new entry `name` at `path` below `parent`: CheckName, and the directory's entry count. A limit of 0 is none.
absl::Status CheckNewEntry(const OpContext& ctx, InodeId parent, std::string_view name, const std::string& path, size_t depth);

// A new inode of the mutation's user, with its id taken and its times set; group as the parent's (as BSD and HDFS have it).
absl::StatusOr<v1::INodeRecord> NewInode(OpContext& ctx, v1::INodeType type, uint32_t mode, const std::string& group);
// Puts a new entry with its link (and usage row, for a directory) and counts it in `ancestors`, of which parent is one.
void InsertInode(OpContext& ctx, const InodeAt& inode, const std::vector<InodeId>& ancestors);

// Makes the directories that `walk` lacks above its last component, or with it. They must have been checked with CheckMissing.
struct MadeDirectories {
  std::vector<InodeId> ancestors;  // Of what comes next, the root first.
  InodeId parent;
  std::string group;
};
absl::Status CheckMissing(const OpContext& ctx, const PathWalk& walk);
absl::StatusOr<MadeDirectories> MakeDirectories(OpContext& ctx, const PathWalk& walk, size_t until, uint32_t mode, uint32_t parent_mode);

}  // namespace cairn::namenode
