#include "namenode/namespace/path_walk.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"
#include "common/utf8.h"

namespace cairn::namenode {
namespace {

constexpr size_t kShownBytes = 256;

absl::Status InvalidPath(std::string_view path, std::string_view why) {
  Error error;
  error.kind = ErrorKind::kInvalidPath;
  // Bytes that are no UTF-8 are escaped where the message is made.
  error.path = std::string(IsUtf8(path) ? Utf8Prefix(path, kShownBytes) : path.substr(0, kShownBytes));
  error.message = fmt::format("Invalid path name \"{}{}\": {}", error.path, path.size() > kShownBytes ? "..." : "", why);
  return MakeError(std::move(error));
}

// Appends the entry `name` of `parent`; false if there is none. A walk is a part of every call.
absl::StatusOr<bool> ReadInto(const ReadView& view, InodeId parent, const std::string& name, std::vector<WalkedInode>& inodes) {
  ASSIGN_OR_RETURN(std::shared_ptr<const v1::INodeRecord> record,
                   FindShared<v1::INodeRecord>(view, Family::kInode, InodeKey(parent, name)));
  if (record == nullptr) return false;
  inodes.push_back(WalkedInode{parent, name, std::move(record)});
  return true;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitPath(std::string_view path) {
  if (path.empty() || path.front() != '/') return InvalidPath(path, "it must begin with '/'");
  if (!IsUtf8(path)) return InvalidPath(path, "it is not valid UTF-8");
  if (path.find('\0') != std::string_view::npos) return InvalidPath(path.substr(0, path.find('\0')), "it holds a NUL after these bytes");
  std::vector<std::string> components;
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (component == "." || component == "..") return InvalidPath(path, fmt::format("\"{}\" is not allowed as a component", component));
    if (!component.empty()) components.emplace_back(component);
    begin = end + 1;
  }
  return components;
}

std::string JoinPath(const std::vector<std::string>& components, size_t count) {
  std::string path;
  for (size_t i = 0; i < std::min(count, components.size()); ++i) {
    path += '/';
    path += components[i];
  }
  return path.empty() ? "/" : path;
}

std::vector<InodeId> PathWalk::ancestors() const {
  std::vector<InodeId> ids;
  for (size_t i = 0; i < std::min(inodes.size(), components.size()); ++i) ids.push_back(inodes[i].id());
  return ids;
}

absl::StatusOr<PathWalk> WalkPath(const ReadView& view, std::string_view path, const Caller& caller) {
  PathWalk walk;
  ASSIGN_OR_RETURN(walk.components, SplitPath(path));
  walk.inodes.reserve(walk.components.size() + 1);
  ASSIGN_OR_RETURN(const bool has_root, ReadInto(view, kRootParentId, "", walk.inodes));
  if (!has_root) return CorruptRow(Family::kInode, InodeKey(kRootParentId, ""), "is missing");
  for (size_t i = 0; i < walk.components.size(); ++i) {
    const WalkedInode& parent = walk.inodes.back();
    if (!parent.is_directory()) {
      Error error;
      error.kind = ErrorKind::kNotDirectory;
      error.path = JoinPath(walk.components, i);
      error.message = fmt::format("{}: {} is a file, not a directory", walk.path(), error.path);
      return MakeError(std::move(error));
    }
    if (!caller.MayAccess(*parent.record, kExecuteRight)) return caller.Denied(*parent.record, JoinPath(walk.components, i), kExecuteRight);
    ASSIGN_OR_RETURN(const bool found, ReadInto(view, parent.id(), walk.components[i], walk.inodes));
    if (!found) break;
  }
  return walk;
}

absl::Status PathError(ErrorKind kind, std::string_view reason, const std::string& path, std::string message) {
  Error error;
  error.kind = kind;
  error.reason = std::string(reason);
  error.path = path;
  error.message = std::move(message);
  return MakeError(std::move(error));
}

absl::Status PathNotFound(const PathWalk& walk, const std::string& named, std::string message) {
  Error error;
  error.kind = ErrorKind::kNotFound;
  error.path = walk.missing_path();
  error.message = std::move(message);
  if (error.path != named) error.message += fmt::format(" ({} is missing)", error.path);
  return MakeError(std::move(error));
}

absl::Status PathNotFound(const PathWalk& walk) {
  return PathNotFound(walk, walk.path(), fmt::format("File does not exist: {}", walk.path()));
}

absl::Status ParentNotFound(const PathWalk& walk) {
  const std::string above = JoinPath(walk.components, walk.components.size() - 1);
  return PathNotFound(walk, above, fmt::format("Parent directory doesn't exist: {}", above));
}

absl::StatusOr<PathWalk> WalkExisting(const ReadView& view, std::string_view path, const Caller& caller) {
  ASSIGN_OR_RETURN(PathWalk walk, WalkPath(view, path, caller));
  if (!walk.complete()) return PathNotFound(walk);
  return walk;
}

absl::StatusOr<Ancestry> AncestryOf(const ReadView& view, InodeId parent, std::string_view name) {
  Ancestry ancestry;
  InodeId at = parent;
  std::string at_name(name);
  while (at != kRootParentId) {
    if (at == kDetachedInodeId) {
      ancestry.detached = true;
      return ancestry;
    }
    ancestry.directories.push_back(at);
    ancestry.names.push_back(std::move(at_name));
    ASSIGN_OR_RETURN(const std::shared_ptr<const v1::INodeLink> link, GetShared<v1::INodeLink>(view, Family::kInodeById, InodeByIdKey(at)));
    at = InodeId(link->parent_id());
    at_name = link->name();
  }
  return ancestry;
}

}  // namespace cairn::namenode
