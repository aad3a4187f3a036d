#pragma once

// How a call of ClientService travels: the templates that its reads and its mutations share. For namenode/frontdoor/client_*.cc only.

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/frontdoor/audited_call.h"
#include "namenode/frontdoor/client_service.h"
#include "namenode/namespace/lease_rules.h"

namespace cairn::namenode {

inline absl::Status TooLate() { return absl::DeadlineExceededError("the call's deadline passed before it was begun; it has not acted"); }

uint64_t HashOfRequest(const std::string& bytes);  // XXH3-64 with seed 0.

template <class Request, class Response>
auto ClientService::Accept(const char* name, bool is_mutation, api::CallContext context, Request request, api::Done<Response> done)
    -> std::optional<Call<Request, Response>> {
  if (observer_) {
    done = [this, name, began = clock_->Now(), done = std::move(done)](absl::StatusOr<Response> response) mutable {
      observer_(name, clock_->Now() - began, response.status());
      done(std::move(response));
    };
  }
  if (audit_ != nullptr) done = Audited(audit_, clock_, name, is_mutation, context, request, std::move(done));
  if (absl::Status header = is_mutation ? CheckMutationHeader(request.header()) : CheckReadHeader(request.header()); !header.ok()) {
    done(std::move(header));
    return std::nullopt;
  }
  std::optional<Call<Request, Response>> call(std::in_place);
  call->context = std::move(context);
  call->header = std::move(*request.mutable_header());
  request.clear_header();
  call->request = std::move(request);
  call->reader = readers_[next_reader_.fetch_add(1, std::memory_order_relaxed) % readers_.size()];
  call->done = std::move(done);
  return call;
}

template <class Request, class Response, class Run>
void ClientService::PostToReader(const char* name, Call<Request, Response> call, Run run) {
  Executor* const reader = call.reader;
  if (reader->QueueDepth() >= options_.max_queued_per_reader)
    return call.done(
        MakeError(ErrorKind::kRetriable, fmt::format("{}: {} calls are waiting already", name, options_.max_queued_per_reader)));
  reader->Post([this, run = std::move(run), call = std::move(call)]() mutable {
    if (clock_->Now() > call.context.deadline) return call.done(TooLate());
    run(std::move(call));
  });
}

template <class Request, class Response>
void ClientService::Dispatch(const char* name, bool is_mutation, api::CallContext context, Request request, api::Done<Response> done,
                             void (ClientService::*handle)(Call<Request, Response>)) {
  std::optional<Call<Request, Response>> call =
      Accept<Request, Response>(name, is_mutation, std::move(context), std::move(request), std::move(done));
  if (!call) return;
  PostToReader(name, *std::move(call), [this, handle](Call<Request, Response> accepted) {
    accepted.who = callers_.Resolve(accepted.header.user());  // Here it may wait; where a take-over is ordered from it may not.
    (this->*handle)(std::move(accepted));
  });
}

template <class Request, class Response>
void ClientService::BeginOnReader(Call<Request, Response>& call) const {
  call.who = callers_.Resolve(call.header.user());
  call.view = space_->Snapshot();
  call.reach = Reach::kDisk;
}

template <class Request, class Response>
void ClientService::DispatchInMemory(const char* name, bool is_mutation, api::CallContext context, Request request,
                                     api::Done<Response> done, Try<Request, Response> handle) {
  std::optional<Call<Request, Response>> call =
      Accept<Request, Response>(name, is_mutation, std::move(context), std::move(request), std::move(done));
  if (!call) return;
  if (clock_->Now() > call->context.deadline) return call->done(TooLate());
  call->who = callers_.ResolveKnown(call->header.user());
  if (call->who) {
    call->view = space_->MemorySnapshot();
    absl::Status tried = (this->*handle)(*call);
    if (tried.ok()) return;
    if (!IsNotInMemory(tried)) return call->done(std::move(tried));
    call->view = nullptr;
  }
  PostToReader(name, *std::move(call), [this, handle](Call<Request, Response> accepted) {
    BeginOnReader(accepted);
    if (absl::Status status = (this->*handle)(accepted); !status.ok()) accepted.done(std::move(status));
  });
}

template <class Request, class Response>
void ClientService::Answer(Call<Request, Response>& call, Response response) {
  StampHeader(response.mutable_header());
  call.done(std::move(response));
}

template <class Request, class Response>
v1::Mutation ClientService::NewMutation(const Call<Request, Response>& call) const {
  v1::Mutation mutation;
  call.who->Fill(&mutation);
  mutation.set_client_id(call.header.client_id());
  mutation.set_slot(call.header.slot());
  mutation.set_sequence(call.header.sequence());
  mutation.set_slot_opened_ms(call.header.slot_opened_ms());
  mutation.set_client_name(call.header.client_name());
  mutation.set_request_hash(HashOfRequest(call.request.SerializeAsString()));
  *mutation.mutable_limits() = tunables()->mutation_limits;
  return mutation;
}

template <class Request, class Response, class Then>
void ClientService::SubmitThen(Call<Request, Response> call, v1::Mutation mutation, Then then) {
  call.view = nullptr;  // Not to be held while the call waits.
  auto held = std::make_unique<Call<Request, Response>>(std::move(call));
  space_->Submit(std::move(mutation), [held = std::move(held), then = std::move(then)](absl::StatusOr<v1::MutationResult> result) mutable {
    TaskQueue* const home = held->context.home != nullptr ? held->context.home : held->reader;
    home->Post([held = std::move(held), then = std::move(then), result = std::move(result)]() mutable { then(*held, result); });
  });
}

template <class Request, class Response>
void ClientService::AnswerWith(Call<Request, Response>& call, const absl::StatusOr<v1::MutationResult>& result, Fill<Response>& fill) {
  if (!result.ok()) return call.done(result.status());
  Response response;
  if (const absl::Status status = fill(*result, response); !status.ok()) return call.done(status);
  Answer(call, std::move(response));
}

template <class Request, class Response>
void ClientService::Submit(Call<Request, Response> call, v1::Mutation mutation, Fill<Response> fill) {
  SubmitThen(std::move(call), std::move(mutation),
             [this, fill = std::move(fill)](Call<Request, Response>& answered, const absl::StatusOr<v1::MutationResult>& result) mutable {
               AnswerWith(answered, result, fill);
             });
}

template <class Request, class Response>
void ClientService::SubmitOverLease(std::string_view operation, Call<Request, Response> call, v1::Mutation mutation,
                                    void (ClientService::*again)(Call<Request, Response>), Fill<Response> fill) {
  if (call.took_over) return Submit<Request, Response>(std::move(call), std::move(mutation), std::move(fill));
  v1::Mutation::RecoverLease recover = TakeOverOf(mutation);
  SubmitThen(std::move(call), std::move(mutation),
             [this, operation, recover = std::move(recover), again, fill = std::move(fill)](
                 Call<Request, Response>& answered, const absl::StatusOr<v1::MutationResult>& result) mutable {
               if (ReasonOf(result.status()) == kMayBeTakenOver) return TakeOver(operation, std::move(answered), std::move(recover), again);
               AnswerWith(answered, result, fill);
             });
}

template <class Request, class Response>
void ClientService::TakeOver(std::string_view operation, Call<Request, Response> call, v1::Mutation::RecoverLease recover,
                             void (ClientService::*again)(Call<Request, Response>)) {
  call.took_over = true;
  v1::Mutation mutation = NewMutation(call);
  mutation.set_sequence(0);  // The call's own retry row is for its own answer.
  *mutation.mutable_recover_lease() = std::move(recover);
  SubmitThen(std::move(call), std::move(mutation),
             [this, operation, again](Call<Request, Response>& answered, const absl::StatusOr<v1::MutationResult>& result) {
               if (!result.ok()) return answered.done(result.status());
               if (result->done()) {
                 Executor* const reader = answered.reader;
                 return reader->Post([this, again, answered = std::move(answered)]() mutable { (this->*again)(std::move(answered)); });
               }
               Error error;
               error.kind = ErrorKind::kBeingWritten;
               error.reason = std::string(kRecovering);
               error.path = result->path();
               error.message = fmt::format("Failed to {} {} for {} because lease recovery is in progress. Try again later", operation,
                                           error.path, answered.header.client_name());
               answered.done(MakeError(std::move(error)));
             });
}

}  // namespace cairn::namenode
