#include "namenode/namespace/path_walk.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"
#include "common/utf8.h"

namespace cairn::namenode {
namespace {

absl::Status InvalidPath(std::string_view path, std::string_view why) {
  Error error;
  error.kind = ErrorKind::kInvalidPath;
  // A text that is no UTF-8 cannot travel in a message.
  error.path = IsUtf8(path) ? std::string(path) : std::string();
  error.message = fmt::format("invalid path \"{}\": {}", error.path, why);
  return MakeError(std::move(error));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitPath(std::string_view path) {
  if (path.empty() || path.front() != '/') return InvalidPath(path, "it must begin with '/'");
  if (!IsUtf8(path)) return InvalidPath(path, "it is not valid UTF-8");
  if (path.find('\0') != std::string_view::npos) return InvalidPath(path.substr(0, path.find('\0')), "it holds a NUL");
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
  ASSIGN_OR_RETURN(v1::INodeRecord root, GetRecord<v1::INodeRecord>(view, Family::kInode, InodeKey(kRootParentId, "")));
  walk.inodes.push_back(InodeAt{kRootParentId, "", std::move(root)});
  for (size_t i = 0; i < walk.components.size(); ++i) {
    const InodeAt& parent = walk.inodes.back();
    if (!parent.is_directory()) {
      Error error;
      error.kind = ErrorKind::kNotDirectory;
      error.path = JoinPath(walk.components, i);
      error.message = fmt::format("{}: {} is a file, not a directory", walk.path(), error.path);
      return MakeError(std::move(error));
    }
    if (!caller.MayAccess(parent.record, kExecuteRight)) return caller.Denied(parent.record, JoinPath(walk.components, i), kExecuteRight);
    const InodeId parent_id = parent.id();
    const std::string& name = walk.components[i];
    ASSIGN_OR_RETURN(std::optional<v1::INodeRecord> record, FindRecord<v1::INodeRecord>(view, Family::kInode, InodeKey(parent_id, name)));
    if (!record) break;
    walk.inodes.push_back(InodeAt{parent_id, name, *std::move(record)});
  }
  return walk;
}

absl::Status PathNotFound(const PathWalk& walk) {
  Error error;
  error.kind = ErrorKind::kNotFound;
  error.path = walk.missing_path();
  error.message = error.path == walk.path() ? fmt::format("{}: no such file or directory", error.path)
                                            : fmt::format("{}: {} does not exist", walk.path(), error.path);
  return MakeError(std::move(error));
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
    ASSIGN_OR_RETURN(v1::INodeLink link, GetRecord<v1::INodeLink>(view, Family::kInodeById, InodeByIdKey(at)));
    at = InodeId(link.parent_id());
    at_name = std::move(*link.mutable_name());
  }
  return ancestry;
}

}  // namespace cairn::namenode
