#pragma once

#include <utility>

#include "common/env/executor.h"
#include "common/mutex.h"

namespace cairn::client {

// Stands between callbacks that may come late (an answer after its deadline) and executors that may
// be gone by then: after Close() tasks are dropped. Thread-safe; shared by the client and every
// callback it gave away.
class ExecutorGate {
 public:
  void Post(Executor* executor, Task task) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (!closed_) executor->Post(std::move(task));
  }
  void Close() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    closed_ = true;
  }

 private:
  Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace cairn::client
