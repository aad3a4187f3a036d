#include "tests/testing/sim_rpc.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/testing/refusing_namenode.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;

// Answers Mkdirs at once or when told; refuses the rest.
class FakeNamenode : public RefusingNamenode {
 public:
  void Mkdirs(api::CallContext context, v1::MkdirsRequest request, api::Done<v1::MkdirsResponse> done) override {
    ++calls;
    peer = context.peer;
    bytes = request.SerializeAsString();
    if (hold) {
      held.push_back(std::move(done));
    } else {
      done(v1::MkdirsResponse());
    }
  }

  int calls = 0;
  bool hold = false;
  std::string peer;
  std::string bytes;
  std::vector<api::Done<v1::MkdirsResponse>> held;
};

class SimRpcTest : public ::testing::Test {
 protected:
  SimRpcTest() {
    world_.network().SetDefaultLink({.latency = absl::Milliseconds(5)});
    service_.Serve(server_, &namenode_);
  }

  // Starts a call and says later how it ended.
  std::shared_ptr<std::optional<absl::Status>> Call(absl::Duration limit = absl::InfiniteDuration()) {
    auto result = std::make_shared<std::optional<absl::Status>>();
    api::CallContext context;
    context.deadline = limit == absl::InfiniteDuration() ? SteadyTime::Infinite() : world_.Now() + limit;
    client_api_.Mkdirs(context, v1::MkdirsRequest(), [result](absl::StatusOr<v1::MkdirsResponse> answer) {
      EXPECT_FALSE(result->has_value()) << "called twice";
      *result = answer.status();
    });
    return result;
  }
  absl::StatusCode Wait(const std::shared_ptr<std::optional<absl::Status>>& result) {
    EXPECT_TRUE(world_.RunUntil([&] { return result->has_value(); }, absl::Minutes(1)));
    return result->has_value() ? (*result)->code() : absl::StatusCode::kUnknown;
  }

  SimWorld world_{SimOptions{}};
  SimMachine* const a_ = world_.AddMachine("a");
  SimMachine* const b_ = world_.AddMachine("b");
  SimProcess* const server_ = a_->StartProcess();
  SimProcess* const client_ = b_->StartProcess();
  FakeNamenode namenode_;
  SimService<api::ClientNamenode> service_{a_};
  SimClientNamenode client_api_{client_, &service_};
};

TEST_F(SimRpcTest, AnswerTakesTwoDelaysAndThePeerIsKnown) {
  const SteadyTime start = world_.Now();
  EXPECT_EQ(Wait(Call()), absl::StatusCode::kOk);
  EXPECT_EQ(world_.Now() - start, absl::Milliseconds(10));
  EXPECT_EQ(namenode_.peer, "10.0.0.2");
}

TEST_F(SimRpcTest, ErrorsKeepTheirKind) {
  std::optional<absl::Status> result;
  client_api_.Delete({}, v1::DeleteRequest(), [&](absl::StatusOr<v1::DeleteResponse> answer) { result = answer.status(); });
  EXPECT_TRUE(world_.RunUntil([&] { return result.has_value(); }, absl::Seconds(1)));
  EXPECT_EQ(KindOf(*result), ErrorKind::kUnsupported);
}

