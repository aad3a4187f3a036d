#include "common/hadoop_ipc/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/mutex.h"
#include "tests/common/hadoop_ipc_bytes.h"

namespace cairn::ipc {
namespace {

using ::cairn::testing::IpcCall;
using ::cairn::testing::IpcContext;
using ::cairn::testing::IpcNegotiate;
using ::cairn::testing::IpcPing;
using ::cairn::testing::IpcPreamble;
using ::cairn::testing::IpcSaslPreamble;
using ::testing::HasSubstr;

// "echo" answers with its request, "who" with the caller, "fail" with an error; "hold" waits for Release.
class TestHandler : public Handler {
 public:
  explicit TestHandler(Env* env) : env_(env) {}

  void Handle(const Caller& caller, Call call, api::CallContext context, Done done) override {
    {
      const MutexLock lock(mu_);
      ++handled_;
    }
    if (call.method == "echo") return done(std::move(call.request));
    if (call.method == "who") return done(caller.user + " from " + context.peer.substr(0, context.peer.rfind(':')));
    if (call.method == "fail") return done(Failure{kIoException, "it does not work"});
    {
      const MutexLock lock(mu_);
      held_.emplace(call.id, std::move(done));
    }
    env_->Wake();
  }

  size_t held() {
    const MutexLock lock(mu_);
    return held_.size();
  }
  size_t handled() {
    const MutexLock lock(mu_);
    return handled_;
  }
  bool WaitForHeld(size_t count) {
    return env_->BlockUntil([&] { return held() >= count; }, env_->clock().Now() + absl::Seconds(20));
  }
  // Answers a held call, from this thread.
  void Release(int32_t id) {
    Done done;
    {
      const MutexLock lock(mu_);
      const auto found = held_.find(id);
      ASSERT_TRUE(found != held_.end()) << id;
      done = std::move(found->second);
      held_.erase(found);
    }
    done(std::string("released"));
  }

 private:
  Env* const env_;
  Mutex mu_;
  std::map<int32_t, Done> held_ ABSL_GUARDED_BY(mu_);
  size_t handled_ ABSL_GUARDED_BY(mu_) = 0;
};

struct Received {
  hdfs::RpcResponseHeaderProto header;
  std::string body;
};

// A plain blocking socket, so that what is sent is what the test says.
class Client {
 public:
  explicit Client(const HostPort& server) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Send(const std::string& bytes) const {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
  }
  // Exactly so many bytes; fewer if the peer closed, or was silent for 20 s.
  std::string Read(size_t count) const {
    std::string got;
    char bytes[65536];
    while (got.size() < count) {
      pollfd ready{socket_, POLLIN, 0};
      if (::poll(&ready, 1, 20000) != 1) return got + "<silence>";
      const ssize_t n = ::recv(socket_, bytes, std::min(sizeof(bytes), count - got.size()), 0);
      if (n <= 0) break;
      got.append(bytes, static_cast<size_t>(n));
    }
    return got;
  }
  bool IsClosed() const { return Read(1).empty(); }
  Received Receive() const {
    Received received;
    uint32_t length = 0;
    const std::string prefix = Read(4);
    EXPECT_EQ(prefix.size(), 4u);
    if (prefix.size() != 4) return received;
    for (const char c : prefix) length = (length << 8) | static_cast<uint8_t>(c);
    std::string_view frame;
    const std::string bytes = Read(length);
    frame = bytes;
    const auto take = [&frame] {
      size_t size = 0;
      for (int shift = 0; !frame.empty(); shift += 7) {
        const auto byte = static_cast<uint8_t>(frame.front());
        frame.remove_prefix(1);
        size |= static_cast<size_t>(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) break;
      }
      const std::string taken(frame.substr(0, size));
      frame.remove_prefix(taken.size());
      return taken;
    };
    EXPECT_TRUE(received.header.ParseFromString(take()));
    if (received.header.status() == hdfs::RpcResponseHeaderProto::SUCCESS) received.body = take();
    EXPECT_EQ(frame, "") << "bytes after the answer";
    return received;
  }

 private:
  int socket_;
};

class IpcServer : public ::testing::Test {
 protected:
  HostPort Start(const ServerOptions& options) {
    server_.emplace(options, &handler_, env_.get());
    const absl::StatusOr<HostPort> bound = server_->Start(HostPort{"127.0.0.1", 0});
    EXPECT_TRUE(bound.ok()) << bound.status();
    return bound.ok() ? *bound : HostPort{};
  }

