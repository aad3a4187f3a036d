#pragma once

// common/api: what the parts of a cluster ask of one another, as pure interfaces: protos in, StatusOr out, no gRPC. In
// production common/rpc stands between the two ends; in simulation and in one-process tests they are joined directly.

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/env/clock.h"
#include "common/env/executor.h"

namespace cairn::api {

// Called exactly once, from any thread, possibly before the call that took it returns. Does not block.
template <class T>
using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;

// What comes with a call besides its message.
struct CallContext {
  SteadyTime deadline = SteadyTime::Infinite();  // After it nobody waits for the answer any more.
  std::string peer;                              // Address of the caller, for logs and placement; set by the transport on the serving side.
  // The transport's thread for this call, from where an answer is cheapest; set by it on the serving side. What is posted there must not
  // block, and hold the call's Done: the queue lives until that was called. Null: there is no such thread.
  TaskQueue* home = nullptr;
};

}  // namespace cairn::api
