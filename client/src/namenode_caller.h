#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/executor_gate.h"
#include "client/src/retry_slots.h"
#include "client/src/scope.h"
#include "common/api/client_namenode.h"
#include "common/env/env.h"
#include "common/error.h"
#include "common/mutex.h"

namespace cairn::client {

// Who calls, and how long an absent NameNode is waited for.
struct CallerOptions {
  std::string user;
  std::string client_name;  // Lease holder.
  absl::Duration retry_budget = absl::Minutes(2);
  absl::Duration call_timeout = absl::Seconds(30);
  absl::Duration first_backoff = absl::Milliseconds(50);  // Doubles up to longest_backoff.
  absl::Duration longest_backoff = absl::Seconds(2);
  size_t slots = RetrySlots::kDefaultCount;
  std::function<void(const std::string& why, absl::Duration left)> on_waiting;  // As ClientOptions'.
};

// The tries of one call: a budget, and a back-off with jitter that doubles, so that a thousand
// writers do not return to a restarted NameNode in step.
class RetryPace {
 public:
  RetryPace(Scope scope, const CallerOptions& options, uint64_t seed);

  SteadyTime give_up() const { return give_up_; }
  SteadyTime TryDeadline() const;  // Of the next try.
  // When the user is to hear that the call still waits; never if nobody listens or it was said.
  SteadyTime notice_at() const { return notice_at_; }
  // Says why it waits, if it is time: the last try's error, or that there is no answer yet.
  void MaybeNotice(const absl::Status& last = absl::OkStatus());
  // Waits before the next try. False when the budget is spent or the scope was stopped.
  Awaitable<bool> Wait();
  // `last` with how long and how often it was tried.
  absl::Status GiveUp(const absl::Status& last) const;

 private:
  Scope scope_;
  const CallerOptions* options_;  // The caller's, which outlives its calls.
  SteadyTime began_;
  SteadyTime give_up_;
  SteadyTime notice_at_;
  std::string last_error_;
  absl::Duration backoff_;
  Random random_;
  int tries_ = 1;
};

// The NameNode as the rest of the client library sees it: every call is repeated with a back-off
// while its outcome is unknown or the NameNode asks for patience, inside the retry budget; a
// mutation keeps its (slot, sequence) over all tries and so acts once. Fills every request's
// header.
//
// Thread-safe; calls are coroutines of their caller's scope and end with kCancelled when it stops.
// `env` and `namenode` outlive this; answers that come after it is gone are dropped.
class NamenodeCaller {
 public:
  template <class Request, class Response>
  using Method = void (api::ClientNamenode::*)(api::CallContext, Request, api::Done<Response>);

  NamenodeCaller(Env* env, api::ClientNamenode* namenode, CallerOptions options);
  ~NamenodeCaller();
  NamenodeCaller(const NamenodeCaller&) = delete;
  NamenodeCaller& operator=(const NamenodeCaller&) = delete;

  // A call that changes nothing.
  template <class Request, class Response>
  Awaitable<absl::StatusOr<Response>> Read(Scope scope, Method<Request, Response> method, Request request);
  // What becomes of a call that must not be forgotten.
  struct Fate {
    bool unwanted = false;  // Set by who asked: he has gone. A call that was not sent yet is not sent then.
    bool in_doubt = false;  // It was sent, and nobody knows whether it has acted.
  };
  // A call with a retry id. kSlotExpired: it was tried, and nobody knows whether it acted. Unless
  // null, `fate` outlives the call.
  template <class Request, class Response>
  Awaitable<absl::StatusOr<Response>> Mutate(Scope scope, Method<Request, Response> method, Request request, Fate* fate = nullptr);

  // What the NameNode says about itself; asked once, then kept.
  Awaitable<absl::StatusOr<v1::GetServerDefaultsResponse>> Defaults(Scope scope);

  RetryPace NewPace(Scope scope) ABSL_LOCKS_EXCLUDED(mu_);
  const CallerOptions& options() const { return options_; }
  const std::string& client_name() const { return options_.client_name; }
  const RetrySlots& slots() const { return slots_; }
  uint64_t retries() const { return retries_.load(std::memory_order_relaxed); }

 private:
  template <class Response>
  struct Pending {
    explicit Pending(Executor* executor) : done(executor) {}
    Event done;
    std::optional<absl::StatusOr<Response>> result;
  };

  template <class Request, class Response>
  Awaitable<absl::StatusOr<Response>> Once(Scope scope, Method<Request, Response> method, Request request, RetryPace* pace);

  void FillHeader(v1::RequestHeader* header) const;
  void NoteTime(const v1::ResponseHeader& header) ABSL_LOCKS_EXCLUDED(mu_);
  // The NameNode's clock now: what it last said, plus what our steady clock counted since. 0 before
  // the first answer.
  int64_t NamenodeTimeMs() const ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<v1::GetServerDefaultsResponse> KnownDefaults() const ABSL_LOCKS_EXCLUDED(mu_);
  void RememberDefaults(const v1::GetServerDefaultsResponse& defaults) ABSL_LOCKS_EXCLUDED(mu_);
  // True for errors after which the same call may be sent again.
  static bool MayRepeat(const absl::Status& status);
  static absl::Status NoAnswer(Scope scope, absl::Duration waited);

