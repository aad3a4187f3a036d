#include "tests/testing/sim_disk.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "absl/base/thread_annotations.h"
#include "common/check.h"
#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"
#include "tests/testing/sim_file_data.h"

namespace cairn::testing {
namespace {

struct Node;
using NodePtr = std::shared_ptr<Node>;

// An entry whose state on the disk differs from what processes see. Those of one group come out of a power cut together.
struct Unsynced {
  NodePtr durable;  // Null: no such entry.
  uint64_t group = 0;
};

struct Node {
  explicit Node(bool is_directory) : directory(is_directory) {}
  const bool directory;
  std::map<std::string, NodePtr> entries;    // Of a directory, as processes see it.
  std::map<std::string, Unsynced> unsynced;  // Of a directory.
  SimFileData data;                          // Of a file.
  bool linked = true;                        // Its space counts while it has a name or is open.
  uint64_t open = 0;
};

std::vector<std::string> Split(const std::string& path) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    if (!name.empty() && name != ".") names.push_back(std::move(name));
    begin = end + 1;
  }
  return names;
}

absl::Status NoSuch(const char* what, const std::string& path) {
  return MakeError(ErrorKind::kNotFound, fmt::format("{} {}: no such file or directory", what, path));
}

}  // namespace

struct SimDisk::State {
  State(Random random_in, uint64_t capacity_in) : random(random_in), capacity(capacity_in) {}

  // Every operation begins so: it may block, its process lives, no fault is injected.
  absl::Status Enter(const std::shared_ptr<const bool>& alive, Op op, const std::string& path) {
    AssertMayBlock("file system");
    if (!*alive) return absl::InternalError(fmt::format("{}: the process is dead", path));
    FaultHook asked;
    {
      MutexLock lock(mu);
      asked = hook;
    }
    return asked ? asked(op, path) : absl::OkStatus();
  }

  NodePtr FindLocked(const std::vector<std::string>& names, size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    NodePtr node = root;
    for (size_t i = 0; i < count; ++i) {
      auto entry = node->entries.find(names[i]);
      if (entry == node->entries.end()) return nullptr;
      node = entry->second;
    }
    return node;
  }
  NodePtr FindLocked(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const std::vector<std::string> names = Split(path);
    return FindLocked(names, names.size());
  }
  // Null unless the parent is there and a directory.
  NodePtr ParentLocked(const std::vector<std::string>& names) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (names.empty()) return nullptr;
    NodePtr parent = FindLocked(names, names.size() - 1);
    return parent && parent->directory ? parent : nullptr;
  }

  // Puts `node` (null: nothing) at an entry and remembers what the disk has there.
  uint64_t SetEntryLocked(const NodePtr& parent, const std::string& name, NodePtr node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    auto entry = parent->entries.find(name);
    NodePtr before = entry == parent->entries.end() ? nullptr : entry->second;
    auto [unsynced, inserted] = parent->unsynced.try_emplace(name);
    if (inserted) {
      unsynced->second.durable = before;
      unsynced->second.group = ++last_group;
      groups[last_group].push_back({parent, name});
    }
    if (node) {
      parent->entries[name] = std::move(node);
    } else if (entry != parent->entries.end()) {
      parent->entries.erase(entry);
    }
    return unsynced->second.group;
  }
  void MergeLocked(uint64_t a, uint64_t b) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (a == b) return;
    auto from = groups.find(b);
    std::vector<Key>& into = groups[a];
    for (Key& key : from->second) {
      key.parent->unsynced.at(key.name).group = a;
      into.push_back(std::move(key));
    }
    groups.erase(b);
  }
  void UnlinkLocked(const NodePtr& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    node->linked = false;
    ReleaseLocked(node);
  }
  void ReleaseLocked(const NodePtr& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (!node->linked && node->open == 0) used -= node->data.allocated_bytes();
  }
  void SyncDirectoryLocked(const NodePtr& directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    while (!directory->unsynced.empty()) {
      auto group = groups.find(directory->unsynced.begin()->second.group);
      for (const Key& key : group->second) key.parent->unsynced.erase(key.name);
      groups.erase(group);
    }
  }
  void CutFilesLocked(const NodePtr& directory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    for (const auto& [name, node] : directory->entries) {
      node->linked = true;
      node->open = 0;
      if (node->directory) {
        CutFilesLocked(node);
      } else {
        node->data.PowerCut(random);
        used += node->data.allocated_bytes();
      }
    }
  }

  struct Key {
    NodePtr parent;
    std::string name;
  };

  mutable Mutex mu;
  NodePtr root ABSL_GUARDED_BY(mu) = std::make_shared<Node>(true);
  std::map<uint64_t, std::vector<Key>> groups ABSL_GUARDED_BY(mu);  // Ordered, so that a cut repeats.
  uint64_t last_group ABSL_GUARDED_BY(mu) = 0;
  std::map<std::string, std::shared_ptr<const bool>> locks ABSL_GUARDED_BY(mu);  // Directory: its holder's life.
  Random random ABSL_GUARDED_BY(mu);
  uint64_t capacity ABSL_GUARDED_BY(mu);
  uint64_t used ABSL_GUARDED_BY(mu) = 0;
  FaultHook hook ABSL_GUARDED_BY(mu);
  std::vector<std::string> fail_next_sync ABSL_GUARDED_BY(mu);
  bool ignore_syncs ABSL_GUARDED_BY(mu) = false;
  bool ignore_directory_syncs ABSL_GUARDED_BY(mu) = false;
  Counters counters ABSL_GUARDED_BY(mu);
  uint64_t power_cuts ABSL_GUARDED_BY(mu) = 0;
};

