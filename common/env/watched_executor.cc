#include "common/env/watched_executor.h"

#include <utility>

namespace cairn {

Task WatchedExecutor::Watched(Task task) {
  return [this, task = std::move(task)]() mutable {
    seat_.Begin(executor_->clock().Now());
    task();
    seat_.End();
  };
}

}  // namespace cairn