  Env* const env_;
  api::ClientNamenode* const namenode_;
  const CallerOptions options_;
  const std::string client_id_;  // 16 random bytes.
  const std::shared_ptr<ExecutorGate> gate_ = std::make_shared<ExecutorGate>();
  RetrySlots slots_;  // Has a lock of its own.
  std::atomic<uint64_t> retries_{0};
  mutable Mutex mu_;
  Random random_ ABSL_GUARDED_BY(mu_);
  int64_t namenode_time_ms_ ABSL_GUARDED_BY(mu_) = 0;
  SteadyTime namenode_time_heard_ ABSL_GUARDED_BY(mu_);
  std::optional<v1::GetServerDefaultsResponse> defaults_ ABSL_GUARDED_BY(mu_);
};

template <class Request, class Response>
Awaitable<absl::StatusOr<Response>> NamenodeCaller::Once(Scope scope, Method<Request, Response> method, Request request, RetryPace* pace) {
  const auto pending = std::make_shared<Pending<Response>>(scope.executor);
  // The callback holds no owner of `pending`: an Event must not die on a foreign thread after its
  // executor.
  std::weak_ptr<Pending<Response>> weak = pending;
  api::Done<Response> done = [weak, gate = gate_, executor = scope.executor](absl::StatusOr<Response> result) {
    gate->Post(executor, [weak, result = std::move(result)]() mutable {
      const auto waiting = weak.lock();
      if (!waiting) return;
      waiting->result.emplace(std::move(result));
      waiting->done.Set();
    });
  };
  const SteadyTime began = scope.executor->clock().Now();
  const SteadyTime deadline = pace->TryDeadline();
  api::CallContext context;
  context.deadline = deadline;
  (namenode_->*method)(std::move(context), std::move(request), std::move(done));
  const auto hook = scope.group->OnStop([p = pending.get()] { p->done.Set(); });
  bool answered = co_await pending->done.Wait(std::min(deadline, pace->notice_at()));
  if (!answered && scope.executor->clock().Now() < deadline) {
    pace->MaybeNotice();
    answered = co_await pending->done.Wait(deadline);
  }
  if (!pending->result) co_return NoAnswer(scope, scope.executor->clock().Now() - began);
  co_return std::move(*pending->result);
}

template <class Request, class Response>
Awaitable<absl::StatusOr<Response>> NamenodeCaller::Read(Scope scope, Method<Request, Response> method, Request request) {
  FillHeader(request.mutable_header());
  RetryPace pace = NewPace(scope);
  for (;;) {
    Request attempt = request;
    absl::StatusOr<Response> answer = co_await Once(scope, method, std::move(attempt), &pace);
    if (answer.ok()) {
      NoteTime(answer->header());
      co_return answer;
    }
    if (!MayRepeat(answer.status())) co_return answer;
    pace.MaybeNotice(answer.status());
    retries_.fetch_add(1, std::memory_order_relaxed);
    const bool again = co_await pace.Wait();
    if (!again) co_return pace.GiveUp(answer.status());
  }
}

template <class Request, class Response>
Awaitable<absl::StatusOr<Response>> NamenodeCaller::Mutate(Scope scope, Method<Request, Response> method, Request request, Fate* fate) {
  if (NamenodeTimeMs() == 0) {  // A slot must say when it was opened, else a late repetition could act twice.
    const auto defaults = co_await Defaults(scope);
    if (!defaults.ok()) co_return defaults.status();
  }
  FillHeader(request.mutable_header());
  RetryPace pace = NewPace(scope);
  absl::StatusOr<RetrySlots::Lease> slot = co_await slots_.Take(scope, NamenodeTimeMs(), pace.give_up());
  if (!slot.ok()) co_return slot.status();
  if (fate != nullptr && fate->unwanted) co_return MakeError(ErrorKind::kCancelled, "cancelled before it was sent");
  bool may_have_acted = false;
  for (;;) {
    v1::RequestHeader* header = request.mutable_header();
    header->set_slot(slot->slot());
    header->set_sequence(slot->sequence());
    header->set_slot_opened_ms(slot->opened_ms());
    Request attempt = request;
    if (fate != nullptr) fate->in_doubt = true;
    absl::StatusOr<Response> answer = co_await Once(scope, method, std::move(attempt), &pace);
    if (answer.ok()) {
      if (fate != nullptr) fate->in_doubt = false;
      NoteTime(answer->header());
      co_return answer;
    }
    const absl::Status& error = answer.status();
    const ErrorKind kind = KindOf(error);
    const bool slot_expired = kind == ErrorKind::kSlotExpired;
    if (slot_expired && !may_have_acted) {
      slot->Reopen(NamenodeTimeMs());
    } else if (!MayRepeat(error)) {
      // A refusal for good: had an earlier try acted, its kept answer would have come.
      if (fate != nullptr) fate->in_doubt = slot_expired || kind == ErrorKind::kNone || kind == ErrorKind::kCancelled;
      co_return answer;
    }
    if (kind == ErrorKind::kNone) may_have_acted = true;
    if (fate != nullptr) fate->in_doubt = may_have_acted;
    pace.MaybeNotice(error);
    retries_.fetch_add(1, std::memory_order_relaxed);
    const bool again = co_await pace.Wait();
    if (!again) co_return pace.GiveUp(error);
  }
}

}  // namespace cairn::client
