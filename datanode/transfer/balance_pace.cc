#include "datanode/transfer/balance_pace.h"

#include <algorithm>

#include "common/api/balance.h"
#include "common/env/wait.h"

namespace cairn::datanode {

uint64_t BalancePace::Sane(uint64_t bytes_per_second) { return std::max(bytes_per_second, api::kLeastBalanceBytesPerSecond); }

BalancePace::Place BalancePace::PassedLocked(SteadyTime now) const { return passed_ + rate_ * absl::ToDoubleSeconds(now - since_); }

void BalancePace::Set(uint64_t bytes_per_second, SteadyTime now) {
  const auto rate = static_cast<double>(bytes_per_second == 0 ? configured_ : Sane(bytes_per_second));
  MutexLock lock(mu_);
  if (rate == rate_) return;
  passed_ = PassedLocked(now);
  since_ = now;
  rate_ = rate;
  taken_ = std::min(taken_, passed_ + rate_ * absl::ToDoubleSeconds(kMostAhead));
}

uint64_t BalancePace::bytes_per_second() const {
  MutexLock lock(mu_);
  return static_cast<uint64_t>(rate_);
}

BalancePace::Place BalancePace::Take(uint64_t bytes, SteadyTime now) {
  MutexLock lock(mu_);
  const Place passed = PassedLocked(now);
  const Place from = std::max(taken_, passed - rate_ * absl::ToDoubleSeconds(kBurst));
  taken_ = std::min(from + static_cast<double>(bytes), passed + rate_ * absl::ToDoubleSeconds(kMostAhead));
  return taken_;
}

SteadyTime BalancePace::TimeOf(Place place, SteadyTime now) const {
  MutexLock lock(mu_);
  const double left = place - PassedLocked(now);
  return left < 1 ? now : now + absl::Seconds(left / rate_);
}

Awaitable<void> BalancePace::Wait(Executor* executor, const TaskGroup* owner, uint64_t bytes, SteadyTime deadline) {
  const Place place = Take(bytes, executor->clock().Now());
  while (!owner->stopping()) {
    const SteadyTime now = executor->clock().Now();
    const SteadyTime until = std::min(deadline, TimeOf(place, now));
    if (until <= now) break;
    const SteadyTime slice = std::min(until, now + kSlice);
    co_await SleepUntil(executor, slice);
  }
}

absl::Duration BalancePace::PatienceFor(uint64_t bytes) const {
  const double alone = static_cast<double>(bytes) / static_cast<double>(bytes_per_second());
  return absl::Seconds(2 * alone * api::kMostBalanceMoves);
}

}  // namespace cairn::datanode
