#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "common/env/clock.h"
#include "common/env/executor.h"
#include "common/env/network.h"
#include "common/mutex.h"
#include "common/task_group.h"

namespace cairn::datanode {

// How fast this node moves replicas for the balancer: what it sends and what it receives for it together, over all its streams
// (dfs.datanode.balance.bandwidthPerSec, as HDFS's balance throttler), so that writers keep the network and the disks. Other copies do not
// come by here.
//
// A line of bytes, along which the pace goes: who takes some waits until it has come to their end. A place in it is in bytes, not in time,
// so that a change of the pace is felt by those that wait already. What was not taken is lost but for kBurst, and nobody stands further
// ahead than kMostAhead: receivers, whose pauses are bounded, may take more than the pace allows. Thread-safe.
class BalancePace {
 public:
  using Place = double;  // Bytes from the start of the line.

  explicit BalancePace(uint64_t bytes_per_second)
      : configured_(Sane(bytes_per_second)), rate_(static_cast<double>(Sane(bytes_per_second))) {}

  // From now on, also for who waits; 0: as it was made. Less than api::kLeastBalanceBytesPerSecond counts as that.
  void Set(uint64_t bytes_per_second, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t bytes_per_second() const ABSL_LOCKS_EXCLUDED(mu_);

  // The end of `bytes` that are taken now.
  Place Take(uint64_t bytes, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  // When the pace comes there, unless it changes; `now` if it has.
  SteadyTime TimeOf(Place place, SteadyTime now) const ABSL_LOCKS_EXCLUDED(mu_);
  // Takes, and waits until then, but not beyond `deadline`, nor long after `owner` stops. Pointers outlive the call.
  Awaitable<void> Wait(Executor* executor, const TaskGroup* owner, uint64_t bytes, SteadyTime deadline);

  // How long a move of so many bytes may take at this pace: twice what it takes beside all the others that there may be, here or at its
  // other end.
  absl::Duration PatienceFor(uint64_t bytes) const;

 private:
  static constexpr absl::Duration kBurst = absl::Milliseconds(200);
  static constexpr absl::Duration kMostAhead = absl::Seconds(30);    // A receiver takes a longer silence for the end.
  static constexpr absl::Duration kSlice = absl::Milliseconds(200);  // How long a stop, or a change, may go unnoticed.

  static uint64_t Sane(uint64_t bytes_per_second);
  // Where the pace is.
  Place PassedLocked(SteadyTime now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t configured_;
  mutable Mutex mu_;
  double rate_ ABSL_GUARDED_BY(mu_);
  // The pace was at passed_ at since_, when the rate last changed.
  SteadyTime since_ ABSL_GUARDED_BY(mu_);
  Place passed_ ABSL_GUARDED_BY(mu_) = 0;
  Place taken_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace cairn::datanode
