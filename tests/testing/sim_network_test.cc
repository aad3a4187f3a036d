#include "tests/testing/sim_network.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/env/file_system.h"
#include "common/env/wait.h"
#include "common/task_group.h"
#include "tests/testing/sim_world.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

std::vector<std::span<const char>> Parts(const std::string& bytes) { return {std::span<const char>(bytes)}; }

// A listener on machine "a" and a connection from machine "b".
class SimNetworkTest : public ::testing::Test {
 protected:
  SimNetworkTest() {
    world_.network().SetDefaultLink({.latency = absl::Milliseconds(1)});
    listener_ = server_->network().Listen({"0.0.0.0", 9000}, server_executor_.get()).value();
  }
  ~SimNetworkTest() override {
    near_.reset();
    far_.reset();
    listener_.reset();
  }

  void Run(absl::AnyInvocable<Awaitable<void>()> body, absl::Duration limit = absl::Hours(1)) {
    group_.Spawn("test", std::move(body));
    EXPECT_TRUE(world_.RunUntil([&] { return group_.running() == 0; }, limit));
  }
  void Join() {
    absl::StatusOr<std::unique_ptr<Connection>> near = Connect({"a", 9000});
    ASSERT_TRUE(near.ok()) << near.status();
    near_ = *std::move(near);
    Run([this]() -> Awaitable<void> {
      absl::StatusOr<std::unique_ptr<Connection>> connection = co_await listener_->Accept(server_executor_.get());
      EXPECT_TRUE(connection.ok()) << connection.status();
      if (connection.ok()) far_ = *std::move(connection);
    });
    ASSERT_TRUE(far_);
  }
  SteadyTime In(absl::Duration d) { return world_.Now() + d; }

  absl::Status Write(Connection* on, const std::string& bytes, absl::Duration limit = absl::Seconds(10)) {
    absl::Status result;
    Run([&]() -> Awaitable<void> { result = co_await on->Write(Parts(bytes), In(limit)); });
    return result;
  }
  absl::StatusOr<std::string> Read(Connection* on, size_t size, size_t at_least, absl::Duration limit = absl::Seconds(10)) {
    std::string into(size, ' ');
    absl::StatusOr<size_t> count = 0;
    Run([&]() -> Awaitable<void> { count = co_await on->Read(into, at_least, In(limit)); });
    if (!count.ok()) return count.status();
    return into.substr(0, *count);
  }
  absl::StatusOr<std::unique_ptr<Connection>> Connect(HostPort to, absl::Duration limit = absl::Seconds(1)) {
    absl::StatusOr<std::unique_ptr<Connection>> connection = absl::UnknownError("");
    Run([&]() -> Awaitable<void> { connection = co_await client_->network().Connect(to, client_executor_.get(), In(limit)); });
    return connection;
  }

  SimWorld world_{SimOptions{}};
  SimMachine* const a_ = world_.AddMachine("a");
  SimMachine* const b_ = world_.AddMachine("b");
  SimProcess* const server_ = a_->StartProcess();
  SimProcess* const client_ = b_->StartProcess();
  std::unique_ptr<Executor> server_executor_ = server_->executors().NewExecutor("server");
  std::unique_ptr<Executor> client_executor_ = client_->executors().NewExecutor("client");
  TaskGroup group_{client_executor_.get()};
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connection> near_;  // The client's end.
  std::unique_ptr<Connection> far_;
};

TEST_F(SimNetworkTest, BytesArriveAfterTheLinksDelay) {
  const SteadyTime start = world_.Now();
  Join();
  EXPECT_EQ(world_.Now(), start + absl::Milliseconds(2));  // There and back.
  EXPECT_EQ(near_->peer(), "10.0.0.1:9000");
  EXPECT_EQ(far_->peer_address(), "10.0.0.2");
  ASSERT_TRUE(Write(near_.get(), "hello").ok());
  EXPECT_EQ(Read(far_.get(), 10, 1).value(), "hello");
  EXPECT_EQ(world_.Now(), start + absl::Milliseconds(3));
}

TEST_F(SimNetworkTest, ReadWaitsForAtLeastAndTakesAtMost) {
  Join();
  ASSERT_TRUE(Write(near_.get(), "abc").ok());
  ASSERT_TRUE(Write(near_.get(), "defgh").ok());
  EXPECT_EQ(Read(far_.get(), 4, 4).value(), "abcd");
  EXPECT_EQ(Read(far_.get(), 10, 1).value(), "efgh");
  const absl::StatusOr<std::string> late = Read(far_.get(), 10, 1);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("10.0.0.2"));
  ASSERT_TRUE(Write(near_.get(), "x").ok());  // The connection is still good.
  EXPECT_EQ(Read(far_.get(), 10, 1).value(), "x");
}

