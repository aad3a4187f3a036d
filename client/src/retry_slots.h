#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/executor_gate.h"
#include "client/src/scope.h"
#include "common/env/clock.h"
#include "common/env/wait.h"
#include "common/mutex.h"

namespace cairn::client {

// The retry slots of one client (docs/formats.md, "Retry ids"). A mutation holds a slot while it is
// under way; its (slot, sequence) stays the same over all its tries, so that the NameNode acts
// once. The NameNode keeps one row a slot, so slots bound its table.
//
// A slot carries the NameNode's time at its first use; a NameNode that has no row for an old slot
// refuses it (SLOT_EXPIRED), because it cannot know whether the row was dropped. Reopen() then
// starts the slot afresh with a higher sequence.
//
// Thread-safe. Calls beyond the number of slots wait in order, under their deadline.
class RetrySlots {
 public:
  static constexpr size_t kDefaultCount = 64;
  static constexpr size_t kMaxCount = 1024;

  RetrySlots(size_t count, std::shared_ptr<ExecutorGate> gate);

  // The right to use one slot for one mutation; gives it back when destroyed.
  class Lease {
   public:
    Lease(RetrySlots* slots, uint32_t slot) : slots_(slots), slot_(slot) {}
    ~Lease();
    Lease(Lease&& other) noexcept : slots_(other.slots_), slot_(other.slot_) { other.slots_ = nullptr; }
    Lease& operator=(Lease&&) = delete;

    uint32_t slot() const { return slot_; }
    uint64_t sequence() const;
    int64_t opened_ms() const;
    // Only if no try of this mutation can have reached the NameNode with an unknown outcome: takes
    // the next sequence and `now_ms`.
    void Reopen(int64_t now_ms);

   private:
    RetrySlots* slots_;
    uint32_t slot_;
  };

  // `now_ms`: the NameNode's time, for a slot that was never used. DEADLINE_EXCEEDED when all slots
  // stay taken, kCancelled.
  Awaitable<absl::StatusOr<Lease>> Take(Scope scope, int64_t now_ms, SteadyTime deadline);

  size_t waiting() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Slot {
    uint64_t sequence = 0;  // Of the last mutation.
    int64_t opened_ms = 0;
  };
  struct Waiter {
    explicit Waiter(Executor* on) : executor(on), ready(on) {}
    Executor* executor;
    Event ready;                   // Set on `executor`.
    std::optional<uint32_t> slot;  // Written before `ready`, under the lock.
  };

  // Gives the waiter a slot, or queues it (false).
  bool TakeOrQueue(const std::shared_ptr<Waiter>& waiter, int64_t now_ms) ABSL_LOCKS_EXCLUDED(mu_);
  // The slot that a waiter was given; else it waits no more.
  std::optional<uint32_t> LeaveQueue(const std::shared_ptr<Waiter>& waiter) ABSL_LOCKS_EXCLUDED(mu_);
  uint32_t Begin(uint32_t slot, int64_t now_ms) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(uint32_t slot) ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<ExecutorGate> gate_;
  mutable Mutex mu_;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mu_);
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mu_);  // The lowest are used most, so few rows exist on the NameNode.
  std::deque<std::shared_ptr<Waiter>> waiters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::client