class SimFile final : public File {
 public:
  SimFile(std::shared_ptr<SimDisk::State> disk, std::shared_ptr<const bool> alive, NodePtr node, std::string path, bool writable,
          uint64_t power_cuts)
      : disk_(std::move(disk)),
        alive_(std::move(alive)),
        node_(std::move(node)),
        path_(std::move(path)),
        writable_(writable),
        power_cuts_(power_cuts) {}
  ~SimFile() override {
    MutexLock lock(disk_->mu);
    if (power_cuts_ != disk_->power_cuts) return;  // The machine it was open on is gone.
    --node_->open;
    disk_->ReleaseLocked(node_);
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> into) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kRead, path_));
    MutexLock lock(disk_->mu);
    const size_t count = node_->data.Read(offset, into);
    disk_->counters.read_bytes += count;
    return count;
  }

  absl::Status WriteAt(uint64_t offset, std::span<const char> data) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kWrite, path_));
    RETURN_IF_ERROR(CheckWritable());
    MutexLock lock(disk_->mu);
    const uint64_t allocated = node_->data.allocated_bytes();
    if (disk_->used + data.size() + SimFileData::kPageBytes > disk_->capacity) {
      const uint64_t needed = node_->data.PagesMissing(offset, data.size()) * SimFileData::kPageBytes;
      if (disk_->used + needed > disk_->capacity) {
        // As a kernel does: what still fits is written.
        const uint64_t free_pages = (disk_->capacity - std::min(disk_->capacity, disk_->used)) / SimFileData::kPageBytes;
        uint64_t fits = SimFileData::kPageBytes - offset % SimFileData::kPageBytes;
        if (node_->data.PagesMissing(offset, 1) > free_pages) fits = 0;
        while (fits != 0 && fits < data.size() && node_->data.PagesMissing(offset, fits + 1) <= free_pages) fits += SimFileData::kPageBytes;
        if (fits != 0) node_->data.Write(offset, data.first(std::min<uint64_t>(fits, data.size())));
        disk_->used += node_->data.allocated_bytes() - allocated;
        return MakeError(ErrorKind::kDiskFull, fmt::format("write {}: no space left on device ({} of {} bytes used, {} wanted)", path_,
                                                           disk_->used, disk_->capacity, needed));
      }
    }
    node_->data.Write(offset, data);
    disk_->used += node_->data.allocated_bytes() - allocated;
    disk_->counters.written_bytes += data.size();
    return absl::OkStatus();
  }

  absl::Status WriteVectorAt(uint64_t offset, std::span<const std::span<const char>> parts) override {
    for (const std::span<const char>& part : parts) {
      RETURN_IF_ERROR(WriteAt(offset, part));
      offset += part.size();
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    const absl::Status entered = disk_->Enter(alive_, SimDisk::Op::kSync, path_);
    MutexLock lock(disk_->mu);
    ++disk_->counters.syncs;
    const auto fails = std::find_if(disk_->fail_next_sync.begin(), disk_->fail_next_sync.end(),
                                    [&](const std::string& prefix) { return path_.starts_with(prefix); });
    if (*alive_ && (!entered.ok() || fails != disk_->fail_next_sync.end())) node_->data.FailSync();
    RETURN_IF_ERROR(entered);
    if (fails != disk_->fail_next_sync.end()) {
      disk_->fail_next_sync.erase(fails);
      return absl::InternalError(fmt::format("fdatasync {}: Input/output error", path_));
    }
    if (!disk_->ignore_syncs) node_->data.Sync();
    return absl::OkStatus();
  }

  absl::Status Truncate(uint64_t size) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kTruncate, path_));
    RETURN_IF_ERROR(CheckWritable());
    MutexLock lock(disk_->mu);
    const uint64_t allocated = node_->data.allocated_bytes();
    node_->data.Truncate(size);
    disk_->used -= allocated - node_->data.allocated_bytes();
    return absl::OkStatus();
  }

  absl::Status PunchHole(uint64_t offset, uint64_t length) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kPunchHole, path_));
    RETURN_IF_ERROR(CheckWritable());
    MutexLock lock(disk_->mu);
    const uint64_t allocated = node_->data.allocated_bytes();
    node_->data.PunchHole(offset, length);
    disk_->used -= allocated - node_->data.allocated_bytes();
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Size() override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kRead, path_));
    MutexLock lock(disk_->mu);
    return node_->data.size();
  }
  absl::StatusOr<uint64_t> AllocatedBytes() override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kRead, path_));
    MutexLock lock(disk_->mu);
    return node_->data.allocated_bytes();
  }
  void WriteBehind(uint64_t offset, uint64_t length, bool drop) override {
    if (!drop || !*alive_) return;
    MutexLock lock(disk_->mu);
    const uint64_t allocated = node_->data.allocated_bytes();
    node_->data.Drop(offset, length);
    disk_->used += node_->data.allocated_bytes() - allocated;
  }
  int descriptor() const override { return -1; }
  const std::string& path() const override { return path_; }

 private:
  absl::Status CheckWritable() const {
    if (writable_) return absl::OkStatus();
    return absl::InternalError(fmt::format("write {}: opened for reading", path_));
  }

  std::shared_ptr<SimDisk::State> disk_;
  std::shared_ptr<const bool> alive_;
  NodePtr node_;
  std::string path_;
  bool writable_;
  uint64_t power_cuts_;
};

