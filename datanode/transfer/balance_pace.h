#pragma once

#include <atomic>
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
// Bytes are taken after one another from a line of time that may lag the clock by kBurst at most; who has taken some waits until the line
// has come there. Thread-safe.
class BalancePace {
 public:
  explicit BalancePace(uint64_t bytes_per_second) : configured_(bytes_per_second), bytes_per_second_(bytes_per_second) {}

  // From now on; 0: as it was made.
  void Set(uint64_t bytes_per_second) { bytes_per_second_.store(bytes_per_second == 0 ? configured_ : bytes_per_second); }
  uint64_t bytes_per_second() const { return bytes_per_second_.load(); }

  // When those who take `bytes` now may go on.
  SteadyTime Take(uint64_t bytes, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes, and waits until then, but not beyond `deadline`, nor long after `owner` stops. Pointers outlive the call.
  Awaitable<void> Wait(Executor* executor, const TaskGroup* owner, uint64_t bytes, SteadyTime deadline);

 private:
  static constexpr absl::Duration kBurst = absl::Milliseconds(200);
  static constexpr absl::Duration kSlice = absl::Milliseconds(200);  // How long a stop may go unnoticed.

  const uint64_t configured_;
  std::atomic<uint64_t> bytes_per_second_;
  Mutex mu_;
  SteadyTime next_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::datanode
