#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/namespace.pb.h"
#include "common/mutex.h"

namespace cairn::namenode {

// Safe mode: no client's change is taken, no lease is taken from anyone, nothing is freed, repaired or deleted. Reads go on, as do
// heartbeats, reports, and the renewal of leases, which is no change.
//
// An operator enters it by hand, and then it ends by his hand or with the process. A NameNode that starts serves at once, unless it is
// configured to begin in an automatic one, which ends by itself (SafeModeWatch); an operator may end it sooner, or make it his own.
//
// Thread-safe.
class SafeMode {
 public:
  struct State {
    bool on = false;
    absl::Time since;
    std::string user;        // Who entered it; empty: the NameNode itself.
    bool automatic = false;  // Ends by itself.
    // Of an automatic one, for those who wait.
    uint32_t nodes_expected = 0, nodes_reported = 0;
    absl::Time ends = absl::InfiniteFuture();  // Once nobody is waited for any more.
  };
  State state() const ABSL_LOCKS_EXCLUDED(mu_);
  // Hears of each beginning and end, in their order. Must be quick and not come back here. Before any of them; null: no longer.
  void SetListener(std::function<void(bool on)> listener) ABSL_LOCKS_EXCLUDED(mu_);

  void EnterAtStart(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  void Enter(const std::string& user, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);  // No change if it was entered by hand already.
  void Leave() ABSL_LOCKS_EXCLUDED(mu_);
  // Of an automatic one; else nothing happens. LeaveAutomatic: true if it was on.
  void Expect(uint32_t nodes_expected, uint32_t nodes_reported, absl::Time ends) ABSL_LOCKS_EXCLUDED(mu_);
  bool LeaveAutomatic() ABSL_LOCKS_EXCLUDED(mu_);

  // kSafeMode, to be tried again, with the reason SAFE_MODE and a word on when, unless the mutation may be applied: what DataNodes register
  // and operators want of nodes always may.
  absl::Status Check(const v1::Mutation& mutation) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void BeLocked(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_);
  std::function<void(bool on)> listener_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::namenode
