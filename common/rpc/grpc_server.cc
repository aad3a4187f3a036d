#include "common/rpc/grpc_server.h"

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <fmt/format.h>

#include "common/check.h"
#include "common/error.h"
#include "common/mutex.h"
#include "common/rpc/grpc_conversions.h"

namespace cairn::rpc {
namespace {

struct Method {
  GrpcServer::MessageFactory new_request;  // Unary methods.
  GrpcServer::UnaryHandler unary;
  GrpcServer::StreamHandler stream;  // Streams.
};

// A completion queue with the thread that serves it, and what other threads want that thread to do. An answer that leaves from there wakes
// nobody when it has been sent; and however many were posted meanwhile, one ring of the bell brings them all.
class Poller {
 public:
  explicit Poller(std::unique_ptr<grpc::ServerCompletionQueue> queue) : queue_(std::move(queue)), bell_(this) {}
  // Shuts the queue down; returns when it is drained. No call is under way.
  ~Poller() {
    queue_->Shutdown();
    thread_.reset();
  }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  void Start(std::unique_ptr<Executor> thread) {
    thread_ = std::move(thread);
    thread_->Post([queue = queue_.get()] { PollUntilShutdown(queue); });
  }
  grpc::ServerCompletionQueue* queue() const { return queue_.get(); }

  // `call` is one of this queue's, and not yet finished.
  void Post(Task task, grpc_call* call) {
    const MutexLock lock(mu_);
    tasks_.push_back(std::move(task));
    if (!std::exchange(rung_, true)) Ring(call);
  }

 private:
  // Comes out of the queue once for each ring.
  class Bell final : public grpc::internal::CompletionQueueTag, public Tag {
   public:
    explicit Bell(Poller* poller) : poller_(poller) {}
    bool FinalizeResult(void** tag, bool*) override {
      *tag = static_cast<Tag*>(this);
      return true;
    }
    void Proceed(bool) override { poller_->RunTasks(); }

   private:
    Poller* const poller_;
  };

  // No operations are done as soon as they are begun. An alarm would do as well, but goes by way of a thread of gRPC's.
  void Ring(grpc_call* call) {
    const grpc_call_error error =
        grpc_call_start_batch(call, nullptr, 0, static_cast<grpc::internal::CompletionQueueTag*>(&bell_), nullptr);
    CAIRN_CHECK(error == GRPC_CALL_OK, "the poller's bell");
  }

  void RunTasks() {
    std::vector<Task> tasks;
    {
      const MutexLock lock(mu_);
      tasks.swap(tasks_);
      rung_ = false;
    }
    for (Task& task : tasks) std::exchange(task, nullptr)();
  }

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  Bell bell_;                         // Constant.
  std::unique_ptr<Executor> thread_;  // Of the owner.
  Mutex mu_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mu_);
  bool rung_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

struct GrpcServer::Impl {
  Impl(Options options_in, Env* env_in) : options(std::move(options_in)), env(env_in) {}

  class Call;
  void Accept(Poller* poller);

  const Options options;
  Env* const env;
  // Made before or in Start by the thread that owns the server, fixed from then until Stop.
  std::map<std::string, Method> methods;
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::Server> server;
  std::vector<std::unique_ptr<Poller>> pollers;

  Mutex mu;
  CondVar all_ended;
  size_t calls ABSL_GUARDED_BY(mu) = 0;
  bool stopping ABSL_GUARDED_BY(mu) = false;
};

// One call, unary or stream, from its acceptance to its end. Shared by the operations under way (each holds `self` while it is
// started), by the sink and by the handler's answer. An operation is one of the member tags, so a started call allocates nothing more.
class GrpcServer::Impl::Call : public RawSink, public std::enable_shared_from_this<Call> {
 public:
  Call(Impl* impl, Poller* poller) : impl_(impl), poller_(poller), stream_(&context_) {
    accepted_.call = read_.call = written_.call = finished_.call = home_.call = this;
    accepted_.on = &Call::OnAccepted;
    read_.on = &Call::OnRead;
    written_.on = &Call::OnWritten;
    finished_.on = &Call::OnFinished;
    MutexLock lock(impl_->mu);
    ++impl_->calls;
  }
  ~Call() override {
    MutexLock lock(impl_->mu);
    if (--impl_->calls == 0) impl_->all_ended.NotifyAll();
  }

