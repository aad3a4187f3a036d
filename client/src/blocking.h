#pragma once

// From a blocking call to a coroutine and back.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "common/env/env.h"
#include "common/error.h"
#include "common/task_group.h"

namespace cairn::client {

template <class T>
struct Completion {
  std::optional<T> value;  // Written on the executor before `done`, read by the caller after it.
  std::atomic<bool> done{false};
};

// Says "done" when it is destroyed, so that the caller also wakes if its coroutine never ran.
template <class T>
class CompletionSignal {
 public:
  CompletionSignal(Env* env, std::shared_ptr<Completion<T>> completion) : env_(env), completion_(std::move(completion)) {}
  ~CompletionSignal() {
    completion_->done.store(true, std::memory_order_release);
    env_->Wake();
  }
  CompletionSignal(const CompletionSignal&) = delete;
  CompletionSignal& operator=(const CompletionSignal&) = delete;
  void SetValue(T value) { completion_->value.emplace(std::move(value)); }

 private:
  Env* env_;
  std::shared_ptr<Completion<T>> completion_;
};

template <class T>
Awaitable<void> RunAndSignal(std::unique_ptr<CompletionSignal<T>> signal, absl::AnyInvocable<Awaitable<T>()> body) {
  T value = co_await body();
  signal->SetValue(std::move(value));
}

// Runs `body` in `group` and blocks the calling thread until it has ended. T is Status or StatusOr;
// kCancelled if the group was stopped before the body began. `body` may point into the caller's
// frame. Never from an executor's task.
template <class T>
T RunBlocking(Env* env, TaskGroup* group, std::string name, absl::AnyInvocable<Awaitable<T>()> body) {
  auto completion = std::make_shared<Completion<T>>();
  auto signal = std::make_unique<CompletionSignal<T>>(env, completion);
  group->Spawn(std::move(name), [signal = std::move(signal), body = std::move(body)]() mutable {
    return RunAndSignal<T>(std::move(signal), std::move(body));
  });
  env->BlockUntil([completion] { return completion->done.load(std::memory_order_acquire); }, SteadyTime::Infinite());
  if (!completion->value) return MakeError(ErrorKind::kCancelled, "the client was closed");
  return std::move(*completion->value);
}

// Stops `group` and blocks until nothing runs in it any more.
inline void StopBlocking(Env* env, TaskGroup* group) {
  auto stopped = std::make_shared<std::atomic<bool>>(false);
  group->StopAndThen([stopped, env] {
    stopped->store(true, std::memory_order_release);
    env->Wake();
  });
  env->BlockUntil([stopped] { return stopped->load(std::memory_order_acquire); }, SteadyTime::Infinite());
}

}  // namespace cairn::client
