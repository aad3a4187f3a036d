#pragma once

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "common/env/random.h"

namespace cairn::datanode {

// Doubling delays with up to a fifth of chance on top, so that a thousand DataNodes do not come back in step. Not thread-safe.
class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration most, Random random)
      : first_(first), most_(most), next_(first), random_(std::move(random)) {}
  void Reset() { next_ = first_; }
  absl::Duration Next() { return Next(most_); }
  absl::Duration Next(absl::Duration most) {
    const absl::Duration delay = std::min(next_, most);
    next_ = std::min(2 * next_, most_);
    return delay + delay * static_cast<double>(random_.Below(200)) / 1000;
  }

 private:
  const absl::Duration first_;
  const absl::Duration most_;
  absl::Duration next_;
  Random random_;
};

}  // namespace cairn::datanode