TEST_F(SimRpcTest, DeadlineEndsACallWhoseAnswerIsLate) {
  namenode_.hold = true;
  const SteadyTime start = world_.Now();
  EXPECT_EQ(Wait(Call(absl::Seconds(2))), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(world_.Now() - start, absl::Seconds(2));
  EXPECT_EQ(namenode_.calls, 1);
  namenode_.held[0](v1::MkdirsResponse());  // Harmless.
  world_.RunFor(absl::Seconds(1));
}

TEST_F(SimRpcTest, RequestOrAnswerIsLostWithTheLink) {
  namenode_.hold = true;
  const auto before = Call();
  world_.network().Cut(a_, b_);
  EXPECT_EQ(Wait(before), absl::StatusCode::kUnavailable);
  EXPECT_EQ(namenode_.calls, 0);
  const auto after = Call();
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(namenode_.calls, 1);
  world_.network().Cut(a_, b_);
  EXPECT_EQ(Wait(after), absl::StatusCode::kUnavailable);
  namenode_.held[0](v1::MkdirsResponse());
  world_.RunFor(absl::Seconds(1));
}

TEST_F(SimRpcTest, BlockedLinkHoldsTheCallUntilHealed) {
  world_.network().Partition(a_, b_);
  const auto result = Call();
  world_.RunFor(absl::Seconds(30));
  EXPECT_FALSE(result->has_value());
  world_.network().Heal();
  EXPECT_EQ(Wait(result), absl::StatusCode::kOk);
}

TEST_F(SimRpcTest, DeadServerNeverAnswers) {
  namenode_.hold = true;
  const auto result = Call();
  world_.RunFor(absl::Seconds(1));
  server_->Kill();
  namenode_.held[0](v1::MkdirsResponse());  // The zombie's answer.
  EXPECT_EQ(Wait(result), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Wait(Call()), absl::StatusCode::kUnavailable);
  EXPECT_EQ(namenode_.calls, 1);
  FakeNamenode next;
  service_.Serve(a_->StartProcess(), &next);
  EXPECT_EQ(Wait(Call()), absl::StatusCode::kOk);
  EXPECT_EQ(next.calls, 1);
}

TEST_F(SimRpcTest, WithdrawnServiceBreaksOpenCalls) {
  namenode_.hold = true;
  const auto result = Call();
  world_.RunFor(absl::Seconds(1));
  service_.Withdraw();
  EXPECT_EQ(Wait(result), absl::StatusCode::kUnavailable);
}

TEST_F(SimRpcTest, DeadCallerIsToldAndItsCallsLeaveNoMore) {
  namenode_.hold = true;
  const auto open = Call();
  world_.RunFor(absl::Seconds(1));
  client_->Kill();
  EXPECT_EQ(Wait(open), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Wait(Call()), absl::StatusCode::kUnavailable);
  EXPECT_EQ(namenode_.calls, 1);
}

// ---- Streams.

template <class In>
struct Recorder : api::MessageHandler<In> {
  void OnMessage(In message) override { messages.push_back(std::move(message)); }
  void OnClosed(absl::Status status) override {
    EXPECT_FALSE(closed.has_value()) << "closed twice";
    closed = status;
  }
  std::vector<In> messages;
  std::optional<absl::Status> closed;
};

// Keeps the streams that it was asked for.
class FakeReports : public api::DatanodeNamenode {
 public:
  struct Sink : api::MessageSink<v1::ReportUp> {
    bool Send(v1::ReportUp message) override {
      messages.push_back(std::move(message));
      return true;
    }
    size_t Queued() const override { return 0; }
    void Close(absl::Status status) override { closed = status; }
    std::vector<v1::ReportUp> messages;
    std::optional<absl::Status> closed;
  };
  void Register(api::CallContext, v1::RegisterRequest, api::Done<v1::RegisterResponse> done) override { done(v1::RegisterResponse()); }
  void Heartbeat(api::CallContext, v1::HeartbeatRequest, api::Done<v1::HeartbeatResponse> done) override { done(v1::HeartbeatResponse()); }
  void CommitBlockRecovery(api::CallContext, v1::CommitBlockRecoveryRequest, api::Done<v1::CommitBlockRecoveryResponse> done) override {
    done(v1::CommitBlockRecoveryResponse());
  }
  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(api::CallContext,
                                                          std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler) override {
    down = std::move(handler);
    sink = std::make_shared<Sink>();
    if (refuse) std::exchange(down, nullptr)->OnClosed(absl::PermissionDeniedError("no"));
    return sink;
  }
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(api::CallContext,
                                                            std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler) override {
    handler->OnClosed(absl::UnimplementedError("none"));
    return nullptr;
  }
  bool refuse = false;
  std::shared_ptr<api::MessageHandler<v1::ReportDown>> down;
  std::shared_ptr<Sink> sink;
};

class SimStreamTest : public ::testing::Test {
 protected:
  SimStreamTest() {
    service_.Serve(server_, &namenode_);
    up_ = client_api_.Reports({}, handler_);
  }
  void Open() {
    world_.RunFor(absl::Seconds(1));
    ASSERT_NE(namenode_.sink, nullptr);
  }

  SimWorld world_{SimOptions{}};
  SimMachine* const a_ = world_.AddMachine("a");
  SimMachine* const b_ = world_.AddMachine("b");
  SimProcess* const server_ = a_->StartProcess();
  SimProcess* const client_ = b_->StartProcess();
  FakeReports namenode_;
  SimService<api::DatanodeNamenode> service_{a_};
  SimDatanodeNamenode client_api_{client_, &service_};
  std::shared_ptr<Recorder<v1::ReportDown>> handler_ = std::make_shared<Recorder<v1::ReportDown>>();
  std::shared_ptr<api::MessageSink<v1::ReportUp>> up_;
};

TEST_F(SimStreamTest, MessagesGoBothWaysInOrder) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(up_->Send(v1::ReportUp()));
  EXPECT_EQ(up_->Queued(), 3u);
  Open();
  EXPECT_EQ(namenode_.sink->messages.size(), 3u);
  EXPECT_EQ(up_->Queued(), 0u);
  for (int i = 0; i < 2; ++i) namenode_.down->OnMessage(v1::ReportDown());
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(handler_->messages.size(), 2u);
  EXPECT_FALSE(handler_->closed.has_value());
}

