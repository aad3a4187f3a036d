#include "tests/testing/sim_rpc.h"

#include <string>
#include <utility>

#include "common/check.h"

namespace cairn::testing {
namespace {

absl::Status Reset() { return absl::UnavailableError("connection reset by peer"); }
absl::Status Refused() { return absl::UnavailableError("connection refused"); }

template <class Message>
Message Parse(const std::string& bytes) {
  Message message;
  CAIRN_CHECK(message.ParseFromString(bytes), "a message does not survive the wire");
  return message;
}

// One call, from the caller's point of view: the first of answer, break and deadline is its result.
template <class Response>
struct Call {
  Executor* world = nullptr;
  api::Done<Response> done;
  std::shared_ptr<SimFlow> flow;
  Executor::TimerId timer = 0;

  void Finish(absl::StatusOr<Response> result) {
    if (!done) return;
    if (timer != 0) world->CancelTimer(timer);
    api::Done<Response> call = std::exchange(done, nullptr);
    const std::shared_ptr<SimFlow> ended = std::move(flow);
    // The server's end learns of it too, if it is still at work.
    if (ended) ended->Abandon(0);
    call(std::move(result));
  }
};

template <class Api, class Request, class Response, class Method>
void Invoke(SimProcess* caller, SimService<Api>* service, Method method, api::CallContext context, Request request,
            api::Done<Response> done) {
  SimWorld& world = caller->world();
  auto call = std::make_shared<Call<Response>>();
  call->world = &world.executor();
  call->done = std::move(done);
  if (!caller->alive()) {
    world.executor().Post([call] { call->Finish(Reset()); });
    return;
  }
  call->flow = world.network().OpenFlow(caller, service->machine());
  call->flow->OnBroken(0, [call] { call->Finish(Reset()); });
  call->timer = world.executor().PostAt(context.deadline, [call] {
    call->timer = 0;
    call->Finish(absl::DeadlineExceededError("no answer before the deadline"));
  });

  api::CallContext at_server = context;
  at_server.peer = caller->machine().address();
  const std::string bytes = request.SerializeAsString();
  Task arrive = [service, method, at_server, bytes, call, flow = call->flow] {
    Api* api = service->api();
    if (api == nullptr) {
      flow->Send(1, 0, [call] { call->Finish(Refused()); });
      return;
    }
    service->Begin(flow);
    (api->*method)(at_server, Parse<Request>(bytes), [call, flow](absl::StatusOr<Response> result) {
      if (!result.ok()) {
        flow->Send(1, 0, [call, status = result.status()] { call->Finish(status); });
        return;
      }
      const std::string answer = result->SerializeAsString();
      flow->Send(1, answer.size(), [call, answer] { call->Finish(Parse<Response>(answer)); });
    });
  };
  call->flow->Send(0, bytes.size(), std::move(arrive));
}

// One end of a message stream: takes messages from its own code as a sink and hands messages of the other end to a handler or, at
// the server, to the server's sink. Both ends of a stream are of this class; `Local` is what the end's own code sends.
template <class Up, class Down>
struct Stream {
  std::shared_ptr<SimFlow> flow;
  SimWorld* world = nullptr;
  // At the caller.
  std::shared_ptr<api::MessageHandler<Down>> caller_handler;
  bool caller_closed = false;
  size_t up_under_way = 0;
  // At the server.
  std::shared_ptr<api::MessageSink<Up>> server_sink;
  bool server_closed = false;
  size_t down_under_way = 0;

  void CloseCaller(const absl::Status& status) {
    if (std::exchange(caller_closed, true)) return;
    // In a task of its own: the caller may be in the middle of a Send or Close.
    world->executor().Post([handler = std::move(caller_handler), status] { handler->OnClosed(status); });
  }
  void CloseServer(const absl::Status& status) {
    if (std::exchange(server_closed, true)) return;
    const std::shared_ptr<api::MessageSink<Up>> sink = std::move(server_sink);
    if (sink) sink->Close(status);
  }
};

// What the caller sends through.
template <class Up, class Down>
class CallerSink final : public api::MessageSink<Up> {
 public:
  explicit CallerSink(std::shared_ptr<Stream<Up, Down>> stream) : stream_(std::move(stream)) {}

  bool Send(Up message) override {
    if (stream_->caller_closed) return false;
    ++stream_->up_under_way;
    const std::string bytes = message.SerializeAsString();
    stream_->flow->Send(0, bytes.size(), [stream = stream_, bytes] {
      --stream->up_under_way;
      // The server may close the stream while it takes the message.
      const std::shared_ptr<api::MessageSink<Up>> sink = stream->server_sink;
      if (sink) sink->Send(Parse<Up>(bytes));
    });
    return true;
  }
  size_t Queued() const override { return stream_->up_under_way; }
  void Close(absl::Status status) override {
    if (stream_->caller_closed) return;
    stream_->flow->Send(0, 0, [stream = stream_, status] { stream->CloseServer(status); });
    stream_->CloseCaller(status);
  }

 private:
  std::shared_ptr<Stream<Up, Down>> stream_;
};

// What the server's code sends through: it sees it as the handler that it was given.
template <class Up, class Down>
class ServerHandler final : public api::MessageHandler<Down> {
 public:
  explicit ServerHandler(std::shared_ptr<Stream<Up, Down>> stream) : stream_(std::move(stream)) {}

