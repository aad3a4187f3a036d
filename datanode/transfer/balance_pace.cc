#include "datanode/transfer/balance_pace.h"

#include <algorithm>

#include "common/env/wait.h"

namespace cairn::datanode {

SteadyTime BalancePace::Take(uint64_t bytes, SteadyTime now) {
  const double seconds = static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(1, bytes_per_second()));
  MutexLock lock(mu_);
  next_ = std::max(next_, now - kBurst) + absl::Seconds(seconds);
  return next_;
}

Awaitable<void> BalancePace::Wait(Executor* executor, const TaskGroup* owner, uint64_t bytes, SteadyTime deadline) {
  const SteadyTime until = std::min(deadline, Take(bytes, executor->clock().Now()));
  while (!owner->stopping() && executor->clock().Now() < until) {
    const SteadyTime slice = std::min(until, executor->clock().Now() + kSlice);
    co_await SleepUntil(executor, slice);
  }
}

}  // namespace cairn::datanode
