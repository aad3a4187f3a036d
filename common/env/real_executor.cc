#include "common/env/real_executor.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "common/mutex.h"

namespace cairn {
namespace {

class SystemClock final : public Clock {
 public:
  SteadyTime Now() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return SteadyTime::FromStart(absl::DurationFromTimespec(now));
  }
  absl::Time WallNow() const override {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return absl::TimeFromTimespec(now);
  }
};

class RealExecutor;
thread_local const RealExecutor* current = nullptr;

// The thread's loop takes turns between tasks, due timers and Asio's completions, a bounded number of each, so that none
// starves the others. Timers are a sorted map, not Asio timers: a deadline that is cancelled before it comes, as nearly all are, costs
// two map operations and no system call.
class RealExecutor final : public Executor {
 public:
  RealExecutor(const std::string& name, int nice)
      : io_(std::make_unique<boost::asio::io_context>(1)),
        asio_(io_->get_executor()),
        work_(std::in_place, io_->get_executor()),
        thread_([this, name, nice] { Loop(name.substr(0, 15), nice); }) {}

  ~RealExecutor() override {
    {
      MutexLock lock(mu_);
      stopped_ = true;
    }
    io_->stop();
    thread_.join();
    work_.reset();
    // What a destroyed task held may post again: such tasks are dropped by Post, as `stopped_` is set. Asio's queue goes last,
    // because coroutine frames are unwound through it.
    for (;;) {
      std::deque<Item> ready;
      absl::btree_map<TimerKey, Task> timers;
      {
        MutexLock lock(mu_);
        ready.swap(ready_);
        timers.swap(timers_);
        timer_times_.clear();
      }
      if (ready.empty() && timers.empty()) break;
    }
    asio_ = boost::asio::any_io_executor();
    io_.reset();
  }

  void Post(Task task) override {
    const SteadyTime now = RealClock().Now();
    bool wake = false;
    {
      MutexLock lock(mu_);
      if (!stopped_) {
        ready_.push_back(Item{std::move(task), now});
        wake = std::exchange(sleeping_, false);
      }
    }
    if (wake) WakeLoop();
  }

  TimerId PostAt(SteadyTime when, Task task) override {
    TimerId id = 0;
    bool wake = false;
    {
      MutexLock lock(mu_);
      id = ++last_timer_;
      if (!stopped_ && when < SteadyTime::Infinite()) {
        const bool earliest = timers_.empty() || when < timers_.begin()->first.first;
        timers_.emplace(TimerKey(when, id), std::move(task));
        timer_times_.emplace(id, when);
        wake = earliest && std::exchange(sleeping_, false);
      }
    }
    if (wake) WakeLoop();
    return id;
  }

  void CancelTimer(TimerId id) override {
    Task task;  // Destroyed outside the lock.
    MutexLock lock(mu_);
    auto time = timer_times_.find(id);
    if (time == timer_times_.end()) return;
    auto timer = timers_.find(TimerKey(time->second, id));
    task = std::move(timer->second);
    timers_.erase(timer);
    timer_times_.erase(time);
  }

  bool IsCurrent() const override { return current == this; }
  const Clock& clock() const override { return RealClock(); }
  const boost::asio::any_io_executor& asio() const override { return asio_; }

  size_t QueueDepth() const override {
    MutexLock lock(mu_);
    return ready_.size();
  }
  absl::Duration OldestAge() const override {
    const SteadyTime now = RealClock().Now();
    MutexLock lock(mu_);
    return ready_.empty() ? absl::ZeroDuration() : std::max(absl::ZeroDuration(), now - ready_.front().posted);
  }

 private:
  struct Item {
    Task task;
    SteadyTime posted;
  };
  using TimerKey = std::pair<SteadyTime, TimerId>;

  // A thread that sleeps in Asio wakes for an empty completion.
  void WakeLoop() {
    boost::asio::post(*io_, [] {});
  }

  void Loop(const std::string& name, int nice) {
    pthread_setname_np(pthread_self(), name.c_str());
    // Linux keeps it for each thread: of 0, the calling one. Without it the work is done all the same.
    if (nice != 0) static_cast<void>(setpriority(PRIO_PROCESS, 0, std::max(nice, getpriority(PRIO_PROCESS, 0))));
    current = this;
    for (;;) {
      size_t turn = 0;
      {
        MutexLock lock(mu_);
        turn = ready_.size();
      }
      for (; turn > 0 && RunOneReady(); --turn) {
      }
      const SteadyTime now = RealClock().Now();
      while (RunOneTimer(now)) {
      }
      std::optional<SteadyTime> sleep_until;
      {
        MutexLock lock(mu_);
        if (stopped_) return;
        sleeping_ = ready_.empty();
        if (sleeping_) sleep_until = timers_.empty() ? SteadyTime::Infinite() : timers_.begin()->first.first;
      }
      if (!sleep_until) {
        io_->poll();
      } else if (*sleep_until == SteadyTime::Infinite()) {
        io_->run_one();
      } else {
        io_->run_one_for(absl::ToChronoNanoseconds(*sleep_until - RealClock().Now()));
      }
      MutexLock lock(mu_);
      sleeping_ = false;
    }
  }

  bool RunOneReady() {
    Task task;
    {
      MutexLock lock(mu_);
      if (stopped_ || ready_.empty()) return false;
      task = std::move(ready_.front().task);
      ready_.pop_front();
    }
    task();
    return true;
  }

  bool RunOneTimer(SteadyTime now) {
    Task task;
    {
      MutexLock lock(mu_);
      if (stopped_ || timers_.empty() || timers_.begin()->first.first > now) return false;
      task = std::move(timers_.begin()->second);
      timer_times_.erase(timers_.begin()->first.second);
      timers_.erase(timers_.begin());
    }
    task();
    return true;
  }

  // Made before the thread; then constant.
  std::unique_ptr<boost::asio::io_context> io_;
  boost::asio::any_io_executor asio_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;

  mutable Mutex mu_;
  std::deque<Item> ready_ ABSL_GUARDED_BY(mu_);
  absl::btree_map<TimerKey, Task> timers_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<TimerId, SteadyTime> timer_times_ ABSL_GUARDED_BY(mu_);
  TimerId last_timer_ ABSL_GUARDED_BY(mu_) = 0;
  bool sleeping_ ABSL_GUARDED_BY(mu_) = false;  // The loop is in Asio, or about to be, and needs a wake for new work.
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;  // Last: it uses all of the above. Joined by the destructor only.
};

}  // namespace

const Clock& RealClock() {
  static const SystemClock clock;
  return clock;
}

std::unique_ptr<Executor> NewRealExecutor(const std::string& name) { return std::make_unique<RealExecutor>(name, 0); }

std::unique_ptr<Executor> NewRealBackgroundExecutor(const std::string& name) {
  constexpr int kNice = 10;
  return std::make_unique<RealExecutor>(name, kNice);
}

}  // namespace cairn