class SimLock final : public DirectoryLock {
 public:
  SimLock(std::shared_ptr<SimDisk::State> disk, std::string directory, std::shared_ptr<const bool> alive)
      : disk_(std::move(disk)), directory_(std::move(directory)), alive_(std::move(alive)) {}
  ~SimLock() override {
    MutexLock lock(disk_->mu);
    auto held = disk_->locks.find(directory_);
    if (held != disk_->locks.end() && held->second == alive_) disk_->locks.erase(held);
  }

 private:
  std::shared_ptr<SimDisk::State> disk_;
  std::string directory_;
  std::shared_ptr<const bool> alive_;
};

class SimFiles final : public LocalFileSystem {
 public:
  SimFiles(std::shared_ptr<SimDisk::State> disk, std::shared_ptr<const bool> alive) : disk_(std::move(disk)), alive_(std::move(alive)) {}

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kOpen, path));
    const std::vector<std::string> names = Split(path);
    MutexLock lock(disk_->mu);
    NodePtr parent = disk_->ParentLocked(names);
    if (!parent) return NoSuch("open", path);
    auto entry = parent->entries.find(names.back());
    NodePtr node = entry == parent->entries.end() ? nullptr : entry->second;
    if (mode == OpenMode::kCreateNew) {
      if (node) return MakeError(ErrorKind::kAlreadyExists, fmt::format("create {}: file exists", path));
      node = std::make_shared<Node>(false);
      disk_->SetEntryLocked(parent, names.back(), node);
      ++disk_->counters.files_created;
    } else if (!node) {
      return NoSuch("open", path);
    }
    if (node->directory) return absl::InternalError(fmt::format("open {}: is a directory", path));
    ++node->open;
    return std::make_unique<SimFile>(disk_, alive_, std::move(node), path, mode != OpenMode::kRead, disk_->power_cuts);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kList, directory));
    MutexLock lock(disk_->mu);
    NodePtr node = disk_->FindLocked(directory);
    if (!node) return NoSuch("list", directory);
    if (!node->directory) return absl::InternalError(fmt::format("list {}: not a directory", directory));
    std::vector<std::string> names;
    for (const auto& [name, child] : node->entries) names.push_back(name);
    return names;
  }

  absl::StatusOr<bool> Exists(const std::string& path) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kList, path));
    MutexLock lock(disk_->mu);
    return disk_->FindLocked(path) != nullptr;
  }

  absl::Status MakeDirectories(const std::string& path) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kMakeDirectories, path));
    MutexLock lock(disk_->mu);
    NodePtr node = disk_->root;
    for (const std::string& name : Split(path)) {
      auto entry = node->entries.find(name);
      NodePtr child;
      if (entry == node->entries.end()) {
        child = std::make_shared<Node>(true);
        disk_->SetEntryLocked(node, name, child);
      } else {
        child = entry->second;
      }
      if (!child->directory) return absl::InternalError(fmt::format("mkdir {}: {} is a file", path, name));
      node = std::move(child);
    }
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kRemove, path));
    const std::vector<std::string> names = Split(path);
    MutexLock lock(disk_->mu);
    NodePtr parent = disk_->ParentLocked(names);
    NodePtr node = parent ? disk_->FindLocked(names, names.size()) : nullptr;
    if (!node) return NoSuch("remove", path);
    if (!node->entries.empty()) return absl::InternalError(fmt::format("remove {}: directory not empty", path));
    disk_->SetEntryLocked(parent, names.back(), nullptr);
    disk_->UnlinkLocked(node);
    if (!node->directory) ++disk_->counters.files_removed;
    return absl::OkStatus();
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kRename, from));
    const std::vector<std::string> from_names = Split(from);
    const std::vector<std::string> to_names = Split(to);
    MutexLock lock(disk_->mu);
    NodePtr from_parent = disk_->ParentLocked(from_names);
    NodePtr to_parent = disk_->ParentLocked(to_names);
    NodePtr node = from_parent ? disk_->FindLocked(from_names, from_names.size()) : nullptr;
    if (!node) return NoSuch("rename", from);
    if (!to_parent) return NoSuch("rename to", to);
    NodePtr replaced = disk_->FindLocked(to_names, to_names.size());
    if (replaced == node) return absl::OkStatus();
    if (replaced && (replaced->directory != node->directory || !replaced->entries.empty())) {
      return absl::InternalError(fmt::format("rename {} to {}: the target is a directory", from, to));
    }
    const uint64_t gone = disk_->SetEntryLocked(from_parent, from_names.back(), nullptr);
    const uint64_t come = disk_->SetEntryLocked(to_parent, to_names.back(), node);
    disk_->MergeLocked(gone, come);
    if (replaced) disk_->UnlinkLocked(replaced);
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& path) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kSyncDirectory, path));
    MutexLock lock(disk_->mu);
    NodePtr node = disk_->FindLocked(path);
    if (!node || !node->directory) return NoSuch("sync directory", path);
    ++disk_->counters.directory_syncs;
    if (!disk_->ignore_directory_syncs) disk_->SyncDirectoryLocked(node);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kLock, directory));
    MutexLock lock(disk_->mu);
    NodePtr node = disk_->FindLocked(directory);
    if (!node || !node->directory) return NoSuch("lock", directory);
    std::string key;
    for (const std::string& name : Split(directory)) key += "/" + name;
    auto held = disk_->locks.find(key);
    if (held != disk_->locks.end() && *held->second) {
      return MakeError(ErrorKind::kBusy, fmt::format("{} is in use by another process", directory));
    }
    disk_->locks[key] = alive_;
    return std::make_unique<SimLock>(disk_, key, alive_);
  }

  absl::StatusOr<Space> SpaceOf(const std::string& path) override {
    RETURN_IF_ERROR(disk_->Enter(alive_, SimDisk::Op::kList, path));
    MutexLock lock(disk_->mu);
    Space space;
    space.capacity_bytes = disk_->capacity;
    space.available_bytes = disk_->capacity - std::min(disk_->capacity, disk_->used);
    return space;
  }

 private:
  std::shared_ptr<SimDisk::State> disk_;
  std::shared_ptr<const bool> alive_;
};

