#pragma once

// The seam to the world starts here. common/env holds all that is not deterministic: time, chance, threads, files and
// sockets. Production code gets it through these interfaces only; tests/testing has simulated twins that run a whole cluster
// in one thread from a seed.

#include <compare>

#include "absl/time/time.h"

namespace cairn {

// A point on the monotonic clock of this process. Deadlines and intervals are measured with it, so a jump of the wall
// clock moves nothing.
class SteadyTime {
 public:
  constexpr SteadyTime() = default;  // The clock's start.
  static constexpr SteadyTime FromStart(absl::Duration since_start) { return SteadyTime(since_start); }
  static constexpr SteadyTime Infinite() { return SteadyTime(absl::InfiniteDuration()); }

  constexpr absl::Duration since_start() const { return since_start_; }
  friend SteadyTime operator+(SteadyTime t, absl::Duration d) { return SteadyTime(t.since_start_ + d); }
  friend SteadyTime operator-(SteadyTime t, absl::Duration d) { return SteadyTime(t.since_start_ - d); }
  friend absl::Duration operator-(SteadyTime a, SteadyTime b) { return a.since_start_ - b.since_start_; }
  friend constexpr bool operator==(SteadyTime a, SteadyTime b) { return a.since_start_ == b.since_start_; }
  friend constexpr bool operator<(SteadyTime a, SteadyTime b) { return a.since_start_ < b.since_start_; }
  friend constexpr bool operator>(SteadyTime a, SteadyTime b) { return b < a; }
  friend constexpr bool operator<=(SteadyTime a, SteadyTime b) { return !(b < a); }
  friend constexpr bool operator>=(SteadyTime a, SteadyTime b) { return !(a < b); }

 private:
  constexpr explicit SteadyTime(absl::Duration since_start) : since_start_(since_start) {}
  absl::Duration since_start_ = absl::ZeroDuration();
};

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual SteadyTime Now() const = 0;
  // Wall time, for what people and other machines see: modification times, token expiry. May jump.
  virtual absl::Time WallNow() const = 0;
};

}  // namespace cairn
