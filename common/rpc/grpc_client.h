#pragma once

#include <memory>
#include <string>

#include <google/protobuf/message_lite.h>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/api/admin.h"
#include "common/api/callback.h"
#include "common/api/client_namenode.h"
#include "common/api/datanode_namenode.h"
#include "common/api/inter_datanode.h"
#include "common/env/env.h"
#include "common/rpc/message_stream.h"

namespace cairn::rpc {

// The client side of gRPC for the interfaces of common/api: a channel with its own connection (so that no lane waits behind another's
// bytes) and its own poller thread. Connects when first used and reconnects by itself, with a back-off of at most 1 s; a call to an
// absent server fails at once with UNAVAILABLE. Thread-safe. `env` outlives this.
//
// Destroying it cancels what is under way: every callback is called, every handler closed, before the destructor returns.
// Never destroy it from one of its own callbacks.
class GrpcChannel {
 public:
  // `name`: of the poller thread, at most 15 bytes.
  GrpcChannel(HostPort target, std::string name, Env* env);
  ~GrpcChannel();
  GrpcChannel(const GrpcChannel&) = delete;
  GrpcChannel& operator=(const GrpcChannel&) = delete;

  const HostPort& target() const;

  template <class Request, class Response>
  void Call(const std::string& method, const api::CallContext& context, const Request& request, api::Done<Response> done) {
    auto response = std::make_unique<Response>();
    google::protobuf::MessageLite* into = response.get();
    CallRaw(method, context, request, into, [done = std::move(done), response = std::move(response)](absl::Status status) mutable {
      if (status.ok())
        done(std::move(*response));
      else
        done(std::move(status));
    });
  }

  template <class Out, class In>
  std::shared_ptr<api::MessageSink<Out>> OpenStream(const std::string& method, const api::CallContext& context,
                                                    std::shared_ptr<api::MessageHandler<In>> handler) {
    auto raw = std::make_unique<TypedHandler<In>>(std::move(handler));
    return std::make_shared<TypedSink<Out>>(OpenRaw(method, context, std::move(raw)));
  }

 private:
  void CallRaw(const std::string& method, const api::CallContext& context, const google::protobuf::MessageLite& request,
               google::protobuf::MessageLite* response, absl::AnyInvocable<void(absl::Status)> done);
  std::shared_ptr<RawSink> OpenRaw(const std::string& method, const api::CallContext& context, std::unique_ptr<RawHandler> receiver);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The interfaces over a channel each. Errors of the transport: UNAVAILABLE and DEADLINE_EXCEEDED without a kind: outcome unknown.
std::unique_ptr<api::ClientNamenode> NewClientNamenode(HostPort namenode, Env* env);
std::unique_ptr<api::DatanodeNamenode> NewDatanodeNamenode(HostPort namenode, const std::string& lane, Env* env);
std::unique_ptr<api::NamenodeAdmin> NewNamenodeAdmin(HostPort namenode, Env* env);
std::unique_ptr<api::DatanodeAdmin> NewDatanodeAdmin(HostPort datanode, Env* env);
std::unique_ptr<api::InterDatanode> NewInterDatanode(HostPort datanode, Env* env);

// Channels to other DataNodes, opened when first asked for and kept for the next call: a handful, the oldest idle one goes.
api::InterDatanodeResolver NewInterDatanodeResolver(Env* env);

}  // namespace cairn::rpc
