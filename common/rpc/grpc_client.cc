#include "common/rpc/grpc_client.h"

#include <deque>
#include <set>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <fmt/format.h>

#include "common/mutex.h"
#include "common/rpc/grpc_conversions.h"

namespace cairn::rpc {

struct GrpcChannel::Impl {
  class Unary;
  class Stream;
  class Cancellable {
   public:
    virtual ~Cancellable() = default;
    virtual void Cancel() = 0;
  };

  Impl(HostPort target_in, Env* env_in) : target(std::move(target_in)), env(env_in) {}

  // False when the channel is closing: then nothing may be started.
  bool Enter(Cancellable* call) {
    MutexLock lock(mu);
    if (closing) return false;
    under_way.insert(call);
    return true;
  }
  void Leave(Cancellable* call) {
    MutexLock lock(mu);
    under_way.erase(call);
    if (under_way.empty()) all_ended.NotifyAll();
  }

  const HostPort target;
  Env* const env;
  // Set in the constructor, not changed after; gRPC's objects are thread-safe themselves. The last two are taken down by the destructor.
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::GenericStub> stub;
  grpc::CompletionQueue queue;
  std::unique_ptr<Executor> poller;

  Mutex mu;
  CondVar all_ended;
  std::set<Cancellable*> under_way ABSL_GUARDED_BY(mu);
  bool closing ABSL_GUARDED_BY(mu) = false;
};

class GrpcChannel::Impl::Unary : public Tag, public Cancellable {
 public:
  Unary(Impl* impl, google::protobuf::MessageLite* response, absl::AnyInvocable<void(absl::Status)> done)
      : impl_(impl), response_(response), done_(std::move(done)) {}

  void Start(const std::string& method, const api::CallContext& context, const google::protobuf::MessageLite& request) {
    if (!impl_->Enter(this)) {
      done_(absl::CancelledError("the client is closing"));
      delete this;
      return;
    }
    context_.set_deadline(ToGrpcDeadline(impl_->env->clock(), context.deadline));
    reader_ = impl_->stub->PrepareUnaryCall(&context_, method, ToBytes(request), &impl_->queue);
    reader_->StartCall();
    reader_->Finish(&bytes_, &status_, this);
  }

  void Cancel() override { context_.TryCancel(); }

  void Proceed(bool) override {
    absl::Status status = Annotated();
    if (status.ok() && !FromBytes(&bytes_, response_))
      status = absl::InternalError(fmt::format("the answer of {} does not parse", impl_->target.ToString()));
    done_(std::move(status));
    impl_->Leave(this);
    delete this;
  }

 private:
  // Transport trouble should name whom it was with; what the server said names its own objects.
  absl::Status Annotated() const {
    absl::Status status = FromGrpc(status_);
    if (status.ok() || !status_.error_details().empty()) return status;
    return {status.code(), fmt::format("{}: {}", impl_->target.ToString(), PlainWords(status_.error_message()))};
  }

  Impl* const impl_;
  google::protobuf::MessageLite* const response_;  // Owned by `done_`'s closure.
  absl::AnyInvocable<void(absl::Status)> done_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer bytes_;
  grpc::Status status_;
};

// A stream: one read and one write under way at most. Shared by its operations and the sink.
class GrpcChannel::Impl::Stream : public RawSink, public Cancellable, public std::enable_shared_from_this<Stream> {
 public:
  Stream(Impl* impl, std::unique_ptr<RawHandler> receiver) : impl_(impl), receiver_(std::move(receiver)) {
    started_.stream = read_.stream = written_.stream = half_closed_.stream = finished_.stream = this;
    started_.on = &Stream::OnStarted;
    read_.on = &Stream::OnRead;
    written_.on = &Stream::OnWritten;
    half_closed_.on = &Stream::OnHalfClosed;
    finished_.on = &Stream::OnFinished;
  }

  void Start(const std::string& method, const api::CallContext& context) {
    if (!impl_->Enter(this)) {
      receiver_->OnClosed(absl::CancelledError("the client is closing"));
      receiver_ = nullptr;
      MutexLock lock(mu_);
      ended_ = true;
      return;
    }
    context_.set_deadline(ToGrpcDeadline(impl_->env->clock(), context.deadline));
    call_ = impl_->stub->PrepareCall(&context_, method, &impl_->queue);
    started_.self = shared_from_this();
    call_->StartCall(&started_);
  }

  void Cancel() override { context_.TryCancel(); }

  bool Send(const google::protobuf::MessageLite& message) override {
    MutexLock lock(mu_);
    if (ended_ || closing_) return false;
    out_.push_back(ToBytes(message));
    PumpLocked();
    return true;
  }
  size_t Queued() const override {
    MutexLock lock(mu_);
    return out_.size();
  }
  void Close(absl::Status status) override {
    MutexLock lock(mu_);
    if (ended_ || closing_) return;
    closing_ = true;
    if (!status.ok()) context_.TryCancel();
    PumpLocked();
  }