TEST_F(SimNetworkTest, CloseIsTheEndOfTheStreamAfterWhatWasSent) {
  Join();
  ASSERT_TRUE(Write(near_.get(), "abc").ok());
  near_->Close();
  near_->Close();
  EXPECT_EQ(Read(far_.get(), 10, 5).value(), "abc");
  EXPECT_EQ(Read(far_.get(), 10, 1).value(), "");
  EXPECT_EQ(Write(far_.get(), "x").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Read(near_.get(), 10, 1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Write(near_.get(), "x").code(), absl::StatusCode::kUnavailable);
}

TEST_F(SimNetworkTest, CloseEndsPendingCalls) {
  Join();
  std::string into(1, ' ');
  absl::StatusOr<size_t> read = 0;
  group_.Spawn("reader", [&]() -> Awaitable<void> { read = co_await near_->Read(into, 1, SteadyTime::Infinite()); });
  world_.RunFor(absl::Seconds(1));
  near_->Close();
  EXPECT_TRUE(world_.RunUntil([&] { return group_.running() == 0; }, absl::ZeroDuration()));
  EXPECT_EQ(read.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(SimNetworkTest, ReaderThatDoesNotReadHoldsTheWriter) {
  world_.network().SetWindow(100'000);
  Join();
  const std::string bytes(300'000, 'x');
  absl::Status written = absl::UnknownError("pending");
  group_.Spawn("writer", [&]() -> Awaitable<void> { written = co_await near_->Write(Parts(bytes), SteadyTime::Infinite()); });
  world_.RunFor(absl::Seconds(5));
  EXPECT_EQ(group_.running(), 1u);
  std::string got;
  TaskGroup readers(server_executor_.get());
  readers.Spawn("reader", [&]() -> Awaitable<void> {
    while (got.size() < bytes.size()) {
      std::string into(70'000, ' ');
      const absl::StatusOr<size_t> count = co_await far_->Read(into, 1, SteadyTime::Infinite());
      if (!count.ok()) co_return;
      got += into.substr(0, *count);
    }
  });
  EXPECT_TRUE(world_.RunUntil([&] { return readers.running() == 0 && group_.running() == 0; }, absl::Seconds(5)));
  EXPECT_TRUE(written.ok());
  EXPECT_EQ(got, bytes);
  // And with a deadline it gives up.
  EXPECT_EQ(Write(near_.get(), bytes, absl::Seconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(SimNetworkTest, SendFileSendsARange) {
  Join();
  std::string content;
  for (int i = 0; i < 1'000'000; ++i) content.push_back(static_cast<char>(i % 251));
  ASSERT_TRUE(client_->files().WriteWhole("/f", content).ok());
  std::unique_ptr<File> file = client_->files().Open("/f", LocalFileSystem::OpenMode::kRead).value();
  absl::Status sent;
  group_.Spawn("sender", [&]() -> Awaitable<void> { sent = co_await near_->SendFile(file.get(), 1'000, 900'000, SteadyTime::Infinite()); });
  std::string into(900'000, ' ');
  TaskGroup readers(server_executor_.get());
  readers.Spawn("reader", [&]() -> Awaitable<void> {
    const absl::StatusOr<size_t> count = co_await far_->Read(into, into.size(), SteadyTime::Infinite());
    EXPECT_TRUE(count.ok());
  });
  EXPECT_TRUE(world_.RunUntil([&] { return readers.running() == 0 && group_.running() == 0; }, absl::Seconds(5)));
  EXPECT_TRUE(sent.ok());
  EXPECT_EQ(into, content.substr(1'000, 900'000));
  Run([&]() -> Awaitable<void> { sent = co_await near_->SendFile(file.get(), 999'999, 2, SteadyTime::Infinite()); });
  EXPECT_FALSE(sent.ok());
}

TEST_F(SimNetworkTest, ConnectFailsAsItShould) {
  const absl::Status refused = Connect({"a", 1}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("a:1: connection refused"));
  EXPECT_THAT(std::string(Connect({"nowhere", 1}).status().message()), HasSubstr("unknown host"));
  world_.network().Block(a_, b_);  // The answers are lost.
  const SteadyTime start = world_.Now();
  EXPECT_EQ(Connect({"a", 9000}).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(world_.Now(), start + absl::Seconds(1));
  world_.network().Heal();
  EXPECT_TRUE(Connect({"10.0.0.1", 9000}).ok());
  EXPECT_THAT(std::string(server_->network().Listen({"", 9000}, server_executor_.get()).status().message()),
              HasSubstr("port 9000 is in use"));
  std::unique_ptr<Listener> other = server_->network().Listen({"", 0}, server_executor_.get()).value();
  EXPECT_NE(other->local().port, 0);
  EXPECT_TRUE(Connect({"a", other->local().port}).ok());
  listener_->Close();
  EXPECT_FALSE(Connect({"a", 9000}).ok());
}

TEST_F(SimNetworkTest, OneWayBlockHoldsBytesUntilHealed) {
  Join();
  world_.network().Block(b_, a_);
  ASSERT_TRUE(Write(near_.get(), "held").ok());
  ASSERT_TRUE(Write(near_.get(), "back").ok());
  ASSERT_TRUE(Write(far_.get(), "free").ok());
  EXPECT_EQ(Read(near_.get(), 4, 4).value(), "free");
  EXPECT_EQ(Read(far_.get(), 8, 1, absl::Minutes(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
  world_.network().Unblock(b_, a_);
  EXPECT_EQ(Read(far_.get(), 8, 8).value(), "heldback");
}

TEST_F(SimNetworkTest, CutBreaksBothEndsAndLosesWhatWasUnderWay) {
  Join();
  ASSERT_TRUE(Write(near_.get(), "lost").ok());
  world_.network().Cut(a_, b_);
  EXPECT_EQ(Read(far_.get(), 4, 1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Read(near_.get(), 4, 1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Write(far_.get(), "x").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(world_.network().broken_flows(), 1u);
  EXPECT_TRUE(Connect({"a", 9000}).ok());
}

TEST_F(SimNetworkTest, RandomCutsComeFromTheSeed) {
  world_.network().SetLink(a_, b_, {.latency = absl::Milliseconds(1), .cut_one_in = 50});
  int cut = 0;
  for (int i = 0; i < 100; ++i) cut += Connect({"a", 9000}).ok() ? 0 : 1;
  EXPECT_GT(cut, 0);
  EXPECT_LT(cut, 50);
}

TEST_F(SimNetworkTest, BandwidthDelaysBytes) {
  world_.network().SetLink(a_, b_, {.latency = absl::ZeroDuration(), .bytes_per_second = 1'000'000});
  Join();
  const SteadyTime start = world_.Now();
  ASSERT_TRUE(Write(near_.get(), std::string(100'000, 'x')).ok());
  EXPECT_EQ(Read(far_.get(), 100'000, 100'000).value().size(), 100'000u);
  EXPECT_EQ(world_.Now() - start, absl::Milliseconds(100));
}

TEST_F(SimNetworkTest, KilledProcessIsSeenAsABreakAfterWhatItSent) {
  Join();
  ASSERT_TRUE(Write(far_.get(), "last words").ok());
  server_->Kill();
  EXPECT_EQ(Read(near_.get(), 100, 10).value(), "last words");
  EXPECT_EQ(Read(near_.get(), 100, 1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Write(near_.get(), "x").code(), absl::StatusCode::kUnavailable);
  // The zombie's calls end as well, and nobody listens any more.
  EXPECT_EQ(Read(far_.get(), 1, 1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Connect({"a", 9000}).status().message()), HasSubstr("refused"));
  absl::StatusOr<std::unique_ptr<Connection>> accepted = absl::UnknownError("");
  Run([&]() -> Awaitable<void> { accepted = co_await listener_->Accept(server_executor_.get()); });
  EXPECT_EQ(accepted.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(server_->network().Listen({"", 9001}, server_executor_.get()).ok());
  // A new process may take the port.
  SimProcess* next = a_->StartProcess();
  std::unique_ptr<Listener> again = next->network().Listen({"", 9000}, server_executor_.get()).value();
  EXPECT_TRUE(Connect({"a", 9000}).ok());
}

TEST_F(SimNetworkTest, PendingAcceptOfAKilledProcessEnds) {
  TaskGroup servers(server_executor_.get());
  absl::Status ended;
  servers.Spawn("acceptor", [&]() -> Awaitable<void> {
    const absl::StatusOr<std::unique_ptr<Connection>> accepted = co_await listener_->Accept(server_executor_.get());
    ended = accepted.status();
  });
  world_.RunFor(absl::Seconds(1));
  a_->PowerCut();
  EXPECT_TRUE(world_.RunUntil([&] { return servers.running() == 0; }, absl::Seconds(1)));
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
}

TEST_F(SimNetworkTest, LocalhostIsTheSameMachineWithoutDelay) {
  std::unique_ptr<Listener> here = client_->network().Listen({"127.0.0.1", 0}, client_executor_.get()).value();
  const SteadyTime start = world_.Now();
  EXPECT_TRUE(Connect({"localhost", here->local().port}).ok());
  EXPECT_EQ(world_.Now(), start);
  EXPECT_EQ(client_->network().HostName(), "b");
}

}  // namespace
}  // namespace cairn::testing
