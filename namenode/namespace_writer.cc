#include "namenode/namespace_writer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/check.h"
#include "common/error.h"
#include "common/fault_points.h"
#include "common/mutex.h"
#include "common/status.h"

namespace cairn::namenode {
namespace {

struct Pending {
  v1::Mutation mutation;
  NamespaceWriter::Done done;
  SteadyTime queued_at;
  absl::StatusOr<v1::MutationResult> result = absl::InternalError("not applied");
  bool acted = false;
  uint64_t rows = 0;
};
using Group = std::vector<std::unique_ptr<Pending>>;  // Moved about often, and large.

}  // namespace

struct NamespaceWriter::Impl : std::enable_shared_from_this<Impl> {
  Impl(Options opts, MetaStore* s, Journal* j, Executor* e, const Clock* c, ApplyFunction f)
      : options(opts), store(s), journal(j), executor(e), clock(c), apply(std::move(f)), gather_ns(absl::ToInt64Nanoseconds(opts.gather)) {}

  void Submit(v1::Mutation mutation, Done done) ABSL_LOCKS_EXCLUDED(mu);
  void ScheduleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void Turn() ABSL_LOCKS_EXCLUDED(mu);
  bool Gathers() ABSL_LOCKS_EXCLUDED(mu);
  std::unique_ptr<Pending> TakeOne() ABSL_LOCKS_EXCLUDED(mu);
  absl::Status ApplyOne(Pending& pending, StoreTransaction& txn);
  void Committed(Group group, const CommitSample& sample, const absl::Status& status);
  void Answer(Group group);
  void EnterReadOnly(const absl::Status& cause, Group group, const absl::Status& answer) ABSL_LOCKS_EXCLUDED(mu);
  void Resume() ABSL_LOCKS_EXCLUDED(mu);
  void Observe(const Group& group);
  void AfterTurn() ABSL_LOCKS_EXCLUDED(mu);

  const Options options;
  MetaStore* const store;
  Journal* const journal;
  Executor* const executor;
  const Clock* const clock;
  const ApplyFunction apply;

  mutable Mutex mu;
  std::deque<std::unique_ptr<Pending>> queue ABSL_GUARDED_BY(mu);
  bool scheduled ABSL_GUARDED_BY(mu) = false;  // A turn is posted.
  bool closed ABSL_GUARDED_BY(mu) = false;     // The writer is gone; a posted turn may still come.
  bool stopping ABSL_GUARDED_BY(mu) = false;
  size_t wanted ABSL_GUARDED_BY(mu) = 0;  // A turn waits until so many are queued; 0: none does.
  absl::AnyInvocable<void()> on_stopped ABSL_GUARDED_BY(mu);
  std::optional<absl::Status> refusal ABSL_GUARDED_BY(mu);  // Set: read-only, and what to answer.
  absl::Status failure ABSL_GUARDED_BY(mu);                 // Of which it is read-only.
  absl::Status hold ABSL_GUARDED_BY(mu);                    // Read-only because somebody else says so.

  // Writer's executor only; the observers are set before the first Submit.
  bool committing = false;
  Group suspects;  // Of a batch whose outcome is unknown, which has this index.
  uint64_t suspect_index = 0;
  Executor::TimerId gather_timer = 0;
  size_t company = 0;  // Of the last commit: mutations in it, and those that waited when it ended.
  Observer observer;
  CommitObserver commit_observer;

