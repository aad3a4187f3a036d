// common/rpc over real sockets: calls, errors with their kinds, deadlines, absent and stopped servers, streams both ways.

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/mutex.h"
#include "common/rpc/api_services.h"
#include "common/rpc/grpc_client.h"
#include "common/rpc/grpc_server.h"
#include "tests/testing/refusing_namenode.h"

namespace cairn::rpc {
namespace {

// Answers Mkdirs by path; holds the answer of "/hold" until released.
class FakeNamenode : public cairn::testing::RefusingNamenode {
 public:
  void Mkdirs(api::CallContext context, v1::MkdirsRequest request, api::Done<v1::MkdirsResponse> done) override {
    if (request.path() == "/hold") {
      MutexLock lock(mu_);
      held_ = std::move(done);
      changed_.NotifyAll();
      return;
    }
    if (request.path() == "/fail") {
      Error error;
      error.kind = ErrorKind::kQuota;
      error.message = "/fail: too many entries";
      error.reason = "TOO_MANY";
      error.path = "/fail";
      error.limit = 7;
      error.key = "some.key";
      return done(MakeError(std::move(error)));
    }
    v1::MkdirsResponse response;
    response.mutable_header()->set_namenode_time_ms(static_cast<int64_t>(request.path().size()));
    last_peer = context.peer;
    done(std::move(response));
  }

  void WaitForHeld() {
    MutexLock lock(mu_);
    while (!held_) changed_.Wait(mu_);
  }
  void ReleaseHeld() {
    api::Done<v1::MkdirsResponse> done;
    {
      MutexLock lock(mu_);
      done = std::move(held_);
    }
    done(v1::MkdirsResponse());
  }

  std::string last_peer;  // The server's poller writes it before the answer that the test waits for.

 private:
  Mutex mu_;
  CondVar changed_;  // Used with mu_.
  api::Done<v1::MkdirsResponse> held_ ABSL_GUARDED_BY(mu_);
};

class RpcTest : public ::testing::Test {
 protected:
  RpcTest() : env_(NewRealEnv()) {}

  HostPort StartServer(uint16_t port = 0) {
    server_ = std::make_unique<GrpcServer>(GrpcServer::Options{.bind = {"127.0.0.1", port}}, env_.get());
    Serve(server_.get(), &namenode_);
    absl::StatusOr<HostPort> bound = server_->Start();
    EXPECT_TRUE(bound.ok()) << bound.status();
    return bound.ok() ? *bound : HostPort{};
  }

  absl::StatusOr<v1::MkdirsResponse> Mkdirs(api::ClientNamenode* client, const std::string& path,
                                            absl::Duration timeout = absl::Seconds(20)) {
    v1::MkdirsRequest request;
    request.set_path(path);
    api::CallContext context;
    context.deadline = env_->clock().Now() + timeout;
    std::promise<absl::StatusOr<v1::MkdirsResponse>> promise;
    client->Mkdirs(context, request, [&](absl::StatusOr<v1::MkdirsResponse> r) { promise.set_value(std::move(r)); });
    return promise.get_future().get();
  }

