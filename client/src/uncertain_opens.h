#pragma once

#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "client/src/namenode_caller.h"
#include "client/src/scope.h"
#include "common/mutex.h"

namespace cairn::client {

class LeaseRenewer;

// Files that this client may have opened for writing without knowing it: a create or an append was sent, and nobody heard what came of it
// within the retry budget. The client renews its lease for all its files, so such a one would stay open for as long as any other is
// written.
//
// So the NameNode is asked later, now and then, what is at the path: a file under construction that none of this client's writers knows
// is given up. If somebody else writes it, that does nothing, since a client can give up only what is its own. The call is not repeated:
// with `overwrite` it might act now, on a file that was written since.
//
// While an open of the same path by this client is under way, what is found there may be its own; so who opens says so, from the first
// try until the writer is known. Thread-safe.
class UncertainOpens {
 public:
  // `scope`: of the client's own, where it asks.
  UncertainOpens(Scope scope, NamenodeCaller* namenode, LeaseRenewer* leases) : scope_(scope), namenode_(namenode), leases_(leases) {}

  void Begin(const std::string& path) ABSL_LOCKS_EXCLUDED(mu_);
  // It has ended: with this file, which is a writer's until Closed; or with none (0).
  void End(const std::string& path, uint64_t inode_id) ABSL_LOCKS_EXCLUDED(mu_);
  // It has ended, and nobody knows how.
  void EndUnknown(const std::string& path) ABSL_LOCKS_EXCLUDED(mu_);
  void Closed(uint64_t inode_id) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether there may be files that nobody knows of: for who ends now.
  bool any() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Awaitable<void> Settle(std::string path);
  // True: there is none of ours, or it is given up.
  Awaitable<bool> LookAt(std::string path);
  void StopAsking(bool settled) ABSL_LOCKS_EXCLUDED(mu_);
  void EndLocked(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsBeingOpened(const std::string& path) const ABSL_LOCKS_EXCLUDED(mu_);
  bool IsWritersOwn(uint64_t inode_id) const ABSL_LOCKS_EXCLUDED(mu_);

  const Scope scope_;
  NamenodeCaller* const namenode_;
  LeaseRenewer* const leases_;
  mutable Mutex mu_;
  std::map<std::string, int> under_way_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> writers_ ABSL_GUARDED_BY(mu_);  // Inode ids.
  int unsettled_ ABSL_GUARDED_BY(mu_) = 0;           // Paths of which it is not known yet; those that were given up as well.
  int asking_ ABSL_GUARDED_BY(mu_) = 0;              // Of these: that are still asked for.
};

}  // namespace cairn::client
