#pragma once

#include <atomic>

#include "client/src/namenode_caller.h"
#include "client/src/scope.h"

namespace cairn::client {

// Keeps the leases of one FileSystem's writers alive: one timer for all of them, and none while
// nothing is written. A renewal that fails is not an error: the next mutation of a writer tells
// whether its lease still stands.
//
// A renewal is for all files of the client, so a writer that is given up would keep its file for as
// long as others write: Release tells the NameNode at once. As good as it can: if nobody hears of
// it, the file waits for its lease to run out. Add, Remove and Release from any thread.
class LeaseRenewer {
 public:
  LeaseRenewer(Scope scope, NamenodeCaller* namenode, absl::Duration interval) : scope_(scope), namenode_(namenode), interval_(interval) {}

  void Add();
  void Remove() { writers_.fetch_sub(1); }
  int writers() const { return writers_.load(); }
  // Gives up a file; 0: all that this client may have open, when it goes.
  void Release(uint64_t inode_id);
  // Waits, no longer than until `deadline`, for what was released to be told.
  Awaitable<absl::Status> Drain(SteadyTime deadline);
  int releases_pending() const { return releasing_.load(); }

 private:
  Awaitable<void> Run();
  Awaitable<void> Tell(uint64_t inode_id);

  Scope scope_;
  NamenodeCaller* namenode_;
  absl::Duration interval_;
  std::atomic<int> writers_{0};
  std::atomic<int> releasing_{0};
  bool running_ = false;  // On the scope's executor.
};

}  // namespace cairn::client
