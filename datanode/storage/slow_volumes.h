#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/env/clock.h"
#include "common/mutex.h"

namespace cairn::datanode {

// How long a disk takes for one kind of work: a moving average of the last few dozen samples. It is forgotten when nothing has been done
// for a while: a disk that gets no more work because it was slow is so given work again, and judged anew. Thread-safe.
class DiskLatency {
 public:
  struct Figures {
    absl::Duration average;
    uint64_t samples = 0;  // 0: forgotten, or there were none.
  };
  void Note(absl::Duration took, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  Figures Get(SteadyTime now) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable Mutex mu_;
  Figures figures_ ABSL_GUARDED_BY(mu_);
  SteadyTime last_ ABSL_GUARDED_BY(mu_);
};

// Of one kind of work, in the order of `disks`: how many times as long as the median of the others a disk takes, 0 if it is not far above
// them, or if it or too few others have done enough to be judged by. Pure.
std::vector<double> HowSlow(const std::vector<DiskLatency::Figures>& disks);

}  // namespace cairn::datanode
