#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "cairn/namespace.pb.h"
#include "common/env/env.h"
#include "namenode/journal/journal.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

// THE writer of the namespace: queue -> batch -> Apply -> one synced commit -> publish the snapshot -> answer.
//
// One executor. Each turn takes what is queued (up to max_batch mutations or 256 KiB of effects), applies it to one transaction,
// commits it through the journal with one sync, publishes a read snapshot, and only then answers every waiter: nobody learns what
// a crash could undo. A bounded queue: when it is full, Submit answers kRetriable at once.
//
// A failed commit leaves durability unknown: the writer publishes and acknowledges nothing of that batch, goes read-only (every later
// Submit is kReadOnly with the cause) and logs one line. Submit is thread-safe.
class NamespaceWriter {
 public:
  struct Options {
    size_t max_batch = 256;
    size_t max_batch_bytes = 256 << 10;
    size_t max_queued = 16384;
  };
  using Done = absl::AnyInvocable<void(absl::StatusOr<v1::MutationResult>)>;
  // Called on the writer's executor after each commit, before the waiters are answered: mutations that acted with their results, in order.
  struct Applied {
    const v1::Mutation* mutation;
    const v1::MutationResult* result;
  };
  using Observer = absl::AnyInvocable<void(const std::vector<Applied>&)>;

  // All pointers outlive this.
  NamespaceWriter(Options options, MetaStore* store, Journal* journal, Executor* executor, const Clock* clock);
  ~NamespaceWriter();

  void SetObserver(Observer observer);  // Before the first Submit.
  // `done` gets the result, with a refusal turned into its Status; runs on the writer's executor. time_ms is set by the writer when 0.
  void Submit(v1::Mutation mutation, Done done);
  bool read_only() const;
  // Refuses new work, lets what is queued finish, then calls `then`.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::namenode
