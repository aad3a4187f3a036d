#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
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
// the program fails, takes too long, or writes something else, its hosts stay where they are, the log says so once until it works again,
// and they are asked for again after a pause. A host of the table is not asked for.
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

  // `on_racks` hears on the executor all that is known, when more is. `executor` outlives this, and is gone or idle before this goes.
  RackScript(Options options, std::shared_ptr<const RackTable> table, Run run, Executor* executor, OnRacks on_racks);

  // Cheap; nothing happens if it is known, or asked for already.
  void Ask(const std::string& host) ABSL_LOCKS_EXCLUDED(mu_);
  // Another table, and the program is asked for all hosts again; what it said before holds until it has answered.
  void AskAgain(std::shared_ptr<const RackTable> table) ABSL_LOCKS_EXCLUDED(mu_);
  // As known now.
  std::shared_ptr<const RackTable> racks() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void StepSoonLocked(absl::Duration pause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Step() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::vector<std::string>> RacksOf(const std::vector<std::string>& hosts) const;
  std::shared_ptr<const RackTable> RacksLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Run run_;
  Executor* const executor_;
  const OnRacks on_racks_;
  mutable Mutex mu_;
  std::shared_ptr<const RackTable> table_ ABSL_GUARDED_BY(mu_);  // May be null.
  std::map<std::string, std::string> known_ ABSL_GUARDED_BY(mu_);
  absl::btree_set<std::string> wanted_ ABSL_GUARDED_BY(mu_);
  bool posted_ ABSL_GUARDED_BY(mu_) = false;
  bool fails_ ABSL_GUARDED_BY(mu_) = false;  // And the log has said so.
};

}  // namespace cairn::namenode
