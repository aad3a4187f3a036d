#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/env/executor.h"
#include "namenode/namespace_access.h"

namespace cairn::namenode {

// Frees detached subtrees in the background: finds `work` rows and submits one bounded ReclaimStep after another for each, a few side by
// side and with a pause between, so that everyone else's mutations go between them. Works in turn, so that one huge tree does not hold up
// many small ones. The cursor is in the row: after a restart it goes on where it was.
//
// The freed blocks reach the replica plane through the writer's observer. Thread-safe.
class Reclaimer {
 public:
  struct Options {
    uint32_t entries_per_step = 256;  // Inodes and blocks freed by one mutation.
    size_t steps_in_flight = 4;
    absl::Duration pause = absl::Milliseconds(1);
    absl::Duration poll_interval = absl::Seconds(5);  // Looks for work also when nobody called Kick.
    absl::Duration retry_delay = absl::Seconds(1);    // After a step that failed.
    size_t max_pending = 4096;                        // Works known at a time; more are found when these are done.
  };
  struct Stats {
    uint64_t steps = 0;
    uint64_t failed_steps = 0;
    uint64_t entries_freed = 0;  // Inodes and blocks.
    uint64_t blocks_freed = 0;
    uint64_t works_done = 0;
    size_t pending = 0;                                // Known and not done; in flight included.
    bool more = false;                                 // There are works beyond `pending`.
    absl::Duration oldest_age = absl::ZeroDuration();  // Since the oldest known one was found.
  };

  // Reads on `executor`, which may block. Pointers outlive the callback of Stop.
  Reclaimer(Options options, NamespaceAccess* space, Executor* executor);
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  void Start();
  void Kick();  // There may be new work. Cheap.
  Stats stats() const;
  // Submits nothing more, then calls `then` on the executor, when no step is under way. The writer must still run.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::namenode
