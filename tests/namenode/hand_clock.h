#pragma once

#include "absl/time/time.h"
#include "common/env/clock.h"

namespace cairn::testing {

// Stands still until a test sets it.
class HandClock : public Clock {
 public:
  SteadyTime Now() const override { return now; }
  absl::Time WallNow() const override { return absl::UnixEpoch(); }
  SteadyTime now = SteadyTime::FromStart(absl::Hours(1));
};

}  // namespace cairn::testing
