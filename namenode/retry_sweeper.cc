#include "namenode/retry_sweeper.h"

#include <atomic>
#include <string>
#include <utility>

#include "namenode/background_loop.h"

namespace cairn::namenode {

struct RetrySweeper::State : std::enable_shared_from_this<RetrySweeper::State> {
  State(Options options_in, NamespaceAccess* space_in, Executor* executor_in)
      : options(options_in), space(space_in), executor(executor_in) {}

  const Options options;
  NamespaceAccess* const space;
  Executor* const executor;
  std::atomic<uint64_t> dropped{0};

  // The executor's from here.
  std::string start_after;
  bool in_flight = false;
  BackgroundLoop loop{executor};

  void RunAfter(absl::Duration wait) {
    loop.RunAfter(wait, [self = shared_from_this()] { self->Step(); });
  }

  void Step() {
    if (loop.stopping()) return;
    v1::Mutation mutation;
    v1::Mutation::SweepRetries& op = *mutation.mutable_sweep_retries();
    op.set_unused_since_ms(absl::ToUnixMillis(executor->clock().WallNow() - options.unused));
    op.set_max_rows(options.rows_per_step);
    op.set_start_after(start_after);
    in_flight = true;
    space->Submit(std::move(mutation), [self = shared_from_this()](absl::StatusOr<v1::MutationResult> result) {
      self->executor->Post([self, result = std::move(result)] { self->Finish(result); });
    });
  }

  void Finish(const absl::StatusOr<v1::MutationResult>& result) {
    in_flight = false;
    if (result.ok()) {
      dropped += result->next();
      start_after = result->cursor();
    }
    if (loop.Ended()) return;
    RunAfter(result.ok() && !result->done() ? options.pause : options.interval);
  }
};

RetrySweeper::RetrySweeper(Options options, NamespaceAccess* space, Executor* executor)
    : state_(std::make_shared<State>(options, space, executor)) {}

RetrySweeper::~RetrySweeper() = default;

void RetrySweeper::Start() {
  state_->executor->Post([state = state_] {
    if (!state->loop.stopping()) state->RunAfter(state->options.interval);
  });
}

uint64_t RetrySweeper::rows_dropped() const { return state_->dropped.load(); }

void RetrySweeper::Stop(absl::AnyInvocable<void()> then) {
  state_->executor->Post([state = state_, then = std::move(then)]() mutable { state->loop.Stop(state->in_flight, std::move(then)); });
}

}  // namespace cairn::namenode
