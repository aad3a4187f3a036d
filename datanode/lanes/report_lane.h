#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/api/datanode_namenode.h"
#include "common/env/watchdog.h"
#include "datanode/lanes/backoff.h"
#include "datanode/lanes/seams.h"
#include "datanode/storage/block_store.h"
#include "datanode/storage/event_log.h"

namespace cairn::datanode {

// The ordered report stream: sends the event log strictly by number, and walks.
//
// A stream begins with Hello; the NameNode answers Resume (it has everything before that number) or Walk (it does not, or it wants a full
// report). An event leaves as soon as it is appended, but those of the next `gather` after a message share one: nobody waits for a report,
// and a message costs both sides much more than an event in it. What the NameNode has durably is forgotten.
// A walk states a storage's replicas range by range, downward; its ranges are events like all others. At most max_unapplied_ranges are
// numbered and unapplied, so a slow NameNode slows the walk and nothing else; an expansion it asks for is stated before the next range. No
// more than that are under way either: after a NameNode has lost its last seconds, the ranges of those wait for one another too.
// A storage walks once at a time: a request during a walk makes it go round once more.
//
// A broken stream is opened again after a short back-off, a rejected one after up to five minutes.
// Calls from any thread; everything else on its executor, which must be gone (after Close) before this is.
class ReportLane {
 public:
  struct Options {
    size_t max_events = 1000;  // A message's bound.
    size_t max_bytes = 64 << 10;
    size_t max_queued_messages = 4;                  // In the sink.
    absl::Duration gather = absl::Milliseconds(10);  // cairn.datanode.report.gather. Not during a walk, which waits for its answers.
    size_t max_unapplied_ranges = 8;
    absl::Duration range_interval = absl::ZeroDuration();  // Pace of a walk that the NameNode asked for.
    absl::Duration periodic_range_interval = absl::Milliseconds(50);
    absl::Duration walk_period = absl::Hours(6);
    absl::Duration greeting_deadline = absl::Seconds(30);
    absl::Duration first_retry = absl::Seconds(1);
    absl::Duration last_retry = absl::Minutes(5);       // After rejections.
    absl::Duration last_reconnect = absl::Seconds(10);  // After broken streams.
  };

  ReportLane(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode, BlockStore* store,
             EventLog* events, Random random, RegistrationRequests* registration, Watchdog* watchdog);
  ~ReportLane();

  // Told, of each answer, how long the oldest event that it covers took to be applied. On the executor; set before Start.
  void SetLatencyObserver(std::function<void(absl::Duration)> observe) { observe_ = std::move(observe); }

  void Start();  // Once registered. Later calls: opens a waiting stream at once.
  void Close();
  // Walks a storage that was added, or has come back, unasked. Any thread.
  void WalkStorage(const std::string& storage_uuid);

  uint64_t messages_sent() const { return messages_sent_.load(std::memory_order_relaxed); }
  uint64_t walks_done() const { return walks_done_.load(std::memory_order_relaxed); }
  // The number up to which the NameNode has said that it applied the events.
  uint64_t applied() const { return applied_.load(std::memory_order_relaxed); }
  bool streaming() const { return streaming_.load(std::memory_order_relaxed); }

 private:
  class Handler;
  struct Walk {
    std::string storage_uuid;
    uint64_t end_id = 0;
    uint64_t number = 0;
    bool again = false;  // Asked for while it was under way.
    bool periodic = false;
  };

  void Open();
  void Reopen(absl::Duration delay);
  void OnDown(uint64_t stream, v1::ReportDown message);
  void OnApplied(uint64_t applied);
  void OnClosed(uint64_t stream, const absl::Status& status);
  void OnWalk(const v1::ReportDown::Walk& walk);
  void OnRejection(const v1::ReportDown::Rejection& rejection);
  void BeginStreaming(uint64_t from);
  void AskForWalk(const std::string& storage_uuid, bool periodic);
  void SchedulePeriodicWalk();
  void Pump();
  bool StepWalk();  // Numbers one more range; false if none may be now.
  void SendEvents();
  bool Gather();  // Events wait for others to come.
  void PumpAt(SteadyTime when);
  std::vector<std::string> Storages() const;

  const Options options_;
  const LaneIdentity identity_;
  Executor* const executor_;
  api::DatanodeNamenode* const namenode_;
  BlockStore* const store_;
  EventLog* const events_;
  const std::shared_ptr<LaneMailbox> mailbox_;
  const std::shared_ptr<std::atomic<bool>> pump_posted_ = std::make_shared<std::atomic<bool>>(false);
  RegistrationRequests* const registration_;
  Watchdog* const watchdog_;
  std::atomic<uint64_t> messages_sent_{0};
  std::atomic<uint64_t> walks_done_{0};
  std::atomic<uint64_t> applied_{0};
  std::atomic<bool> streaming_{false};
  std::function<void(absl::Duration)> observe_;
  // Of the executor (and of the destructor, after it).
  Backoff backoff_;
  bool started_ = false;
  bool fatal_ = false;
  uint64_t stream_ = 0;  // Number of the newest one; words of older ones are stale.
  std::shared_ptr<api::MessageSink<v1::ReportUp>> sink_;
  Executor::TimerId reopen_ = 0;
  Executor::TimerId greeting_timer_ = 0;
  Executor::TimerId pump_timer_ = 0;
  SteadyTime pump_at_;                     // With a timer.
  uint64_t next_ = 0;                      // Number of the event to send next.
  std::deque<Walk> walks_;                 // The front one is under way.
  std::deque<uint64_t> unapplied_ranges_;  // Their numbers, at most.
  std::deque<uint64_t> ranges_under_way_;  // Sent on this stream and not applied.
  SteadyTime next_range_;
  SteadyTime next_message_;  // Of events that may wait for others.
  uint64_t last_walk_ = 0;
};

}  // namespace cairn::datanode
