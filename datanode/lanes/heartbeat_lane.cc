#include "datanode/lanes/heartbeat_lane.h"

#include <optional>
#include <utility>

#include "common/error.h"
#include "common/fault_points.h"
#include "common/log.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kAskAgain = absl::Milliseconds(20);  // Whether a fault point still blocks.

}  // namespace

HeartbeatLane::HeartbeatLane(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode, Fill fill,
                             RegistrationRequests* registration, Watchdog* watchdog)
    : options_(options),
      identity_(std::move(identity)),
      executor_(executor),
      namenode_(namenode),
      mailbox_(std::make_shared<LaneMailbox>(executor)),
      registration_(registration),
      watchdog_(watchdog),
      fill_(std::move(fill)),
      interval_(options.interval) {}

void HeartbeatLane::Start(absl::Duration interval) {
  mailbox_->Post([this, interval] {
    if (interval > absl::ZeroDuration()) interval_ = interval;
    if (std::exchange(started_, true)) return;
    next_ = executor_->clock().Now();
    Tick();
  });
}

absl::Duration HeartbeatLane::since_answer() const {
  const int64_t at = answered_at_ns_.load(std::memory_order_relaxed);
  return at < 0 ? absl::InfiniteDuration() : executor_->clock().Now().since_start() - absl::Nanoseconds(at);
}

void HeartbeatLane::Tick() {
  const Watchdog::Step step(watchdog_, "heartbeat", "tick");
  const SteadyTime now = executor_->clock().Now();
  if (under_way_ < kMaxUnderWay) Send();
  do next_ = next_ + interval_;
  while (next_ <= now);
  executor_->PostAt(next_, [this] { Tick(); });
}

void HeartbeatLane::Send() {
  const SteadyTime now = executor_->clock().Now();
  v1::HeartbeatRequest request;
  fill_(&request);
  request.set_datanode_uuid(identity_.datanode_uuid);
  request.set_incarnation(identity_.incarnation.value());
  if (sent() > 0) {
    last_interval_ms_.store(absl::ToInt64Milliseconds(now - last_sent_), std::memory_order_relaxed);
    request.set_last_interval_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(now - last_sent_)));
  }
  last_sent_ = now;
  sent_.fetch_add(1, std::memory_order_relaxed);
  ++under_way_;
  api::CallContext context;
  context.deadline = now + options_.answer_deadline;
  namenode_->Heartbeat(std::move(context), std::move(request), [this, mailbox = mailbox_](absl::StatusOr<v1::HeartbeatResponse> answer) {
    mailbox->Post([this, answer = std::move(answer)]() mutable {
      --under_way_;
      HoldAnswer(std::move(answer));
    });
  });
}

void HeartbeatLane::HoldAnswer(absl::StatusOr<v1::HeartbeatResponse> answer) {
  const std::optional<absl::Duration> hold = FaultHold("datanode.heartbeat.answer");
  if (!hold) return OnAnswer(std::move(answer));
  const bool blocked = *hold == absl::InfiniteDuration();
  const SteadyTime when = executor_->clock().Now() + (blocked ? kAskAgain : *hold);
  executor_->PostAt(when, [this, blocked, answer = std::move(answer)]() mutable {
    blocked ? HoldAnswer(std::move(answer)) : OnAnswer(std::move(answer));
  });
}

void HeartbeatLane::OnAnswer(absl::StatusOr<v1::HeartbeatResponse> answer) {
  const Watchdog::Step step(watchdog_, "heartbeat", "answer");
  if (!answer.ok()) {
    if (KindOf(answer.status()) == ErrorKind::kUnregistered) {
      registration_->RegisterAgain("a heartbeat was refused: not registered");
    } else {
      log::Debug("heartbeat: {}", std::string(answer.status().message()));
    }
    // What the NameNode last said of this node's speed grows old with it.
    if (on_slow_ && since_answer() > kSlowFor * interval_) on_slow_(false);
    return;
  }
  answered_.fetch_add(1, std::memory_order_relaxed);
  answered_at_ns_.store(absl::ToInt64Nanoseconds(executor_->clock().Now().since_start()), std::memory_order_relaxed);
  registration_->HearIds(BlockId(answer->next_block_id()), GenerationStamp(answer->next_generation_stamp()));
  registration_->MeetEpoch(Epoch(answer->epoch()));
  if (on_bandwidth_) on_bandwidth_(answer->balancer_bytes_per_second());
  if (on_slow_) on_slow_(answer->slow());
  if (answer->newest_key_id() != 0) registration_->NeedKey(answer->newest_key_id());
  if (answer->register_again()) registration_->RegisterAgain("a heartbeat's answer asked for it");
}

}  // namespace cairn::datanode
