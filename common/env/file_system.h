#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn {

// An open file. All calls may block, and abort if the calling thread holds a Mutex. Reads and writes at different offsets
// may run side by side. Closed by the destructor. Errors carry the path and errno's text; ENOSPC is kDiskFull, a missing file
// kNotFound, everything else kNone with code INTERNAL.
class File {
 public:
  virtual ~File() = default;

  // Up to into.size() bytes; fewer only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> into) = 0;
  // All of it, or an error with an unknown part written.
  virtual absl::Status WriteAt(uint64_t offset, std::span<const char> data) = 0;
  virtual absl::Status WriteVectorAt(uint64_t offset, std::span<const std::span<const char>> parts) = 0;
  // fdatasync. After a failure the state on disk is unknown: never retry and believe it.
  virtual absl::Status Sync() = 0;
  virtual absl::Status Truncate(uint64_t size) = 0;
  // Frees the space of [offset, offset + length): it reads as zeros.
  virtual absl::Status PunchHole(uint64_t offset, uint64_t length) = 0;
  virtual absl::StatusOr<uint64_t> Size() = 0;
  virtual absl::StatusOr<uint64_t> AllocatedBytes() = 0;
  // Starts write-back of a range (length 0: to the end of the file) and, with drop, asks for its pages to be let go. A hint.
  virtual void WriteBehind(uint64_t offset, uint64_t length, bool drop) = 0;
  // Descriptor for sendfile; -1 in simulation. Only common/env uses it.
  virtual int descriptor() const = 0;
  virtual const std::string& path() const = 0;
};

// Keeps a directory to one process. Released by the destructor, and by the kernel when the process dies.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

// Files and directories of one machine. Thread-safe; every call may block. Nothing is durable before Sync of the file and, for a
// new, removed or renamed entry, SyncDirectory of its parent.
class LocalFileSystem {
 public:
  enum class OpenMode { kRead, kReadWrite, kCreateNew };  // kCreateNew: fails with kAlreadyExists.

  virtual ~LocalFileSystem() = default;
  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) = 0;
  // Names (not paths), sorted bytewise, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;
  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;
  virtual absl::Status MakeDirectories(const std::string& path) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;  // A file, or an empty directory.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // kBusy when another holder has it, naming the directory.
  virtual absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) = 0;
  struct Space {
    uint64_t capacity_bytes = 0;
    uint64_t available_bytes = 0;
  };
  virtual absl::StatusOr<Space> SpaceOf(const std::string& path) = 0;

  // Whole small files. WriteWhole is atomic and durable: temporary name, sync, rename, sync of the directory.
  absl::StatusOr<std::string> ReadWhole(const std::string& path);
  absl::Status WriteWhole(const std::string& path, const std::string& content);
};

// Changes at every boot of the machine: bytes not synced before a boot with another id may be gone. 16 bytes.
// As /proc/sys/kernel/random/boot_id.
struct BootId {
  std::string bytes;
};

}  // namespace cairn
