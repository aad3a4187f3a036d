#include "namenode/namespace/namespace_queries.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/records.h"

namespace cairn::namenode {
namespace {

constexpr size_t kMostInAGroup = 128;  // Entries of a directory whose listing is kept in memory.

ResolvedInode ToResolved(const WalkedInode& inode) { return ResolvedInode{*inode.record, inode.parent, inode.name}; }

absl::Status NoSuchInode(InodeId id) { return MakeError(ErrorKind::kNotFound, fmt::format("inode {} does not exist", id.value())); }

absl::StatusOr<uint64_t> ChildrenOf(const ReadView& view, const v1::INodeRecord& record) {
  if (record.type() != v1::DIRECTORY) return 0;
  ASSIGN_OR_RETURN(const auto usage, GetShared<v1::UsageRecord>(view, Family::kUsage, UsageKey(InodeId(record.id()))));
  return usage->children();
}

// How far a block reaches in its file, as far as is known: a block being written may fill up.
uint64_t ExtentOf(const v1::BlockRecord& block, const v1::INodeRecord& file) {
  return block.state() == v1::COMMITTED ? block.length_bytes() : std::max(block.length_bytes(), file.block_size_bytes());
}

}  // namespace

absl::StatusOr<ResolvedInode> ResolvePath(const ReadView& view, std::string_view path, const Caller& caller, uint32_t rights) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkExisting(view, path, caller));
  RETURN_IF_ERROR(caller.CheckTarget(walk, rights));
  return ToResolved(walk.last());
}

absl::StatusOr<ResolvedInode> ResolveFile(const ReadView& view, std::string_view path, const Caller& caller, uint32_t rights) {
  ASSIGN_OR_RETURN(ResolvedInode inode, ResolvePath(view, path, caller, rights));
  if (inode.record.type() == v1::FILE) return inode;
  return PathError(ErrorKind::kIsDirectory, "", std::string(path), fmt::format("Path is not a file: {}", path));
}

absl::StatusOr<ResolvedInode> ResolveId(const ReadView& view, InodeId id) {
  ASSIGN_OR_RETURN(const std::optional<FoundInode> inode, FindInode(view, id));
  if (!inode) return NoSuchInode(id);
  ASSIGN_OR_RETURN(const Ancestry ancestry, AncestryOf(view, inode->parent(), inode->link->name()));
  if (ancestry.detached) return NoSuchInode(id);
  return ResolvedInode{*inode->record, inode->parent(), inode->link->name()};
}

absl::StatusOr<std::string> PathOf(const ReadView& view, InodeId id) {
  ASSIGN_OR_RETURN(const std::optional<FoundInode> inode, FindInode(view, id));
  if (!inode) return NoSuchInode(id);
  ASSIGN_OR_RETURN(Ancestry ancestry, AncestryOf(view, inode->parent(), inode->link->name()));
  if (ancestry.detached) return NoSuchInode(id);
  std::reverse(ancestry.names.begin(), ancestry.names.end());
  return JoinPath(ancestry.names);
}

v1::FileStatus ToFileStatus(const v1::INodeRecord& record, std::string path) {
  v1::FileStatus status;
  status.set_inode_id(record.id());
  status.set_path(std::move(path));
  status.set_is_directory(record.type() == v1::DIRECTORY);
  status.set_length_bytes(record.length_bytes());
  status.set_replication(record.replication());
  status.set_block_size_bytes(record.block_size_bytes());
  status.set_modification_time_ms(record.modification_time_ms());
  status.set_access_time_ms(record.access_time_ms());
  status.set_mode(record.mode());
  status.set_owner(record.owner());
  status.set_group(record.group());
  status.set_under_construction(!record.lease_holder().empty());
  return status;
}

absl::StatusOr<v1::FileStatus> StatusOfPath(const ReadView& view, std::string_view path, const Caller& caller) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkExisting(view, path, caller));
  v1::FileStatus status = ToFileStatus(*walk.last().record, walk.path());
  ASSIGN_OR_RETURN(const uint64_t children, ChildrenOf(view, *walk.last().record));
  status.set_children(children);
  return status;
}

absl::StatusOr<Listing> ListDirectory(const ReadView& view, std::string_view path, std::string_view start_after, size_t limit,
                                      const Caller& caller) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkExisting(view, path, caller));
  Listing listing;
  if (!walk.last().is_directory()) {  // A file is listed as itself.
    if (start_after.empty()) listing.entries.push_back(ToFileStatus(*walk.last().record, walk.components.back()));
    return listing;
  }
  RETURN_IF_ERROR(caller.CheckTarget(walk, kReadRight | kExecuteRight));
  const InodeId directory = walk.last().id();
  const auto add = [&](std::string_view key, const v1::INodeRecord& record) -> absl::Status {
    const std::optional<InodeKeyParts> parts = ParseInodeKey(key);
    if (!parts) return CorruptRow(Family::kInode, key, "does not parse");
    listing.entries.push_back(ToFileStatus(record, std::string(parts->name)));
    ASSIGN_OR_RETURN(const uint64_t children, ChildrenOf(view, record));
    listing.entries.back().set_children(children);
    return absl::OkStatus();
  };
  std::shared_ptr<const RowGroup> group;
  ASSIGN_OR_RETURN(const uint64_t count, ChildrenOf(view, *walk.last().record));
  if (count <= kMostInAGroup) {  // Of a larger one each page would read so many rows in vain.
    ASSIGN_OR_RETURN(group, view.GetGroup(ChildrenBegin(directory, {}), &ParseRowAs<v1::INodeRecord>, kMostInAGroup));
  }
  if (group != nullptr) {
    const auto before = [](const auto& row, const std::string& key) { return row.first < key; };
    auto row = std::lower_bound(group->rows.begin(), group->rows.end(), ChildrenBegin(directory, start_after), before);
    for (; row != group->rows.end() && listing.entries.size() < limit; ++row)
      RETURN_IF_ERROR(add(row->first, static_cast<const v1::INodeRecord&>(*row->second)));
    listing.has_more = row != group->rows.end();
    return listing;
  }
  const auto cursor = view.Scan(Family::kInode, ChildrenBegin(directory, start_after), ChildrenEnd(directory));
  for (; cursor->Valid(); cursor->Next()) {
    if (listing.entries.size() == limit) {
      listing.has_more = true;
      break;
    }
    v1::INodeRecord record;
    if (!record.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size())))
      return CorruptRow(Family::kInode, cursor->key(), "does not parse");
    RETURN_IF_ERROR(add(cursor->key(), record));
  }
  RETURN_IF_ERROR(cursor->status());
  return listing;
}

