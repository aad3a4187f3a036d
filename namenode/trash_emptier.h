#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "cairn/namespace.pb.h"
#include "common/env/executor.h"
#include "namenode/namespace_access.h"

namespace cairn::namenode {

// Empties the users' trash, as HDFS's NameNode does: at every multiple of the checkpoint interval it deletes, for each user, the
// checkpoints that are older than the trash interval, and makes a new one of what was moved to the trash since; see common/trash.h for the
// names. With ordinary mutations of a superuser, one at a time. A pass that fails for one user goes on with the next; what was missed is
// done at the next turn. Thread-safe.
class TrashEmptier {
 public:
  struct Options {
    absl::Duration interval;             // fs.trash.interval; 0: nothing is done.
    absl::Duration checkpoint_interval;  // fs.trash.checkpoint.interval; 0, or above `interval`: as that.
    std::string user = "cairn";          // Whose mutations these are, in logs.
    v1::Mutation::Limits limits;         // Of names.
    size_t names_per_page = 1000;
  };
  struct Stats {
    uint64_t passes = 0;
    uint64_t checkpoints_made = 0;
    uint64_t checkpoints_deleted = 0;
  };

  // Reads on `executor`, which may block. Pointers outlive the callback of Stop.
  TrashEmptier(Options options, NamespaceAccess* space, Executor* executor);
  ~TrashEmptier();
  TrashEmptier(const TrashEmptier&) = delete;
  TrashEmptier& operator=(const TrashEmptier&) = delete;

  void Start();
  // Goes on with these intervals and limits; a pass that is under way is ended with the old ones.
  void Reload(Options options);
  Stats stats() const;
  // Submits nothing more, then calls `then` on the executor, when nothing is under way.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::namenode
