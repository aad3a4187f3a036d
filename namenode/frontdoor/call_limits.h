#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/client_namenode.pb.h"
#include "cairn/namespace.pb.h"

namespace cairn::namenode {

// What the front door lets in. Configuration is read here and carried in each mutation: Apply reads none.
struct CallLimits {
  uint64_t max_component_bytes = 255;  // dfs.namenode.fs-limits.max-component-length.
  uint64_t max_path_bytes = 8000;      // As HDFS, whose figures for these two are fixed as well.
  uint64_t max_depth = 1000;
  std::string forbidden_characters;    // cairn.namenode.fs-limits.forbidden-characters.
  uint64_t max_directory_entries = 16 << 20;  // dfs.namenode.fs-limits.max-directory-items.
  uint32_t min_replication = 1;               // dfs.namenode.replication.min.
  uint32_t max_replication = 512;             // dfs.replication.max.
  uint64_t min_block_size_bytes = 1 << 20;    // dfs.namenode.fs-limits.min-block-size.
  uint64_t max_block_size_bytes = 1 << 30;    // cairn.block.max-size.
  uint64_t max_blocks_per_file = 10'000;      // dfs.namenode.fs-limits.max-blocks-per-file.
  uint64_t max_xattrs = 32;                   // dfs.namenode.fs-limits.max-xattrs-per-inode.
  uint64_t max_xattr_bytes = 16 << 10;        // dfs.namenode.fs-limits.max-xattr-size.
  // dfs.permissions.enabled, which is true unless set. Here false: a NameNode that is put together in a program says itself who may what.
  bool permissions_enabled = false;
  absl::Duration lease_soft_limit = absl::Seconds(60);  // cairn.namenode.lease-soft-limit.
};

inline constexpr size_t kMaxLocatedBlocks = 1000;
inline constexpr int kMaxDeletePaths = 4096;
inline constexpr size_t kMaxDeletePathBytes = 1 << 20;
inline constexpr int kMaxLocatedPaths = 1000;
inline constexpr size_t kMaxLocatedPathBytes = 1 << 20;
inline constexpr size_t kMaxBlocksOfManyFiles = 4000;  // In one answer: some 2 MB.
inline constexpr int kMaxBadReplicas = 1000;
inline constexpr size_t kMaxUserBytes = 255;
inline constexpr size_t kMaxClientNameBytes = 1024;

v1::Mutation::Limits ToMutationLimits(const CallLimits& limits);

// What is wrong with a header, for a call that changes something or one that reads: kInvalidArgument.
absl::Status CheckMutationHeader(const v1::RequestHeader& header);
absl::Status CheckReadHeader(const v1::RequestHeader& header);

absl::Status CheckDeleteMany(const v1::DeleteManyRequest& request);
absl::Status CheckLocatedPaths(const v1::GetLocationsManyRequest& request);

}  // namespace cairn::namenode