  std::atomic<int64_t> gather_ns;
  std::atomic<uint64_t> batches{0};
  std::atomic<uint64_t> mutations{0};
  std::atomic<uint64_t> acted{0};
  std::atomic<uint64_t> refused{0};
  std::atomic<int64_t> reclaim_ns{0};
};

void NamespaceWriter::Impl::Submit(v1::Mutation mutation, Done done) {
  const size_t bytes = mutation.ByteSizeLong();
  auto pending = std::make_unique<Pending>();
  pending->mutation = std::move(mutation);
  pending->done = std::move(done);
  pending->queued_at = clock->Now();
  std::optional<absl::Status> answer;
  if (bytes > options.max_mutation_bytes) {
    answer = MakeError(ErrorKind::kInvalidArgument,
                       fmt::format("a change of {} bytes; one may have {}: ask for less at a time", bytes, options.max_mutation_bytes));
  } else {
    const MutexLock lock(mu);
    if (refusal) {
      answer = *refusal;
    } else if (!hold.ok()) {
      answer = hold;
    } else if (stopping) {
      answer = MakeError(ErrorKind::kRetriable, "the NameNode is stopping");
    } else if (queue.size() >= options.max_queued) {
      answer = MakeError(ErrorKind::kRetriable, fmt::format("{} changes are waiting already; try again", queue.size()));
    } else {
      queue.push_back(std::move(pending));
      ScheduleLocked();
    }
  }
  if (answer) {
    // On the executor, as every answer. It was moved only where there is no answer yet.
    // NOLINTNEXTLINE(bugprone-use-after-move)
    executor->Post([pending = std::move(pending), status = *std::move(answer)]() mutable { pending->done(std::move(status)); });
  }
}

void NamespaceWriter::Impl::ScheduleLocked() {
  if (scheduled || (queue.size() < wanted && !stopping)) return;
  wanted = 0;
  scheduled = true;
  executor->Post([self = shared_from_this()] { self->Turn(); });
}

// True if this turn is put off: another comes when enough are queued, or the first has waited long enough.
bool NamespaceWriter::Impl::Gathers() {
  const size_t enough = std::min(company / 2, options.max_batch);
  const absl::Duration gather = absl::Nanoseconds(gather_ns.load(std::memory_order_relaxed));
  if (gather <= absl::ZeroDuration() || enough <= 1) return false;
  const SteadyTime now = clock->Now();
  SteadyTime until;
  {
    const MutexLock lock(mu);
    if (stopping || queue.empty() || queue.size() >= enough) return false;
    until = queue.front()->queued_at + gather;
    if (until <= now) return false;
    wanted = enough;
  }
  executor->CancelTimer(gather_timer);
  gather_timer = executor->PostAt(until, [self = shared_from_this()] {
    {
      const MutexLock lock(self->mu);
      if (self->wanted == 0) return;  // Enough have come: their turn is posted.
      self->wanted = 0;
    }
    self->Turn();
  });
  return true;
}

std::unique_ptr<Pending> NamespaceWriter::Impl::TakeOne() {
  const MutexLock lock(mu);
  if (queue.empty()) return nullptr;
  std::unique_ptr<Pending> first = std::move(queue.front());
  queue.pop_front();
  return first;
}

void NamespaceWriter::Impl::Turn() {
  {
    const MutexLock lock(mu);
    scheduled = false;
    if (closed) return;
  }
  if (committing) return;  // The end of that commit comes back here.
  if (Gathers()) return;
  const std::unique_ptr<StoreTransaction> txn = store->NewTransaction();
  Group group;
  while (group.size() < options.max_batch && txn->ApproximateBytes() < options.max_batch_bytes) {
    std::unique_ptr<Pending> pending = TakeOne();
    if (pending == nullptr) break;
    group.push_back(std::move(pending));
    if (const absl::Status status = ApplyOne(*group.back(), *txn); !status.ok())
      return EnterReadOnly(status, std::move(group),
                           MakeError(ErrorKind::kReadOnly, fmt::format("not done: {}", std::string(status.message()))));
  }
  if (txn->writes() == 0) {
    // Refusals and repeats only: they say what is committed already.
    Answer(std::move(group));
    return AfterTurn();
  }
  EffectBatch batch = txn->TakeEffects();
  CommitSample sample{.mutations = group.size(), .bytes = batch.bytes.size(), .commit_time = absl::ZeroDuration()};
  committing = true;
  const SteadyTime begun = clock->Now();
  journal->Commit(std::move(batch),
                  [self = shared_from_this(), group = std::move(group), sample, begun](const absl::Status& status) mutable {
                    sample.commit_time = self->clock->Now() - begun;
                    self->Committed(std::move(group), sample, status);
                  });
}

absl::Status NamespaceWriter::Impl::ApplyOne(Pending& pending, StoreTransaction& txn) {
  if (pending.mutation.time_ms() == 0) pending.mutation.set_time_ms(absl::ToUnixMillis(clock->WallNow()));
  const uint64_t writes = txn.writes();
  const bool reclaim = pending.mutation.has_reclaim_step();
  const SteadyTime begun = reclaim ? clock->Now() : SteadyTime();
  pending.result = apply(pending.mutation, txn);
  if (reclaim) reclaim_ns.fetch_add(absl::ToInt64Nanoseconds(clock->Now() - begun), std::memory_order_relaxed);
  if (!pending.result.ok()) return pending.result.status();
  pending.rows = txn.writes() - writes;
  pending.acted = pending.rows != 0;
  CAIRN_CHECK(!(pending.acted && pending.result->has_error()), "a refused mutation has written");
  return absl::OkStatus();
}

void NamespaceWriter::Impl::Committed(Group group, const CommitSample& sample, const absl::Status& status) {
  committing = false;
  if (!status.ok()) {
    suspect_index = store->applied_index() + 1;
    return EnterReadOnly(status, std::move(group),
                         absl::UnavailableError(fmt::format("outcome unknown: {}", std::string(status.message()))));
  }
  store->Publish();
  {
    const MutexLock lock(mu);
    company = group.size() + queue.size();
  }
  batches.fetch_add(1, std::memory_order_relaxed);
  if (commit_observer) commit_observer(sample);
  Observe(group);
  if (const absl::Status lost = FaultPoint("namespace_writer.before_answer"); lost.ok()) {
    Answer(std::move(group));
  } else {
    // As if the answers were lost on the way: done, but nobody knows.
    for (const auto& pending : group) pending->done(absl::UnavailableError(std::string(lost.message())));
  }
  AfterTurn();
}

void NamespaceWriter::Impl::Observe(const Group& group) {
  if (!observer) return;
  std::vector<Applied> applied;
  for (const auto& pending : group)
    if (pending->acted) applied.push_back({&pending->mutation, &*pending->result, pending->rows});
  observer(applied);
}

void NamespaceWriter::Impl::Answer(Group group) {
  for (const std::unique_ptr<Pending>& pending : group) {
    const bool is_refused = pending->result->has_error();
    mutations.fetch_add(1, std::memory_order_relaxed);
    if (pending->acted) acted.fetch_add(1, std::memory_order_relaxed);
    if (is_refused) refused.fetch_add(1, std::memory_order_relaxed);
    if (is_refused) {
      pending->done(FromDetail(pending->result->error()));
    } else {
      pending->done(std::move(pending->result));
    }
  }
}

void NamespaceWriter::Impl::EnterReadOnly(const absl::Status& cause, Group group, const absl::Status& answer) {
  spdlog::critical("the namespace takes no more changes until {}: {}",
                   KindOf(cause) == ErrorKind::kDiskFull ? "there is room on its disk" : "this NameNode is restarted",
                   std::string(cause.message()));
  const absl::Status read_only_status =
      MakeError(ErrorKind::kReadOnly, fmt::format("the namespace takes no changes since: {}", std::string(cause.message())));
  std::deque<std::unique_ptr<Pending>> waiting;
  {
    const MutexLock lock(mu);
    refusal = read_only_status;
    failure = cause;
    waiting.swap(queue);
  }
  for (const auto& pending : group) pending->done(answer);
  for (const auto& pending : waiting) pending->done(read_only_status);
  suspects = std::move(group);
  AfterTurn();
}

void NamespaceWriter::Impl::Resume() {
  const Group unknown = std::exchange(suspects, {});
  if (suspect_index != 0 && store->applied_index() >= suspect_index) Observe(unknown);
  suspect_index = 0;
  const MutexLock lock(mu);
  refusal.reset();
  failure = absl::OkStatus();
}

void NamespaceWriter::Impl::AfterTurn() {
  absl::AnyInvocable<void()> then;
  {
    const MutexLock lock(mu);
    if (!queue.empty()) {
      ScheduleLocked();
    } else if (stopping) {
      then = std::move(on_stopped);
      on_stopped = nullptr;
    }
  }
  if (then) then();
}

NamespaceWriter::NamespaceWriter(Options options, MetaStore* store, Journal* journal, Executor* executor, const Clock* clock,
                                 ApplyFunction apply)
    : impl_(std::make_shared<Impl>(options, store, journal, executor, clock, std::move(apply))) {}

NamespaceWriter::~NamespaceWriter() {
  const MutexLock lock(impl_->mu);
  impl_->closed = true;
}

void NamespaceWriter::SetObserver(Observer observer) { impl_->observer = std::move(observer); }

void NamespaceWriter::SetCommitObserver(CommitObserver observer) { impl_->commit_observer = std::move(observer); }

void NamespaceWriter::Submit(v1::Mutation mutation, Done done) { impl_->Submit(std::move(mutation), std::move(done)); }

void NamespaceWriter::SetGather(absl::Duration gather) {
  impl_->gather_ns.store(absl::ToInt64Nanoseconds(gather), std::memory_order_relaxed);
}

bool NamespaceWriter::read_only() const {
  const MutexLock lock(impl_->mu);
  return impl_->refusal.has_value() || !impl_->hold.ok();
}

absl::Status NamespaceWriter::failure() const {
  const MutexLock lock(impl_->mu);
  return impl_->failure;
}

void NamespaceWriter::Hold(absl::Status refusal) {
  const MutexLock lock(impl_->mu);
  impl_->hold = std::move(refusal);
}

void NamespaceWriter::Fail(const absl::Status& cause) {
  if (!impl_->committing && failure().ok()) impl_->EnterReadOnly(cause, {}, cause);
}

void NamespaceWriter::Resume() { impl_->Resume(); }

NamespaceWriter::Stats NamespaceWriter::stats() const {
  Stats stats;
  stats.batches = impl_->batches.load(std::memory_order_relaxed);
  stats.mutations = impl_->mutations.load(std::memory_order_relaxed);
  stats.acted = impl_->acted.load(std::memory_order_relaxed);
  stats.refused = impl_->refused.load(std::memory_order_relaxed);
  stats.reclaim_time = absl::Nanoseconds(impl_->reclaim_ns.load(std::memory_order_relaxed));
  const SteadyTime now = impl_->clock->Now();
  const MutexLock lock(impl_->mu);
  stats.queued = impl_->queue.size();
  if (!impl_->queue.empty()) stats.oldest_age = now - impl_->queue.front()->queued_at;
  return stats;
}

void NamespaceWriter::Stop(absl::AnyInvocable<void()> then) {
  const MutexLock lock(impl_->mu);
  CAIRN_CHECK(!impl_->stopping, "the namespace writer was stopped twice");
  impl_->stopping = true;
  impl_->on_stopped = std::move(then);
  impl_->ScheduleLocked();  // A turn with nothing to do calls it.
}

}  // namespace cairn::namenode
