#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/env/executor.h"
#include "common/env/file_system.h"
#include "namenode/disk_reserve.h"
#include "namenode/journal/journal.h"
#include "namenode/namespace_writer.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

// Watches the disk of the namespace, and takes the NameNode out of and back into service with it; reads go on all the time.
//
//   low space   less than `reserved_bytes` are left: changes are refused (kReadOnly, reason LOW_SPACE) before a write can fail. Ends by
//               itself when an eighth more than that is free, so that it does not flutter.
//   full        a write found no room: the writer has gone read-only. When there is room again, the store is brought back to a known state
//               (MetaStore::Reopen) and changes are taken again, without a restart.
//   failed      anything else, a failed sync above all: what is on disk cannot be known any more. Read-only until a restart.
//
// Each change of state is one line in the log. As HDFS NameNodeResourceMonitor, which enters safe mode but never leaves it by itself, and
// does not survive a failed write.
//
// Runs on the writer's executor. status() and stats() are thread-safe.
class DiskWatch {
 public:
  struct Options {
    std::string directory;
    uint64_t reserved_bytes = 100 << 20;                        // dfs.namenode.resource.du.reserved.
    absl::Duration interval = absl::Seconds(5);                 // dfs.namenode.resource.check.interval.
    absl::Duration closing_interval = absl::Milliseconds(100);  // While readers still hold what is to be reopened.
    DiskReserve* reserve = nullptr;                             // Put back when there is room; before, no changes are taken.
  };
  enum class State { kWell, kLowSpace, kFull, kFailed };
  struct Stats {
    State state = State::kWell;
    uint64_t available_bytes = 0;  // As of the last look.
    uint64_t recoveries = 0;       // Failures that were overcome.
  };

  // Pointers outlive the callback of Stop. `executor` is the writer's.
  DiskWatch(Options options, LocalFileSystem* files, MetaStore* store, Journal* journal, NamespaceWriter* writer, Executor* executor);
  ~DiskWatch();
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  // From the next look on. Thread-safe.
  void SetReserved(uint64_t bytes);
  // Looks at once, then every `interval`.
  void Start();
  // One look; on the executor. True if it wants to look again soon.
  bool Look();
  // OK, or why no changes are taken.
  absl::Status status() const;
  Stats stats() const;
  // Looks no more, then calls `then` on the executor. The writer must still be there.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace cairn::namenode