 private:
  struct Op : Tag {
    Stream* stream = nullptr;
    void (Stream::*on)(bool) = nullptr;
    std::shared_ptr<Stream> self;  // While started.
    void Proceed(bool ok) override {
      const std::shared_ptr<Stream> keep = std::move(self);
      (stream->*on)(ok);
    }
  };

  void OnStarted(bool ok) {
    if (!ok) return StartFinish();
    {
      MutexLock lock(mu_);
      running_ = true;
      PumpLocked();
    }
    Read();
  }

  void Read() {
    read_.self = shared_from_this();
    call_->Read(&bytes_, &read_);
  }

  void OnRead(bool ok) {
    if (!ok) return StartFinish();
    std::unique_ptr<google::protobuf::MessageLite> message = receiver_->NewMessage();
    if (!FromBytes(&bytes_, message.get())) {
      context_.TryCancel();
      return StartFinish();
    }
    receiver_->OnMessage(message.get());
    Read();
  }

  void PumpLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!running_ || writing_ || ended_) return;
    if (!out_.empty()) {
      writing_ = true;
      written_.self = shared_from_this();
      call_->Write(out_.front(), &written_);
    } else if (closing_ && !half_close_started_) {
      half_close_started_ = true;
      half_closed_.self = shared_from_this();
      call_->WritesDone(&half_closed_);
    }
  }

  void OnWritten(bool ok) {
    MutexLock lock(mu_);
    writing_ = false;
    if (ok)
      out_.pop_front();
    else
      ended_ = true;  // Broken; the read under way fails and finishes the stream.
    PumpLocked();
  }

  void OnHalfClosed(bool) {}

  void StartFinish() {
    {
      MutexLock lock(mu_);
      ended_ = true;
    }
    finished_.self = shared_from_this();
    call_->Finish(&status_, &finished_);
  }

  void OnFinished(bool) {
    absl::Status status = FromGrpc(status_);
    if (!status.ok() && status_.error_details().empty())
      status = absl::Status(status.code(), fmt::format("{}: {}", impl_->target.ToString(), PlainWords(status_.error_message())));
    receiver_->OnClosed(std::move(status));
    receiver_ = nullptr;
    impl_->Leave(this);
  }

  Impl* const impl_;
  // The poller's, after Start; of context_ others only call TryCancel, which is thread-safe.
  std::unique_ptr<RawHandler> receiver_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;  // Set in Start; its operations are thread-safe.
  Op started_, read_, written_, half_closed_, finished_;        // Each the completion queue's while started.
  grpc::ByteBuffer bytes_;                                      // The poller's: of the one read.
  grpc::Status status_;                                         // The poller's: of the finish.

  mutable Mutex mu_;
  std::deque<grpc::ByteBuffer> out_ ABSL_GUARDED_BY(mu_);
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool half_close_started_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

GrpcChannel::GrpcChannel(HostPort target, std::string name, Env* env) : impl_(std::make_unique<Impl>(std::move(target), env)) {
  LockWithoutDeadlockSearch();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // A connection of its own.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  impl_->channel = grpc::CreateCustomChannel(impl_->target.ToString(), grpc::InsecureChannelCredentials(), arguments);
  impl_->stub = std::make_unique<grpc::GenericStub>(impl_->channel);
  impl_->poller = env->executors().NewExecutor(name);
  impl_->poller->Post([queue = &impl_->queue] { PollUntilShutdown(queue); });
}

GrpcChannel::~GrpcChannel() {
  AssertMayBlock("closing a gRPC channel");
  {
    MutexLock lock(impl_->mu);
    impl_->closing = true;
    for (Impl::Cancellable* call : impl_->under_way) call->Cancel();
    while (!impl_->under_way.empty()) impl_->all_ended.Wait(impl_->mu);
  }
  impl_->queue.Shutdown();
  impl_->poller.reset();
}

const HostPort& GrpcChannel::target() const { return impl_->target; }

void GrpcChannel::CallRaw(const std::string& method, const api::CallContext& context, const google::protobuf::MessageLite& request,
                          google::protobuf::MessageLite* response, absl::AnyInvocable<void(absl::Status)> done) {
  // Owns itself until its one completion.
  (new Impl::Unary(impl_.get(), response, std::move(done)))->Start(method, context, request);
}

std::shared_ptr<RawSink> GrpcChannel::OpenRaw(const std::string& method, const api::CallContext& context,
                                              std::unique_ptr<RawHandler> receiver) {
  auto stream = std::make_shared<Impl::Stream>(impl_.get(), std::move(receiver));
  stream->Start(method, context);
  return stream;
}

}  // namespace cairn::rpc
