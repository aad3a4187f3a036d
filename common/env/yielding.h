#pragma once

#include <algorithm>
#include <cmath>

#include "absl/time/time.h"

namespace cairn {

// How background work shares something with those who would feel it: a disk, the NameNode's writer. It takes `share` of the time while
// others use it, and more the longer its work has been waiting, twice as much for each `patience`, up to `most`: what comes in faster than
// the share can do is caught up with, since its age says so, and a burst still gives way to the end.
struct Yielding {
  double share = 0.1;  // Above 0; at most 1.
  absl::Duration patience = absl::Minutes(1);
  double most = 1;  // At most 1.

  double ShareAt(absl::Duration oldest) const {
    const double limit = std::max(share, most);
    if (patience <= absl::ZeroDuration() || oldest == absl::InfiniteDuration()) return limit;
    return std::min(limit, share * std::exp2(std::max(0.0, absl::FDivDuration(oldest, patience) - 1)));
  }
  // How long to leave it to others after a step that took `took`, while the oldest work has been waiting for `oldest`.
  absl::Duration PauseAfter(absl::Duration took, absl::Duration oldest) const { return took * (1 / ShareAt(oldest) - 1); }
};

}  // namespace cairn