TEST_F(SimStreamTest, CallerClosesBothEnds) {
  Open();
  EXPECT_TRUE(up_->Send(v1::ReportUp()));
  up_->Close(absl::CancelledError("enough"));
  EXPECT_FALSE(handler_->closed.has_value());  // Never from inside Close.
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(namenode_.sink->messages.size(), 1u);
  EXPECT_EQ(namenode_.sink->closed->code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(handler_->closed->code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(up_->Send(v1::ReportUp()));
}

TEST_F(SimStreamTest, ServerClosesAfterItsMessages) {
  Open();
  namenode_.down->OnMessage(v1::ReportDown());
  namenode_.down->OnClosed(absl::AbortedError("again"));
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(handler_->messages.size(), 1u);
  EXPECT_EQ(handler_->closed->code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(up_->Send(v1::ReportUp()));
}

TEST_F(SimStreamTest, RefusedAtOnceOrNotServed) {
  namenode_.refuse = true;
  auto refused = std::make_shared<Recorder<v1::ReportDown>>();
  client_api_.Reports({}, refused);
  auto commands = std::make_shared<Recorder<v1::CommandDown>>();
  client_api_.Commands({}, commands);
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(refused->closed->code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(commands->closed->code(), absl::StatusCode::kUnimplemented);
  service_.Withdraw();
  auto nobody = std::make_shared<Recorder<v1::ReportDown>>();
  client_api_.Reports({}, nobody);
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(nobody->closed->code(), absl::StatusCode::kUnavailable);
}

TEST_F(SimStreamTest, BreaksWithTheLinkAndWithEitherProcess) {
  Open();
  world_.network().Cut(a_, b_);
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(namenode_.sink->closed->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(handler_->closed->code(), absl::StatusCode::kUnavailable);

  auto second = std::make_shared<Recorder<v1::ReportDown>>();
  const auto up = client_api_.Reports({}, second);
  world_.RunFor(absl::Seconds(1));
  server_->Kill();
  EXPECT_EQ(namenode_.sink->closed->code(), absl::StatusCode::kUnavailable);  // The zombie's end, at once.
  EXPECT_FALSE(second->closed.has_value());
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(second->closed->code(), absl::StatusCode::kUnavailable);

  client_->Kill();
  auto dead = std::make_shared<Recorder<v1::ReportDown>>();
  client_api_.Reports({}, dead);
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(dead->closed->code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace cairn::testing
