#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/admin.pb.h"
#include "common/config.h"
#include "common/env/clock.h"
#include "common/mutex.h"

namespace cairn {

// Takes a changed configuration over without a restart: by `dfsadmin -reconfig`, or SIGHUP.
//
// The files are read anew, as at the start. An unknown key or a bad value anywhere refuses all of it, naming the line: nothing changes. Of
// the keys that differ, those that are reloadable (common/config_keys.cc says which) are given, all at once, to who asked for them; the
// others are reported as waiting for a restart.
//
// Thread-safe; Reload reads files, so it may block.
class Reconfiguration {
 public:
  struct Change {
    std::string key, from, to;
    bool taken = false;  // Else it needs a restart.
  };
  struct Outcome {
    bool ever = false;  // Any reload was tried.
    absl::Time started, ended;
    absl::Status status;          // Why nothing was taken over.
    std::vector<Change> changes;  // By key.
  };

  using Load = std::function<absl::StatusOr<Config>()>;
  // Whose keys are its own to take over; the others are for another process.
  enum class Daemon { kNamenode, kDatanode };
  // `current`: what the process was started with. `clock` outlives this.
  Reconfiguration(Config current, Load load, const Clock* clock, Daemon daemon = Daemon::kNamenode);

  // Before the first Reload: gets the configuration with the reloadable keys as they are now, when one of them has changed.
  void SetTaker(std::function<void(const Config& config)> take) { take_ = std::move(take); }

  Outcome Reload() ABSL_LOCKS_EXCLUDED(mu_);
  Outcome last() const ABSL_LOCKS_EXCLUDED(mu_);
  // With the reloadable keys as they were last taken over.
  Config current() const ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<std::string> ReloadableKeys() const;
  // As it is told to operators.
  static void Fill(const Outcome& outcome, v1::ReconfigureResponse* response);

 private:
  const Load load_;
  const Clock* const clock_;
  const Daemon daemon_;
  std::function<void(const Config& config)> take_;  // Set before the first Reload.
  mutable Mutex mu_;
  Config current_ ABSL_GUARDED_BY(mu_);
  Outcome last_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn
