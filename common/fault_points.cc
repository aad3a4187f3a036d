#include "common/fault_points.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"

namespace cairn {
namespace internal {

std::atomic<bool> any_fault_armed = false;

}  // namespace internal

namespace {

enum class Action { kError, kCrash, kBlock, kDelay };

struct Armed {
  Action action = Action::kError;
  std::string text;  // Of an error.
  absl::Duration delay;
  uint64_t skip = 0;              // Passes that still do nothing.
  std::optional<uint64_t> times;  // Passes that still act; nothing: all.
  uint64_t generation = 0;        // Of the arming, so that a blocked thread sees that it is over.
};

class Registry {
 public:
  static Registry& Get() {
    static auto* const registry = new Registry;  // Never destroyed: threads may pass points until the process ends.
    return *registry;
  }

  void Enable() { enabled_.store(true); }
  bool enabled() const { return enabled_.load(); }

  void Set(const std::string& name, std::optional<Armed> armed) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (armed.has_value()) {
      armed->generation = ++generation_;
      points_[name] = std::move(*armed);
      hits_[name] = 0;
    } else {
      points_.erase(name);
    }
    internal::any_fault_armed.store(!points_.empty());
    changed_.NotifyAll();
  }

  void Clear() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    points_.clear();
    internal::any_fault_armed.store(false);
    changed_.NotifyAll();
  }

  uint64_t HitsOf(std::string_view name) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    const auto found = hits_.find(std::string(name));
    return found == hits_.end() ? 0 : found->second;
  }

  // What this pass has to do; nothing for most.
  std::optional<Armed> Hit(const char* name) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    const auto found = points_.find(name);
    if (found == points_.end()) return std::nullopt;
    ++hits_[name];
    Armed& armed = found->second;
    if (armed.skip > 0) {
      --armed.skip;
      return std::nullopt;
    }
    if (armed.times.has_value()) {
      if (*armed.times == 0) return std::nullopt;
      --*armed.times;
    }
    return armed;
  }

  // Until the arming of `name` is over or `limit` has passed.
  void Wait(const char* name, uint64_t generation, absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    for (bool in_time = true; in_time;) {
      const auto found = points_.find(name);
      if (found == points_.end() || found->second.generation != generation) return;
      if (limit == absl::InfiniteDuration()) {
        changed_.Wait(mu_);
      } else {
        in_time = changed_.WaitFor(mu_, limit);  // Woken by other armings too; a delay may then be longer.
      }
    }
  }

 private:
  Registry() = default;

  std::atomic<bool> enabled_ = false;
  Mutex mu_;
  CondVar changed_;
  std::map<std::string, Armed> points_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, uint64_t> hits_ ABSL_GUARDED_BY(mu_);  // Kept after disarming.
  uint64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
};

[[noreturn]] void Crash(const char* name) {
  std::fprintf(stderr, "fault point %s: crash\n", name);
  std::_Exit(134);  // As after SIGABRT, but without a core and without any handler.
}

// The number after `mark` at the end of `action`, which is cut off; nothing if there is none.
absl::StatusOr<std::optional<uint64_t>> TakeCount(std::string& action, char mark) {
  const size_t at = action.rfind(mark);
  // A mark inside parentheses belongs to a text.
  if (at == std::string::npos || action.find(')', at) != std::string::npos) return std::optional<uint64_t>();
  const std::string digits = action.substr(at + 1);
  if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos)
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("'{}': {} wants a number", action, mark));
  action.resize(at);
  return std::optional<uint64_t>(std::stoull(digits));
}

absl::StatusOr<Armed> Parse(std::string_view text) {
  std::string action(text);
  Armed armed;
  // "*N" and "@N" in any order.
  for (int i = 0; i < 2; ++i) {
    const bool skip_last =
        action.rfind('@') != std::string::npos && (action.rfind('*') == std::string::npos || action.rfind('@') > action.rfind('*'));
    ASSIGN_OR_RETURN(const std::optional<uint64_t> count, TakeCount(action, skip_last ? '@' : '*'));
    if (!count.has_value()) continue;
    if (skip_last) {
      armed.skip = *count;
    } else {
      armed.times = count;
    }
  }
  std::string argument;
  if (const size_t open = action.find('('); open != std::string::npos && action.back() == ')') {
    argument = action.substr(open + 1, action.size() - open - 2);
    action.resize(open);
  }
  if (action == "error") {
    armed.action = Action::kError;
    armed.text = argument;
  } else if (action == "crash" && argument.empty()) {
    armed.action = Action::kCrash;
  } else if (action == "block" && argument.empty()) {
    armed.action = Action::kBlock;
  } else if (action == "delay" && !argument.empty() && argument.size() <= 9 &&
             argument.find_first_not_of("0123456789") == std::string::npos) {
    armed.action = Action::kDelay;
    armed.delay = absl::Milliseconds(std::stoll(argument));
  } else {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("fault action '{}': expected error, error(TEXT), crash, block or delay(MS), then *N and @N", text));
  }
  return armed;
}

}  // namespace

void EnableFaultPoints() { Registry::Get().Enable(); }

bool FaultPointsEnabled() { return Registry::Get().enabled(); }

absl::Status ArmFault(std::string_view name, std::string_view action) {
  if (!FaultPointsEnabled()) return MakeError(ErrorKind::kPermission, "fault points are off; start the process with --fault-points");
  if (name.empty()) return MakeError(ErrorKind::kInvalidArgument, "a fault point has a name");
  if (action.empty()) {
    Registry::Get().Set(std::string(name), std::nullopt);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Armed armed, Parse(action));
  Registry::Get().Set(std::string(name), std::move(armed));
  return absl::OkStatus();
}

void DisarmAllFaults() { Registry::Get().Clear(); }

absl::Status ArmFaultsFromEnvironment() {
  const char* const value = std::getenv("CAIRN_FAULTS");
  if (value == nullptr) return absl::OkStatus();
  std::string_view left(value);
  while (!left.empty()) {
    const size_t end = std::min(left.find(';'), left.size());
    const std::string_view one = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (one.empty()) continue;
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos)
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("CAIRN_FAULTS: '{}' is not name=action", one));
    RETURN_IF_ERROR(ArmFault(one.substr(0, equals), one.substr(equals + 1)));
  }
  return absl::OkStatus();
}

uint64_t FaultHits(std::string_view name) { return Registry::Get().HitsOf(name); }

namespace internal {

absl::Status HitFault(const char* name) {
  const std::optional<Armed> armed = Registry::Get().Hit(name);
  if (!armed.has_value()) return absl::OkStatus();
  switch (armed->action) {
    case Action::kError: return absl::InternalError(fmt::format("fault point {}{}{}", name, armed->text.empty() ? "" : ": ", armed->text));
    case Action::kCrash: Crash(name);
    case Action::kBlock: Registry::Get().Wait(name, armed->generation, absl::InfiniteDuration()); break;
    case Action::kDelay: Registry::Get().Wait(name, armed->generation, armed->delay); break;
  }
  return absl::OkStatus();
}

std::optional<absl::Duration> HitFaultWithoutBlocking(const char* name) {
  const std::optional<Armed> armed = Registry::Get().Hit(name);
  if (!armed.has_value()) return std::nullopt;
  switch (armed->action) {
    case Action::kError: return std::nullopt;
    case Action::kCrash: Crash(name);
    case Action::kBlock: return absl::InfiniteDuration();
    case Action::kDelay: return armed->delay;
  }
  return std::nullopt;
}

}  // namespace internal
}  // namespace cairn
