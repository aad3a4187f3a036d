#pragma once

#include <atomic>

#include "client/src/namenode_caller.h"
#include "client/src/scope.h"

namespace cairn::client {

// Keeps the leases of one FileSystem's writers alive: one timer for all of them, and none while
// nothing is written. A renewal that fails is not an error: the next mutation of a writer tells
// whether its lease still stands.
//
// It renews at the interval it was made with, or at a third of the limit that the NameNode named last, whichever is shorter. The
// NameNode goes by a shorter limit only once a renewal has said so: who is told of one says so at once.
//
// A renewal is for all files of the client, so a writer that is given up would keep its file for as
// long as others write: Release tells the NameNode at once. As good as it can: if nobody hears of
// it, the file waits for its lease to run out. Add, Remove, Release and NoteLimit from any thread.
class LeaseRenewer {
 public:
  LeaseRenewer(Scope scope, NamenodeCaller* namenode, absl::Duration interval)
      : scope_(scope), namenode_(namenode), longest_(interval), interval_(interval) {}

  void Add();
  void Remove() { writers_.fetch_sub(1); }
  // The NameNode has named its soft limit; zero: it has not.
  void NoteLimit(absl::Duration limit);
  int writers() const { return writers_.load(); }
  // Gives up a file; 0: all that this client may have open, when it goes.
  void Release(uint64_t inode_id);
  // Waits, no longer than until `deadline`, for what was released to be told.
  Awaitable<absl::Status> Drain(SteadyTime deadline);
  int releases_pending() const { return releasing_.load(); }

 private:
  Awaitable<void> Run();
  Awaitable<void> Heed(absl::Duration limit);
  Awaitable<void> Tell(uint64_t inode_id);

  Scope scope_;
  NamenodeCaller* namenode_;
  const absl::Duration longest_;
  std::atomic<int> writers_{0};
  std::atomic<int> releasing_{0};
  std::atomic<int64_t> noted_ms_{0};
  // Of the scope's executor.
  bool running_ = false;
  absl::Duration interval_;
  SteadyTime renewed_;         // When the last renewal began.
  bool told_shorter_ = false;  // The NameNode has to hear at once that it is renewed more often from now on.
  Event* woken_ = nullptr;     // Ends the wait for the next renewal; null while there is none.
};

}  // namespace cairn::client
