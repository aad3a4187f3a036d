#include "tests/client/fake_file_system.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "client/src/trash.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::cli {
namespace {

absl::Status Missing(const std::string& path) { return MakeError(ErrorKind::kNotFound, path + " is not there"); }

std::string Parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

class FakeWriter : public FileWriter {
 public:
  FakeWriter(FakeFileSystem* files, std::string path) : files_(files), path_(std::move(path)) {}
  using FileWriter::Append;
  absl::Status Append(std::span<const char> data) override {
    RETURN_IF_ERROR(files_->fail_append);
    files_->entries[path_].data.append(data.data(), data.size());
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }
  void Abort() override { ++files_->aborted; }
  uint64_t position() const override { return files_->entries[path_].data.size(); }
  const std::string& path() const override { return path_; }

 private:
  FakeFileSystem* files_;
  std::string path_;
};

class FakeReader : public FileReader {
 public:
  explicit FakeReader(std::string data) : data_(std::move(data)) {}
  absl::StatusOr<size_t> Read(std::span<char> into) override {
    const size_t count = std::min(into.size(), data_.size() - position_);
    if (count > 0) std::memcpy(into.data(), data_.data() + position_, count);
    position_ += count;
    return count;
  }
  absl::StatusOr<size_t> ReadAt(uint64_t, std::span<char>) override { return absl::UnimplementedError(""); }
  absl::Status Seek(uint64_t offset) override {
    position_ = offset;
    return absl::OkStatus();
  }
  uint64_t position() const override { return position_; }
  uint64_t length() const override { return data_.size(); }
  void Close() override {}

 private:
  std::string data_;
  size_t position_ = 0;
};

}  // namespace

FileStatus FakeFileSystem::StatusOf(const std::string& path, const Entry& entry) const {
  FileStatus status;
  status.path = path;
  status.is_directory = entry.is_directory;
  status.length_bytes = entry.data.size();
  status.replication = entry.is_directory ? 0 : entry.replication;
  status.block_size_bytes = entry.is_directory ? 0 : 128 << 20;
  status.mode = entry.mode;
  status.owner = entry.owner;
  status.group = entry.group;
  status.modification_time = entry.modified;
  status.access_time = entry.accessed;
  return status;
}

std::vector<std::string> FakeFileSystem::Below(const std::string& path) const {
  const std::string prefix = path == "/" ? "/" : path + "/";
  std::vector<std::string> below;
  for (const auto& [name, entry] : entries)
    if (name.size() > prefix.size() && name.starts_with(prefix)) below.push_back(name);
  return below;
}

absl::StatusOr<std::unique_ptr<FileWriter>> FakeFileSystem::Create(const std::string& path, CreateOptions options) {
  if (!entries.contains(Parent(path)) && !options.create_parent) return Missing(Parent(path));
  if (entries.contains(path) && !options.overwrite) return MakeError(ErrorKind::kAlreadyExists, path);
  entries[path] = Entry();
  return std::make_unique<FakeWriter>(this, path);
}

absl::StatusOr<std::unique_ptr<FileWriter>> FakeFileSystem::Append(const std::string& path, AppendOptions) {
  if (!entries.contains(path)) return Missing(path);
  return std::make_unique<FakeWriter>(this, path);
}

absl::StatusOr<bool> FakeFileSystem::Truncate(const std::string& path, uint64_t length_bytes) {
  const auto it = entries.find(path);
  if (it == entries.end()) return Missing(path);
  if (length_bytes > it->second.data.size()) return MakeError(ErrorKind::kInvalidArgument, "Cannot truncate to a larger file size");
  it->second.data.resize(length_bytes);
  return recoveries_to_wait_for == 0;
}

absl::StatusOr<bool> FakeFileSystem::RecoverLease(const std::string& path) {
  if (!entries.contains(path)) return Missing(path);
  if (recoveries_to_wait_for == 0) return true;
  --recoveries_to_wait_for;
  return false;
}

absl::StatusOr<std::unique_ptr<FileReader>> FakeFileSystem::Open(const std::string& path) {
  const auto it = entries.find(path);
  if (it == entries.end()) return Missing(path);
  return std::make_unique<FakeReader>(it->second.data);
}

absl::StatusOr<FileStatus> FakeFileSystem::GetFileStatus(const std::string& path) {
  const auto it = entries.find(path);
  if (it == entries.end()) return Missing(path);
  FileStatus status = StatusOf(path, it->second);
  if (recoveries_to_wait_for > 0) {
    --recoveries_to_wait_for;
    status.under_construction = true;
  }
  return status;
}

absl::StatusOr<std::vector<FileStatus>> FakeFileSystem::List(const std::string& path) {
  bool more = false;
  return ListPage(path, "", SIZE_MAX, &more);
}

