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

namespace cairn {

// Notices lanes that hang: a step that takes longer than `limit` is logged once, with its lane, its name and its stack, and counted.
// Runs on an executor of its own, since the lane in trouble cannot tell. Thread-safe.
//
// A lane says itself what its steps are (Step), or it is an executor of whose tasks each is one (WatchedExecutor, by a Seat).
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

  // Where one thread says what it is at, so cheaply that it may do so for every task. Watched while it lives.
  class Seat {
   public:
    // `watchdog` outlives this.
    Seat(Watchdog* watchdog, std::string lane);
    ~Seat();
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    // Of one thread, in turn.
    void Begin(SteadyTime now);
    void End() { since_ns_.store(kIdle, std::memory_order_relaxed); }

   private:
    friend class Watchdog;
    static constexpr int64_t kIdle = -1;
    Watchdog* const watchdog_;
    const std::string lane_;
    std::atomic<ThreadId> thread_ = 0;
    std::atomic<int64_t> since_ns_ = kIdle;  // Of the clock's start.
    int64_t reported_ns_ = kIdle;            // Under the watchdog's lock: the since_ns_ that was.
  };

  // Of each lane that ever took a Step: how long ago it was last seen to begin or end one.
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
  std::list<Seat*> seats_ ABSL_GUARDED_BY(mu_);
  std::map<std::string_view, SteadyTime> last_ ABSL_GUARDED_BY(mu_);
  Overdue last_overdue_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn
