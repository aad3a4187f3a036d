#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/env/file_system.h"
#include "common/env/random.h"

namespace cairn::testing {

// The disk of one simulated machine, in memory.
//
// It remembers, for each 512-byte sector and each directory entry, what is synced. A power cut keeps all that was and, chosen
// from the seed, any subset of the rest; the two entries of a rename are kept or lost together, as on a journalling file system.
// A process that is killed loses nothing that it wrote, as the kernel's pages outlive it.
//
// Every process has a view of its own (NewView): it answers errors, without effect, once the process is dead, and its directory locks
// are free then. Thread-safe.
class SimDisk {
 public:
  enum class Op { kOpen, kRead, kWrite, kSync, kTruncate, kPunchHole, kList, kMakeDirectories, kRemove, kRename, kSyncDirectory, kLock };
  struct Counters {
    uint64_t written_bytes = 0, read_bytes = 0, syncs = 0, directory_syncs = 0, files_created = 0, files_removed = 0;
  };

  SimDisk(Random random, uint64_t capacity_bytes);
  ~SimDisk();

  // The files as a process sees them while `*alive`. Outlived by the disk.
  std::unique_ptr<LocalFileSystem> NewView(std::shared_ptr<const bool> alive);

  // All processes must be dead. Open files go on as they are, seen by nobody.
  void PowerCut();

  // Attackers.
  void SetCapacity(uint64_t capacity_bytes);
  // Changes one byte of a file, silently, in the cache and on the disk.
  absl::Status FlipByte(const std::string& path, uint64_t offset);
  // Asked before every operation; an error that it returns is the operation's result. A kSync that fails so leaves what was
  // unsynced undurable for ever, as on Linux; readers see it still, until its pages are dropped. It must not call the disk.
  using FaultHook = std::function<absl::Status(Op op, const std::string& path)>;
  void SetFaultHook(FaultHook hook);
  // The next sync of a file whose path begins so fails.
  void FailNextSync(const std::string& path_prefix);
  // A disk that lies: syncs answer OK and do nothing. Controls of crash tests, which must then fail.
  void IgnoreSyncs(bool ignore);
  void IgnoreDirectorySyncs(bool ignore);

  uint64_t used_bytes() const;
  Counters counters() const;

 private:
  friend class SimFiles;
  friend class SimFile;
  friend class SimLock;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::testing
