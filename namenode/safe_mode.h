#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/namespace.pb.h"
#include "common/mutex.h"

namespace cairn::namenode {

// The safe mode that an operator enters by hand: no client's change is taken, no lease is taken from anyone, nothing is freed, repaired or
// deleted. Reads go on, as do heartbeats, reports, and the renewal of leases, which is no change. Ends with the process: a NameNode that
// starts serves at once, so there is no other safe mode.
//
// Thread-safe.
class SafeMode {
 public:
  struct State {
    bool on = false;
    absl::Time since;
    std::string user;  // Who entered it.
  };
  State state() const ABSL_LOCKS_EXCLUDED(mu_);
  void Enter(const std::string& user, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);  // No change if it is on.
  void Leave() ABSL_LOCKS_EXCLUDED(mu_);

  // kSafeMode, to be tried again, unless the mutation may be applied: what DataNodes register and operators want of nodes always may.
  absl::Status Check(const v1::Mutation& mutation) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::namenode
