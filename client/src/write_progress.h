#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "common/env/env.h"
#include "common/mutex.h"

namespace cairn::client {

// How far a writer has come: set by its executor, read by the thread that appends. Thread-safe.
class WriteProgress {
 public:
  explicit WriteProgress(Env* env) : env_(env) {}

  // Bytes handed over and not acknowledged by the whole pipeline.
  uint64_t pending_bytes() const { return pending_bytes_.load(); }
  void AddPending(uint64_t bytes) { pending_bytes_.fetch_add(bytes, std::memory_order_acq_rel); }
  void RemovePending(uint64_t bytes) {
    // Sequentially consistent, as in AwaitRoom: either this sees the waiter, or the waiter sees the room.
    pending_bytes_.fetch_sub(bytes);
    if (waiting_.load()) env_->Wake();
  }

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // The first error stays for ever. OK: nothing happened yet.
  absl::Status error() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return error_;
  }
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      MutexLock lock(mu_);
      if (!error_.ok()) return;
      error_ = status;
    }
    ended_.store(true, std::memory_order_release);
    env_->Wake();
  }

  // Blocks until `bytes` more fit into `window`, or an error ends the writer.
  void AwaitRoom(uint64_t bytes, uint64_t window) {
    if (Fits(bytes, window) || ended()) return;
    waiting_.store(true);
    env_->BlockUntil([this, bytes, window] { return Fits(bytes, window) || ended(); }, SteadyTime::Infinite());
    waiting_.store(false, std::memory_order_release);
  }
  // A packet larger than the window goes alone.
  bool Fits(uint64_t bytes, uint64_t window) const {
    const uint64_t pending = pending_bytes();
    return pending == 0 || pending + bytes <= window;
  }

 private:
  Env* const env_;
  std::atomic<uint64_t> pending_bytes_{0};
  std::atomic<bool> waiting_{false};
  std::atomic<bool> ended_{false};
  mutable Mutex mu_;
  absl::Status error_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::client
