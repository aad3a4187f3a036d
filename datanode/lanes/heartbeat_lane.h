#pragma once

#include <atomic>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "common/api/datanode_namenode.h"
#include "common/env/watchdog.h"
#include "datanode/lanes/seams.h"

namespace cairn::datanode {

// Tells the NameNode every few seconds that this DataNode lives, and how it fares. Nothing else: no commands, no replicas, no disk.
//
// Heartbeats leave by an absolute schedule, whether or not the ones before were answered, so a slow answer delays none; a bounded number is
// under way. What answers bring is handed on to the registration lane.
// Calls from any thread; everything else on its executor, which must be gone (after Close) before this is.
class HeartbeatLane {
 public:
  struct Options {
    absl::Duration interval = absl::Seconds(3);  // dfs.heartbeat.interval.
    absl::Duration answer_deadline = absl::Seconds(10);
  };
  // Fills what the DataNode knows of itself: counters only, it must not block.
  using Fill = absl::AnyInvocable<void(v1::HeartbeatRequest*)>;

  HeartbeatLane(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode, Fill fill,
                RegistrationRequests* registration, Watchdog* watchdog);

  // Before Start: called, on the executor, with each answer's word on the balancer's bandwidth.
  void SetBandwidthObserver(absl::AnyInvocable<void(uint64_t bytes_per_second)> observer) { on_bandwidth_ = std::move(observer); }
  // The same with each answer's word on whether this node is slow; with false also when answers fail to come.
  void SetSlowObserver(absl::AnyInvocable<void(bool slow)> observer) { on_slow_ = std::move(observer); }
  // The first heartbeat leaves at once. Later calls only change the interval (zero: as it is).
  void Start(absl::Duration interval);
  void Close() { mailbox_->Close(); }

  uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  uint64_t answered() const { return answered_.load(std::memory_order_relaxed); }
  // Since the NameNode last answered one; infinite if it never has.
  absl::Duration since_answer() const;
  absl::Duration last_interval() const { return absl::Milliseconds(last_interval_ms_.load(std::memory_order_relaxed)); }

 private:
  static constexpr size_t kMaxUnderWay = 4;
  static constexpr int kSlowFor = 3;  // Intervals without an answer, after which a node that was told that it is slow is so no more.

  void Tick();
  void Send();
  void HoldAnswer(absl::StatusOr<v1::HeartbeatResponse> answer);
  void OnAnswer(absl::StatusOr<v1::HeartbeatResponse> answer);

  const Options options_;
  const LaneIdentity identity_;
  Executor* const executor_;
  api::DatanodeNamenode* const namenode_;
  const std::shared_ptr<LaneMailbox> mailbox_;
  RegistrationRequests* const registration_;
  Watchdog* const watchdog_;
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> answered_{0};
  std::atomic<int64_t> last_interval_ms_{0};
  std::atomic<int64_t> answered_at_ns_{-1};  // Since the clock's start.
  // Of the executor.
  Fill fill_;
  absl::AnyInvocable<void(uint64_t)> on_bandwidth_;
  absl::AnyInvocable<void(bool)> on_slow_;
  absl::Duration interval_;
  bool started_ = false;
  SteadyTime next_;
  SteadyTime last_sent_;
  size_t under_way_ = 0;
};

}  // namespace cairn::datanode
