#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/namespace.pb.h"
#include "cairn/types.pb.h"
#include "common/ids.h"
#include "namenode/namespace/permission.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// Questions to one state of the namespace: pure functions of a ReadView. Missing paths are kNotFound naming the first missing
// component; a file in the middle of a path is kNotDirectory. What a client asks bears its caller, and kPermission is an answer: it
// may have to pass through the directories above (x), list a directory (r and x), or what the query says.

struct ResolvedInode {
  v1::INodeRecord record;
  InodeId parent;
  std::string name;  // Empty for the root.
};

// With `rights` on the inode itself.
absl::StatusOr<ResolvedInode> ResolvePath(const ReadView& view, std::string_view path, const Caller& caller = Caller::Trusted(),
                                          uint32_t rights = 0);
// The same for a file: a directory is kIsDirectory.
absl::StatusOr<ResolvedInode> ResolveFile(const ReadView& view, std::string_view path, const Caller& caller = Caller::Trusted(),
                                          uint32_t rights = 0);
// By id, through inode_by_id. Detached or freed inodes are kNotFound.
absl::StatusOr<ResolvedInode> ResolveId(const ReadView& view, InodeId id);
absl::StatusOr<std::string> PathOf(const ReadView& view, InodeId id);
absl::StatusOr<v1::FileStatus> StatusOfPath(const ReadView& view, std::string_view path, const Caller& caller = Caller::Trusted());
v1::FileStatus ToFileStatus(const v1::INodeRecord& record, std::string path);

struct Listing {
  std::vector<v1::FileStatus> entries;  // Names only, bytewise ascending.
  bool has_more = false;
};
absl::StatusOr<Listing> ListDirectory(const ReadView& view, std::string_view path, std::string_view start_after, size_t limit,
                                      const Caller& caller = Caller::Trusted());

struct BlockOfFile {
  BlockId id;
  v1::BlockRecord record;
  uint64_t offset_bytes = 0;
};
// Blocks of a file that overlap [offset, offset + length), at most `limit`, in order.
absl::StatusOr<std::vector<BlockOfFile>> BlocksOfFile(const ReadView& view, const v1::INodeRecord& file, uint64_t offset_bytes,
                                                      uint64_t length_bytes, size_t limit);
absl::StatusOr<std::optional<v1::BlockRecord>> FindBlock(const ReadView& view, BlockId id);
// Of a directory: r and x on it. As the totals are kept, nothing below it is asked.
absl::StatusOr<v1::ContentSummary> SummaryOfPath(const ReadView& view, std::string_view path, const Caller& caller = Caller::Trusted());

struct Counters {
  BlockId next_block_id;
  GenerationStamp next_generation_stamp;
  InodeId next_inode_id;
  Epoch epoch;
  int64_t last_mutation_time_ms = 0;
  std::string cluster_id;
  std::string pool_id;
};
absl::StatusOr<Counters> ReadCounters(const ReadView& view);

}  // namespace cairn::namenode
