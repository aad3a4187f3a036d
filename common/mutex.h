#pragma once

// Locks with clang's thread-safety annotations. std::mutex inside, because Debian's Abseil is not built with the thread
// sanitizer and would be reported as racy everywhere; Abseil's annotation macros outside.
//
// A Mutex is held for memory operations only. Whatever may block (file system, network, RPC) calls AssertMayBlock(), which
// aborts if this thread holds any Mutex: a slow disk must never stand behind a lock.

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace cairn {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  void Unlock() ABSL_UNLOCK_FUNCTION();

 private:
  friend class CondVar;
  std::mutex mu_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// Only for threads that have nothing else to do (executors, a blocking client call). Wakes may be spurious: wait in a loop.
class CondVar {
 public:
  void Wait(Mutex& mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // False when `timeout` passed first.
  bool WaitFor(Mutex& mu, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable_any cv_;
};

// Aborts if the calling thread holds a Mutex.
void AssertMayBlock(const char* what);

}  // namespace cairn
