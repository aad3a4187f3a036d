#include "namenode/reclaimer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/status.h"
#include "namenode/namespace/records.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

constexpr uint32_t kFirstEntries = 128;  // Of the first step: nothing is known yet of how long one takes.
constexpr uint32_t kLeastEntries = 16;
constexpr size_t kWorksPerStep = 256;
constexpr size_t kRowsPerLook = 10'000;   // Looked at in one turn, so that a step never waits long for it.
constexpr uint64_t kStepsPerSecond = 20;  // At a bounded pace: small steps often, not a large one now and then.

// What was freed in each of the last ten seconds.
class Rate {
 public:
  void Add(SteadyTime now, uint64_t count) {
    Forget(now);
    counts_[static_cast<size_t>(second_) % counts_.size()] += count;
  }
  double PerSecond(SteadyTime now) {
    Forget(now);
    uint64_t sum = 0;
    for (const uint64_t count : counts_) sum += count;
    return static_cast<double>(sum) / static_cast<double>(counts_.size());
  }

 private:
  void Forget(SteadyTime now) {
    const int64_t second = absl::ToInt64Seconds(now.since_start());
    const int64_t passed = std::min<int64_t>(second - second_, static_cast<int64_t>(counts_.size()));
    for (int64_t i = 1; i <= passed; ++i) counts_[static_cast<size_t>(second_ + i) % counts_.size()] = 0;
    second_ = std::max(second_, second);
  }

  std::array<uint64_t, 10> counts_{};
  int64_t second_ = 0;
};

// How many entries the next step may have.
class StepSize {
 public:
  explicit StepSize(uint32_t most) : most_(std::max(most, 1u)), entries_(std::min(kFirstEntries, most_)) {}

  uint32_t entries() const { return entries_; }

  // A step of up to entries() has freed `handled` and took `took` of the writer's time.
  void Adapt(uint32_t handled, absl::Duration took, absl::Duration wanted) {
    if (took > wanted) {
      const double fits = static_cast<double>(entries_) * absl::FDivDuration(wanted, took);
      entries_ = std::max(std::min(kLeastEntries, most_), static_cast<uint32_t>(fits));
    } else if (handled >= entries_ / 2 && took < wanted * 0.7) {
      entries_ = std::min(most_, entries_ + entries_ / 4 + 1);
    }
  }

 private:
  const uint32_t most_;
  uint32_t entries_;
};

}  // namespace

struct Reclaimer::State : std::enable_shared_from_this<Reclaimer::State> {
  struct Work {
    uint64_t id = 0;
    uint64_t left_inodes = 0;
    uint64_t left_bytes = 0;
    int64_t created_ms = 0;
    SteadyTime seen;  // In this process: a restart is no reason for haste.
  };

  State(Options options_in, NamespaceAccess* space_in, Executor* executor_in)
      : options(options_in), space(space_in), executor(executor_in), size(options_in.entries_per_step) {}

  const Options options;
  NamespaceAccess* const space;
  Executor* const executor;
  std::atomic<bool> kicked{false};

  // The executor's from here.
  std::deque<Work> pending;     // In turn.
  std::vector<Work> in_flight;  // Of the step under way, in its order.
  uint64_t next_uncounted = 0;  // Work ids below it are in the figures; ids only grow.
  uint64_t next_unheld = 0;     // Work ids below it are, or were, in `pending`. At most next_uncounted.
  v1::ReclaimControl control;   // Followed.
  v1::ReclaimControl asked;     // What an operator wants, kept or on its way.
  StepSize size;
  NamespaceWriter::Stats writer_before;  // When the last step ended.
  SteadyTime not_before;                 // Of the next step.
  bool started = false;
  bool stopping = false;
  Executor::TimerId timer = 0;
  SteadyTime timer_at;
  absl::AnyInvocable<void()> then;
  Stats figures;  // Copied to `published` after each turn.

  mutable Mutex mu;
  Stats published ABSL_GUARDED_BY(mu);
  std::optional<int64_t> oldest_created_ms ABSL_GUARDED_BY(mu);
  Rate rate ABSL_GUARDED_BY(mu);

  void Start() {
    const auto kept = FindRecord<v1::ReclaimControl>(*space->Snapshot(), Family::kMeta, kMetaReclaimControl);
    if (kept.ok() && *kept) control = asked = **kept;
    started = true;
    Run();
  }

