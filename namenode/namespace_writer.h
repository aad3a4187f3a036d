#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "cairn/namespace.pb.h"
#include "common/env/env.h"
#include "namenode/journal/journal.h"
#include "namenode/namespace/apply.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

// THE writer of the namespace: queue -> batch -> Apply -> one synced commit -> publish the snapshot -> answer.
//
// One executor. Each turn takes what is queued (up to max_batch mutations or 256 KiB of effects), applies it to one transaction,
// commits it through the journal with one sync, publishes a read snapshot, and only then answers every waiter: nobody learns what
// a crash could undo. A bounded queue: when it is full, Submit answers kRetriable at once.
//
// A commit costs as much CPU as some mutations, whatever it holds. So a turn that finds few waits for more, `gather` at most, if the last
// batch shows that more are on their way: half of those that were answered or waiting then. A lone caller never waits.
//
// A failed commit leaves durability unknown: the writer publishes and acknowledges nothing of that batch (its waiters get
// UNAVAILABLE without a kind: outcome unknown), goes read-only (every later Submit is kReadOnly with the cause) and logs one
// line. The same when Apply cannot read the store, but then nothing of the batch was written, so its waiters get kReadOnly too.
// Resume, after the store was brought back, is the way out.
//
// Submit, SetGather, stats, read_only, failure and Hold are thread-safe. Destroy it after Stop has called back, or when the executor runs
// nothing any more.
class NamespaceWriter {
 public:
  struct Options {
    size_t max_batch = 256;
    size_t max_batch_bytes = 256 << 10;
    absl::Duration gather = absl::ZeroDuration();  // Longest wait of a mutation for others to share its sync.
    size_t max_queued = 16384;
    size_t max_mutation_bytes = 1 << 20;  // A longer one is refused: it could not be carried by a replicated journal.
  };
  using ApplyFunction = std::function<absl::StatusOr<v1::MutationResult>(const v1::Mutation&, Transaction&)>;
  using Done = absl::AnyInvocable<void(absl::StatusOr<v1::MutationResult>)>;
  // Called on the writer's executor after each commit, before the waiters are answered: mutations that acted with their results, in order.
  struct Applied {
    const v1::Mutation* mutation;
    const v1::MutationResult* result;
    uint64_t rows;  // Written by it; what it shares with others of its batch is counted for each.
  };
  using Observer = absl::AnyInvocable<void(const std::vector<Applied>&)>;

  // For metrics.
  struct CommitSample {
    size_t mutations = 0;  // Of the batch, refused ones and repeats included.
    size_t bytes = 0;      // Of its effects.
    absl::Duration commit_time;
  };
  using CommitObserver = absl::AnyInvocable<void(const CommitSample&)>;
  struct Stats {
    uint64_t batches = 0;    // Committed.
    uint64_t mutations = 0;  // Answered after being applied.
    uint64_t acted = 0;      // Of these: changed something.
    uint64_t refused = 0;    // Of these: answered with an error.
    size_t queued = 0;
    absl::Duration oldest_age;  // Of what is queued; 0 when nothing is.
    // Spent on applying steps of the reclaimer, which fits the size of its steps to it.
    absl::Duration reclaim_time;
  };

  // All pointers outlive this.
  NamespaceWriter(Options options, MetaStore* store, Journal* journal, Executor* executor, const Clock* clock)
      : NamespaceWriter(options, store, journal, executor, clock, &Apply) {}
  // With another function instead of the namespace's Apply.
  NamespaceWriter(Options options, MetaStore* store, Journal* journal, Executor* executor, const Clock* clock, ApplyFunction apply);
  ~NamespaceWriter();
  NamespaceWriter(const NamespaceWriter&) = delete;
  NamespaceWriter& operator=(const NamespaceWriter&) = delete;

  // Before the first Submit. Both are called on the writer's executor, after a commit.
  void SetObserver(Observer observer);
  void SetCommitObserver(CommitObserver observer);
  // `done` gets the result, with a refusal turned into its Status; runs on the writer's executor. time_ms is set by the writer when 0.
  void Submit(v1::Mutation mutation, Done done);
  void SetGather(absl::Duration gather);  // Instead of options.gather, from now on.
  bool read_only() const;                 // Failed or held.
  // Why it went read-only by itself; OK if it has not.
  absl::Status failure() const;
  // Answers new changes with `refusal` from now on (those queued go on), until it is called with OK.
  void Hold(absl::Status refusal);
  // Goes read-only for a failure that was noticed elsewhere: of the store's background work. Writer's executor; nothing while a commit is
  // under way, which will see it itself.
  void Fail(const absl::Status& cause);
  // Takes changes again: the store stands after its last whole batch. If that is the one whose outcome was unknown, the observer is told of
  // it now. Writer's executor.
  void Resume();
  Stats stats() const;
  // Refuses new work (kRetriable), lets what is queued finish, then calls `then`.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // Shared with the tasks it posts.
};

}  // namespace cairn::namenode