  std::unique_ptr<Env> env_ = NewRealEnv();
  TestHandler handler_{env_.get()};
  std::optional<Server> server_;
};

TEST_F(IpcServer, AnswersCallsForTheUserOfTheContext) {
  const Client client(Start({}));
  client.Send(IpcPreamble() + IpcContext() + IpcPing() + IpcCall(0, "who", "") + IpcCall(1, "fail", ""));
  Received who = client.Receive();
  EXPECT_EQ(who.header.callid(), 0u);
  EXPECT_EQ(who.header.clientid(), cairn::testing::IpcClientId());
  EXPECT_EQ(who.body, "alice from 127.0.0.1");
  EXPECT_FALSE(who.header.has_exceptionclassname());
  const Received failed = client.Receive();
  EXPECT_EQ(failed.header.callid(), 1u);
  EXPECT_EQ(failed.header.status(), hdfs::RpcResponseHeaderProto::ERROR);
  EXPECT_EQ(failed.header.exceptionclassname(), "java.io.IOException");
  EXPECT_EQ(failed.header.errormsg(), "it does not work");
  client.Send(IpcCall(2, "echo", "still here"));
  EXPECT_EQ(client.Receive().body, "still here");
}

TEST_F(IpcServer, AnswersTheNegotiationBeforeTheContextCame) {
  const Client client(Start({}));
  client.Send(IpcSaslPreamble() + IpcNegotiate());
  EXPECT_EQ(client.Receive().header.callid(), 0xFFFFFFDFu);
  client.Send(IpcContext() + IpcCall(0, "echo", "x"));
  EXPECT_EQ(client.Receive().body, "x");
}

TEST_F(IpcServer, ASlowCallHoldsUpNoOther) {
  const Client client(Start({}));
  client.Send(IpcPreamble() + IpcContext() + IpcCall(0, "hold", "") + IpcCall(1, "echo", "quick"));
  EXPECT_EQ(client.Receive().header.callid(), 1u);
  handler_.Release(0);
  const Received held = client.Receive();
  EXPECT_EQ(held.header.callid(), 0u);
  EXPECT_EQ(held.body, "released");
}

TEST_F(IpcServer, CarriesLargeRequestsAndAnswers) {
  ServerOptions options;
  options.max_frame_bytes = 32 << 20;
  const Client client(Start(options));
  const std::string large(20 << 20, 'x');
  client.Send(IpcPreamble() + IpcContext() + IpcCall(0, "echo", large));
  EXPECT_EQ(client.Receive().body, large);
}

TEST_F(IpcServer, TellsCallsOverTheLimitToComeAgain) {
  ServerOptions options;
  options.max_calls = 2;
  const Client client(Start(options));
  client.Send(IpcPreamble() + IpcContext() + IpcCall(0, "hold", "") + IpcCall(1, "hold", "") + IpcCall(2, "echo", "x"));
  const Received refused = client.Receive();
  EXPECT_EQ(refused.header.callid(), 2u);
  EXPECT_EQ(refused.header.exceptionclassname(), "org.apache.hadoop.ipc.RetriableException");
  EXPECT_EQ(server_->state().refused_calls.load(), 1u);
  handler_.Release(0);
  EXPECT_EQ(client.Receive().header.callid(), 0u);
  client.Send(IpcCall(3, "echo", "now"));
  EXPECT_EQ(client.Receive().body, "now");
  handler_.Release(1);
}

TEST_F(IpcServer, HoldsNoMoreLargeRequestsThanItsBudget) {
  ServerOptions options;
  options.max_request_bytes = 15 << 18;  // 3.75 MiB.
  const HostPort address = Start(options);
  const Client first(address);
  first.Send(IpcPreamble() + IpcContext() + IpcCall(0, "hold", std::string(3 << 19, 'x')));
  ASSERT_TRUE(handler_.WaitForHeld(1));
  first.Send(IpcCall(1, "hold", std::string(3 << 19, 'x')));
  ASSERT_TRUE(handler_.WaitForHeld(2));
  EXPECT_GE(server_->state().request_bytes.load(), size_t{3} << 20);
  // Small ones go on; another large one is not taken, wherever it is when that is found.
  const Client second(address);
  second.Send(IpcPreamble() + IpcContext() + IpcCall(0, "echo", "small"));
  EXPECT_EQ(second.Receive().body, "small");
  second.Send(IpcCall(1, "echo", std::string(1 << 20, 'y')));
  EXPECT_TRUE(second.IsClosed());
  handler_.Release(0);
  EXPECT_EQ(first.Receive().body, "released");
  first.Send(IpcCall(2, "echo", std::string(1 << 20, 'z')));
  EXPECT_EQ(first.Receive().body.size(), size_t{1} << 20) << "bytes were given back";
  handler_.Release(1);
}

TEST_F(IpcServer, TakesNoLargeFrameOfWhoHasNotSaidWhoHeIs) {
  const HostPort address = Start({});
  const Client early(address);
  early.Send(IpcPreamble() + std::string({0, 1, 0, 0}));  // 64 KiB are to come.
  EXPECT_TRUE(early.IsClosed());
  const Client negotiating(address);
  negotiating.Send(IpcSaslPreamble() + std::string({0, 1, 0, 0}));
  EXPECT_TRUE(negotiating.IsClosed());
  const Client known(address);
  known.Send(IpcPreamble() + IpcContext() + IpcCall(0, "echo", std::string(1 << 20, 'x')));
  EXPECT_EQ(known.Receive().body.size(), size_t{1} << 20);
  known.Send(std::string({0, 64, 0, 0}));  // 4 MiB.
  EXPECT_TRUE(known.IsClosed());
}

TEST_F(IpcServer, ReadsNoMoreOfAClientThatDoesNotTakeItsAnswers) {
  ServerOptions options;
  options.io_threads = 1;
  options.max_frame_bytes = 32 << 20;
  const HostPort address = Start(options);
  const Client lazy(address);
  const std::string large(30 << 20, 'x');  // More than the sockets' buffers hold, and 4 MiB.
  lazy.Send(IpcPreamble() + IpcContext() + IpcCall(0, "echo", large) + IpcCall(1, "hold", ""));
  // Another client, of the same thread, is served meanwhile.
  const Client other(address);
  other.Send(IpcPreamble() + IpcContext());
  size_t echoes = 0;
  for (size_t after = 0; after < 3;) {
    other.Send(IpcCall(static_cast<int32_t>(echoes++), "echo", "other"));
    EXPECT_EQ(other.Receive().body, "other");
    if (handler_.handled() > echoes) ++after;
  }
  EXPECT_EQ(handler_.held(), 0u) << "its second call has been looked at";
  EXPECT_EQ(lazy.Receive().body, large);
  ASSERT_TRUE(handler_.WaitForHeld(1));
  handler_.Release(1);
  EXPECT_EQ(lazy.Receive().body, "released");
}

TEST_F(IpcServer, ReadsNoMoreOfAClientThatHasManyCallsUnderWay) {
  ServerOptions options;
  options.max_calls_per_connection = 2;
  const HostPort address = Start(options);
  const Client client(address);
  client.Send(IpcPreamble() + IpcContext() + IpcCall(0, "hold", "") + IpcCall(1, "hold", "") + IpcCall(2, "echo", "third"));
  ASSERT_TRUE(handler_.WaitForHeld(2));
  // Another client is served meanwhile, and the third call has not been looked at.
  const Client other(address);
  other.Send(IpcPreamble() + IpcContext() + IpcCall(0, "echo", "other"));
  EXPECT_EQ(other.Receive().body, "other");
  EXPECT_EQ(handler_.handled(), 3u);
  handler_.Release(1);
  EXPECT_EQ(client.Receive().header.callid(), 1u);
  EXPECT_EQ(client.Receive().body, "third");
  handler_.Release(0);
}

TEST_F(IpcServer, ClosesConnectionsThatSayNothingOrHalfAFrame) {
  ServerOptions options;
  options.handshake_timeout = absl::Milliseconds(200);
  options.frame_timeout = absl::Milliseconds(200);
  options.idle_timeout = absl::Milliseconds(200);
  const HostPort address = Start(options);
  const Client silent(address);
  EXPECT_TRUE(silent.IsClosed());
  const Client half(address);
  half.Send(IpcPreamble() + IpcContext() + IpcCall(0, "echo", "x").substr(0, 20));
  EXPECT_TRUE(half.IsClosed());
  const Client idle(address);
  idle.Send(IpcPreamble() + IpcContext());
  EXPECT_TRUE(idle.IsClosed());
}

TEST_F(IpcServer, AClientMayBeSilentWhileItWaits) {
  ServerOptions options;
  options.idle_timeout = absl::Milliseconds(50);
  const HostPort address = Start(options);
  const Client waits(address);
  waits.Send(IpcPreamble() + IpcContext() + IpcCall(0, "hold", ""));
  ASSERT_TRUE(handler_.WaitForHeld(1));
  // Two others come and are closed for their silence, one after the other, while this one waits.
  for (int i = 0; i < 2; ++i) {
    const Client idle(address);
    idle.Send(IpcPreamble() + IpcContext());
    EXPECT_TRUE(idle.IsClosed());
  }
  handler_.Release(0);
  EXPECT_EQ(waits.Receive().body, "released");
}

TEST_F(IpcServer, AnswersGarbageAndClosesThatConnectionAlone) {
  const HostPort address = Start({});
  const Client good(address);
  good.Send(IpcPreamble() + IpcContext());
  const Client browser(address);
  browser.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(browser.Read(1 << 16), HasSubstr("404 Not Found"));
  const Client garbage(address);
  garbage.Send(std::string(100, '\xee'));
  EXPECT_TRUE(garbage.IsClosed());
  const Client early(address);
  early.Send(IpcPreamble() + IpcCall(0, "echo", ""));
  EXPECT_EQ(early.Receive().header.status(), hdfs::RpcResponseHeaderProto::FATAL);
  EXPECT_TRUE(early.IsClosed());
  const Client huge(address);
  huge.Send(IpcPreamble() + IpcContext() + "\x7f\xff\xff\xff");
  EXPECT_TRUE(huge.IsClosed());
  good.Send(IpcCall(0, "echo", "x"));
  EXPECT_EQ(good.Receive().body, "x");
  EXPECT_EQ(server_->state().refused_connections.load(), 4u);
}

TEST_F(IpcServer, ClosesConnectionsOverTheLimitAtOnce) {
  ServerOptions options;
  options.max_connections = 1;
  const HostPort address = Start(options);
  const Client first(address);
  first.Send(IpcPreamble() + IpcContext() + IpcCall(0, "echo", "x"));
  EXPECT_EQ(first.Receive().body, "x");
  const Client second(address);
  EXPECT_TRUE(second.IsClosed());
  first.Send(IpcCall(1, "echo", "y"));
  EXPECT_EQ(first.Receive().body, "y");
}

TEST_F(IpcServer, AnswersForClientsThatAreGoneAreDropped) {
  const HostPort address = Start({});
  {
    const Client gone(address);
    gone.Send(IpcPreamble() + IpcContext() + IpcCall(0, "hold", ""));
    ASSERT_TRUE(handler_.WaitForHeld(1));
  }
  handler_.Release(0);
  const Client next(address);
  next.Send(IpcPreamble() + IpcContext() + IpcCall(0, "echo", "x"));
  EXPECT_EQ(next.Receive().body, "x");
}

TEST_F(IpcServer, StopsOnlyWhenEveryCallIsAnswered) {
  const HostPort address = Start({});
  const Client client(address);
  client.Send(IpcPreamble() + IpcContext() + IpcCall(7, "hold", ""));
  ASSERT_TRUE(handler_.WaitForHeld(1));
  std::atomic<bool> stopped = false;
  std::thread stopping([&] {
    server_->Stop();
    stopped.store(true);
  });
  EXPECT_TRUE(client.IsClosed());  // The connection goes at once.
  EXPECT_FALSE(stopped.load());
  handler_.Release(7);
  stopping.join();
  EXPECT_EQ(server_->state().calls.load(), 0u);
}

TEST_F(IpcServer, APortThatIsTakenIsNamed) {
  const HostPort address = Start({});
  Server second({}, &handler_, env_.get());
  const absl::StatusOr<HostPort> bound = second.Start(address);
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr(std::to_string(address.port)));
}

}  // namespace
}  // namespace cairn::ipc
