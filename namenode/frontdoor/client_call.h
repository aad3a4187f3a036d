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
  PostToReader(name, *std::move(call), [this, handle](Call<Request, Response> accepted) { (this->*handle)(std::move(accepted)); });
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
  if (call.who) {
    call.who->Fill(&mutation);
  } else {
    callers_.Resolve(call.header.user()).Fill(&mutation);
  }
  mutation.set_client_id(call.header.client_id());
  mutation.set_slot(call.header.slot());
  mutation.set_sequence(call.header.sequence());
  mutation.set_slot_opened_ms(call.header.slot_opened_ms());
  mutation.set_client_name(call.header.client_name());
  mutation.set_request_hash(HashOfRequest(call.request.SerializeAsString()));
  *mutation.mutable_limits() = tunables()->mutation_limits;
  return mutation;
}

template <class Request, class Response>
void ClientService::Submit(Call<Request, Response> call, v1::Mutation mutation,
                           absl::AnyInvocable<absl::Status(const v1::MutationResult&, Response&)> fill) {
  call.view = nullptr;  // Not to be held while the call waits.
  space_->Submit(std::move(mutation),
                 [this, call = std::move(call), fill = std::move(fill)](absl::StatusOr<v1::MutationResult> result) mutable {
                   Executor* const reader = call.reader;
                   reader->Post([this, call = std::move(call), fill = std::move(fill), result = std::move(result)]() mutable {
                     if (!result.ok()) return call.done(result.status());
                     Response response;
                     if (const absl::Status status = fill(*result, response); !status.ok()) return call.done(status);
                     Answer(call, std::move(response));
                   });
                 });
}

template <class Request, class Response>
void ClientService::SubmitOverLease(std::string_view operation, Call<Request, Response> call, v1::Mutation mutation,
                                    void (ClientService::*again)(Call<Request, Response>),
                                    absl::AnyInvocable<absl::Status(const v1::MutationResult&, Response&)> fill) {
  call.view = nullptr;  // Not to be held while the call waits.
  if (call.took_over) return Submit<Request, Response>(std::move(call), std::move(mutation), std::move(fill));
  v1::Mutation take_over = NewMutation(call);
  take_over.set_sequence(0);  // The call's own retry row is for its own answer.
  v1::Mutation::RecoverLease& recover = *take_over.mutable_recover_lease();
  if (mutation.has_create()) {
    recover.set_path(mutation.create().path());
    *recover.mutable_lease_seen() = mutation.create().lease_seen();
  } else if (mutation.has_append()) {
    recover.set_path(mutation.append().path());
    *recover.mutable_lease_seen() = mutation.append().lease_seen();
  } else {
    recover.set_path(mutation.truncate().path());
    *recover.mutable_lease_seen() = mutation.truncate().lease_seen();
  }
  space_->Submit(std::move(mutation), [this, operation, call = std::move(call), take_over = std::move(take_over), again,
                                       fill = std::move(fill)](absl::StatusOr<v1::MutationResult> result) mutable {
    Executor* const reader = call.reader;
    reader->Post([this, operation, call = std::move(call), take_over = std::move(take_over), again, fill = std::move(fill),
                  result = std::move(result)]() mutable {
      if (ReasonOf(result.status()) == kMayBeTakenOver) return TakeOver(operation, std::move(call), std::move(take_over), again);
      if (!result.ok()) return call.done(result.status());
      Response response;
      if (const absl::Status status = fill(*result, response); !status.ok()) return call.done(status);
      Answer(call, std::move(response));
    });
  });
}

template <class Request, class Response>
void ClientService::TakeOver(std::string_view operation, Call<Request, Response> call, v1::Mutation mutation,
                             void (ClientService::*again)(Call<Request, Response>)) {
  call.took_over = true;
  space_->Submit(std::move(mutation), [this, operation, call = std::move(call), again](absl::StatusOr<v1::MutationResult> result) mutable {
    Executor* const reader = call.reader;
    reader->Post([this, operation, call = std::move(call), again, result = std::move(result)]() mutable {
      if (!result.ok()) return call.done(result.status());
      if (result->done()) return (this->*again)(std::move(call));
      Error error;
      error.kind = ErrorKind::kBeingWritten;
      error.reason = std::string(kRecovering);
      error.path = result->path();
      error.message = fmt::format("Failed to {} {} for {} because lease recovery is in progress. Try again later", operation, error.path,
                                  call.header.client_name());
      call.done(MakeError(std::move(error)));
    });
  });
}

}  // namespace cairn::namenode
