#include "namenode/reclaimer.h"

#include <atomic>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/status.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {

struct Reclaimer::State : std::enable_shared_from_this<Reclaimer::State> {
  struct Work {
    uint64_t id = 0;
    SteadyTime found;
  };

  State(Options options_in, NamespaceAccess* space_in, Executor* executor_in)
      : options(options_in), space(space_in), executor(executor_in) {}

  const Options options;
  NamespaceAccess* const space;
  Executor* const executor;
  std::atomic<bool> kicked{false};

  // The executor's from here.
  std::deque<Work> pending;
  std::deque<Work> in_flight;
  uint64_t next_unseen = 0;  // Work ids below are known; ids only grow.
  bool started = false;
  bool stopping = false;
  Executor::TimerId timer = 0;
  SteadyTime timer_at;
  absl::AnyInvocable<void()> then;

  mutable Mutex mu;
  Stats published ABSL_GUARDED_BY(mu);

  Stats figures;  // The executor's; copied to `published` after each turn.

  void Run() {
    kicked.store(false);
    if (stopping) return;
    Find();
    while (in_flight.size() < options.steps_in_flight && !pending.empty()) {
      in_flight.push_back(pending.front());
      pending.pop_front();
      Step(in_flight.back());
    }
    // Idle: look again by and by.
    if (in_flight.empty() && timer == 0) RunAt(executor->clock().Now() + options.poll_interval);
    Publish();
  }

  void RunAt(SteadyTime when) {
    if (stopping) return;
    if (timer != 0) {
      if (timer_at <= when) return;
      executor->CancelTimer(timer);
    }
    timer_at = when;
    timer = executor->PostAt(when, [self = shared_from_this()] {
      self->timer = 0;
      self->Run();
    });
  }

  void Find() {
    if (pending.size() >= options.max_pending) return;
    const std::shared_ptr<const ReadView> view = space->Snapshot();
    const auto cursor = view->Scan(Family::kWork, WorkKey(next_unseen), "");
    figures.more = false;
    for (; cursor->Valid(); cursor->Next()) {
      if (pending.size() >= options.max_pending) {
        figures.more = true;
        break;
      }
      const std::optional<uint64_t> id = ParseWorkKey(cursor->key());
      if (!id) break;  // A damaged store: the writer will say so.
      pending.push_back(Work{*id, executor->clock().Now()});
      next_unseen = *id + 1;
    }
    IgnoreError(cursor->status(), "what could not be read is looked for again; the writer refuses to go on over damage");
  }

  void Step(Work work) {
    v1::Mutation mutation;
    mutation.mutable_reclaim_step()->set_work_id(work.id);
    mutation.mutable_reclaim_step()->set_max_entries(options.entries_per_step);
    space->Submit(std::move(mutation), [self = shared_from_this(), work](absl::StatusOr<v1::MutationResult> result) {
      self->executor->Post([self, work, result = std::move(result)] { self->Finish(work, result); });
    });
  }

  void Finish(const Work& work, const absl::StatusOr<v1::MutationResult>& result) {
    std::erase_if(in_flight, [&](const Work& other) { return other.id == work.id; });
    ++figures.steps;
    absl::Duration wait = options.pause;
    if (!result.ok()) {
      ++figures.failed_steps;
      wait = options.retry_delay;
      pending.push_back(work);
    } else {
      figures.entries_freed += result->next();
      figures.blocks_freed += static_cast<uint64_t>(result->freed_size());
      if (result->done()) {
        ++figures.works_done;
      } else {
        pending.push_back(work);  // Behind the others: in turn.
      }
    }
    Publish();
    if (stopping) {
      if (in_flight.empty() && then) std::exchange(then, nullptr)();
      return;
    }
    RunAt(executor->clock().Now() + wait);
  }

  void Publish() {
    figures.pending = pending.size() + in_flight.size();
    SteadyTime oldest = executor->clock().Now();
    for (const std::deque<Work>* works : {&pending, &in_flight})
      for (const Work& work : *works) oldest = std::min(oldest, work.found);
    figures.oldest_age = executor->clock().Now() - oldest;
    MutexLock lock(mu);
    published = figures;
  }
};

Reclaimer::Reclaimer(Options options, NamespaceAccess* space, Executor* executor)
    : state_(std::make_shared<State>(options, space, executor)) {}

Reclaimer::~Reclaimer() = default;

void Reclaimer::Start() { Kick(); }

void Reclaimer::Kick() {
  if (state_->kicked.exchange(true)) return;
  state_->executor->Post([state = state_] { state->Run(); });
}

Reclaimer::Stats Reclaimer::stats() const {
  MutexLock lock(state_->mu);
  return state_->published;
}

void Reclaimer::Stop(absl::AnyInvocable<void()> then) {
  state_->executor->Post([state = state_, then = std::move(then)]() mutable {
    state->stopping = true;
    if (state->timer != 0) state->executor->CancelTimer(state->timer);
    if (state->in_flight.empty()) return then();
    state->then = std::move(then);
  });
}

}  // namespace cairn::namenode