  std::unique_ptr<Env> env_;
  FakeNamenode namenode_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(RpcTest, AnswersCarryTheResponseAndThePeer) {
  auto client = NewClientNamenode(StartServer(), env_.get());
  const auto response = Mkdirs(client.get(), "/abc");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->header().namenode_time_ms(), 4);
  EXPECT_THAT(namenode_.last_peer, ::testing::HasSubstr("127.0.0.1"));
}

TEST_F(RpcTest, ErrorsKeepKindReasonAndNumbers) {
  auto client = NewClientNamenode(StartServer(), env_.get());
  const absl::Status status = Mkdirs(client.get(), "/fail").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::optional<Error> error = ErrorOf(status);
  ASSERT_TRUE(error.has_value()) << status;
  EXPECT_EQ(error->kind, ErrorKind::kQuota);
  EXPECT_EQ(error->reason, "TOO_MANY");
  EXPECT_EQ(error->limit, 7);
  EXPECT_EQ(error->key, "some.key");
  EXPECT_EQ(error->message, "/fail: too many entries");
}

TEST_F(RpcTest, ADeadlineEndsACallThatIsNotAnswered) {
  auto client = NewClientNamenode(StartServer(), env_.get());
  ASSERT_TRUE(Mkdirs(client.get(), "/x").ok());
  const absl::Status status = Mkdirs(client.get(), "/hold", absl::Seconds(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  namenode_.WaitForHeld();
  namenode_.ReleaseHeld();  // A late answer harms nobody.
  EXPECT_TRUE(Mkdirs(client.get(), "/x").ok());
}

TEST_F(RpcTest, AnAbsentServerIsUnavailableAndNamed) {
  const HostPort address = StartServer();
  server_->Stop();
  auto client = NewClientNamenode(address, env_.get());
  const absl::Status status = Mkdirs(client.get(), "/x").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(status.message(), address.ToString() + ": connection refused");
  EXPECT_EQ(KindOf(status), ErrorKind::kNone);
  auto nowhere = NewClientNamenode(HostPort{"no-such-host.invalid", 1}, env_.get());
  EXPECT_EQ(Mkdirs(nowhere.get(), "/x").status().message(), "no-such-host.invalid:1: the host name cannot be resolved");
}

TEST_F(RpcTest, AClientFindsARestartedServerAgain) {
  const HostPort address = StartServer();
  auto client = NewClientNamenode(address, env_.get());
  ASSERT_TRUE(Mkdirs(client.get(), "/x").ok());
  server_->Stop();
  ASSERT_FALSE(Mkdirs(client.get(), "/x").ok());
  StartServer(address.port);
  const SteadyTime give_up = env_->clock().Now() + absl::Seconds(20);
  absl::Status status;
  do status = Mkdirs(client.get(), "/x").status();
  while (!status.ok() && env_->clock().Now() < give_up);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(RpcTest, ATakenPortIsAnErrorThatNamesIt) {
  const HostPort address = StartServer();
  GrpcServer second(GrpcServer::Options{.bind = address}, env_.get());
  const absl::StatusOr<HostPort> bound = second.Start();
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(std::string(bound.status().message()), ::testing::HasSubstr(std::to_string(address.port)));
}

TEST_F(RpcTest, ClosingTheClientCancelsWhatIsUnderWay) {
  auto client = NewClientNamenode(StartServer(), env_.get());
  std::promise<absl::Status> promise;
  v1::MkdirsRequest request;
  request.set_path("/hold");
  client->Mkdirs({}, request, [&](absl::StatusOr<v1::MkdirsResponse> r) { promise.set_value(r.status()); });
  namenode_.WaitForHeld();
  client.reset();
  namenode_.ReleaseHeld();
  EXPECT_EQ(promise.get_future().get().code(), absl::StatusCode::kCancelled);
}

// A report stream whose server echoes what it gets as acknowledgements.
class EchoReports : public api::DatanodeNamenode {
 public:
  void Register(api::CallContext, v1::RegisterRequest, api::Done<v1::RegisterResponse> done) override { done(v1::RegisterResponse()); }
  void Heartbeat(api::CallContext, v1::HeartbeatRequest, api::Done<v1::HeartbeatResponse> done) override { done(v1::HeartbeatResponse()); }
  void CommitBlockRecovery(api::CallContext, v1::CommitBlockRecoveryRequest, api::Done<v1::CommitBlockRecoveryResponse> done) override {
    done(v1::CommitBlockRecoveryResponse());
  }

  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(api::CallContext,
                                                          std::shared_ptr<api::MessageHandler<v1::ReportDown>> down) override {
    return std::make_shared<Session>(this, std::move(down));
  }
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(api::CallContext,
                                                            std::shared_ptr<api::MessageHandler<v1::CommandDown>>) override {
    return nullptr;
  }

  std::atomic<int> closed{0};

 private:
  class Session : public api::MessageSink<v1::ReportUp> {
   public:
    Session(EchoReports* owner, std::shared_ptr<api::MessageHandler<v1::ReportDown>> down) : owner_(owner), down_(std::move(down)) {}
    bool Send(v1::ReportUp up) override {
      if (up.hello().last() == 1000000) {
        down_->OnClosed(MakeError(ErrorKind::kInvalidArgument, "bad number"));
        return false;
      }
      v1::ReportDown answer;
      answer.mutable_acknowledgement()->set_applied(up.hello().last());
      down_->OnMessage(std::move(answer));
      return true;
    }
    size_t Queued() const override { return 0; }
    void Close(absl::Status) override { ++owner_->closed; }

   private:
    EchoReports* owner_;
    std::shared_ptr<api::MessageHandler<v1::ReportDown>> down_;
  };
};

class Collector : public api::MessageHandler<v1::ReportDown> {
 public:
  void OnMessage(v1::ReportDown message) override {
    MutexLock lock(mu_);
    applied_.push_back(message.acknowledgement().applied());
    changed_.NotifyAll();
  }
  void OnClosed(absl::Status status) override {
    MutexLock lock(mu_);
    closed_ = true;
    status_ = std::move(status);
    changed_.NotifyAll();
  }
  std::vector<uint64_t> WaitFor(size_t count) {
    MutexLock lock(mu_);
    while (applied_.size() < count && !closed_) changed_.Wait(mu_);
    return applied_;
  }
  absl::Status WaitClosed() {
    MutexLock lock(mu_);
    while (!closed_) changed_.Wait(mu_);
    return status_;
  }

 private:
  Mutex mu_;
  CondVar changed_;  // Used with mu_.
  std::vector<uint64_t> applied_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() : env_(NewRealEnv()) {
    server_ = std::make_unique<GrpcServer>(GrpcServer::Options{.bind = {"127.0.0.1", 0}}, env_.get());
    Serve(server_.get(), &namenode_);
    absl::StatusOr<HostPort> bound = server_->Start();
    EXPECT_TRUE(bound.ok()) << bound.status();
    if (bound.ok()) client_ = NewDatanodeNamenode(*bound, "report", env_.get());
  }
  static v1::ReportUp Hello(uint64_t last) {
    v1::ReportUp up;
    up.mutable_hello()->set_last(last);
    return up;
  }

  std::unique_ptr<Env> env_;
  EchoReports namenode_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<api::DatanodeNamenode> client_;
};

TEST_F(StreamTest, MessagesKeepTheirOrderBothWays) {
  auto collector = std::make_shared<Collector>();
  auto sink = client_->Reports({}, collector);
  std::vector<uint64_t> expected;
  for (uint64_t i = 1; i <= 5000; ++i) {
    ASSERT_TRUE(sink->Send(Hello(i)));
    expected.push_back(i);
  }
  EXPECT_EQ(collector->WaitFor(5000), expected);
  sink->Close(absl::OkStatus());
  const absl::Status closed = collector->WaitClosed();
  EXPECT_TRUE(closed.ok()) << closed;
  server_->Stop();
  EXPECT_EQ(namenode_.closed, 1);
}

TEST_F(StreamTest, TheServerEndsAStreamWithAReason) {
  auto collector = std::make_shared<Collector>();
  auto sink = client_->Reports({}, collector);
  ASSERT_TRUE(sink->Send(Hello(1000000)));
  const absl::Status status = collector->WaitClosed();
  EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument) << status;
  EXPECT_FALSE(sink->Send(Hello(1)));
}

TEST_F(StreamTest, AServerThatStopsClosesItsStreams) {
  auto collector = std::make_shared<Collector>();
  auto sink = client_->Reports({}, collector);
  ASSERT_TRUE(sink->Send(Hello(1)));
  ASSERT_EQ(collector->WaitFor(1).size(), 1u);
  server_->Stop();
  EXPECT_FALSE(collector->WaitClosed().ok());
  EXPECT_EQ(namenode_.closed, 1);
}

TEST_F(StreamTest, AClientThatVanishesClosesItsStreamOnTheServer) {
  auto collector = std::make_shared<Collector>();
  auto sink = client_->Reports({}, collector);
  ASSERT_TRUE(sink->Send(Hello(1)));
  ASSERT_EQ(collector->WaitFor(1).size(), 1u);
  client_.reset();
  EXPECT_FALSE(collector->WaitClosed().ok());
  server_->Stop();
  EXPECT_EQ(namenode_.closed, 1);
}

}  // namespace
}  // namespace cairn::rpc
