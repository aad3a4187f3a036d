#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/env/executor.h"
#include "namenode/namespace_access.h"

namespace cairn::namenode {

// Brings the rows of a long file's blocks to the replication that its record has: finds `work` rows that SetReplication left and submits
// one bounded SpreadReplication after another, one at a time, the works in turn, with a pause between, so that everyone else's mutations go
// between them. The cursor is in the row: after a restart it goes on where it was.
//
// The replica plane hears of each rewritten block through the writer's observer, and repairs or drops replicas. Thread-safe.
class ReplicationSpreader {
 public:
  struct Options {
    uint32_t blocks_per_step = 256;
    absl::Duration pause = absl::Milliseconds(1);
    absl::Duration retry_delay = absl::Seconds(1);  // After a step that failed.
    size_t max_pending = 4096;                      // Works known at a time; more are found when these are done.
  };
  struct Stats {
    uint64_t steps = 0;
    uint64_t failed_steps = 0;
    uint64_t blocks = 0;  // Looked at.
    uint64_t works_done = 0;
    size_t pending = 0;  // Known and not done.
  };

  // Reads on `executor`, which may block. Pointers outlive the callback of Stop.
  ReplicationSpreader(Options options, NamespaceAccess* space, Executor* executor);
  ~ReplicationSpreader();
  ReplicationSpreader(const ReplicationSpreader&) = delete;
  ReplicationSpreader& operator=(const ReplicationSpreader&) = delete;

  void Start();  // Finds what was left by an earlier life.
  void Kick();   // There may be new work. Cheap.
  Stats stats() const;
  // Submits nothing more, then calls `then` on the executor, when no step is under way. The writer must still run.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::namenode
