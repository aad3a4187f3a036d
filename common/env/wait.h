#pragma once

// How coroutines wait: on an Event, for a time, for a callback, for work on another executor. Everything here belongs to one
// executor and needs no lock. Built on Event, which is the only thing that touches Asio (wait.cc).

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/clock.h"
#include "common/env/executor.h"
#include "common/env/network.h"

namespace cairn {

// A flag that coroutines of one executor wait for. Set() and Wait() are called on that executor only.
// Must outlive its waiters; Set() wakes all of them through the executor's queue, in the order they came.
class Event {
 public:
  explicit Event(Executor* executor);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void Set();  // Stays set until Reset.
  void Reset();
  bool is_set() const;
  // True once set, false when `deadline` passed first.
  Awaitable<bool> Wait(SteadyTime deadline);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Resumes on the same executor at `when`.
Awaitable<void> SleepUntil(Executor* executor, SteadyTime when);

// Runs `work` (returns T, default constructible or StatusOr/Status) on `there` and resumes on `here` with its result. The coroutine always
// waits for the work to end, so `work` may point into the awaiting frame.
template <class T>
Awaitable<T> RunOn(Executor* here, Executor* there, absl::AnyInvocable<T()> work) {
  Event done(here);
  std::optional<T> result;
  there->Post([&] {
    result.emplace(work());
    here->Post([&] { done.Set(); });
  });
  const bool was_set = co_await done.Wait(SteadyTime::Infinite());
  static_cast<void>(was_set);
  co_return std::move(*result);
}

// Adapts a callback API: `start` gets a callback, which may be called once from any thread, also before start returns. A callback that
// is destroyed uncalled, or one that comes after the deadline, is harmless; then the result is DEADLINE_EXCEEDED.
template <class T>
Awaitable<absl::StatusOr<T>> AwaitCallback(Executor* here, SteadyTime deadline,
                                           absl::AnyInvocable<void(absl::AnyInvocable<void(absl::StatusOr<T>)>)> start) {
  struct Shared {
    explicit Shared(Executor* executor) : done(executor) {}
    Event done;
    std::optional<absl::StatusOr<T>> result;
  };
  auto shared = std::make_shared<Shared>(here);
  start([shared, here](absl::StatusOr<T> result) {
    here->Post([shared, result = std::move(result)]() mutable {
      shared->result.emplace(std::move(result));
      shared->done.Set();
    });
  });
  const bool in_time = co_await shared->done.Wait(deadline);
  if (!in_time || !shared->result) co_return absl::DeadlineExceededError("no answer before the deadline");
  co_return std::move(*shared->result);
}

// A bounded queue between coroutines of one executor.
template <class T>
class Channel {
 public:
  Channel(Executor* executor, size_t capacity) : changed_(executor), capacity_(capacity) {}

  // False when closed or `deadline` passed; then `item` is lost.
  Awaitable<bool> Push(T item, SteadyTime deadline) {
    while (!closed_ && items_.size() >= capacity_) {
      changed_.Reset();
      const bool in_time = co_await changed_.Wait(deadline);
      if (!in_time) co_return false;
    }
    if (closed_) co_return false;
    items_.push_back(std::move(item));
    changed_.Set();
    co_return true;
  }
  // Nothing when closed and empty, or when `deadline` passed.
  Awaitable<std::optional<T>> Pop(SteadyTime deadline) {
    while (items_.empty() && !closed_) {
      changed_.Reset();
      const bool in_time = co_await changed_.Wait(deadline);
      if (!in_time) co_return std::nullopt;
    }
    if (items_.empty()) co_return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    changed_.Set();
    co_return item;
  }
  void Close() {
    closed_ = true;
    changed_.Set();
  }
  bool closed() const { return closed_; }
  size_t size() const { return items_.size(); }

 private:
  Event changed_;
  size_t capacity_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace cairn
