#pragma once

#include <atomic>

#include "client/src/namenode_caller.h"
#include "client/src/scope.h"

namespace cairn::client {

// Keeps the lease of one FileSystem's writers alive: one timer for all of them, and none while
// nothing is written. A renewal that fails is not an error: the next mutation of a writer tells
// whether its lease still stands. Add and Remove from any thread.
class LeaseRenewer {
 public:
  LeaseRenewer(Scope scope, NamenodeCaller* namenode, absl::Duration interval) : scope_(scope), namenode_(namenode), interval_(interval) {}

  void Add();
  void Remove() { writers_.fetch_sub(1); }
  int writers() const { return writers_.load(); }

 private:
  Awaitable<void> Run();

  Scope scope_;
  NamenodeCaller* namenode_;
  absl::Duration interval_;
  std::atomic<int> writers_{0};
  bool running_ = false;  // On the scope's executor.
};

}  // namespace cairn::client