SimDisk::SimDisk(Random random, uint64_t capacity_bytes) : state_(std::make_shared<State>(random, capacity_bytes)) {}

SimDisk::~SimDisk() = default;

std::unique_ptr<LocalFileSystem> SimDisk::NewView(std::shared_ptr<const bool> alive) {
  return std::make_unique<SimFiles>(state_, std::move(alive));
}

void SimDisk::PowerCut() {
  MutexLock lock(state_->mu);
  ++state_->power_cuts;
  // As with sectors: all, none, or any.
  const uint64_t fate = state_->random.Below(3);
  for (auto& [id, group] : state_->groups) {
    const bool keep = fate == 0 || (fate == 2 && state_->random.OneIn(2));
    for (State::Key& key : group) {
      NodePtr durable = std::move(key.parent->unsynced.at(key.name).durable);
      if (keep) continue;
      if (durable) {
        key.parent->entries[key.name] = std::move(durable);
      } else {
        key.parent->entries.erase(key.name);
      }
    }
  }
  for (auto& [id, group] : state_->groups) {
    for (State::Key& key : group) key.parent->unsynced.erase(key.name);
  }
  state_->groups.clear();
  state_->locks.clear();
  state_->used = 0;
  state_->CutFilesLocked(state_->root);
}

void SimDisk::SetCapacity(uint64_t capacity_bytes) {
  MutexLock lock(state_->mu);
  state_->capacity = capacity_bytes;
}

