#include "namenode/namespace/op_context.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/check.h"
#include "common/error.h"
#include "common/utf8.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace/quota.h"

namespace cairn::namenode {
namespace {

constexpr std::string_view kReservedName = ".reserved";
constexpr std::string_view kSnapshotName = ".snapshot";
constexpr size_t kShownBytes = 256;  // Of a path that is too long to be shown.

// The first letter of `set` that is in `name`; both are UTF-8.
std::string_view FirstOf(std::string_view name, std::string_view set) {
  while (!set.empty()) {
    size_t length = 1;
    while (length < set.size() && (static_cast<unsigned char>(set[length]) & 0xc0) == 0x80) ++length;
    if (name.find(set.substr(0, length)) != std::string_view::npos) return set.substr(0, length);
    set.remove_prefix(length);
  }
  return {};
}

uint64_t Sum(uint64_t value, int64_t delta) {
  const uint64_t sum = value + static_cast<uint64_t>(delta);
  CAIRN_CHECK(delta >= 0 ? sum >= value : sum < value, fmt::format("usage of {} changed by {}", value, delta));
  return sum;
}

}  // namespace

UsageDelta& UsageDelta::operator+=(const UsageDelta& other) {
  directories += other.directories;
  files += other.files;
  length_bytes += other.length_bytes;
  charged_bytes += other.charged_bytes;
  return *this;
}

absl::StatusOr<const v1::UsageRecord*> OpContext::UsageRow(InodeId directory) const {
  std::shared_ptr<const v1::UsageRecord>& row = usage_rows_[directory];
  if (row == nullptr) {
    ASSIGN_OR_RETURN(row, GetShared<v1::UsageRecord>(txn_, Family::kUsage, UsageKey(directory)));
  }
  return row.get();
}

absl::StatusOr<v1::UsageRecord> OpContext::UsageOf(InodeId directory) const {
  ASSIGN_OR_RETURN(const v1::UsageRecord* row, UsageRow(directory));
  v1::UsageRecord usage = *row;
  const DirectoryChange* const found = directories_.Find(directory);
  if (found == nullptr) return usage;
  const DirectoryChange& change = *found;
  usage.set_children(Sum(usage.children(), change.children));
  usage.set_directories(Sum(usage.directories(), change.subtree.directories));
  usage.set_files(Sum(usage.files(), change.subtree.files));
  usage.set_length_bytes(Sum(usage.length_bytes(), change.subtree.length_bytes));
  usage.set_charged_bytes(Sum(usage.charged_bytes(), change.subtree.charged_bytes));
  if (!change.quotas) return usage;
  usage.clear_namespace_quota();
  usage.clear_space_quota_bytes();
  if (change.quotas->names) usage.set_namespace_quota(*change.quotas->names);
  if (change.quotas->space_bytes) usage.set_space_quota_bytes(*change.quotas->space_bytes);
  return usage;
}

absl::Status OpContext::CheckQuota(const std::vector<InodeId>& ancestors, const UsageDelta& delta) const {
  const int64_t names = delta.directories + delta.files;
  if (names <= 0 && delta.charged_bytes <= 0) return absl::OkStatus();
  for (auto id = ancestors.rbegin(); id != ancestors.rend(); ++id) {
    ASSIGN_OR_RETURN(const v1::UsageRecord* row, UsageRow(*id));
    // Most directories have none; a mutation that sets one adds nothing.
    if (!row->has_namespace_quota() && !row->has_space_quota_bytes()) continue;
    ASSIGN_OR_RETURN(const v1::UsageRecord usage, UsageOf(*id));
    if (!usage.has_namespace_quota() && !usage.has_space_quota_bytes()) continue;
    if (WithinQuota(usage, names, delta.charged_bytes)) continue;
    return QuotaExceeded(txn_, *id, usage, names, delta.charged_bytes);
  }
  return absl::OkStatus();
}

void OpContext::SetQuota(InodeId directory, std::optional<int64_t> namespace_quota, std::optional<int64_t> space_quota_bytes) {
  directories_[directory].quotas = Quotas{namespace_quota, space_quota_bytes};
  Change();
}

void OpContext::AddUsage(const std::vector<InodeId>& ancestors, const UsageDelta& delta) {
  if (delta == UsageDelta()) return;
  for (const InodeId id : ancestors) directories_[id].subtree += delta;
}

void OpContext::AddChildren(InodeId directory, int64_t count) { directories_[directory].children += count; }

void OpContext::TouchDirectory(InodeId directory) { directories_[directory].touched = true; }

absl::Status OpContext::NoteGrowth(InodeId id, uint64_t before, uint64_t after, uint64_t limit, std::string_view key) {
  constexpr uint64_t kLargestStep = 4096;
  if (after <= before || !IsNearLimit(after, limit)) return absl::OkStatus();
  const uint64_t step = std::clamp<uint64_t>(limit / 100, 1, kLargestStep);
  if (IsNearLimit(before, limit) && before / step == after / step) return absl::OkStatus();
  v1::NearLimit& near = *result_.add_near_limits();
  ASSIGN_OR_RETURN(*near.mutable_path(), PathOf(txn_, id));
  near.set_inode_id(id.value());
  near.set_key(std::string(key));
  near.set_count(after);
  near.set_limit(limit);
  return absl::OkStatus();
}

absl::Status OpContext::Flush() {
  for (const auto& [id, change] : directories_) {
    if (change.children != 0 || change.subtree != UsageDelta() || change.quotas) {
      ASSIGN_OR_RETURN(const v1::UsageRecord usage, UsageOf(id));
      Change().PutMessage(Family::kUsage, UsageKey(id), std::make_shared<v1::UsageRecord>(usage));
      if (change.children > 0)
        RETURN_IF_ERROR(NoteGrowth(id, usage.children() - static_cast<uint64_t>(change.children), usage.children(),
                                   limits().max_directory_entries(), kMaxDirectoryItemsKey));
    }
    if (!change.touched) continue;
    ASSIGN_OR_RETURN(const std::optional<FoundInode> directory, FindInode(txn_, id));
    if (!directory) return CorruptRow(Family::kInodeById, InodeByIdKey(id), "is missing");
    // One that a user has set to later stays, as in HDFS.
    if (directory->record->modification_time_ms() >= now_ms_) continue;
    InodeAt touched{directory->parent(), directory->link->name(), *directory->record};
    touched.record.set_modification_time_ms(now_ms_);
    PutInode(Change(), std::move(touched));
  }
  directories_.clear();
  usage_rows_.clear();
  return absl::OkStatus();
}

absl::Status LimitExceeded(std::string_view reason, std::string message, std::string path, uint64_t limit, std::string_view key) {
  Error error;
  error.kind = ErrorKind::kQuota;
  error.reason = std::string(reason);
  error.message = fmt::format("{} (limit {}, raised by {})", message, limit, key);
  error.path = std::move(path);
  error.limit = static_cast<int64_t>(limit);
  error.key = std::string(key);
  return MakeError(std::move(error));
}

absl::Status CheckName(const v1::Mutation::Limits& limits, std::string_view name, const std::string& path, size_t depth) {
  if (name == kSnapshotName || (depth == 1 && name == kReservedName)) {
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.reason = "RESERVED_NAME";
    error.path = path;
    error.message = fmt::format("{}: \"{}\" is a reserved name and cannot be created", path, name);
    return MakeError(std::move(error));
  }
  if (const std::string_view found = FirstOf(name, limits.forbidden_characters()); !found.empty()) {
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.reason = "FORBIDDEN_CHARACTER";
    error.path = path;
    error.key = "cairn.namenode.fs-limits.forbidden-characters";
    error.message = fmt::format("{}: \"{}\" may not be in a name (set by {})", path, found, error.key);
    return MakeError(std::move(error));
  }
  if (limits.max_component_bytes() != 0 && name.size() > limits.max_component_bytes())
    return LimitExceeded("NAME_TOO_LONG",
                         fmt::format("the maximum path component name limit is exceeded: {}... has {} bytes of UTF-8",
                                     Utf8Prefix(path, kShownBytes), name.size()),
                         std::string(Utf8Prefix(path, kShownBytes)), limits.max_component_bytes(),
                         "dfs.namenode.fs-limits.max-component-length");
  if (limits.max_path_bytes() != 0 && path.size() > limits.max_path_bytes())
    return LimitExceeded("PATH_TOO_LONG", fmt::format("Pathname too long: {}... has {} bytes", Utf8Prefix(path, kShownBytes), path.size()),
                         std::string(Utf8Prefix(path, kShownBytes)), limits.max_path_bytes(), "cairn.namenode.fs-limits.max-path-length");
  if (limits.max_depth() != 0 && depth > limits.max_depth())
    return LimitExceeded("PATH_TOO_DEEP", fmt::format("Pathname too long: {}... has {} levels", Utf8Prefix(path, kShownBytes), depth),
                         std::string(Utf8Prefix(path, kShownBytes)), limits.max_depth(), "cairn.namenode.fs-limits.max-path-depth");
  return absl::OkStatus();
}

absl::Status CheckNewEntry(const OpContext& ctx, InodeId parent, std::string_view name, const std::string& path, size_t depth) {
  RETURN_IF_ERROR(CheckName(ctx.limits(), name, path, depth));
  if (ctx.limits().max_directory_entries() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::UsageRecord usage, ctx.UsageOf(parent));
  if (usage.children() >= ctx.limits().max_directory_entries()) {
    const std::string directory = depth <= 1 ? "/" : path.substr(0, path.size() - name.size() - 1);
    return LimitExceeded("DIRECTORY_FULL", fmt::format("The directory item limit of {} is exceeded: items={}", directory, usage.children()),
                         directory, ctx.limits().max_directory_entries(), kMaxDirectoryItemsKey);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::INodeRecord> NewInode(OpContext& ctx, v1::INodeType type, uint32_t mode, const std::string& group) {
  v1::INodeRecord record;
  ASSIGN_OR_RETURN(const uint64_t id, TakeNumber(ctx.Change(), kMetaNextInodeId, 1));
  record.set_id(id);
  record.set_type(type);
  record.set_mode(mode & 01777);
  record.set_owner(ctx.mutation().user());
  record.set_group(group);
  record.set_modification_time_ms(ctx.now_ms());
  record.set_created_ms(ctx.now_ms());
  // Directories have no access time, as in HDFS.
  if (type == v1::FILE) record.set_access_time_ms(ctx.now_ms());
  return record;
}

void InsertInode(OpContext& ctx, const InodeAt& inode, const std::vector<InodeId>& ancestors) {
  PutInode(ctx.Change(), inode);
  PutLink(ctx.Change(), inode.id(), inode.parent, inode.name);
  UsageDelta delta;
  if (inode.is_directory()) {
    PutRecord(ctx.Change(), Family::kUsage, UsageKey(inode.id()), v1::UsageRecord());
    delta.directories = 1;
  } else {
    delta.files = 1;
    delta.charged_bytes = static_cast<int64_t>(inode.record.charged_bytes());
    delta.length_bytes = static_cast<int64_t>(inode.record.length_bytes());
  }
  ctx.AddUsage(ancestors, delta);
  ctx.AddChildren(inode.parent, 1);
  ctx.TouchDirectory(inode.parent);
}

absl::Status CheckMissing(const OpContext& ctx, const PathWalk& walk) {
  for (size_t i = walk.inodes.size() - 1; i < walk.components.size(); ++i) {
    const std::string path = JoinPath(walk.components, i + 1);
    if (i + 1 == walk.inodes.size()) {
      RETURN_IF_ERROR(CheckNewEntry(ctx, walk.last().id(), walk.components[i], path, i + 1));
    } else {
      RETURN_IF_ERROR(CheckName(ctx.limits(), walk.components[i], path, i + 1));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<MadeDirectories> MakeDirectories(OpContext& ctx, const PathWalk& walk, size_t until, uint32_t mode, uint32_t parent_mode) {
  MadeDirectories made;
  for (size_t i = 0; i <= std::min(until, walk.inodes.size() - 1); ++i) made.ancestors.push_back(walk.inodes[i].id());
  made.parent = made.ancestors.back();
  made.group = walk.inodes[made.ancestors.size() - 1].record->group();
  for (size_t i = walk.inodes.size() - 1; i < until; ++i) {
    const bool is_last = i + 1 == walk.components.size();
    ASSIGN_OR_RETURN(v1::INodeRecord record, NewInode(ctx, v1::DIRECTORY, is_last ? mode : parent_mode, made.group));
    const InodeAt directory{made.parent, walk.components[i], std::move(record)};
    InsertInode(ctx, directory, made.ancestors);
    made.parent = directory.id();
    made.ancestors.push_back(directory.id());
  }
  return made;
}

}  // namespace cairn::namenode
