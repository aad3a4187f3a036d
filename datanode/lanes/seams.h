#pragma once

// datanode/lanes: what a DataNode says to one NameNode, in four lanes, each with its own executor, channel, queue and timers, so that none
// ever waits for another: a heartbeat is on time while reports pile up, a close is reported while a million blocks are deleted.
//
// Lanes share nothing but what this header lists:
// - the replica map's shards and the numbering of the event log (datanode/storage): locks held for memory operations only;
// - LaneMailbox: how other threads hand a task to a lane;
// - EpochFence: one number;
// - RegistrationRequests: what the other lanes ask of the registration lane, which alone writes VERSION.

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "common/env/executor.h"
#include "common/ids.h"
#include "common/mutex.h"

namespace cairn::datanode {

// Who speaks.
struct LaneIdentity {
  std::string datanode_uuid;
  Incarnation incarnation;
};

// The way into a lane's executor that outlives it: answers and streams end when they like. Thread-safe.
class LaneMailbox {
 public:
  explicit LaneMailbox(Executor* executor) : executor_(executor) {}
  // Dropped after Close.
  void Post(Task task) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (executor_ != nullptr) executor_->Post(std::move(task));
  }
  // Before the executor goes.
  void Close() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    executor_ = nullptr;
  }

 private:
  Mutex mu_;
  Executor* executor_ ABSL_GUARDED_BY(mu_);
};

// The highest epoch whose mark this process has numbered, or is about to: commands of lower ones are void. Thread-safe.
class EpochFence {
 public:
  Epoch current() const { return Epoch(current_.load(std::memory_order_acquire)); }
  void Raise(Epoch epoch) {
    uint64_t before = current_.load(std::memory_order_relaxed);
    while (before < epoch.value() && !current_.compare_exchange_weak(before, epoch.value(), std::memory_order_acq_rel)) {
    }
  }

 private:
  std::atomic<uint64_t> current_{0};
};

// Any thread; never blocks.
class RegistrationRequests {
 public:
  virtual ~RegistrationRequests() = default;
  virtual void RegisterAgain(std::string why) = 0;
  virtual void MeetEpoch(Epoch epoch) = 0;
  virtual void HearIds(BlockId next_block, GenerationStamp next_stamp) = 0;
  virtual void NeedKey(uint32_t key_id) = 0;  // A block token key that is newer than those it has.
};

}  // namespace cairn::datanode