  void Start() {
    accepted_.self = shared_from_this();
    impl_->service.RequestCall(&context_, &stream_, poller_->queue(), poller_->queue(), &accepted_);
  }

  bool Send(const google::protobuf::MessageLite& message) override {
    MutexLock lock(mu_);
    if (closing_) return false;
    out_.push_back(ToBytes(message));
    PumpLocked();
    return true;
  }
  size_t Queued() const override {
    MutexLock lock(mu_);
    return out_.size();
  }
  void Close(absl::Status status) override { Finish(std::move(status)); }

 private:
  struct Op : Tag {
    Call* call = nullptr;
    void (Call::*on)(bool) = nullptr;
    std::shared_ptr<Call> self;  // While started.
    void Proceed(bool ok) override {
      const std::shared_ptr<Call> keep = std::move(self);
      (call->*on)(ok);
    }
  };

  struct Home : TaskQueue {
    Call* call = nullptr;
    void Post(Task task) override { call->poller_->Post(std::move(task), call->context_.c_call()); }
  };

  void OnAccepted(bool ok) {
    if (!ok) return;  // The server is stopping.
    impl_->Accept(poller_);
    const auto found = impl_->methods.find(context_.method());
    if (found == impl_->methods.end()) {
      Finish(absl::UnimplementedError(fmt::format("no method {}; is this the right port and version?", context_.method())));
      return;
    }
    method_ = &found->second;
    if (method_->stream) {
      handler_ = method_->stream(MakeContext(), shared_from_this());
      incoming_ = handler_->NewMessage();
    } else {
      incoming_ = method_->new_request();
    }
    Read();
  }

  api::CallContext MakeContext() {
    api::CallContext context;
    context.deadline = FromGrpcDeadline(impl_->env->clock(), context_.raw_deadline());
    context.peer = context_.peer();
    context.home = &home_;
    return context;
  }

  void Read() {
    read_.self = shared_from_this();
    stream_.Read(&bytes_, &read_);
  }

  void OnRead(bool ok) {
    if (!ok) return OnEndOfInput();
    if (!FromBytes(&bytes_, incoming_.get())) {
      absl::Status bad = MakeError(ErrorKind::kInvalidArgument, fmt::format("{}: the message does not parse", context_.method()));
      if (handler_) NotifyClosed(bad);
      Finish(std::move(bad));
      return;
    }
    if (handler_) {
      handler_->OnMessage(incoming_.get());
      incoming_ = handler_->NewMessage();
      Read();
      return;
    }
    method_->unary(MakeContext(), incoming_.get(),
                   [self = shared_from_this()](absl::StatusOr<std::unique_ptr<google::protobuf::MessageLite>> response) {
                     self->Answer(std::move(response));
                   });
  }

  void OnEndOfInput() {
    if (!handler_) {
      Finish(MakeError(ErrorKind::kInvalidArgument, fmt::format("{}: the call ended without a request", context_.method())));
      return;
    }
    // A half-closed stream and a broken one look alike here: whether the final status can be sent tells them apart.
    input_ended_ = true;
    if (delivered_.has_value()) return NotifyEnd();
    Finish(absl::OkStatus());
  }

  void NotifyEnd() { NotifyClosed(*delivered_ ? absl::OkStatus() : absl::UnavailableError("the stream broke")); }

  void NotifyClosed(absl::Status status) {
    const std::shared_ptr<RawHandler> handler = std::move(handler_);
    handler_ = nullptr;
    if (handler) handler->OnClosed(std::move(status));
  }

  void Answer(absl::StatusOr<std::unique_ptr<google::protobuf::MessageLite>> response) {
    if (!response.ok()) return Finish(response.status());
    const grpc::ByteBuffer bytes = ToBytes(**response);
    finished_.self = shared_from_this();
    stream_.WriteAndFinish(bytes, grpc::WriteOptions(), grpc::Status::OK, &finished_);
  }

  void Finish(absl::Status status) {
    MutexLock lock(mu_);
    if (closing_) return;
    closing_ = true;
    final_ = ToGrpc(status);
    PumpLocked();
  }

  // Starts the next write, or the end once all is written; one write may be under way.
  void PumpLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_) return;
    if (!out_.empty()) {
      writing_ = true;
      written_.self = shared_from_this();
      stream_.Write(out_.front(), &written_);
    } else if (closing_ && !finish_started_) {
      finish_started_ = true;
      finished_.self = shared_from_this();
      stream_.Finish(final_, &finished_);
    }
  }

