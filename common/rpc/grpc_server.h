#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/message_lite.h>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/api/callback.h"
#include "common/env/env.h"
#include "common/rpc/message_stream.h"

namespace cairn::rpc {

// An asynchronous gRPC server for the interfaces of common/api. One generic service takes every call: the method's name selects a handler
// that parses, calls the api object and serializes, so that no code is generated for each method (docs/decisions).
//
// Handlers are added before Start and run on the server's poller threads; api calls do not block. Thread-safe after Start.
class GrpcServer {
 public:
  struct Options {
    HostPort bind;
    size_t pollers = 2;         // Completion queues, each with a thread of its own.
    size_t calls_waiting = 64;  // Accepts outstanding on each queue.
  };

  // `env` outlives this.
  GrpcServer(Options options, Env* env);
  ~GrpcServer();  // Stops.
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // An error for a port that is taken, naming it. Returns the bound address.
  absl::StatusOr<HostPort> Start();
  // Cancels what is under way, waits until every handler has answered. Blocks; idempotent.
  void Stop();

  // A unary method: `call` gets the parsed request.
  template <class Request, class Response, class Call>
  void AddUnary(const std::string& method, Call call) {
    AddRaw(
        method, [] { return std::make_unique<Request>(); },
        [call](api::CallContext context, google::protobuf::MessageLite* request, MessageDone done) {
          call(std::move(context), std::move(*static_cast<Request*>(request)),
               [done = std::move(done)](absl::StatusOr<Response> response) mutable {
                 if (response.ok())
                   done(std::make_unique<Response>(std::move(*response)));
                 else
                   done(response.status());
               });
        });
  }

  // A bidirectional stream: `open` gets the sink for what goes to the caller and returns the handler of what comes.
  template <class In, class Out, class Open>
  void AddStream(const std::string& method, Open open) {
    AddRawStream(method, [open](api::CallContext context, std::shared_ptr<RawSink> sink) -> std::shared_ptr<RawHandler> {
      return std::make_shared<TypedHandler<In>>(open(std::move(context), std::make_shared<TypedSink<Out>>(std::move(sink))));
    });
  }

  using MessageDone = absl::AnyInvocable<void(absl::StatusOr<std::unique_ptr<google::protobuf::MessageLite>>)>;
  using UnaryHandler = std::function<void(api::CallContext, google::protobuf::MessageLite*, MessageDone)>;
  using MessageFactory = std::function<std::unique_ptr<google::protobuf::MessageLite>()>;

  using StreamHandler = std::function<std::shared_ptr<RawHandler>(api::CallContext, std::shared_ptr<RawSink>)>;

 private:
  void AddRaw(const std::string& method, MessageFactory new_request, UnaryHandler handler);
  void AddRawStream(const std::string& method, StreamHandler handler);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn::rpc
