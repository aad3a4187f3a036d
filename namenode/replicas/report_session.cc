#include "namenode/replicas/report_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"

namespace cairn::namenode {
namespace {
// A walk that was asked for and does not come on is asked for again.
constexpr absl::Duration kWalkStandsStill = absl::Seconds(60);
}  // namespace

ReportSession::ReportSession(Parts parts, std::weak_ptr<ReportObserver> observer, Executor* executor,
                             std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler)
    : parts_(std::move(parts)), observer_(std::move(observer)), executor_(executor), handler_(std::move(handler)) {}

bool ReportSession::Send(v1::ReportUp message) {
  if (closed_.load()) return false;
  if (queued_.fetch_add(1) >= kMaxUnhandled) {
    queued_.fetch_sub(1);
    Close(MakeError(ErrorKind::kBusy, "too many messages on the report stream"));
    return false;
  }
  int ranges = 0;
  for (const v1::ReportEvent& event : message.events().events()) ranges += event.type() == v1::RANGE && !event.range().expanded() ? 1 : 0;
  // Bounds what one walk can pile up here; who does not wait for its answers walks for nothing.
  const bool too_many = unapplied_ranges_.fetch_add(ranges) + ranges > kMaxUnappliedRanges;
  executor_->Post([self = shared_from_this(), message = std::move(message), ranges, too_many] {
    self->queued_.fetch_sub(1);
    self->unapplied_ranges_.fetch_sub(ranges);
    if (!self->handler_) return;
    if (too_many) {
      return self->Reject(v1::START_AFRESH, MakeError(ErrorKind::kInvalidArgument,
                                                      fmt::format("report stream: more than {} unapplied ranges", kMaxUnappliedRanges)));
    }
    self->Handle(message);
  });
  return true;
}

void ReportSession::Close(absl::Status status) {
  if (closed_.exchange(true)) return;
  executor_->Post([self = shared_from_this(), status = std::move(status)]() mutable { self->End(std::move(status)); });
}

void ReportSession::End(absl::Status status) {
  closed_.store(true);
  if (!handler_) return;
  const std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler = std::move(handler_);
  handler_ = nullptr;
  if (applier_) {
    if (std::shared_ptr<ReportObserver> observer = observer_.lock()) {
      parts_.registry->SetReportStreamOpen(datanode_uuid_, incarnation_, false);
      observer->OnReportsClosed(*this);
    }
    applier_.reset();
  }
  handler->OnClosed(std::move(status));
}

void ReportSession::Reject(v1::RejectionClass reject, const absl::Status& why) {
  v1::ReportDown message;
  message.mutable_rejection()->set_reject(reject);
  message.mutable_rejection()->set_reason(std::string(why.message()));
  handler_->OnMessage(std::move(message));
  End(why);
}

void ReportSession::Handle(const v1::ReportUp& message) {
  if (observer_.expired()) return End(MakeError(ErrorKind::kCancelled, "the NameNode is stopping"));
  switch (message.kind_case()) {
    case v1::ReportUp::kHello:
      if (!applier_) return HandleHello(message.hello());
      break;
    case v1::ReportUp::kEvents:
      if (applier_) return HandleEvents(message.events());
      break;
    case v1::ReportUp::KIND_NOT_SET: break;
  }
  Reject(v1::START_AFRESH, MakeError(ErrorKind::kInvalidArgument, "report stream: a message out of order or of unknown kind"));
}

void ReportSession::HandleHello(const v1::ReportHello& hello) {
  const Incarnation incarnation(hello.incarnation());
  if (absl::Status known = parts_.registry->Heard(hello.datanode_uuid(), incarnation); !known.ok()) {
    return End(std::move(known));  // Its kind says it all: register, then come again.
  }
  datanode_uuid_ = hello.datanode_uuid();
  incarnation_ = incarnation;
  applier_.emplace(datanode_uuid_, incarnation_, parts_.epoch, parts_.store, parts_.registry);
  const std::shared_ptr<ReportObserver> observer = observer_.lock();
  observer->OnReportsOpened(shared_from_this());  // Ends an older session of this DataNode.
  parts_.registry->SetReportStreamOpen(datanode_uuid_, incarnation_, true);
  absl::StatusOr<bool> resume = applier_->Begin(hello.first_kept(), hello.last());
  if (!resume.ok()) return Reject(v1::RETRY_SAME, resume.status());
  const SteadyTime now = parts_.clock->Now();
  if (!*resume) {
    for (const StreamPosition::Walk& walk : applier_->walks()) asked_[walk.storage] = now;
    observer->OnReportsLost(datanode_uuid_);
    RequestWalk({}, applier_->applied() + 1);
    return;
  }
  durable_ = 0;
  v1::ReportDown message;
  message.mutable_resume()->set_from(applier_->applied() + 1);
  handler_->OnMessage(std::move(message));
  for (const StreamPosition::Walk& walk : applier_->walks()) asked_[walk.storage] = now;
  OnRegistered();
}

void ReportSession::OnRegistered() {
  if (!handler_ || !applier_) return;
  absl::StatusOr<std::vector<StorageNumber>> added = applier_->AddStorages();
  if (!added.ok()) return Reject(v1::RETRY_SAME, added.status());
  std::vector<std::string> uuids;
  for (StorageNumber storage : *added) {
    asked_[storage] = parts_.clock->Now();
    if (std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(storage)) uuids.push_back(location->storage_uuid());
  }
  if (!uuids.empty()) RequestWalk(uuids, 0);
}

void ReportSession::RequestWalk(const std::vector<std::string>& storage_uuids, uint64_t from) {
  v1::ReportDown message;
  v1::ReportDown::Walk* walk = message.mutable_walk();
  for (const std::string& uuid : storage_uuids) walk->add_storage_uuids(uuid);
  walk->set_from(from);
  handler_->OnMessage(std::move(message));
}

void ReportSession::RequestBlock(const std::string& storage_uuid, BlockId block) {
  if (!handler_ || !applier_) return;
  v1::ReportDown message;
  v1::ReportDown::Walk* walk = message.mutable_walk();
  walk->add_storage_uuids(storage_uuid);
  walk->set_first_id(block.value());
  walk->set_end_id(block.value() + 1);
  handler_->OnMessage(std::move(message));
}

void ReportSession::HandleEvents(const v1::ReportUp::Events& events) {
  if (absl::Status known = parts_.registry->Heard(datanode_uuid_, incarnation_); !known.ok()) return End(std::move(known));
  if (events.events_size() > kMaxEvents || events.ByteSizeLong() > kMaxMessageBytes)
    return Reject(v1::START_AFRESH, MakeError(ErrorKind::kInvalidArgument, fmt::format("report stream: a message of {} events, {} bytes",
                                                                                       events.events_size(), events.ByteSizeLong())));
  ReportEffects effects;
  const absl::Status applied = applier_->Apply(events.events(), &effects);
  const std::vector<v1::ReportDown::Expand> expand = std::move(effects.expand);
  for (const ReportEffects::Passed& passed : effects.passed) asked_[passed.storage] = parts_.clock->Now();
  if (std::shared_ptr<ReportObserver> observer = observer_.lock())
    observer->OnReportEffects(datanode_uuid_, incarnation_, std::move(effects));
  for (const v1::ReportDown::Expand& interval : expand) {
    v1::ReportDown message;
    *message.mutable_expand() = interval;
    handler_->OnMessage(std::move(message));
  }
  if (!applied.ok()) return Reject(KindOf(applied) == ErrorKind::kInvalidArgument ? v1::START_AFRESH : v1::RETRY_SAME, applied);
  Acknowledge();
}

void ReportSession::Acknowledge() {
  v1::ReportDown message;
  message.mutable_acknowledgement()->set_applied(applier_->applied());
  message.mutable_acknowledgement()->set_durable(durable_);
  handler_->OnMessage(std::move(message));
}

void ReportSession::OnDurable(uint64_t durable) {
  if (!handler_ || !applier_ || durable <= durable_) return;
  durable_ = durable;
  Acknowledge();
}

void ReportSession::Tick() {
  if (!handler_ || !applier_) return;
  const SteadyTime now = parts_.clock->Now();
  std::vector<std::string> due;
  for (const StreamPosition::Walk& walk : applier_->walks()) {
    const std::optional<StorageStanding> standing = parts_.registry->StandingOf(walk.storage);
    if (!standing || standing->state >= v1::UNAVAILABLE) continue;
    SteadyTime& asked = asked_[walk.storage];
    // DataNodes walk every walk_period by themselves; only one that does not has to be asked.
    if (now - asked < (walk.floor == 0 ? parts_.walk_period * 1.25 : std::min(kWalkStandsStill, parts_.walk_period))) continue;
    asked = now;
    if (std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(walk.storage)) due.push_back(location->storage_uuid());
  }
  if (!due.empty()) RequestWalk(due, 0);
}

}  // namespace cairn::namenode
