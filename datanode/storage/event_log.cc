#include "datanode/storage/event_log.h"

#include <utility>

namespace cairn::datanode {

EventLog::EventLog(const Clock* clock, size_t max_kept, size_t max_bytes) : clock_(clock), max_kept_(max_kept), max_bytes_(max_bytes) {}

void EventLog::AppendLocked(v1::ReportEvent event, bool with_next) {
  event.set_number(++last_);
  const size_t bytes = event.ByteSizeLong();
  bytes_ += bytes;
  events_.push_back({std::move(event), clock_->Now(), bytes, with_next});
}

void EventLog::TrimLocked() {
  while (events_.size() > max_kept_ || (bytes_ > max_bytes_ && events_.size() > 1)) {
    const bool next_too = events_.front().with_next;
    DropOldestLocked();
    if (next_too) DropOldestLocked();
  }
}

uint64_t EventLog::Append(v1::ReportEvent event) {
  MutexLock lock(mu_);
  AppendLocked(std::move(event), /*with_next=*/false);
  TrimLocked();
  if (wake_) wake_();
  return last_;
}

uint64_t EventLog::AppendTogether(v1::ReportEvent first, v1::ReportEvent second) {
  MutexLock lock(mu_);
  AppendLocked(std::move(first), /*with_next=*/true);
  AppendLocked(std::move(second), /*with_next=*/false);
  TrimLocked();
  if (wake_) wake_();
  return last_;
}

void EventLog::DropOldestLocked() {
  bytes_ -= events_.front().bytes;
  events_.pop_front();
}

uint64_t EventLog::AppendState(const std::string& storage_uuid, v1::StorageState state) {
  v1::ReportEvent event;
  event.set_type(v1::STORAGE_STATE_CHANGED);
  event.set_storage_uuid(storage_uuid);
  event.set_storage_state(state);
  return Append(std::move(event));
}

EventLog::Slice EventLog::From(uint64_t number, size_t max_count, size_t max_bytes) const {
  MutexLock lock(mu_);
  Slice slice;
  const uint64_t first = last_ + 1 - events_.size();
  if (number < first) {
    slice.gone = true;
    return slice;
  }
  size_t bytes = 0;
  for (size_t i = static_cast<size_t>(number - first); i < events_.size() && slice.events.size() < max_count;) {
    const size_t count = events_[i].with_next ? 2 : 1;
    for (size_t j = i; j < i + count; ++j) bytes += events_[j].bytes + 4;  // And its tag and length inside the message.
    if ((bytes > max_bytes || slice.events.size() + count > max_count) && !slice.events.empty()) break;
    for (const size_t end = i + count; i < end; ++i) slice.events.push_back(events_[i].event);
  }
  return slice;
}

void EventLog::ForgetUpTo(uint64_t durable) {
  MutexLock lock(mu_);
  while (!events_.empty() && events_.front().event.number() <= durable) DropOldestLocked();
}

uint64_t EventLog::first_kept() const {
  MutexLock lock(mu_);
  return last_ + 1 - events_.size();
}

uint64_t EventLog::last() const {
  MutexLock lock(mu_);
  return last_;
}

void EventLog::SetWake(absl::AnyInvocable<void()> wake) {
  MutexLock lock(mu_);
  wake_ = std::move(wake);
}

size_t EventLog::kept() const {
  MutexLock lock(mu_);
  return events_.size();
}

absl::Duration EventLog::OldestAge() const {
  MutexLock lock(mu_);
  return events_.empty() ? absl::ZeroDuration() : clock_->Now() - events_.front().at;
}

std::optional<absl::Duration> EventLog::AgeOf(uint64_t number) const {
  MutexLock lock(mu_);
  const uint64_t first = last_ + 1 - events_.size();
  if (number < first || number > last_) return std::nullopt;
  return clock_->Now() - events_[static_cast<size_t>(number - first)].at;
}

}  // namespace cairn::datanode
