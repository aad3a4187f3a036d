#pragma once

// Places where tests make rare things happen. In every build; one relaxed load when nothing is armed; can be armed only in a process that
// called EnableFaultPoints() (--fault-points), through CAIRN_FAULTS="name=action[;name=action]", an admin call, or Arm().
//
// Actions: "error" (the call fails), "error(TEXT)", "crash" (exit at once with 134, without cleaning up), "block" (until disarmed),
// "delay(MS)", each with an optional "*N" (the first N times only) and "@N" (skip the first N). Thread-safe.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace cairn {

void EnableFaultPoints();
bool FaultPointsEnabled();
// kInvalidArgument for a bad action, kPermission when not enabled. An empty action disarms.
absl::Status ArmFault(std::string_view name, std::string_view action);
void DisarmAllFaults();
absl::Status ArmFaultsFromEnvironment();
// How often a point was reached while armed.
uint64_t FaultHits(std::string_view name);

namespace internal {
extern std::atomic<bool> any_fault_armed;
absl::Status HitFault(const char* name);
std::optional<absl::Duration> HitFaultWithoutBlocking(const char* name);
}  // namespace internal

// Reached on a thread that may block: "block" and "delay" really wait here. OK unless armed with an error.
inline absl::Status FaultPoint(const char* name) {
  if (!internal::any_fault_armed.load(std::memory_order_relaxed)) [[likely]]
    return absl::OkStatus();
  return internal::HitFault(name);
}

// Reached where nothing may block (an executor in simulation, a coroutine): how long to wait for "delay", after which the point is
// passed; InfiniteDuration for "block": wait a little and ask again; nothing when there is no reason to wait.
inline std::optional<absl::Duration> FaultHold(const char* name) {
  if (!internal::any_fault_armed.load(std::memory_order_relaxed)) [[likely]]
    return std::nullopt;
  return internal::HitFaultWithoutBlocking(name);
}

}  // namespace cairn
