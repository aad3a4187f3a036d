#include "common/env/watchdog.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include "absl/time/time.h"

#include "common/log.h"

namespace cairn {

Watchdog::Watchdog(Executor* executor, absl::Duration limit) : executor_(executor), limit_(limit) {}

void Watchdog::Start() {
  executor_->PostAt(executor_->clock().Now() + limit_ / 10, [this] { Check(); });
}

Watchdog::Step::Step(Watchdog* watchdog, const char* lane, const char* name)
    : watchdog_(watchdog), lane_(lane), name_(name), thread_(watchdog == nullptr ? 0 : CurrentThreadId()) {
  if (watchdog_ == nullptr) return;
  since_ = watchdog_->executor_->clock().Now();
  MutexLock lock(watchdog_->mu_);
  watchdog_->steps_.push_back(this);
  watchdog_->last_[lane_] = since_;
}

Watchdog::Step::~Step() {
  if (watchdog_ == nullptr) return;
  const SteadyTime now = watchdog_->executor_->clock().Now();
  MutexLock lock(watchdog_->mu_);
  watchdog_->steps_.remove(this);
  watchdog_->last_[lane_] = now;
}

Watchdog::Seat::Seat(Watchdog* watchdog, std::string lane) : watchdog_(watchdog), lane_(std::move(lane)) {
  MutexLock lock(watchdog_->mu_);
  watchdog_->seats_.push_back(this);
}

Watchdog::Seat::~Seat() {
  MutexLock lock(watchdog_->mu_);
  watchdog_->seats_.remove(this);
}

void Watchdog::Seat::Begin(SteadyTime now) {
  static thread_local const ThreadId self = CurrentThreadId();
  if (thread_.load(std::memory_order_relaxed) != self) thread_.store(self, std::memory_order_relaxed);
  since_ns_.store(absl::ToInt64Nanoseconds(now.since_start()), std::memory_order_relaxed);
}

std::map<std::string, absl::Duration> Watchdog::LastSteps() const {
  const SteadyTime now = executor_->clock().Now();
  std::map<std::string, absl::Duration> ages;
  MutexLock lock(mu_);
  for (const auto& [lane, at] : last_) ages.emplace(lane, now - at);
  return ages;
}

Watchdog::Overdue Watchdog::last_overdue() const {
  MutexLock lock(mu_);
  return last_overdue_;
}

void Watchdog::Check() {
  struct Found {
    std::string step;
    absl::Duration taken;
    ThreadId thread;
  };
  std::vector<Found> overdue;
  const SteadyTime now = executor_->clock().Now();
  {
    MutexLock lock(mu_);
    for (Step* step : steps_) {
      const absl::Duration taken = now - step->since_;
      if (step->reported_ || taken < limit_) continue;
      step->reported_ = true;
      overdue.push_back({fmt::format("{}: {}", step->lane_, step->name_), taken, step->thread_});
    }
    for (Seat* seat : seats_) {
      const int64_t since_ns = seat->since_ns_.load(std::memory_order_relaxed);
      const absl::Duration taken = now - SteadyTime::FromStart(absl::Nanoseconds(since_ns));
      if (since_ns == Seat::kIdle || since_ns == seat->reported_ns_ || taken < limit_) continue;
      seat->reported_ns_ = since_ns;
      overdue.push_back({fmt::format("{}: task", seat->lane_), taken, seat->thread_.load(std::memory_order_relaxed)});
    }
  }
  overdue_.fetch_add(overdue.size(), std::memory_order_relaxed);
  for (const Found& found : overdue) {
    // It may have gone on meanwhile; then the stack shows what the lane does now.
    std::vector<std::string> stack = StackOfThread(found.thread);
    log::Warning("lane {}: this step has taken {} so far; its thread is in\n  {}", found.step, absl::FormatDuration(found.taken),
                 stack.empty() ? "(no answer: it sleeps where no signal reaches it)" : fmt::format("{}", fmt::join(stack, "\n  ")));
    MutexLock lock(mu_);
    last_overdue_ = {found.step, std::move(stack)};
  }
  Start();
}

}  // namespace cairn
