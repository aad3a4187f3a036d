#include "datanode/lanes/report_lane.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/error.h"
#include "common/log.h"

namespace cairn::datanode {
namespace {

constexpr uint64_t kEndOfIds = std::numeric_limits<uint64_t>::max();
// How soon to look again when the sink is full: nothing tells when it has drained.
constexpr absl::Duration kSinkPoll = absl::Milliseconds(5);

}  // namespace

class ReportLane::Handler : public api::MessageHandler<v1::ReportDown> {
 public:
  Handler(ReportLane* lane, std::shared_ptr<LaneMailbox> mailbox, uint64_t stream)
      : lane_(lane), mailbox_(std::move(mailbox)), stream_(stream) {}
  void OnMessage(v1::ReportDown message) override {
    mailbox_->Post([lane = lane_, stream = stream_, message = std::move(message)]() mutable { lane->OnDown(stream, std::move(message)); });
  }
  void OnClosed(absl::Status status) override {
    mailbox_->Post([lane = lane_, stream = stream_, status = std::move(status)] { lane->OnClosed(stream, status); });
  }

 private:
  ReportLane* const lane_;  // Alive while the mailbox takes tasks.
  const std::shared_ptr<LaneMailbox> mailbox_;
  const uint64_t stream_;
};

ReportLane::ReportLane(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode, BlockStore* store,
                       EventLog* events, Random random, RegistrationRequests* registration, Watchdog* watchdog)
    : options_(options),
      identity_(std::move(identity)),
      executor_(executor),
      namenode_(namenode),
      store_(store),
      events_(events),
      mailbox_(std::make_shared<LaneMailbox>(executor)),
      registration_(registration),
      watchdog_(watchdog),
      backoff_(options.first_retry, options.last_retry, std::move(random)) {
  events_->SetWake([this, mailbox = mailbox_, posted = pump_posted_] {
    if (posted->exchange(true, std::memory_order_acq_rel)) return;  // One is on its way: it takes this event too.
    mailbox->Post([this] { Pump(); });
  });
}

ReportLane::~ReportLane() {
  if (sink_ != nullptr) sink_->Close(absl::CancelledError("the DataNode stops"));
}

void ReportLane::Close() {
  events_->SetWake(nullptr);
  mailbox_->Close();
}

void ReportLane::Start() {
  mailbox_->Post([this] {
    if (!std::exchange(started_, true)) {
      next_range_ = executor_->clock().Now();
      SchedulePeriodicWalk();
      Open();
    } else if (reopen_ != 0 && !fatal_) {
      executor_->CancelTimer(std::exchange(reopen_, 0));
      Open();
    }
  });
}

void ReportLane::WalkStorage(const std::string& storage_uuid) {
  mailbox_->Post([this, storage_uuid] {
    AskForWalk(storage_uuid, /*periodic=*/false);
    Pump();
  });
}

std::vector<std::string> ReportLane::Storages() const {
  std::vector<std::string> uuids;
  for (const v1::StorageStatistics& storage : store_->Statistics()) uuids.push_back(storage.storage_uuid());
  return uuids;
}

void ReportLane::Open() {
  const Watchdog::Step step(watchdog_, "report", "open");
  const uint64_t stream = ++stream_;
  streaming_.store(false, std::memory_order_relaxed);
  if (sink_ != nullptr) sink_->Close(absl::CancelledError("opened again"));
  sink_ = namenode_->Reports({}, std::make_shared<Handler>(this, mailbox_, stream));
  v1::ReportUp up;
  v1::ReportHello* hello = up.mutable_hello();
  hello->set_datanode_uuid(identity_.datanode_uuid);
  hello->set_incarnation(identity_.incarnation.value());
  hello->set_first_kept(events_->first_kept());
  hello->set_last(events_->last());
  if (sink_ == nullptr || !sink_->Send(std::move(up))) {
    if (sink_ == nullptr) Reopen(backoff_.Next(options_.last_reconnect));
    return;  // OnClosed tells.
  }
  greeting_timer_ = executor_->PostAt(executor_->clock().Now() + options_.greeting_deadline, [this, stream] {
    if (stream != stream_ || streaming()) return;
    log::Warning("report stream: no answer to the greeting, opening it again");
    Reopen(backoff_.Next(options_.last_reconnect));
  });
}

void ReportLane::Reopen(absl::Duration delay) {
  streaming_.store(false, std::memory_order_relaxed);
  ++stream_;  // Whatever the old one still says is stale.
  if (greeting_timer_ != 0) executor_->CancelTimer(std::exchange(greeting_timer_, 0));
  if (sink_ != nullptr) std::exchange(sink_, nullptr)->Close(absl::CancelledError("opened again"));
  if (reopen_ != 0) return;
  reopen_ = executor_->PostAt(executor_->clock().Now() + delay, [this] {
    reopen_ = 0;
    Open();
  });
}

void ReportLane::OnApplied(uint64_t applied) {
  // Of what one answer covers the first has waited longest.
  const std::optional<absl::Duration> age = applied > applied_ ? events_->AgeOf(applied_ + 1) : std::nullopt;
  applied_.store(applied, std::memory_order_relaxed);
  if (age && observe_) observe_(*age);
}

void ReportLane::OnClosed(uint64_t stream, const absl::Status& status) {
  if (stream != stream_) return;
  if (KindOf(status) == ErrorKind::kUnregistered) registration_->RegisterAgain("the report stream was refused: not registered");
  log::Debug("report stream closed: {}", std::string(status.message()));
  Reopen(backoff_.Next(options_.last_reconnect));
}

void ReportLane::OnDown(uint64_t stream, v1::ReportDown message) {
  if (stream != stream_) return;
  const Watchdog::Step step(watchdog_, "report", "answer");
  switch (message.kind_case()) {
    case v1::ReportDown::kResume: BeginStreaming(message.resume().from()); break;
    case v1::ReportDown::kWalk: OnWalk(message.walk()); break;
    case v1::ReportDown::kAcknowledgement:
      backoff_.Reset();
      for (std::deque<uint64_t>* ranges : {&unapplied_ranges_, &ranges_under_way_})
        while (!ranges->empty() && ranges->front() <= message.acknowledgement().applied()) ranges->pop_front();
      OnApplied(message.acknowledgement().applied());
      events_->ForgetUpTo(message.acknowledgement().durable());
      break;
    case v1::ReportDown::kExpand: {
      const v1::ReportDown::Expand& expand = message.expand();
      store_->ExpandRange(expand.storage_uuid(), expand.first_id(), expand.end_id(), expand.walk());
      unapplied_ranges_.push_back(events_->last());
      break;
    }
    case v1::ReportDown::kRejection: return OnRejection(message.rejection());
    case v1::ReportDown::KIND_NOT_SET: break;
  }
  Pump();
}

void ReportLane::BeginStreaming(uint64_t from) {
  if (greeting_timer_ != 0) executor_->CancelTimer(std::exchange(greeting_timer_, 0));
  if (from > events_->last() + 1) {
    log::Warning("report stream: asked for event {}, the newest is {}; starting afresh", from, events_->last());
    return Reopen(backoff_.Next());
  }
  next_ = from;
  ranges_under_way_.clear();
  streaming_.store(true, std::memory_order_relaxed);
  while (!unapplied_ranges_.empty() && unapplied_ranges_.front() < from) unapplied_ranges_.pop_front();
}

void ReportLane::OnWalk(const v1::ReportDown::Walk& walk) {
  const bool greeting = !streaming();
  if (greeting) {
    BeginStreaming(walk.from() == 0 ? events_->first_kept() : walk.from());
    if (!streaming()) return;
    if (walk.end_id() == 0) {
      // It has forgotten where the walks stood.
      walks_.clear();
      unapplied_ranges_.clear();
    }
  }
  std::vector<std::string> storages(walk.storage_uuids().begin(), walk.storage_uuids().end());
  if (storages.empty()) storages = Storages();
  for (const std::string& storage : storages) {
    if (walk.end_id() != 0) {
      store_->ExpandRange(storage, walk.first_id(), walk.end_id(), /*walk=*/0);
      unapplied_ranges_.push_back(events_->last());
    } else {
      AskForWalk(storage, /*periodic=*/false);
    }
  }
}

void ReportLane::AskForWalk(const std::string& storage_uuid, bool periodic) {
  for (Walk& walk : walks_) {
    if (walk.storage_uuid != storage_uuid) continue;
    if (walk.end_id != kEndOfIds) walk.again = true;
    walk.periodic = walk.periodic && periodic;
    return;
  }
  Walk walk;
  walk.storage_uuid = storage_uuid;
  walk.end_id = kEndOfIds;
  walk.number = ++last_walk_;
  walk.periodic = periodic;
  walks_.push_back(std::move(walk));
}

void ReportLane::SchedulePeriodicWalk() {
  if (options_.walk_period == absl::InfiniteDuration()) return;
  executor_->PostAt(executor_->clock().Now() + options_.walk_period, [this] {
    for (const std::string& storage : Storages()) AskForWalk(storage, /*periodic=*/true);
    Pump();
    SchedulePeriodicWalk();
  });
}

void ReportLane::OnRejection(const v1::ReportDown::Rejection& rejection) {
  switch (rejection.reject()) {
    case v1::RETRY_SAME:
      log::Info("report stream: asked to try again: {}", rejection.reason());
      return Reopen(backoff_.Next(options_.last_reconnect));
    case v1::FATAL:
      log::Error("report stream: the NameNode refuses this DataNode: {}", rejection.reason());
      fatal_ = true;
      Reopen(options_.last_retry);
      registration_->RegisterAgain("the report stream was refused");
      return;
    case v1::START_AFRESH:
    default:  // What a newer NameNode may say.
      log::Warning("report stream: asked to start afresh: {}", rejection.reason());
      return Reopen(backoff_.Next());
  }
}

void ReportLane::PumpAt(SteadyTime when) {
  if (pump_timer_ != 0) {
    if (pump_at_ <= when) return;
    executor_->CancelTimer(pump_timer_);
  }
  pump_at_ = when;
  pump_timer_ = executor_->PostAt(when, [this] {
    pump_timer_ = 0;
    Pump();
  });
}

void ReportLane::Pump() {
  const Watchdog::Step step(watchdog_, "report", "pump");
  pump_posted_->store(false, std::memory_order_release);  // Before looking: what is appended from now on posts again.
  if (!streaming()) return;
  // What has happened goes before what is only stated again: a log that is full would lose it to the walk's own ranges.
  do SendEvents();
  while (streaming() && next_ > events_->last() && StepWalk());
}

bool ReportLane::StepWalk() {
  if (walks_.empty() || unapplied_ranges_.size() >= options_.max_unapplied_ranges) return false;
  const SteadyTime now = executor_->clock().Now();
  if (now < next_range_) {
    PumpAt(next_range_);
    return false;
  }
  Walk& walk = walks_.front();
  next_range_ = now + (walk.periodic ? options_.periodic_range_interval : options_.range_interval);
  walk.end_id = store_->WalkStep(walk.storage_uuid, walk.end_id, walk.number);
  unapplied_ranges_.push_back(events_->last());  // At most: others may have appended meanwhile.
  if (walk.end_id != 0) return true;
  walks_done_.fetch_add(1, std::memory_order_relaxed);
  if (walk.again) {
    walk.again = false;
    walk.end_id = kEndOfIds;
    walk.number = ++last_walk_;
  } else {
    walks_.pop_front();
  }
  return true;
}

bool ReportLane::Gather() {
  const SteadyTime now = executor_->clock().Now();
  if (!walks_.empty() || next_ > events_->last() || events_->last() - next_ + 1 >= options_.max_events) return false;
  if (now >= next_message_) {
    next_message_ = now + options_.gather;
    return false;
  }
  pump_posted_->store(true, std::memory_order_release);  // The timer takes what is appended until then.
  PumpAt(next_message_);
  return true;
}

void ReportLane::SendEvents() {
  if (Gather()) return;
  while (sink_ != nullptr && sink_->Queued() < options_.max_queued_messages) {
    EventLog::Slice slice = events_->From(next_, options_.max_events, options_.max_bytes);
    if (slice.gone) {
      log::Warning("report stream: event {} is not kept any more; starting afresh", next_);
      return Reopen(options_.first_retry);
    }
    if (slice.events.empty()) return;
    v1::ReportUp up;
    for (v1::ReportEvent& event : slice.events) {
      if (event.type() == v1::RANGE) {
        if (ranges_under_way_.size() >= options_.max_unapplied_ranges) break;  // An answer brings us back.
        ranges_under_way_.push_back(event.number());
      }
      next_ = event.number() + 1;
      *up.mutable_events()->add_events() = std::move(event);
    }
    if (up.events().events_size() == 0) return;
    if (!sink_->Send(std::move(up))) return;  // OnClosed tells.
    messages_sent_.fetch_add(1, std::memory_order_relaxed);
  }
  if (next_ <= events_->last()) PumpAt(executor_->clock().Now() + kSinkPoll);
}

}  // namespace cairn::datanode
