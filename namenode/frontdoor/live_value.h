#pragma once

#include <memory>
#include <utility>

#include "common/mutex.h"

namespace cairn::namenode {

// A value that is replaced as a whole while others use it: who asks gets the present one and keeps it as long as he likes. Thread-safe.
template <class T>
class LiveValue {
 public:
  explicit LiveValue(std::shared_ptr<const T> value) : value_(std::move(value)) {}

  std::shared_ptr<const T> Get() const ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    return value_;
  }
  void Set(std::shared_ptr<const T> value) ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    value_.swap(value);  // The old one goes after the lock, if this was its last user.
  }

 private:
  mutable Mutex mu_;
  std::shared_ptr<const T> value_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::namenode
