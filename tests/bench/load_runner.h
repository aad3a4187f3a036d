#pragma once

// What the NameNode's load tool measures with: callers in a closed loop, and what a process has used. For tests/bench only.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace cairn::bench {

// User and system seconds of a process so far, all its threads together, and of each of its living threads by name.
struct ProcessCpu {
  double seconds = 0;
  std::map<std::string, double> threads;
};
ProcessCpu CpuOf(pid_t pid);
double OwnCpuSeconds();
double NowSeconds();  // Monotonic.

struct PhaseResult {
  std::string name;
  uint64_t operations = 0;
  double seconds = 0;
  double p50_us = 0;
  double p99_us = 0;
  double client_cpu_us = 0;  // An operation's.
  double server_cpu_us = 0;
  std::map<std::string, double> server_threads_us;  // The same by thread; what the breakdown leaves out has ended.
  absl::Status status;                              // The first failure.
};

// NNThroughputBenchmark's block for an operation, with our columns after it.
std::string ToText(const PhaseResult& result);
std::string ToJson(const PhaseResult& result);

// Issues operation `index` for `caller`; `done` is called once, from any thread.
using Issue = std::function<void(size_t caller, uint64_t index, absl::AnyInvocable<void(absl::Status)> done)>;

// Runs operations 0 to `operations` - 1 with `in_flight` callers, each of which begins its next when its last is answered; `server` is the
// process whose CPU is counted. Stops at the first failure, or early when `stop` says so.
PhaseResult RunPhase(const std::string& name, uint64_t operations, size_t in_flight, pid_t server, const Issue& issue,
                     const std::function<bool()>& stop = nullptr);

}  // namespace cairn::bench
