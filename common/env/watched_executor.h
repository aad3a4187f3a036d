#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/env/executor.h"
#include "common/env/watchdog.h"

namespace cairn {

// An executor each of whose tasks is a step for the watchdog. For tasks only: what coroutines do on it by asio() is not seen.
class WatchedExecutor final : public Executor {
 public:
  // `watchdog` outlives this.
  WatchedExecutor(std::unique_ptr<Executor> executor, Watchdog* watchdog, std::string lane)
      : seat_(watchdog, std::move(lane)), executor_(std::move(executor)) {}

  void Post(Task task) override { executor_->Post(Watched(std::move(task))); }
  TimerId PostAt(SteadyTime when, Task task) override { return executor_->PostAt(when, Watched(std::move(task))); }
  void CancelTimer(TimerId id) override { executor_->CancelTimer(id); }
  bool IsCurrent() const override { return executor_->IsCurrent(); }
  const Clock& clock() const override { return executor_->clock(); }
  const boost::asio::any_io_executor& asio() const override { return executor_->asio(); }
  size_t QueueDepth() const override { return executor_->QueueDepth(); }
  absl::Duration OldestAge() const override { return executor_->OldestAge(); }

 private:
  Task Watched(Task task);

  Watchdog::Seat seat_;
  const std::unique_ptr<Executor> executor_;  // Last: its end waits for the task that runs.
};

}  // namespace cairn
