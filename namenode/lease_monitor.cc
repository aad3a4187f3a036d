#include "namenode/lease_monitor.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {

struct LeaseMonitor::State : std::enable_shared_from_this<LeaseMonitor::State> {
  State(Options options_in, NamespaceAccess* space_in, Executor* executor_in)
      : options(options_in), space(space_in), executor(executor_in), started_at(executor_in->clock().Now()) {}

  const Options options;
  NamespaceAccess* const space;
  Executor* const executor;
  const SteadyTime started_at;

  mutable Mutex mu;
  std::map<std::string, SteadyTime, std::less<>> renewed ABSL_GUARDED_BY(mu);
  Stats published ABSL_GUARDED_BY(mu);

  // The executor's from here.
  std::string next_key;  // Where the walk goes on; empty: from the start.
  uint64_t rows_seen = 0;
  uint64_t needing_recovery = 0;
  size_t in_flight = 0;
  bool stopping = false;
  Executor::TimerId timer = 0;
  absl::AnyInvocable<void()> then;

  void RunAt(SteadyTime when) {
    if (stopping) return;
    timer = executor->PostAt(when, [self = shared_from_this()] {
      self->timer = 0;
      self->Page();
    });
  }

  absl::Duration IdleOf(std::string_view holder) {
    MutexLock lock(mu);
    const auto found = renewed.find(holder);
    return executor->clock().Now() - (found == renewed.end() ? started_at : found->second);
  }

  // One page of the walk. Its expiries are answered before the next begins, so that the queue of the writer holds one page at most.
  void Page() {
    if (stopping) return;
    std::vector<v1::Mutation> expired;
    bool more = false;
    {
      const std::shared_ptr<const ReadView> view = space->Snapshot();
      const auto cursor = view->Scan(Family::kLease, next_key, "");
      size_t rows = 0;
      for (; cursor->Valid(); cursor->Next()) {
        if (rows++ == options.rows_per_page) {
          next_key = std::string(cursor->key());
          more = true;
          break;
        }
        ++rows_seen;
        const std::optional<LeaseKeyParts> lease = ParseLeaseKey(cursor->key());
        if (!lease) continue;
        const absl::Duration idle = IdleOf(lease->holder);
        if (idle < options.hard_limit) continue;
        v1::Mutation& mutation = expired.emplace_back();
        mutation.mutable_expire_lease()->set_holder(std::string(lease->holder));
        mutation.mutable_expire_lease()->set_inode_id(lease->id.value());
        mutation.mutable_expire_lease()->set_observed_idle_ms(absl::ToInt64Milliseconds(idle));
      }
      IgnoreError(cursor->status(), "what could not be read is walked again; the writer refuses to go on over damage");
    }
    if (!more) EndWalk();
    in_flight = expired.size();
    for (v1::Mutation& mutation : expired) {
      space->Submit(std::move(mutation), [self = shared_from_this()](const absl::StatusOr<v1::MutationResult>& result) {
        const bool closed = result.ok() && result->done();
        const bool waits = ReasonOf(result.status()) == "NEEDS_RECOVERY";
        self->executor->Post([self, closed, waits] { self->Finish(closed, waits); });
      });
    }
    if (in_flight == 0) GoOn();
  }

  void Finish(bool closed, bool waits) {
    {
      MutexLock lock(mu);
      if (closed) ++published.expired;
      // After the last page the walk has ended already: its expiries belong to it all the same.
      if (waits && next_key.empty()) ++published.needing_recovery;
    }
    if (waits && !next_key.empty()) ++needing_recovery;
    if (--in_flight > 0) return;
    if (stopping) {
      if (then) std::exchange(then, nullptr)();
      return;
    }
    GoOn();
  }

  void GoOn() { RunAt(executor->clock().Now() + (next_key.empty() ? options.check_interval : absl::ZeroDuration())); }

  void EndWalk() {
    const SteadyTime now = executor->clock().Now();
    next_key.clear();
    MutexLock lock(mu);
    // A holder that is forgotten counts as silent since the start, which is longer still.
    std::erase_if(renewed, [&](const auto& item) { return now - item.second >= options.hard_limit; });
    published.holders = renewed.size();
    published.leases = std::exchange(rows_seen, 0);
    published.needing_recovery = std::exchange(needing_recovery, 0);
  }
};

LeaseMonitor::LeaseMonitor(Options options, NamespaceAccess* space, Executor* executor)
    : state_(std::make_shared<State>(options, space, executor)) {}

LeaseMonitor::~LeaseMonitor() = default;

void LeaseMonitor::Start() {
  state_->executor->Post([state = state_] { state->GoOn(); });
}

absl::Status LeaseMonitor::Renew(const std::string& holder) {
  if (holder.empty() || holder.size() > kMaxHolderBytes)
    return MakeError(ErrorKind::kInvalidArgument, "a lease is renewed under the client's name, which is missing or too long");
  const SteadyTime now = state_->executor->clock().Now();
  MutexLock lock(state_->mu);
  const auto found = state_->renewed.find(holder);
  if (found != state_->renewed.end()) {
    found->second = now;
    return absl::OkStatus();
  }
  if (state_->renewed.size() >= state_->options.max_holders)
    return MakeError(ErrorKind::kBusy, "too many clients hold leases on this NameNode");
  state_->renewed.emplace(holder, now);
  state_->published.holders = state_->renewed.size();
  return absl::OkStatus();
}

LeaseMonitor::Stats LeaseMonitor::stats() const {
  MutexLock lock(state_->mu);
  return state_->published;
}

void LeaseMonitor::Stop(absl::AnyInvocable<void()> then) {
  state_->executor->Post([state = state_, then = std::move(then)]() mutable {
    state->stopping = true;
    if (state->timer != 0) state->executor->CancelTimer(state->timer);
    if (state->in_flight == 0) return then();
    state->then = std::move(then);
  });
}

}  // namespace cairn::namenode
