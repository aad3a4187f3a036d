#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/env/executor.h"
#include "common/env/thread_stack.h"
#include "common/mutex.h"

namespace cairn::datanode {

// Notices lanes that hang: a step that takes longer than `limit` is logged once, with its lane, its name and its stack, and counted.
// Runs on an executor of its own, since the lane in trouble cannot tell. Thread-safe.
class Watchdog {
 public:
  Watchdog(Executor* executor, absl::Duration limit = absl::Seconds(10));
  void Start();

  // A step of a lane, as long as this object lives. `lane` and `name` are literals.
  class Step {
   public:
    Step(Watchdog* watchdog, const char* lane, const char* name);
    ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    friend class Watchdog;
    Watchdog* const watchdog_;  // May be null: nobody watches.
    const char* const lane_;
    const char* const name_;
    const ThreadId thread_;
    SteadyTime since_;
    bool reported_ = false;  // Under the watchdog's lock.
  };

  // Of each lane that ever took a step: how long ago it was last seen to begin or end one.
  std::map<std::string, absl::Duration> LastSteps() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t overdue_steps() const { return overdue_.load(std::memory_order_relaxed); }
  // "lane: step", of the last overdue one, and the stack that was logged with it; empty if there was none.
  struct Overdue {
    std::string step;
    std::vector<std::string> stack;  // Innermost first.
  };
  Overdue last_overdue() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Check() ABSL_LOCKS_EXCLUDED(mu_);

  Executor* const executor_;
  const absl::Duration limit_;
  std::atomic<uint64_t> overdue_{0};
  mutable Mutex mu_;
  std::list<Step*> steps_ ABSL_GUARDED_BY(mu_);  // A handful: one a lane.
  std::map<std::string_view, SteadyTime> last_ ABSL_GUARDED_BY(mu_);
  Overdue last_overdue_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::datanode
