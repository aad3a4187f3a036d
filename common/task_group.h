#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/env/executor.h"
#include "common/env/network.h"
#include "common/env/wait.h"

namespace cairn {

// The only way to start a coroutine. Owns a set of them on one executor: an exception ends the process with its text
// (co_spawn's `detached` would swallow it), Stop() asks all to end, Join() waits until they have. What coroutines point to must outlive
// the group's Join.
//
// All calls on the group's executor, except that Spawn, Stop and StopAndThen may come from any thread.
class TaskGroup {
 public:
  explicit TaskGroup(Executor* executor);
  ~TaskGroup();  // CHECKs that nothing runs.
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts `body` on the executor. `name` is for messages. After Stop the body is not started.
  void Spawn(std::string name, absl::AnyInvocable<Awaitable<void>()> body);

  // Runs `on_stop` (on the executor) when Stop is called, at once if it was: close a connection, set an event. The
  // returned object takes the hook back when destroyed.
  class StopHook {
   public:
    virtual ~StopHook() = default;
  };
  std::unique_ptr<StopHook> OnStop(absl::AnyInvocable<void()> on_stop);

  void Stop();
  bool stopping() const;   // On the executor.
  size_t running() const;  // On the executor.
  Awaitable<void> Join();
  // From any thread: Stop, and call `then` on the executor once nothing runs.
  void StopAndThen(absl::AnyInvocable<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn
