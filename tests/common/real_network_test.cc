#include "common/env/real_network.h"

#include <unistd.h>

#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/env/real_executor.h"
#include "common/env/real_file_system.h"
#include "common/error.h"
#include "common/task_group.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

SteadyTime In(absl::Duration d) { return RealClock().Now() + d; }

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 31 + i / 4096) & 0xff);
  return bytes;
}

std::vector<std::span<const char>> Parts(const std::string& bytes) { return {std::span<const char>(bytes)}; }

// Two executors, a connection between them over loopback.
class RealNetworkTest : public ::testing::Test {
 protected:
  RealNetworkTest() {
    const HostPort bind{"127.0.0.1", 0};
    listener_ = network_->Listen(bind, server_.get()).value();
    const HostPort to = listener_->local();
    std::future<void> accepted = Start(server_group_, [this]() -> Awaitable<void> {
      absl::StatusOr<std::unique_ptr<Connection>> connection = co_await listener_->Accept(server_.get());
      if (connection.ok()) far_ = *std::move(connection);
    });
    near_ = std::move(*Connect(to));
    accepted.wait();
  }
  ~RealNetworkTest() override {
    Start(client_group_, [this]() -> Awaitable<void> {
      near_.reset();
      co_return;
    }).wait();
    Start(server_group_, [this]() -> Awaitable<void> {
      far_.reset();
      listener_.reset();
      co_return;
    }).wait();
    for (TaskGroup* group : {&client_group_, &server_group_}) {
      std::promise<void> ended;
      group->StopAndThen([&] { ended.set_value(); });
      ended.get_future().wait();
    }
  }

  std::future<void> Start(TaskGroup& group, absl::AnyInvocable<Awaitable<void>()> body) {
    auto ended = std::make_shared<std::promise<void>>();
    group.Spawn("test", [ended, body = std::move(body)]() mutable -> Awaitable<void> {
      co_await body();
      ended->set_value();
    });
    return ended->get_future();
  }
  absl::StatusOr<std::unique_ptr<Connection>> Connect(const HostPort& to, absl::Duration limit = absl::Seconds(10)) {
    absl::StatusOr<std::unique_ptr<Connection>> result = absl::UnknownError("");
    Start(client_group_, [&]() -> Awaitable<void> { result = co_await network_->Connect(to, client_.get(), In(limit)); }).wait();
    return result;
  }
  std::future<absl::Status> Write(std::vector<std::span<const char>> parts, absl::Duration limit = absl::Seconds(20)) {
    auto result = std::make_shared<std::promise<absl::Status>>();
    client_group_.Spawn("writer", [this, result, parts = std::move(parts), limit]() mutable -> Awaitable<void> {
      const absl::Status written = co_await near_->Write(std::move(parts), In(limit));
      result->set_value(written);
    });
    return result->get_future();
  }
  std::future<absl::StatusOr<std::string>> Read(size_t size, size_t at_least, absl::Duration limit = absl::Seconds(20)) {
    auto result = std::make_shared<std::promise<absl::StatusOr<std::string>>>();
    server_group_.Spawn("reader", [this, result, size, at_least, limit]() -> Awaitable<void> {
      std::string into(size, ' ');
      const absl::StatusOr<size_t> count = co_await far_->Read(into, at_least, In(limit));
      if (!count.ok()) {
        result->set_value(count.status());
        co_return;
      }
      into.resize(*count);
      result->set_value(std::move(into));
    });
    return result->get_future();
  }
  void CloseNear() {
    Start(client_group_, [this]() -> Awaitable<void> {
      near_->Close();
      near_->Close();
      co_return;
    }).wait();
  }

  std::unique_ptr<Network> network_ = NewRealNetwork();
  std::unique_ptr<Executor> client_ = NewRealExecutor("client");
  std::unique_ptr<Executor> server_ = NewRealExecutor("server");
  TaskGroup client_group_{client_.get()};
  TaskGroup server_group_{server_.get()};
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connection> near_;  // The client's end.
  std::unique_ptr<Connection> far_;
};

TEST_F(RealNetworkTest, ReadTakesWhatIsThereButAtLeastWhatIsAsked) {
  std::future<absl::StatusOr<std::string>> read = Read(100, 5);
  ASSERT_TRUE(Write(Parts("abc")).get().ok());
  const std::string more = "defg";
  ASSERT_TRUE(Write(Parts(more)).get().ok());
  const std::string first = read.get().value();
  EXPECT_GE(first.size(), 5u);
  EXPECT_EQ(first, std::string("abcdefg").substr(0, first.size()));
  ASSERT_TRUE(Write(Parts("0123456789")).get().ok());
  const std::string rest = Read(7 - first.size() + 4, 7 - first.size() + 4).get().value();
  EXPECT_EQ(first + rest, "abcdefg0123");  // At most into.size().
}

TEST_F(RealNetworkTest, MegabytesCrossInOneCallEachWay) {
  const std::string bytes = Pattern(16 << 20);
  std::future<absl::StatusOr<std::string>> read = Read(bytes.size(), bytes.size());
  EXPECT_TRUE(Write(Parts(bytes)).get().ok());
  EXPECT_TRUE(read.get().value() == bytes);
}

TEST_F(RealNetworkTest, ScatteredPartsArriveInOrder) {
  std::vector<std::string> pieces;
  std::string all;
  for (size_t i = 0; i < 500; ++i) {
    pieces.push_back(Pattern(i % 7 == 0 ? 0 : i * 13 % 9'000));
    all += pieces.back();
  }
  std::vector<std::span<const char>> parts(pieces.begin(), pieces.end());
  std::future<absl::StatusOr<std::string>> read = Read(all.size(), all.size());
  EXPECT_TRUE(Write(std::move(parts)).get().ok());
  EXPECT_TRUE(read.get().value() == all);
  EXPECT_TRUE(Write({}).get().ok());
  EXPECT_TRUE(Write(Parts("")).get().ok());
}

TEST_F(RealNetworkTest, EndOfStreamIsCleanOrShort) {
  const std::string bytes = "abc";
  ASSERT_TRUE(Write(Parts(bytes)).get().ok());
  CloseNear();
  EXPECT_EQ(Read(10, 5).get().value(), "abc");
  EXPECT_EQ(Read(10, 1).get().value(), "");
  EXPECT_EQ(Write(Parts(bytes)).get().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RealNetworkTest, DeadlineEndsAReadAndTheConnectionGoesOn) {
  const absl::Status late = Read(10, 1, absl::Milliseconds(20)).get().status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()), HasSubstr("127.0.0.1:"));
  ASSERT_TRUE(Write(Parts("x")).get().ok());
  EXPECT_EQ(Read(10, 1).get().value(), "x");
  // A far deadline, then a nearer one: the timer of the first must not delay the second.
  EXPECT_EQ(Read(10, 1, absl::Milliseconds(5)).get().status().code(), absl::StatusCode::kDeadlineExceeded);
  // And a near one, met, then a far one: the old timer must not end it.
  std::future<absl::StatusOr<std::string>> met = Read(10, 1, absl::Milliseconds(200));
  ASSERT_TRUE(Write(Parts("y")).get().ok());
  EXPECT_EQ(met.get().value(), "y");
  std::future<absl::StatusOr<std::string>> patient = Read(10, 1, absl::Seconds(20));
  EXPECT_EQ(patient.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  ASSERT_TRUE(Write(Parts("z")).get().ok());
  EXPECT_EQ(patient.get().value(), "z");
}

TEST_F(RealNetworkTest, WriterWaitsForTheReaderUntilItsDeadline) {
  const std::string bytes = Pattern(64 << 20);
  EXPECT_EQ(Write(Parts(bytes), absl::Milliseconds(50)).get().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(RealNetworkTest, ReadAndWriteAreUnderWayAtOnce) {
  // Nobody reads here, so the server's write stands while its read is answered.
  const std::string bytes = Pattern(64 << 20);
  absl::Status written = absl::OkStatus();
  std::future<void> writer =
      Start(server_group_, [&]() -> Awaitable<void> { written = co_await far_->Write(Parts(bytes), In(absl::Hours(1))); });
  std::future<absl::StatusOr<std::string>> read = Read(1, 1);
  ASSERT_TRUE(Write(Parts("x")).get().ok());
  EXPECT_EQ(read.get().value(), "x");
  Start(server_group_, [&]() -> Awaitable<void> {
    far_->Close();
    co_return;
  }).wait();
  writer.wait();
  EXPECT_EQ(written.code(), absl::StatusCode::kUnavailable);
}

TEST_F(RealNetworkTest, CloseEndsAPendingRead) {
  std::future<absl::StatusOr<std::string>> read = Read(1, 1);
  Start(server_group_, [&]() -> Awaitable<void> {
    far_->Close();
    co_return;
  }).wait();
  const absl::Status ended = read.get().status();
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("closed here"));
}

TEST_F(RealNetworkTest, CloseEndsAPendingAccept) {
  absl::Status ended;
  std::future<void> acceptor = Start(server_group_, [&]() -> Awaitable<void> {
    const absl::StatusOr<std::unique_ptr<Connection>> connection = co_await listener_->Accept(server_.get());
    ended = connection.status();
  });
  Start(server_group_, [&]() -> Awaitable<void> {
    listener_->Close();
    co_return;
  }).wait();
  acceptor.wait();
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
}

TEST_F(RealNetworkTest, AcceptedConnectionMayBelongToAnotherExecutor) {
  std::future<void> accepted = Start(server_group_, [this]() -> Awaitable<void> {
    absl::StatusOr<std::unique_ptr<Connection>> connection = co_await listener_->Accept(client_.get());
    EXPECT_TRUE(server_->IsCurrent());
    EXPECT_EQ(&(*connection)->executor(), client_.get());
    Connection* moved = connection->release();
    client_->Post([moved] { delete moved; });
  });
  EXPECT_TRUE(Connect(listener_->local()).ok());
  accepted.wait();
}

TEST_F(RealNetworkTest, RefusedAndUnknownSayWhere) {
  const HostPort gone = listener_->local();
  Start(server_group_, [&]() -> Awaitable<void> {
    listener_->Close();
    co_return;
  }).wait();
  const absl::Status refused = Connect(gone).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(gone.ToString()));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("refused"));
  const HostPort unknown{"no-such-host.invalid", 1};
  const absl::Status unresolved = Connect(unknown).status();
  EXPECT_FALSE(unresolved.ok());
  EXPECT_THAT(std::string(unresolved.message()), HasSubstr("no-such-host.invalid:1"));
}

TEST_F(RealNetworkTest, ANameCanBeCheckedBeforeItIsUsed) {
  EXPECT_TRUE(CheckResolves("127.0.0.1").ok());
  EXPECT_TRUE(CheckResolves("::1").ok());
  EXPECT_TRUE(CheckResolves("localhost").ok());
  const absl::Status unknown = CheckResolves("no-such-host.invalid");
  EXPECT_EQ(KindOf(unknown), ErrorKind::kNotFound);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("the host name no-such-host.invalid cannot be resolved: "));
}

TEST_F(RealNetworkTest, NamesAreResolved) {
  const HostPort by_name{"localhost", listener_->local().port};
  EXPECT_TRUE(Connect(by_name).ok());
}

TEST_F(RealNetworkTest, PortInUseIsNamed) {
  const absl::Status taken = network_->Listen(listener_->local(), server_.get()).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.message()), HasSubstr(fmt::format("port {} is in use", listener_->local().port)));
}

TEST_F(RealNetworkTest, BigFileIsSentFromTheKernel) {
  const std::string path = ::testing::TempDir() + fmt::format("/real_network_test.{}", getpid());
  const std::string bytes = Pattern(24 << 20);
  std::unique_ptr<LocalFileSystem> files = NewRealFileSystem();
  ASSERT_TRUE(files->WriteWhole(path, bytes).ok());
  std::unique_ptr<File> file = files->Open(path, LocalFileSystem::OpenMode::kRead).value();
  const uint64_t offset = 12'345;
  const uint64_t length = bytes.size() - 2 * offset;
  std::future<absl::StatusOr<std::string>> read = Read(length, length);
  absl::Status sent;
  std::future<void> sender = Start(
      client_group_, [&]() -> Awaitable<void> { sent = co_await near_->SendFile(file.get(), offset, length, In(absl::Seconds(20))); });
  EXPECT_TRUE(read.get().value() == bytes.substr(offset, length));
  sender.wait();
  EXPECT_TRUE(sent.ok()) << sent;
  // Past its end it is an error, and a peer that hung up does not kill us.
  Start(client_group_, [&]() -> Awaitable<void> {
    sent = co_await near_->SendFile(file.get(), bytes.size(), 1, In(absl::Seconds(20)));
  }).wait();
  EXPECT_EQ(sent.code(), absl::StatusCode::kOutOfRange);
  Start(server_group_, [&]() -> Awaitable<void> {
    far_->Close();
    co_return;
  }).wait();
  Start(client_group_, [&]() -> Awaitable<void> {
    sent = co_await near_->SendFile(file.get(), 0, bytes.size(), In(absl::Seconds(20)));
  }).wait();
  EXPECT_EQ(sent.code(), absl::StatusCode::kUnavailable);
  std::filesystem::remove(path);
}

TEST(HostPort, TextHasBracketsWhereNeeded) {
  EXPECT_EQ((HostPort{"host", 1}).ToString(), "host:1");
  EXPECT_EQ((HostPort{"::1", 80}).ToString(), "[::1]:80");
}

}  // namespace
}  // namespace cairn
