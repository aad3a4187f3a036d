#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "cairn/datanode_namenode.pb.h"
#include "common/env/clock.h"
#include "common/mutex.h"

namespace cairn::datanode {

// The events of this DataNode's replicas, numbered from 1, in one sequence over all storages: what the report stream sends strictly by
// number. An event takes its number in the same critical section that changes the replica map (the caller holds the
// shard's lock; this lock comes after it), so the order of numbers is the order of changes.
//
// Kept until the NameNode says durable. Bounded: beyond max_kept or max_bytes the oldest go, and the NameNode, asking for a number that is
// gone, gets a walk instead. Thread-safe; memory only.
class EventLog {
 public:
  // `max_bytes` as sent; in memory they are a few times that.
  explicit EventLog(const Clock* clock, size_t max_kept = 1 << 20, size_t max_bytes = 64 << 20);

  uint64_t Append(v1::ReportEvent event) ABSL_LOCKS_EXCLUDED(mu_);  // Sets and returns the number.
  // Two that only make sense together: no slice, and so no message, has one of them without the other. The NameNode applies a message at
  // once. Returns the second's number.
  uint64_t AppendTogether(v1::ReportEvent first, v1::ReportEvent second) ABSL_LOCKS_EXCLUDED(mu_);
  // STORAGE_STATE_CHANGED; as Append.
  uint64_t AppendState(const std::string& storage_uuid, v1::StorageState state) ABSL_LOCKS_EXCLUDED(mu_);
  // Events from `number` on, at most `max_count` and about `max_bytes`; `gone` is set if that number is not kept any more.
  struct Slice {
    std::vector<v1::ReportEvent> events;
    bool gone = false;
  };
  Slice From(uint64_t number, size_t max_count, size_t max_bytes) const ABSL_LOCKS_EXCLUDED(mu_);
  void ForgetUpTo(uint64_t durable) ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t first_kept() const ABSL_LOCKS_EXCLUDED(mu_);  // last() + 1 when none is kept.
  uint64_t last() const ABSL_LOCKS_EXCLUDED(mu_);
  // Called (any thread, no lock held... by Append's caller's thread, shard lock possibly held) after an append: only posts. Set once,
  // before use.
  void SetWake(absl::AnyInvocable<void()> wake) ABSL_LOCKS_EXCLUDED(mu_);
  size_t kept() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Duration OldestAge() const ABSL_LOCKS_EXCLUDED(mu_);
  // How long ago the event took its number; nothing if it is not kept.
  std::optional<absl::Duration> AgeOf(uint64_t number) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Kept {
    v1::ReportEvent event;
    SteadyTime at;
    size_t bytes;
    bool with_next;
  };
  void AppendLocked(v1::ReportEvent event, bool with_next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TrimLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropOldestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  const size_t max_kept_;
  const size_t max_bytes_;
  mutable Mutex mu_;
  std::deque<Kept> events_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  absl::AnyInvocable<void()> wake_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::datanode