absl::StatusOr<std::vector<FileStatus>> FakeFileSystem::ListPage(const std::string& path, const std::string& start_after, size_t limit,
                                                                 bool* more) {
  *more = false;
  if (!entries.contains(path)) return Missing(path);
  std::vector<FileStatus> page;
  for (const std::string& name : Below(path)) {
    if (Parent(name) != path || name.substr(name.rfind('/') + 1) <= start_after) continue;
    if (limit != 0 && page.size() == limit) {
      *more = true;
      break;
    }
    page.push_back(StatusOf(name, entries[name]));
  }
  return page;
}

absl::Status FakeFileSystem::MakeDirectories(const std::string& path, uint32_t) {
  for (std::string at = path; at != "/"; at = Parent(at)) {
    const auto it = entries.find(at);
    if (it != entries.end() && !it->second.is_directory) return MakeError(ErrorKind::kNotDirectory, at);
    AddDirectory(at);
  }
  return absl::OkStatus();
}

absl::Status FakeFileSystem::Rename(const std::string& from, const std::string& to, bool overwrite) {
  if (!fail_rename.ok()) return fail_rename;
  const auto it = entries.find(from);
  if (it == entries.end()) return Missing(from);
  if (!entries.contains(Parent(to))) return Missing(Parent(to));
  if (entries.contains(to) && !overwrite) return MakeError(ErrorKind::kAlreadyExists, to);
  Entry entry = std::move(it->second);
  const std::vector<std::string> below = Below(from);
  entries.erase(it);
  entries[to] = std::move(entry);
  for (const std::string& name : below) {
    entries[to + name.substr(from.size())] = entries[name];
    entries.erase(name);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> FakeFileSystem::Delete(const std::string& path, bool recursive) {
  ++deleted_alone;
  return Remove(path, recursive);
}

absl::StatusOr<bool> FakeFileSystem::Remove(const std::string& path, bool recursive) {
  const std::vector<std::string> below = Below(path);
  if (!below.empty() && !recursive) return MakeError(ErrorKind::kNotEmpty, path);
  for (const std::string& name : below) entries.erase(name);
  return entries.erase(path) > 0;
}

absl::StatusOr<std::vector<absl::Status>> FakeFileSystem::DeleteMany(const std::vector<std::string>& paths, bool recursive) {
  deleted_together.push_back(paths.size());
  std::vector<absl::Status> results;
  for (const std::string& path : paths) {
    const absl::StatusOr<bool> deleted = Remove(path, recursive);
    results.push_back(deleted.ok() && !*deleted ? Missing(path) : deleted.status());
  }
  return results;
}

absl::StatusOr<ServerDefaults> FakeFileSystem::GetServerDefaults() {
  ServerDefaults defaults;
  defaults.trash_interval = trash_interval;
  return defaults;
}

absl::StatusOr<std::string> FakeFileSystem::MoveToTrash(const std::string& path) {
  if (trash_interval == absl::ZeroDuration()) return std::string();
  return client::Trash(this, "flink").Move(path, now);
}

absl::StatusOr<ExpungedTrash> FakeFileSystem::ExpungeTrash(bool immediately) {
  return client::Trash(this, "flink").Expunge(now, trash_interval, immediately);
}

absl::StatusOr<ContentSummary> FakeFileSystem::GetContentSummary(const std::string& path) {
  if (!entries.contains(path)) return Missing(path);
  ContentSummary summary;
  std::vector<std::string> all = Below(path);
  all.push_back(path);
  for (const std::string& name : all) {
    const Entry& entry = entries[name];
    ++(entry.is_directory ? summary.directories : summary.files);
    summary.length_bytes += entry.data.size();
  }
  summary.charged_bytes = 3 * summary.length_bytes;
  summary.namespace_quota = entries[path].namespace_quota;
  summary.space_quota_bytes = entries[path].space_quota_bytes;
  return summary;
}

absl::StatusOr<std::vector<BlockLocation>> FakeFileSystem::GetBlockLocations(const std::string& path, uint64_t, uint64_t) {
  const auto it = entries.find(path);
  if (it == entries.end()) return Missing(path);
  BlockLocation block;
  block.leaving = it->second.leaving;
  block.hosts.assign(it->second.hosts.empty() ? it->second.replication : it->second.hosts.front(), "dn:9866");
  if (it->second.hosts.size() > 1) it->second.hosts.erase(it->second.hosts.begin());
  return std::vector<BlockLocation>{block};
}

absl::StatusOr<std::vector<absl::StatusOr<FileLocations>>> FakeFileSystem::GetLocationsMany(const std::vector<std::string>&) {
  return absl::UnimplementedError("");
}

absl::Status FakeFileSystem::SetQuota(const std::string& path, std::optional<int64_t> namespace_quota,
                                      std::optional<int64_t> space_quota_bytes) {
  const auto it = entries.find(path);
  if (it == entries.end()) return MakeError(ErrorKind::kNotFound, "Directory does not exist: " + path);
  const auto set = [](std::optional<int64_t> wanted, std::optional<int64_t>* quota) {
    if (wanted) *quota = *wanted == kNoQuota ? std::nullopt : wanted;
  };
  set(namespace_quota, &it->second.namespace_quota);
  set(space_quota_bytes, &it->second.space_quota_bytes);
  return absl::OkStatus();
}

absl::StatusOr<bool> FakeFileSystem::SetReplication(const std::string& path, uint32_t replication) {
  const auto it = entries.find(path);
  if (it == entries.end()) return Missing(path);
  if (it->second.is_directory) return false;
  if (replication > 512) return MakeError(ErrorKind::kInvalidArgument, "Requested replication factor of 600 exceeds maximum of 512");
  it->second.replication = replication;
  return true;
}

absl::Status FakeFileSystem::Concat(const std::string& target, const std::vector<std::string>& sources) {
  if (!entries.contains(target)) return Missing(target);
  for (const std::string& source : sources) {
    entries[target].data += entries[source].data;
    entries.erase(source);
  }
  return absl::OkStatus();
}

absl::StatusOr<FakeFileSystem::Entry*> FakeFileSystem::Change(const std::string& path, const std::string& what) {
  const auto it = entries.find(path);
  if (it == entries.end()) return Missing(path);
  if (const auto failure = fail_change.find(path); failure != fail_change.end()) return failure->second;
  changed.push_back(fmt::format("{} {}", what, path));
  return &it->second;
}

absl::Status FakeFileSystem::SetPermission(const std::string& path, uint32_t mode) {
  ASSIGN_OR_RETURN(Entry* const entry, Change(path, fmt::format("chmod {:o}", mode)));
  entry->mode = mode;
  return absl::OkStatus();
}

absl::Status FakeFileSystem::SetOwner(const std::string& path, const std::string& owner, const std::string& group) {
  ASSIGN_OR_RETURN(Entry* const entry, Change(path, fmt::format("chown {}:{}", owner, group)));
  if (!owner.empty()) entry->owner = owner;
  if (!group.empty()) entry->group = group;
  return absl::OkStatus();
}

absl::Status FakeFileSystem::SetTimes(const std::string& path, std::optional<absl::Time> modification, std::optional<absl::Time> access) {
  ASSIGN_OR_RETURN(Entry* const entry, Change(path, "touch"));
  if (modification) entry->modified = *modification;
  if (access) entry->accessed = *access;
  return absl::OkStatus();
}

absl::Status FakeFileSystem::CheckAccess(const std::string& path, uint32_t rights) {
  const auto it = entries.find(path);
  if (it == entries.end()) return Missing(path);
  const uint32_t has = it->second.owner == "flink" ? it->second.mode >> 6 : it->second.mode;
  return (has & rights) == rights ? absl::OkStatus() : MakeError(ErrorKind::kPermission, "denied");
}

absl::Status FakeFileSystem::SetXattr(const std::string& path, const std::string& name, const std::string& value, XattrFlag) {
  ASSIGN_OR_RETURN(Entry* const entry, Change(path, "setfattr " + name));
  entry->xattrs[name] = value;
  return absl::OkStatus();
}

absl::Status FakeFileSystem::RemoveXattr(const std::string& path, const std::string& name) {
  ASSIGN_OR_RETURN(Entry* const entry, Change(path, "rmfattr " + name));
  if (entry->xattrs.erase(name) == 0) return MakeError(ErrorKind::kInvalidArgument, "No matching attributes found for remove operation");
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> FakeFileSystem::GetXattrs(const std::string& path,
                                                                             const std::vector<std::string>& names) {
  const auto it = entries.find(path);
  if (it == entries.end()) return Missing(path);
  if (names.empty()) return it->second.xattrs;
  std::map<std::string, std::string> found;
  for (const std::string& name : names) {
    const auto xattr = it->second.xattrs.find(name);
    if (xattr == it->second.xattrs.end())
      return MakeError(ErrorKind::kInvalidArgument, "At least one of the attributes provided was not found.");
    found.insert(*xattr);
  }
  return found;
}

absl::StatusOr<std::vector<std::string>> FakeFileSystem::ListXattrs(const std::string& path) {
  ASSIGN_OR_RETURN(const auto xattrs, GetXattrs(path, {}));
  std::vector<std::string> names;
  for (const auto& [name, value] : xattrs) names.push_back(name);
  return names;
}

}  // namespace cairn::cli