  void OnMessage(Down message) override {
    if (stream_->server_closed) return;
    const std::string bytes = message.SerializeAsString();
    stream_->flow->Send(1, bytes.size(), [stream = stream_, bytes] {
      const std::shared_ptr<api::MessageHandler<Down>> handler = stream->caller_handler;
      if (handler) handler->OnMessage(Parse<Down>(bytes));
    });
  }
  void OnClosed(absl::Status status) override {
    if (std::exchange(stream_->server_closed, true)) return;
    stream_->server_sink.reset();
    stream_->flow->Send(1, 0, [stream = stream_, status] { stream->CloseCaller(status); });
  }

 private:
  std::shared_ptr<Stream<Up, Down>> stream_;
};

template <class Up, class Down, class Method>
std::shared_ptr<api::MessageSink<Up>> OpenStream(SimProcess* caller, SimService<api::DatanodeNamenode>* service, Method method,
                                                 api::CallContext context, std::shared_ptr<api::MessageHandler<Down>> handler) {
  using StreamOf = Stream<Up, Down>;
  SimWorld& world = caller->world();
  auto stream = std::make_shared<StreamOf>();
  stream->world = &world;
  stream->caller_handler = std::move(handler);
  auto sink = std::make_shared<CallerSink<Up, Down>>(stream);
  if (!caller->alive()) {
    stream->CloseCaller(Reset());
    return sink;
  }
  stream->flow = world.network().OpenFlow(caller, service->machine());
  // The flow does not own the stream: its ends do, and what is under way.
  const std::weak_ptr<StreamOf> weak = stream;
  stream->flow->OnBroken(0, [weak] {
    if (std::shared_ptr<StreamOf> live = weak.lock()) live->CloseCaller(Reset());
  });
  api::CallContext at_server = context;
  at_server.peer = caller->machine().address();
  stream->flow->Send(0, 0, [service, method, at_server, stream, weak] {
    api::DatanodeNamenode* api = service->api();
    if (api == nullptr) {
      stream->flow->Send(1, 0, [stream] { stream->CloseCaller(Refused()); });
      return;
    }
    service->Begin(stream->flow);
    auto server_handler = std::make_shared<ServerHandler<Up, Down>>(stream);
    std::shared_ptr<api::MessageSink<Up>> server_sink = (api->*method)(at_server, std::move(server_handler));
    if (stream->server_closed) return;  // Refused at once.
    stream->server_sink = std::move(server_sink);
    stream->flow->OnBroken(1, [weak] {
      if (std::shared_ptr<StreamOf> live = weak.lock()) live->CloseServer(Reset());
    });
  });
  return sink;
}

}  // namespace

#define CAIRN_DEFINE_CALL(Class, Api, Name)                                                                                   \
  void Class::Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) {                 \
    Invoke<Api, v1::Name##Request, v1::Name##Response>(caller_, service_, &Api::Name, std::move(context), std::move(request), \
                                                       std::move(done));                                                      \
  }
#define CAIRN_DEFINE_CLIENT_CALL(Name) CAIRN_DEFINE_CALL(SimClientNamenode, api::ClientNamenode, Name)
CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_DEFINE_CLIENT_CALL)
#undef CAIRN_DEFINE_CLIENT_CALL
#define CAIRN_DEFINE_ADMIN_CALL(Name) CAIRN_DEFINE_CALL(SimNamenodeAdmin, api::NamenodeAdmin, Name)
CAIRN_NAMENODE_ADMIN_CALLS(CAIRN_DEFINE_ADMIN_CALL)
#undef CAIRN_DEFINE_ADMIN_CALL
#define CAIRN_DEFINE_INTER_CALL(Name) CAIRN_DEFINE_CALL(SimInterDatanode, api::InterDatanode, Name)
CAIRN_INTER_DATANODE_CALLS(CAIRN_DEFINE_INTER_CALL)
#undef CAIRN_DEFINE_INTER_CALL
#define CAIRN_DEFINE_DATANODE_CALL(Name) CAIRN_DEFINE_CALL(SimDatanodeNamenode, api::DatanodeNamenode, Name)
CAIRN_DATANODE_NAMENODE_CALLS(CAIRN_DEFINE_DATANODE_CALL)
#undef CAIRN_DEFINE_DATANODE_CALL
#undef CAIRN_DEFINE_CALL

std::shared_ptr<api::MessageSink<v1::ReportUp>> SimDatanodeNamenode::Reports(api::CallContext context,
                                                                             std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler) {
  return OpenStream<v1::ReportUp, v1::ReportDown>(caller_, service_, &api::DatanodeNamenode::Reports, std::move(context),
                                                  std::move(handler));
}

std::shared_ptr<api::MessageSink<v1::CommandUp>> SimDatanodeNamenode::Commands(
    api::CallContext context, std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler) {
  return OpenStream<v1::CommandUp, v1::CommandDown>(caller_, service_, &api::DatanodeNamenode::Commands, std::move(context),
                                                    std::move(handler));
}

}  // namespace cairn::testing
