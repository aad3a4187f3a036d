#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/executor.h"
#include "common/mutex.h"
#include "namenode/replicas/rack_table.h"

namespace cairn::namenode {

// Asks the program of net.topology.script.file.name where hosts stand, as HDFS's ScriptBasedMapping does: hosts for its arguments, at most
// net.topology.script.number.args of them, and for each a rack in what it writes, apart by blanks or lines, in their order.
//
// Nobody waits for it: a host that has not been answered for is on kDefaultRack, and moves when the answer comes. Answers are kept. When
// the program fails, takes too long, or writes something else, its hosts stay where they are and are asked for one by one, behind all
// others, so that one that it does not know keeps no other from its rack; for one that fails alone, it is asked again after a pause. The
// log says so once until all are answered for. A host of the table is not asked for.
//
// Thread-safe. The program runs on `executor`, which is for nothing else.
class RackScript {
 public:
  struct Options {
    std::string program;
    size_t most_arguments = 100;
    absl::Duration timeout = absl::Seconds(10);
    absl::Duration retry_after = absl::Minutes(1);
    size_t most_hosts = 100'000;  // More are not asked for.
  };
  using Run = std::function<absl::StatusOr<std::string>(const std::vector<std::string>& words, absl::Duration timeout)>;
  using OnRacks = std::function<void(std::shared_ptr<const RackTable> racks)>;

  // `on_racks` hears on the executor all that is known, when more is; a host for which the program has failed is on kDefaultRack there.
  // `executor` outlives this, and is gone or idle before this goes.
  RackScript(Options options, std::shared_ptr<const RackTable> table, Run run, Executor* executor, OnRacks on_racks);

  // Cheap; nothing happens if it is known, or asked for already.
  void Ask(const std::string& host) ABSL_LOCKS_EXCLUDED(mu_);
  // Another table, and the program is asked for all hosts again; what it said before holds until it has answered.
  void AskAgain(std::shared_ptr<const RackTable> table) ABSL_LOCKS_EXCLUDED(mu_);
  // As known now.
  std::shared_ptr<const RackTable> racks() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void StepAtLocked(SteadyTime time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What to ask for now, which is then no longer wanted; empty if nothing is due.
  std::vector<std::string> TakeLocked(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // True if something is known now that was not.
  bool FailedLocked(const std::vector<std::string>& hosts, const absl::Status& status, SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Step() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<std::string>> RacksOf(const std::vector<std::string>& hosts) const;
  std::shared_ptr<const RackTable> RacksLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Run run_;
  Executor* const executor_;
  const OnRacks on_racks_;
  mutable Mutex mu_;
  std::shared_ptr<const RackTable> table_ ABSL_GUARDED_BY(mu_);  // May be null.
  absl::btree_set<std::string> hosts_ ABSL_GUARDED_BY(mu_);      // All that were ever heard of, those of the table among them.
  std::map<std::string, std::string> known_ ABSL_GUARDED_BY(mu_);
  absl::btree_set<std::string> wanted_ ABSL_GUARDED_BY(mu_);                        // To be asked for, many at once.
  absl::btree_set<std::pair<SteadyTime, std::string>> alone_ ABSL_GUARDED_BY(mu_);  // To be asked for alone, and when.
  absl::btree_set<std::string> failing_ ABSL_GUARDED_BY(mu_);                       // Alone; the log has said so of the first.
  std::optional<SteadyTime> posted_ ABSL_GUARDED_BY(mu_);                           // When the next step is.
};

}  // namespace cairn::namenode
