#include "namenode/safe_mode_watch.h"

#include <optional>
#include <utility>

#include "common/log.h"
#include "namenode/background_loop.h"

namespace cairn::namenode {

struct SafeModeWatch::State : std::enable_shared_from_this<SafeModeWatch::State> {
  State(Options options_in, SafeMode* safe_mode_in, ReplicaPlane* plane_in, Executor* executor_in)
      : options(options_in), safe_mode(safe_mode_in), plane(plane_in), executor(executor_in) {}

  const Options options;
  SafeMode* const safe_mode;
  ReplicaPlane* const plane;
  Executor* const executor;

  // The executor's from here.
  std::optional<SteadyTime> complete_since;
  BackgroundLoop loop{executor};

  void Step() {
    if (loop.stopping() || !safe_mode->state().automatic) return;
    const SteadyTime now = executor->clock().Now();
    const ReplicaPlane::Arrival arrival = plane->arrival();
    if (!arrival.complete) {
      complete_since.reset();
    } else if (!complete_since) {
      complete_since = now;
    }
    absl::Time ends = absl::InfiniteFuture();
    if (complete_since) {
      if (now - *complete_since >= options.extension) return End();
      ends = executor->clock().WallNow() + (options.extension - (now - *complete_since));
    }
    safe_mode->Expect(arrival.expected, arrival.reported, ends);
    loop.RunAfter(options.interval, [self = shared_from_this()] { self->Step(); });
  }

  void End() {
    const uint64_t missing = plane->figures().missing_blocks;
    if (!safe_mode->LeaveAutomatic()) return;
    if (missing > 0) {
      log::Warning("safe mode has ended by itself; {} blocks have no replica: dfsadmin -badBlocks missing", missing);
    } else {
      log::Info("safe mode has ended by itself");
    }
  }
};

SafeModeWatch::SafeModeWatch(Options options, SafeMode* safe_mode, ReplicaPlane* plane, Executor* executor)
    : state_(std::make_shared<State>(options, safe_mode, plane, executor)) {}

SafeModeWatch::~SafeModeWatch() = default;

void SafeModeWatch::Start() {
  state_->executor->Post([state = state_] { state->Step(); });
}

void SafeModeWatch::Stop(absl::AnyInvocable<void()> then) {
  state_->executor->Post([state = state_, then = std::move(then)]() mutable { state->loop.Stop(false, std::move(then)); });
}

}  // namespace cairn::namenode
