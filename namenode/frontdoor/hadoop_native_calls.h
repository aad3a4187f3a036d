#pragma once

// How HadoopDoor makes native calls: the templates that its sources share. For namenode/frontdoor/hadoop_*.cc only.

#include <type_traits>
#include <utility>

#include "common/error.h"
#include "namenode/frontdoor/hadoop_door.h"

namespace cairn::namenode {

// For `then`, where the client is told that it was done, or why not, and nothing else.
inline auto AnswerNothing(const HadoopCallPtr& call) {
  return [call](const auto& answer) {
    if (!answer.ok()) return call->Fail(answer.status());
    call->Answer(hdfs::EmptyProto());
  };
}
// The same in the calls of writers.
inline auto AnswerNothingAsIo(const HadoopCallPtr& call) {
  return [call](const auto& answer) {
    if (!answer.ok()) return call->FailAsIo(answer.status());
    call->Answer(hdfs::EmptyProto());
  };
}

template <class Api, class Request, class Response>
void HadoopDoor::Ask(const CallPtr& call, Api* api, void (Api::*method)(api::CallContext, Request, api::Done<Response>),
                     std::type_identity_t<Request> request, std::type_identity_t<api::Done<Response>> then,
                     const std::string& client_name) {
  *request.mutable_header() = call->Header(client_name);
  (api->*method)(call->context(), std::move(request), std::move(then));
}

template <class Request, class Response>
void HadoopDoor::AskOnce(const CallPtr& call, void (api::ClientNamenode::*method)(api::CallContext, Request, api::Done<Response>),
                         std::type_identity_t<Request> request, std::type_identity_t<api::Done<Response>> then,
                         const std::string& client_name) {
  *request.mutable_header() = call->HeaderOfOnce(client_name, parts_.clock->WallNow());
  Request copy = request;
  (parts_.clients->*method)(
      call->context(), std::move(request),
      [this, call, method, again = std::move(copy), client_name, then = std::move(then)](absl::StatusOr<Response> answer) mutable {
        // Its slot has gone on, to a later call that overtook it. What was never sent before cannot have acted.
        const std::string reason = ReasonOf(answer.status());
        if (call->is_resent() || (reason != "OLD_SEQUENCE" && reason != "REQUEST_MISMATCH")) return then(std::move(answer));
        Ask(call, parts_.clients, method, std::move(again), std::move(then), client_name);
      });
}

template <class Request, class Response>
void HadoopDoor::AskForNothing(const CallPtr& call, void (api::ClientNamenode::*method)(api::CallContext, Request, api::Done<Response>),
                               std::type_identity_t<Request> request) {
  Ask(call, parts_.clients, method, std::move(request), AnswerNothing(call));
}

}  // namespace cairn::namenode
