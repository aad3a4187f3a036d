#include "namenode/replication_spreader.h"

#include <atomic>
#include <deque>
#include <optional>
#include <utility>

#include "common/mutex.h"
#include "common/status.h"
#include "namenode/background_loop.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {

struct ReplicationSpreader::State : std::enable_shared_from_this<ReplicationSpreader::State> {
  State(Options options_in, NamespaceAccess* space_in, Executor* executor_in)
      : options(options_in), space(space_in), executor(executor_in) {}

  const Options options;
  NamespaceAccess* const space;
  Executor* const executor;
  std::atomic<bool> kicked{false};

  // The executor's from here.
  std::deque<uint64_t> pending;
  uint64_t next_unseen = 0;  // Work ids below are known; ids only grow.
  bool in_flight = false;
  BackgroundLoop loop{executor};
  Stats figures;

  mutable Mutex mu;
  Stats published ABSL_GUARDED_BY(mu);

  void Run() {
    kicked.store(false);
    if (loop.stopping()) return;
    Find();
    Publish();
    if (!in_flight && !loop.pausing()) Step();
  }

  void Find() {
    if (pending.size() >= options.max_pending) return;
    const std::shared_ptr<const ReadView> view = space->Snapshot();
    const auto cursor = view->Scan(Family::kWork, WorkKey(next_unseen), "");
    for (; cursor->Valid() && pending.size() < options.max_pending; cursor->Next()) {
      const std::optional<uint64_t> id = ParseWorkKey(cursor->key());
      v1::WorkRecord work;
      // A damaged store: the writer will say so.
      if (!id || !work.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size()))) break;
      if (work.has_replication()) pending.push_back(*id);
      next_unseen = *id + 1;
    }
    IgnoreError(cursor->status(), "what could not be read is looked for again; the writer refuses to go on over damage");
  }

  void Step() {
    if (loop.stopping() || in_flight || pending.empty()) return;
    const uint64_t work = pending.front();
    pending.pop_front();
    in_flight = true;
    v1::Mutation mutation;
    mutation.mutable_spread_replication()->set_work_id(work);
    mutation.mutable_spread_replication()->set_max_blocks(options.blocks_per_step);
    space->Submit(std::move(mutation), [self = shared_from_this(), work](absl::StatusOr<v1::MutationResult> result) {
      self->executor->Post([self, work, result = std::move(result)] { self->Finish(work, result); });
    });
  }

  void Finish(uint64_t work, const absl::StatusOr<v1::MutationResult>& result) {
    in_flight = false;
    ++figures.steps;
    absl::Duration wait = options.pause;
    if (!result.ok()) {
      ++figures.failed_steps;
      wait = options.retry_delay;
      pending.push_back(work);
    } else {
      figures.blocks += result->next();
      if (result->done()) {
        ++figures.works_done;
      } else {
        pending.push_back(work);  // Behind the others: in turn.
      }
    }
    Publish();
    if (loop.Ended()) return;
    loop.RunAfter(wait, [self = shared_from_this()] { self->Run(); });
  }

  void Publish() {
    figures.pending = pending.size() + (in_flight ? 1 : 0);
    MutexLock lock(mu);
    published = figures;
  }
};

ReplicationSpreader::ReplicationSpreader(Options options, NamespaceAccess* space, Executor* executor)
    : state_(std::make_shared<State>(options, space, executor)) {}

ReplicationSpreader::~ReplicationSpreader() = default;

void ReplicationSpreader::Start() { Kick(); }

void ReplicationSpreader::Kick() {
  if (state_->kicked.exchange(true)) return;
  state_->executor->Post([state = state_] { state->Run(); });
}

ReplicationSpreader::Stats ReplicationSpreader::stats() const {
  MutexLock lock(state_->mu);
  return state_->published;
}

void ReplicationSpreader::Stop(absl::AnyInvocable<void()> then) {
  state_->executor->Post([state = state_, then = std::move(then)]() mutable { state->loop.Stop(state->in_flight, std::move(then)); });
}

}  // namespace cairn::namenode
