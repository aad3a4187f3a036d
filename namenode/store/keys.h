#pragma once

// Key layouts of the namespace's families: a format on disk. All numbers are big-endian, so that byte order is number order and a
// range of keys is a range of numbers.
//
//   family        key
//   inode         parent inode id u64, name bytes          (a directory's children are one range)
//   inode_by_id   inode id u64
//   file_block    inode id u64, index u64
//   block         block id u64
//   usage         directory's inode id u64
//   lease         length of the holder u16, holder bytes, inode id u64
//   work          work id u64
//   retry         client id (16 bytes), slot u32
//   datanode      storage number u32
//   meta          a name of kMeta...; numbers in its values are u64
//
// Parsers answer nothing for keys of another shape: a damaged store must not be misread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.h"

namespace cairn::namenode {

// Where the root's own record is kept: the one row of a parent that is no inode. Its name is empty.
inline constexpr InodeId kRootParentId{1};

inline constexpr size_t kClientIdBytes = 16;
inline constexpr size_t kMaxHolderBytes = 65535;

std::string EncodeU64(uint64_t value);
std::optional<uint64_t> DecodeU64(std::string_view bytes);

// The least key above all keys that begin with `prefix`; empty if there is none.
std::string PrefixEnd(std::string prefix);

std::string InodeKey(InodeId parent, std::string_view name);
struct InodeKeyParts {
  InodeId parent;
  std::string_view name;  // Points into the key.
};
std::optional<InodeKeyParts> ParseInodeKey(std::string_view key);
// [begin, end) of a directory's children after the name `start_after` (empty: all).
std::string ChildrenBegin(InodeId parent, std::string_view start_after);
std::string ChildrenEnd(InodeId parent);
// The name under which a detached inode stands below parent 0: its id, so that no two collide.
std::string DetachedName(InodeId id);

std::string InodeByIdKey(InodeId id);
std::string FileBlockKey(InodeId id, uint64_t index);
std::string BlockKey(BlockId id);
std::optional<BlockId> ParseBlockKey(std::string_view key);
std::string UsageKey(InodeId directory);

std::string LeaseKey(std::string_view holder, InodeId id);
struct LeaseKeyParts {
  std::string_view holder;  // Points into the key.
  InodeId id;
};
std::optional<LeaseKeyParts> ParseLeaseKey(std::string_view key);

std::string WorkKey(uint64_t work_id);
std::optional<uint64_t> ParseWorkKey(std::string_view key);

std::string RetryKey(std::string_view client_id, uint32_t slot);

std::string DatanodeKey(StorageNumber storage);
std::optional<StorageNumber> ParseDatanodeKey(std::string_view key);

// Family `meta`. Values: text for cluster_id; 16 bytes for pool_id; a message for block_token_keys; u64 where nothing is said.
inline constexpr std::string_view kMetaClusterId = "cluster_id";
inline constexpr std::string_view kMetaPoolId = "pool_id";
inline constexpr std::string_view kMetaNextInodeId = "next_inode_id";
inline constexpr std::string_view kMetaNextBlockId = "next_block_id";
inline constexpr std::string_view kMetaNextGenerationStamp = "next_generation_stamp";
inline constexpr std::string_view kMetaNextWorkId = "next_work_id";
inline constexpr std::string_view kMetaNextStorageNumber = "next_storage_number";
inline constexpr std::string_view kMetaEpoch = "epoch";
inline constexpr std::string_view kMetaLayoutVersion = "layout_version";
inline constexpr std::string_view kMetaAppliedIndex = "applied_index";  // Written by each batch itself.
inline constexpr std::string_view kMetaLastMutationTime = "last_mutation_time";
inline constexpr std::string_view kMetaBlockTokenKeys = "block_token_keys";
// "1" after a DataNode proved that this namespace was rolled back, until an operator confirms.
inline constexpr std::string_view kMetaKeepUnknownReplicas = "keep_unknown_replicas";
inline constexpr std::string_view kMetaNodeAdminPrefix = "node_admin/";     // Before a DataNode's uuid: its NodeAdminRecord.
inline constexpr std::string_view kMetaReclaimControl = "reclaim_control";  // A ReclaimControl; absent: as its defaults.

inline constexpr uint64_t kNamespaceLayoutVersion = 1;

}  // namespace cairn::namenode