  void OnWritten(bool ok) {
    MutexLock lock(mu_);
    writing_ = false;
    if (ok)
      out_.pop_front();
    else
      out_.clear();  // The stream is broken; the read that is under way says so.
    PumpLocked();
  }

  // The status has been sent, or cannot be. A read under way fails soon after and tells the handler.
  void OnFinished(bool ok) {
    delivered_ = ok;
    if (input_ended_) NotifyEnd();
  }

  Impl* const impl_;
  Poller* const poller_;
  grpc::GenericServerContext context_;           // Read by the poller only.
  grpc::GenericServerAsyncReaderWriter stream_;  // Operations are thread-safe; mu_ orders writes and the finish.
  Op accepted_, read_, written_, finished_;      // Each owned by the completion queue while started.
  Home home_;                                    // Constant.
  const Method* method_ = nullptr;               // Set once, at acceptance.
  // The reading side: only the poller that completes the one read touches these.
  grpc::ByteBuffer bytes_;
  std::unique_ptr<google::protobuf::MessageLite> incoming_;
  std::shared_ptr<RawHandler> handler_;
  // The poller's, too.
  bool input_ended_ = false;
  std::optional<bool> delivered_;  // Whether the final status went out.

  mutable Mutex mu_;
  std::deque<grpc::ByteBuffer> out_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool finish_started_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Status final_ ABSL_GUARDED_BY(mu_);
};

void GrpcServer::Impl::Accept(Poller* poller) {
  {
    MutexLock lock(mu);
    if (stopping) return;
  }
  std::make_shared<Call>(this, poller)->Start();
}

GrpcServer::GrpcServer(Options options, Env* env) : impl_(std::make_unique<Impl>(std::move(options), env)) { LockWithoutDeadlockSearch(); }

GrpcServer::~GrpcServer() { Stop(); }

void GrpcServer::AddRaw(const std::string& method, MessageFactory new_request, UnaryHandler handler) {
  CAIRN_CHECK(impl_->server == nullptr, "methods are added before Start");
  Method& entry = impl_->methods[method];
  entry.new_request = std::move(new_request);
  entry.unary = std::move(handler);
}

void GrpcServer::AddRawStream(const std::string& method, StreamHandler handler) {
  CAIRN_CHECK(impl_->server == nullptr, "methods are added before Start");
  impl_->methods[method].stream = std::move(handler);
}

absl::StatusOr<HostPort> GrpcServer::Start() {
  grpc::ServerBuilder builder;
  int port = 0;
  const std::string address = impl_->options.bind.ToString();
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // A second daemon on the port is an error, not a rival.
  // Streams may be silent for long, and our clients ping every 20 s to notice a peer that vanished: no offence.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.RegisterAsyncGenericService(&impl_->service);
  for (size_t i = 0; i < impl_->options.pollers; ++i) impl_->pollers.push_back(std::make_unique<Poller>(builder.AddCompletionQueue()));
  impl_->server = builder.BuildAndStart();
  if (impl_->server == nullptr || port == 0)
    return absl::UnavailableError(fmt::format("cannot listen on {}: the port is taken or the address is not this machine's", address));
  for (size_t i = 0; i < impl_->pollers.size(); ++i) {
    Poller* const poller = impl_->pollers[i].get();
    for (size_t n = 0; n < impl_->options.calls_waiting; ++n) impl_->Accept(poller);
    poller->Start(impl_->env->executors().NewExecutor(fmt::format("grpc-srv-{}", i)));
  }
  return HostPort{impl_->options.bind.host, static_cast<uint16_t>(port)};
}

void GrpcServer::Stop() {
  if (impl_->server == nullptr) {
    impl_->pollers.clear();
    return;
  }
  AssertMayBlock("stopping a gRPC server");
  {
    MutexLock lock(impl_->mu);
    impl_->stopping = true;
  }
  impl_->server->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  {
    MutexLock lock(impl_->mu);
    while (impl_->calls > 0) impl_->all_ended.Wait(impl_->mu);
  }
  impl_->pollers.clear();  // Each ends when its queue is drained.
  impl_->server.reset();
}

}  // namespace cairn::rpc