absl::Status SimDisk::FlipByte(const std::string& path, uint64_t offset) {
  MutexLock lock(state_->mu);
  NodePtr node = state_->FindLocked(path);
  if (!node || node->directory) return NoSuch("corrupt", path);
  if (offset >= node->data.size()) return absl::OutOfRangeError(fmt::format("{} has {} bytes", path, node->data.size()));
  const uint64_t allocated = node->data.allocated_bytes();
  node->data.FlipByte(offset);
  state_->used += node->data.allocated_bytes() - allocated;
  return absl::OkStatus();
}

void SimDisk::SetFaultHook(FaultHook hook) {
  MutexLock lock(state_->mu);
  state_->hook = std::move(hook);
}

void SimDisk::FailNextSync(const std::string& path_prefix) {
  MutexLock lock(state_->mu);
  state_->fail_next_sync.push_back(path_prefix);
}

void SimDisk::IgnoreSyncs(bool ignore) {
  MutexLock lock(state_->mu);
  state_->ignore_syncs = ignore;
}

void SimDisk::IgnoreDirectorySyncs(bool ignore) {
  MutexLock lock(state_->mu);
  state_->ignore_directory_syncs = ignore;
}

uint64_t SimDisk::used_bytes() const {
  MutexLock lock(state_->mu);
  return state_->used;
}

SimDisk::Counters SimDisk::counters() const {
  MutexLock lock(state_->mu);
  return state_->counters;
}

}  // namespace cairn::testing
