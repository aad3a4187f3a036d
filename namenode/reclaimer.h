#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/namespace.pb.h"
#include "common/env/executor.h"
#include "common/env/yielding.h"
#include "namenode/namespace_access.h"

namespace cairn::namenode {

// Frees detached subtrees in the background: finds `work` rows and submits one bounded ReclaimStep after another, so that everyone else's
// mutations go between them. A step frees a part of one large subtree, or many small ones together; works take turns, so that a huge tree
// does not hold up the others. The cursor is in the row: after a restart it goes on where it was.
//
// A step is bounded in entries and in the time the writer spends on it: after each one the next is made larger or smaller. While others
// use the writer, steps are half as long and leave most of its time to them.
//
// An operator can pause it and bound its pace. Both are kept in the namespace (kMetaReclaimControl), because a NameNode that dies over
// what it frees must not go on with it when it comes back.
//
// The freed blocks reach the replica plane through the writer's observer. Thread-safe.
class Reclaimer {
 public:
  struct Options {
    uint32_t entries_per_step = 1000;                  // Inodes and blocks freed by one mutation, at most.
    absl::Duration step_time = absl::Milliseconds(2);  // That the writer spends on one, about.
    absl::Duration pause = absl::Milliseconds(1);      // Between steps while nobody else uses the writer.
    // While others use it. The share is a small one because of what follows from each freed block: three replicas are judged, told to go
    // and reported as gone, which costs the NameNode six times as much (docs/performance.md).
    Yielding yielding = {.share = 0.03, .patience = absl::Minutes(2), .most = 0.25};
    absl::Duration longest_pause = absl::Seconds(1);
    absl::Duration poll_interval = absl::Seconds(5);  // Looks for work also when nobody called Kick.
    absl::Duration retry_delay = absl::Seconds(1);    // After a step that failed.
    size_t max_pending = 4096;                        // Works held in memory; further ones are only counted.
  };
  struct Stats {
    bool paused = false;
    uint64_t pace = 0;  // Most entries a second, as an operator has set it; 0: no limit.
    uint64_t steps = 0;
    uint64_t failed_steps = 0;
    uint64_t entries_freed = 0;  // Inodes and blocks, since the start; as are those below.
    uint64_t blocks_freed = 0;
    uint64_t works_done = 0;
    uint64_t works = 0;  // Still to be freed; with what is left in them.
    uint64_t left_inodes = 0;
    uint64_t left_bytes = 0;
    double entries_per_second = 0;                     // Over the last 10 s.
    absl::Duration oldest_age = absl::ZeroDuration();  // Since the oldest work was detached.
  };

  // Reads on `executor`, which may block. Pointers outlive the callback of Stop.
  Reclaimer(Options options, NamespaceAccess* space, Executor* executor);
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  void Start();
  void Kick();  // There may be new work. Cheap.
  Stats stats() const;

  // Pauses or goes on, or bounds the pace, and keeps it; `done` is called on an executor when it is kept and followed.
  void SetPaused(bool paused, absl::AnyInvocable<void(absl::Status)> done);
  void SetPace(uint64_t entries_per_second, absl::AnyInvocable<void(absl::Status)> done);

  // Submits nothing more, then calls `then` on the executor, when no step is under way. The writer must still run.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::namenode
