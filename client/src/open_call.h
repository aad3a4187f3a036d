#pragma once

// Calls that open a file for writing.
//
// Such a call must not be forgotten when its caller goes: it may act afterwards, and as the client renews its lease for all files at once,
// a file that nobody here knows of would stay open for as long as any other is written. So once it has been sent it is carried through in
// a scope of the client's own, whoever still waits for it; and if nobody does when it is answered, the file is given up there and then. If
// no answer comes in time, it is left to UncertainOpens.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/src/client_core.h"

namespace cairn::client {

template <class Response>
struct OpenCall {
  explicit OpenCall(Executor* executor) : done(executor) {}
  Event done;
  std::optional<absl::StatusOr<Response>> result;
  NamenodeCaller::Fate fate;
};

template <class Request, class Response>
Awaitable<void> CarryThrough(ClientCore* core, Scope scope, std::shared_ptr<OpenCall<Response>> call,
                             NamenodeCaller::Method<Request, Response> method, Request request) {
  const std::string path = request.path();
  UncertainOpens& opens = core->opens();
  opens.Begin(path);
  absl::StatusOr<Response> answer = co_await core->namenode().Mutate(scope, method, std::move(request), &call->fate);
  const uint64_t inode_id = answer.ok() ? answer->status().inode_id() : 0;
  if (call->fate.in_doubt) {
    opens.EndUnknown(path);
  } else {
    opens.End(path, inode_id);
  }
  if (call->fate.unwanted) {
    if (inode_id == 0) co_return;
    core->leases().Release(inode_id);
    opens.Closed(inode_id);
    co_return;
  }
  call->result.emplace(std::move(answer));
  call->done.Set();
}

// `method` is Create or Append. On `scope`'s executor, which is one of the core's. kCancelled when `scope` stops.
template <class Request, class Response>
Awaitable<absl::StatusOr<Response>> AskToOpen(ClientCore* core, Scope scope, NamenodeCaller::Method<Request, Response> method,
                                              Request request) {
  const auto call = std::make_shared<OpenCall<Response>>(scope.executor);
  const Scope lasting = core->LastingScope(scope.executor);
  lasting.group->Spawn("open", [core, lasting, call, method, request = std::move(request)]() mutable {
    return CarryThrough<Request, Response>(core, lasting, std::move(call), method, std::move(request));
  });
  const auto hook = scope.group->OnStop([call] { call->done.Set(); });
  const bool woken = co_await call->done.Wait(SteadyTime::Infinite());
  static_cast<void>(woken);
  if (call->result) co_return std::move(*call->result);
  call->fate.unwanted = true;
  co_return MakeError(ErrorKind::kCancelled, "cancelled");
}

}  // namespace cairn::client