  void Run() {
    kicked.store(false);
    if (!started || stopping) return;
    Look();
    const SteadyTime now = executor->clock().Now();
    const bool may_step = in_flight.empty() && !pending.empty() && !control.paused();
    if (may_step && now >= not_before) {
      Step();
    } else if (in_flight.empty()) {
      RunAt(may_step ? not_before : now + options.poll_interval);
    }
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

  // Counts works that are new, and holds as many as there is room for.
  void Look() {
    const bool has_room = pending.size() < options.max_pending;
    uint64_t next = has_room ? next_unheld : next_uncounted;
    const std::shared_ptr<const ReadView> view = space->Snapshot();
    const auto cursor = view->Scan(Family::kWork, WorkKey(next), "");
    size_t rows = 0;
    for (; cursor->Valid() && rows < kRowsPerLook; cursor->Next(), ++rows) {
      const std::optional<uint64_t> id = ParseWorkKey(cursor->key());
      v1::WorkRecord record;
      if (!id || !record.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size())))
        return;  // A damaged store: the writer will say so.
      const bool is_new = *id >= next_uncounted;
      if (is_new) next_uncounted = *id + 1;
      const v1::ReclaimWork& reclaim = record.reclaim();
      const bool ours = record.has_reclaim();
      if (is_new && ours) {
        ++figures.works;
        figures.left_inodes += reclaim.left_inodes();
        figures.left_bytes += reclaim.left_bytes();
      }
      // In the order of their ids, without a gap: only as long as all before it are held, too.
      if (has_room && pending.size() < options.max_pending) {
        if (ours) pending.push_back(Work{*id, reclaim.left_inodes(), reclaim.left_bytes(), record.created_ms(), executor->clock().Now()});
        next_unheld = *id + 1;
      } else if (!is_new) {
        break;  // Counted before, and no room: nothing to learn here.
      }
    }
    IgnoreError(cursor->status(), "what could not be read is looked for again; the writer refuses to go on over damage");
    if (rows == kRowsPerLook) Again();
  }

  void Again() {
    if (!kicked.exchange(true)) executor->Post([self = shared_from_this()] { self->Run(); });
  }

  void Step() {
    uint32_t entries = size.entries();
    if (control.entries_per_second() != 0)
      entries = static_cast<uint32_t>(std::clamp<uint64_t>(control.entries_per_second() / kStepsPerSecond, 1, entries));
    v1::Mutation mutation;
    v1::Mutation::ReclaimStep& step = *mutation.mutable_reclaim_step();
    step.set_max_entries(entries);
    // Small works go together; what is too much after all is left for the next step.
    for (uint64_t sum = 0; !pending.empty() && sum < entries && in_flight.size() < kWorksPerStep;) {
      const Work& work = pending.front();
      sum += 2 * std::max<uint64_t>(work.left_inodes, 1);  // A file has a block, as a rule.
      if (in_flight.empty()) {
        step.set_work_id(work.id);
      } else {
        step.add_more_work_ids(work.id);
      }
      in_flight.push_back(work);
      pending.pop_front();
    }
    space->Submit(std::move(mutation), [self = shared_from_this()](absl::StatusOr<v1::MutationResult> result) {
      self->executor->Post([self, result = std::move(result)] { self->Finish(result); });
    });
  }

  void Finish(const absl::StatusOr<v1::MutationResult>& result) {
    const std::vector<Work> works = std::exchange(in_flight, {});
    const SteadyTime now = executor->clock().Now();
    ++figures.steps;
    if (!result.ok()) {
      ++figures.failed_steps;
      pending.insert(pending.end(), works.begin(), works.end());
      WaitAnew();
      not_before = now + options.retry_delay;
    } else {
      Account(works, *result, now);
      not_before = now + WaitAfter(*result);
    }
    Publish();
    if (stopping) {
      if (then) std::exchange(then, nullptr)();
      return;
    }
    RunAt(not_before);
  }

  void Account(const std::vector<Work>& works, const v1::MutationResult& result, SteadyTime now) {
    const auto reached = static_cast<size_t>(result.reclaimed_size());
    for (size_t i = 0; i < works.size() && i < reached; ++i) {
      const v1::ReclaimProgress& progress = result.reclaimed(static_cast<int>(i));
      Work work = works[i];
      Lower(figures.left_inodes, work.left_inodes, progress.left_inodes());
      Lower(figures.left_bytes, work.left_bytes, progress.left_bytes());
      work.left_inodes = progress.left_inodes();
      work.left_bytes = progress.left_bytes();
      if (progress.done()) {
        ++figures.works_done;
        figures.works -= std::min<uint64_t>(figures.works, 1);
      } else {
        pending.push_back(work);  // Behind the others: in turn.
      }
    }
    // Those that the step did not come to stay in front.
    for (size_t i = works.size(); i > reached; --i) pending.push_front(works[i - 1]);
    figures.entries_freed += result.next();
    figures.blocks_freed += static_cast<uint64_t>(result.freed_size());
    const MutexLock lock(mu);
    rate.Add(now, result.next());
  }

  static void Lower(uint64_t& total, uint64_t before, uint64_t after) { total -= std::min(total, before - std::min(before, after)); }

  // Fits the size of the next step, and says how long to leave the writer to others.
  absl::Duration WaitAfter(const v1::MutationResult& result) {
    const NamespaceWriter::Stats writer = space->WriterStats();
    const absl::Duration took = writer.reclaim_time - writer_before.reclaim_time;
    const bool others = writer.queued > 0 || writer.mutations > writer_before.mutations + 1;
    writer_before = writer;
    size.Adapt(result.next(), took, others ? options.step_time / 2 : options.step_time);
    absl::Duration wait = options.pause;
    if (others) wait = std::clamp(options.yielding.PauseAfter(took, OldestWait()), wait, std::max(wait, options.longest_pause));
    if (control.entries_per_second() != 0)
      wait = std::max(wait, absl::Seconds(static_cast<double>(result.next()) / static_cast<double>(control.entries_per_second())));
    return wait;
  }

  // Of those held.
  absl::Duration OldestWait() const {
    const SteadyTime now = executor->clock().Now();
    SteadyTime oldest = now;
    for (const Work& work : pending) oldest = std::min(oldest, work.seen);
    return now - oldest;
  }

  // What could not be freed for a while, as in a pause or safe mode, is not in a hurry afterwards.
  void WaitAnew() {
    for (Work& work : pending) work.seen = executor->clock().Now();
  }

  using Told = absl::AnyInvocable<void(absl::Status)>;

  // Keeps what an operator says, then follows it.
  void FollowAsked(Told done) {
    v1::Mutation mutation;
    mutation.mutable_set_meta()->set_name(std::string(kMetaReclaimControl));
    mutation.mutable_set_meta()->set_value(asked.SerializeAsString());
    auto answer = [self = shared_from_this(), kept = asked, done = std::move(done)](absl::StatusOr<v1::MutationResult> result) mutable {
      Executor* const background = self->executor;
      background->Post([self = std::move(self), kept = std::move(kept), done = std::move(done), status = result.status()]() mutable {
        self->Follow(kept, status);
        done(std::move(status));
      });
    };
    space->Submit(std::move(mutation), std::move(answer));
  }

  void Follow(const v1::ReclaimControl& kept, const absl::Status& status) {
    if (!status.ok()) {
      asked = control;
      return;
    }
    if (control.paused() && !kept.paused()) WaitAnew();
    control = kept;
    not_before = executor->clock().Now();
    Run();
    Publish();  // Also before the start, when Run does nothing.
  }

  void Publish() {
    figures.paused = control.paused();
    figures.pace = control.entries_per_second();
    std::optional<int64_t> oldest;
    const auto look = [&oldest](const auto& works) {
      for (const Work& work : works) oldest = oldest ? std::min(*oldest, work.created_ms) : work.created_ms;
    };
    look(pending);
    look(in_flight);
    const MutexLock lock(mu);
    published = figures;
    oldest_created_ms = oldest;
  }
};

