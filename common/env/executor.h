#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/env/clock.h"

namespace boost::asio {
class any_io_executor;
}

namespace cairn {

using Task = absl::AnyInvocable<void()>;

// Where work can be handed to. Thread-safe.
class TaskQueue {
 public:
  virtual ~TaskQueue() = default;
  virtual void Post(Task task) = 0;
};

// Runs tasks one after another, in the order they were posted: a thread of its own in production, a task queue in
// simulation. State that only one executor's tasks touch needs no lock.
//
// Thread-safe. Tasks may post and may block only on executors meant for it (disk executors, the NameNode's writer).
// After Stop() of a production executor nothing that is posted runs; tasks already queued are destroyed unrun.
class Executor : public TaskQueue {
 public:
  using TimerId = uint64_t;

  // Runs `task` at `when` or soon after. The id is never 0.
  virtual TimerId PostAt(SteadyTime when, Task task) = 0;
  // The task will not run, unless it runs or ran already. Unknown ids are ignored.
  virtual void CancelTimer(TimerId id) = 0;
  // True inside one of its tasks (in simulation: always).
  virtual bool IsCurrent() const = 0;
  virtual const Clock& clock() const = 0;
  // For coroutines; include <boost/asio/any_io_executor.hpp> to use it.
  virtual const boost::asio::any_io_executor& asio() const = 0;

  // Tasks waiting to run, and how long the oldest has waited; for metrics.
  virtual size_t QueueDepth() const = 0;
  virtual absl::Duration OldestAge() const = 0;
};

// Makes executors. Thread-safe. The executor's destructor waits for the running task to end, so never destroy it from one of its own
// tasks; `name` (at most 15 bytes) becomes the thread's name.
class ExecutorFactory {
 public:
  virtual ~ExecutorFactory() = default;
  virtual std::unique_ptr<Executor> NewExecutor(const std::string& name) = 0;
  // For work that nobody waits for: while the process has more to do than processors, it gets about a tenth of one (nice 10).
  virtual std::unique_ptr<Executor> NewBackgroundExecutor(const std::string& name) { return NewExecutor(name); }
};

}  // namespace cairn