absl::StatusOr<std::vector<BlockOfFile>> BlocksOfFile(const ReadView& view, const v1::INodeRecord& file, uint64_t offset_bytes,
                                                      uint64_t length_bytes, size_t limit) {
  std::vector<BlockOfFile> blocks;
  const uint64_t end = length_bytes > UINT64_MAX - offset_bytes ? UINT64_MAX : offset_bytes + length_bytes;
  // Blocks may be shorter than the block size, so where one begins is only known from those before it. Ids are read a page at a time.
  constexpr uint64_t kPage = 256;
  uint64_t at = 0;
  for (uint64_t index = 0; index < file.block_count() && at < end && blocks.size() < limit;) {
    ASSIGN_OR_RETURN(const std::vector<BlockId> ids, BlockIds(view, file, index, kPage));
    for (const BlockId id : ids) {
      if (at >= end || blocks.size() >= limit) return blocks;
      ASSIGN_OR_RETURN(v1::BlockRecord record, GetBlock(view, id));
      const uint64_t next = at + ExtentOf(record, file);
      if (next > offset_bytes) blocks.push_back(BlockOfFile{id, std::move(record), at});
      at = next;
    }
    index += ids.size();
  }
  return blocks;
}

absl::StatusOr<std::optional<v1::BlockRecord>> FindBlock(const ReadView& view, BlockId id) {
  return FindRecord<v1::BlockRecord>(view, Family::kBlock, BlockKey(id));
}

absl::StatusOr<v1::ContentSummary> SummaryOfPath(const ReadView& view, std::string_view path, const Caller& caller) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkExisting(view, path, caller));
  v1::ContentSummary summary;
  const v1::INodeRecord& record = *walk.last().record;
  if (!walk.last().is_directory()) {
    summary.set_files(1);
    summary.set_length_bytes(record.length_bytes());
    summary.set_charged_bytes(record.charged_bytes());
    return summary;
  }
  RETURN_IF_ERROR(caller.CheckTarget(walk, kReadRight | kExecuteRight));
  ASSIGN_OR_RETURN(const v1::UsageRecord usage, GetRecord<v1::UsageRecord>(view, Family::kUsage, UsageKey(walk.last().id())));
  summary.set_directories(usage.directories() + 1);
  summary.set_files(usage.files());
  summary.set_length_bytes(usage.length_bytes());
  summary.set_charged_bytes(usage.charged_bytes());
  if (usage.has_namespace_quota()) summary.set_namespace_quota(usage.namespace_quota());
  if (usage.has_space_quota_bytes()) summary.set_space_quota_bytes(usage.space_quota_bytes());
  return summary;
}

absl::StatusOr<Counters> ReadCounters(const ReadView& view) {
  Counters counters;
  ASSIGN_OR_RETURN(const uint64_t block_id, GetNumber(view, kMetaNextBlockId));
  ASSIGN_OR_RETURN(const uint64_t stamp, GetNumber(view, kMetaNextGenerationStamp));
  ASSIGN_OR_RETURN(const uint64_t inode_id, GetNumber(view, kMetaNextInodeId));
  ASSIGN_OR_RETURN(const uint64_t epoch, GetNumber(view, kMetaEpoch));
  ASSIGN_OR_RETURN(const uint64_t time, GetNumber(view, kMetaLastMutationTime));
  counters.next_block_id = BlockId(block_id);
  counters.next_generation_stamp = GenerationStamp(stamp);
  counters.next_inode_id = InodeId(inode_id);
  counters.epoch = Epoch(epoch);
  counters.last_mutation_time_ms = static_cast<int64_t>(time);
  ASSIGN_OR_RETURN(std::optional<std::string> cluster_id, view.Get(Family::kMeta, kMetaClusterId));
  ASSIGN_OR_RETURN(std::optional<std::string> pool_id, view.Get(Family::kMeta, kMetaPoolId));
  if (!cluster_id) return CorruptRow(Family::kMeta, kMetaClusterId, "is missing");
  if (!pool_id) return CorruptRow(Family::kMeta, kMetaPoolId, "is missing");
  counters.cluster_id = *std::move(cluster_id);
  counters.pool_id = *std::move(pool_id);
  return counters;
}

}  // namespace cairn::namenode
