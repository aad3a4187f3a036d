#include "datanode/lanes/watchdog.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include "absl/time/time.h"

#include "common/log.h"

namespace cairn::datanode {

Watchdog::Watchdog(Executor* executor, absl::Duration limit) : executor_(executor), limit_(limit) {}

void Watchdog::Start() {
  executor_->PostAt(executor_->clock().Now() + limit_ / 10, [this] { Check(); });
}

Watchdog::Step::Step(Watchdog* watchdog, const char* lane, const char* name) : watchdog_(watchdog), lane_(lane), name_(name) {
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

std::map<std::string, absl::Duration> Watchdog::LastSteps() const {
  const SteadyTime now = executor_->clock().Now();
  std::map<std::string, absl::Duration> ages;
  MutexLock lock(mu_);
  for (const auto& [lane, at] : last_) ages.emplace(lane, now - at);
  return ages;
}

void Watchdog::Check() {
  std::vector<std::string> overdue;
  const SteadyTime now = executor_->clock().Now();
  {
    MutexLock lock(mu_);
    for (Step* step : steps_) {
      const absl::Duration taken = now - step->since_;
      if (step->reported_ || taken < limit_) continue;
      step->reported_ = true;
      overdue.push_back(fmt::format("lane {}: step {} has taken {} so far", step->lane_, step->name_, absl::FormatDuration(taken)));
    }
  }
  overdue_.fetch_add(overdue.size(), std::memory_order_relaxed);
  for (const std::string& line : overdue) log::Warning("{}", line);
  Start();
}

}  // namespace cairn::datanode
