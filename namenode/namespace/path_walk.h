#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "namenode/namespace/permission.h"
#include "namenode/namespace/records.h"

namespace cairn::namenode {

// The components of an absolute path; none for the root. Repeated and trailing slashes count once. kInvalidPath for a path that is
// not absolute, is not UTF-8, holds a NUL, or has "." or ".." as a component.
absl::StatusOr<std::vector<std::string>> SplitPath(std::string_view path);
// "/a/b" of {"a", "b"}; only the first `count` components.
std::string JoinPath(const std::vector<std::string>& components, size_t count);
inline std::string JoinPath(const std::vector<std::string>& components) { return JoinPath(components, components.size()); }

// An inode on a path, only to be read.
struct WalkedInode {
  InodeId parent;
  std::string name;  // Empty for the root.
  std::shared_ptr<const v1::INodeRecord> record;

  InodeId id() const { return InodeId(record->id()); }
  bool is_directory() const { return record->type() == v1::DIRECTORY; }
  InodeAt Copy() const { return {parent, name, *record}; }
};

// How far a path exists: the root, then one inode a component, until one is missing.
struct PathWalk {
  std::vector<std::string> components;
  std::vector<WalkedInode> inodes;  // At least the root.

  bool complete() const { return inodes.size() == components.size() + 1; }
  // True if all but the last component exist; not for the root.
  bool has_parent() const { return !components.empty() && inodes.size() >= components.size(); }
  const WalkedInode& last() const { return inodes.back(); }
  const WalkedInode& parent() const { return inodes[components.size() - 1]; }
  std::string path() const { return JoinPath(components); }
  // Components that do not exist.
  size_t missing() const { return components.size() + 1 - inodes.size(); }
  // Path of the first component that is missing.
  std::string missing_path() const { return JoinPath(components, inodes.size()); }
  // Ids of the directories above the last component, the root first; those that exist.
  std::vector<InodeId> ancestors() const;
};

// One Get a component. kInvalidPath as SplitPath; kNotDirectory if a file stands in the middle, naming it; kPermission if the caller
// may not pass through a directory: no row below it is read. Other rights are checked on what this returns; see permission.h.
absl::StatusOr<PathWalk> WalkPath(const ReadView& view, std::string_view path, const Caller& caller);
// The same for a path that must exist: kNotFound naming the first missing component.
absl::StatusOr<PathWalk> WalkExisting(const ReadView& view, std::string_view path, const Caller& caller);

// A refusal that names a path.
absl::Status PathError(ErrorKind kind, std::string_view reason, const std::string& path, std::string message);
// kNotFound of the first missing component, in HDFS's words of files that are not there, or in the verb's own; says which component it is
// if it is not the path `named` in them.
absl::Status PathNotFound(const PathWalk& walk);
absl::Status PathNotFound(const PathWalk& walk, const std::string& named, std::string message);
// Of the directory in which something is to be made.
absl::Status ParentNotFound(const PathWalk& walk);

// The directories above an inode, nearest first, the root last. `detached` if they end in parent 0 instead.
struct Ancestry {
  std::vector<InodeId> directories;
  std::vector<std::string> names;  // Of the inode itself, then of each directory but the root.
  bool detached = false;
};
absl::StatusOr<Ancestry> AncestryOf(const ReadView& view, InodeId parent, std::string_view name);

}  // namespace cairn::namenode