Reclaimer::Reclaimer(Options options, NamespaceAccess* space, Executor* executor)
    : state_(std::make_shared<State>(options, space, executor)) {}

Reclaimer::~Reclaimer() = default;

void Reclaimer::Start() {
  state_->executor->Post([state = state_] { state->Start(); });
}

void Reclaimer::Kick() { state_->Again(); }

Reclaimer::Stats Reclaimer::stats() const {
  const Clock& clock = state_->executor->clock();
  const SteadyTime now = clock.Now();
  const int64_t wall_ms = absl::ToUnixMillis(clock.WallNow());
  const MutexLock lock(state_->mu);
  Stats stats = state_->published;
  stats.entries_per_second = state_->rate.PerSecond(now);
  if (state_->oldest_created_ms) stats.oldest_age = absl::Milliseconds(std::max<int64_t>(0, wall_ms - *state_->oldest_created_ms));
  return stats;
}

void Reclaimer::SetPaused(bool paused, absl::AnyInvocable<void(absl::Status)> done) {
  state_->executor->Post([state = state_, paused, done = std::move(done)]() mutable {
    state->asked.set_paused(paused);
    state->FollowAsked(std::move(done));
  });
}

void Reclaimer::SetPace(uint64_t entries_per_second, absl::AnyInvocable<void(absl::Status)> done) {
  state_->executor->Post([state = state_, entries_per_second, done = std::move(done)]() mutable {
    state->asked.set_entries_per_second(entries_per_second);
    state->FollowAsked(std::move(done));
  });
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
