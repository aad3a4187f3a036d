#include "client/src/namenode_caller.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/status.h"

namespace cairn::client {
namespace {

constexpr absl::Duration kNoticeAfter = absl::Seconds(2);

}  // namespace

RetryPace::RetryPace(Scope scope, const CallerOptions& options, uint64_t seed)
    : scope_(scope),
      options_(&options),
      began_(scope.executor->clock().Now()),
      give_up_(began_ + options.retry_budget),
      notice_at_(options.on_waiting ? began_ + kNoticeAfter : SteadyTime::Infinite()),
      backoff_(options.first_backoff),
      random_(seed) {}

SteadyTime RetryPace::TryDeadline() const { return std::min(scope_.executor->clock().Now() + options_->call_timeout, give_up_); }

void RetryPace::MaybeNotice(const absl::Status& last) {
  if (!last.ok()) last_error_ = std::string(last.message());
  const SteadyTime now = scope_.executor->clock().Now();
  if (now < notice_at_ || now >= give_up_) return;
  notice_at_ = SteadyTime::Infinite();
  options_->on_waiting(last_error_.empty() ? "no answer" : last_error_, give_up_ - now);
}

Awaitable<bool> RetryPace::Wait() {
  const SteadyTime now = scope_.executor->clock().Now();
  if (now >= give_up_ || scope_.group->stopping()) co_return false;
  // Half of it is fixed, half chance.
  const absl::Duration half = backoff_ / 2;
  const auto jitter_us = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(absl::ToInt64Microseconds(half)) + 1));
  const SteadyTime until = std::min(now + half + absl::Microseconds(jitter_us), give_up_);
  backoff_ = std::min(backoff_ * 2, options_->longest_backoff);
  Event stopped(scope_.executor);
  const auto hook = scope_.group->OnStop([&stopped] { stopped.Set(); });
  const bool was_stopped = co_await stopped.Wait(until);
  if (was_stopped || until >= give_up_) co_return false;
  ++tries_;
  co_return true;
}

absl::Status RetryPace::GiveUp(const absl::Status& last) const {
  if (scope_.group->stopping()) return MakeError(ErrorKind::kCancelled, "cancelled");
  const absl::Duration spent = scope_.executor->clock().Now() - began_;
  return Annotate(last,
                  fmt::format("gave up after {:.1f} s and {} tries (cairn.client.retry.budget)", absl::ToDoubleSeconds(spent), tries_));
}

NamenodeCaller::NamenodeCaller(Env* env, api::ClientNamenode* namenode, CallerOptions options)
    : env_(env),
      namenode_(namenode),
      options_(std::move(options)),
      client_id_(env->NewRandom().Bytes(16)),
      slots_(options_.slots, gate_),
      random_(env->NewRandom()) {}

NamenodeCaller::~NamenodeCaller() { gate_->Close(); }

void NamenodeCaller::FillHeader(v1::RequestHeader* header) const {
  header->set_client_id(client_id_);
  header->set_user(options_.user);
  header->set_client_name(options_.client_name);
}

RetryPace NamenodeCaller::NewPace(Scope scope) {
  uint64_t seed = 0;
  {
    MutexLock lock(mu_);
    seed = random_.Next();
  }
  return RetryPace(scope, options_, seed);
}

void NamenodeCaller::NoteTime(const v1::ResponseHeader& header) {
  if (header.namenode_time_ms() == 0) return;
  MutexLock lock(mu_);
  namenode_time_ms_ = header.namenode_time_ms();
  namenode_time_heard_ = env_->clock().Now();
}

int64_t NamenodeCaller::NamenodeTimeMs() const {
  MutexLock lock(mu_);
  if (namenode_time_ms_ == 0) return 0;
  return namenode_time_ms_ + absl::ToInt64Milliseconds(env_->clock().Now() - namenode_time_heard_);
}

bool NamenodeCaller::MayRepeat(const absl::Status& status) {
  // The caller's own exclusions: only it can lift them.
  if (KindOf(status) == ErrorKind::kNoTargets && ReasonOf(status) == "ALL_EXCLUDED") return false;
  return IsRetriable(status);
}

absl::Status NamenodeCaller::NoAnswer(Scope scope, absl::Duration waited) {
  if (scope.group->stopping()) return MakeError(ErrorKind::kCancelled, "cancelled while waiting for the NameNode");
  return absl::DeadlineExceededError(fmt::format("no answer from the NameNode within {:.1f} s", absl::ToDoubleSeconds(waited)));
}

std::optional<v1::GetServerDefaultsResponse> NamenodeCaller::KnownDefaults() const {
  MutexLock lock(mu_);
  return defaults_;
}

void NamenodeCaller::RememberDefaults(const v1::GetServerDefaultsResponse& defaults) {
  MutexLock lock(mu_);
  defaults_ = defaults;
}

Awaitable<absl::StatusOr<v1::GetServerDefaultsResponse>> NamenodeCaller::Defaults(Scope scope) {
  if (auto known = KnownDefaults()) co_return *std::move(known);
  v1::GetServerDefaultsRequest request;
  absl::StatusOr<v1::GetServerDefaultsResponse> answer = co_await Read(scope, &api::ClientNamenode::GetServerDefaults, std::move(request));
  if (answer.ok()) RememberDefaults(*answer);
  co_return answer;
}

}  // namespace cairn::client
