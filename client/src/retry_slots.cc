#include "client/src/retry_slots.h"

#include <algorithm>

#include "common/error.h"

namespace cairn::client {

RetrySlots::RetrySlots(size_t count, std::shared_ptr<ExecutorGate> gate) : gate_(std::move(gate)) {
  count = std::clamp<size_t>(count, 1, kMaxCount);
  MutexLock lock(mu_);
  slots_.resize(count);
  for (size_t i = count; i > 0; --i) free_.push_back(static_cast<uint32_t>(i - 1));
}

uint32_t RetrySlots::Begin(uint32_t slot, int64_t now_ms) {
  Slot& state = slots_[slot];
  if (state.sequence == 0) state.opened_ms = now_ms;
  ++state.sequence;
  return slot;
}

bool RetrySlots::TakeOrQueue(const std::shared_ptr<Waiter>& waiter, int64_t now_ms) {
  MutexLock lock(mu_);
  if (free_.empty()) {
    waiters_.push_back(waiter);
    return false;
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  waiter->slot = Begin(slot, now_ms);
  return true;
}

std::optional<uint32_t> RetrySlots::LeaveQueue(const std::shared_ptr<Waiter>& waiter) {
  MutexLock lock(mu_);
  if (!waiter->slot) std::erase(waiters_, waiter);
  return waiter->slot;
}

Awaitable<absl::StatusOr<RetrySlots::Lease>> RetrySlots::Take(Scope scope, int64_t now_ms, SteadyTime deadline) {
  const auto waiter = std::make_shared<Waiter>(scope.executor);
  if (!TakeOrQueue(waiter, now_ms)) {
    const auto hook = scope.group->OnStop([w = waiter.get()] { w->ready.Set(); });
    const bool in_time = co_await waiter->ready.Wait(deadline);
    static_cast<void>(in_time);
  }
  // Also after the deadline: the slot may have been given to us just then.
  if (const std::optional<uint32_t> slot = LeaveQueue(waiter)) co_return Lease(this, *slot);
  if (scope.group->stopping()) co_return MakeError(ErrorKind::kCancelled, "cancelled while waiting for a retry slot");
  co_return absl::DeadlineExceededError("every retry slot stayed taken: too many calls at once");
}

void RetrySlots::Release(uint32_t slot) {
  std::shared_ptr<Waiter> next;
  {
    MutexLock lock(mu_);
    if (waiters_.empty()) {
      free_.push_back(slot);
      return;
    }
    next = std::move(waiters_.front());
    waiters_.pop_front();
    next->slot = Begin(slot, slots_[slot].opened_ms);
  }
  std::weak_ptr<Waiter> weak = next;
  Executor* executor = next->executor;
  gate_->Post(executor, [weak] {
    if (const auto waiter = weak.lock()) waiter->ready.Set();
  });
}

size_t RetrySlots::waiting() const {
  MutexLock lock(mu_);
  return waiters_.size();
}

RetrySlots::Lease::~Lease() {
  if (slots_ != nullptr) slots_->Release(slot_);
}

uint64_t RetrySlots::Lease::sequence() const {
  MutexLock lock(slots_->mu_);
  return slots_->slots_[slot_].sequence;
}

int64_t RetrySlots::Lease::opened_ms() const {
  MutexLock lock(slots_->mu_);
  return slots_->slots_[slot_].opened_ms;
}

void RetrySlots::Lease::Reopen(int64_t now_ms) {
  MutexLock lock(slots_->mu_);
  Slot& state = slots_->slots_[slot_];
  ++state.sequence;
  state.opened_ms = now_ms;
}

}  // namespace cairn::client
