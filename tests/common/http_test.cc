#include "common/http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/metrics.h"

namespace cairn::http {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A plain blocking socket, so that what is sent is what the test says.
class Peer {
 public:
  explicit Peer(const HostPort& server) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port);
    inet_pton(AF_INET, server.host.c_str(), &address.sin_addr);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Peer() { ::close(socket_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void Send(const std::string& bytes) const {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void EndOfInput() const { ::shutdown(socket_, SHUT_WR); }
  // Until `text` has come, the peer has closed, or ten seconds of silence.
  std::string ReadUntil(const std::string& text) const {
    std::string got;
    char bytes[4096];
    while (text.empty() || got.find(text) == std::string::npos) {
      pollfd ready{socket_, POLLIN, 0};
      if (::poll(&ready, 1, 10000) != 1) return got + "<silence>";
      const ssize_t count = ::recv(socket_, bytes, sizeof(bytes), 0);
      if (count <= 0) return got + (count == 0 ? "<end>" : "<reset>");
      got.append(bytes, static_cast<size_t>(count));
    }
    return got;
  }
  std::string ReadAll() const { return ReadUntil(""); }

 private:
  int socket_;
};

class Http : public ::testing::Test {
 protected:
  void StartServer(size_t max_connections = 256, absl::Duration idle_timeout = absl::Seconds(30)) {
    Routes routes = DaemonRoutes(
        &registry_, [this] { return ready_ ? absl::OkStatus() : MakeError(ErrorKind::kSafeMode, "2 of 3 DataNodes are missing"); });
    routes["/echo"] = [](const Request& request) {
      Response response;
      response.body = request.method + " " + request.path + " [" + request.query + "]";
      return response;
    };
    Server::Options options;
    options.bind = HostPort{"127.0.0.1", 0};
    options.max_connections = max_connections;
    options.idle_timeout = idle_timeout;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options, std::move(routes));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Ask(const std::string& request) const {
    const Peer peer(server_->local());
    peer.Send(request);
    peer.EndOfInput();
    return peer.ReadAll();
  }
  std::string Get(const std::string& path) const { return Ask("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); }

  metrics::Registry registry_;
  std::atomic<bool> ready_{true};
  std::unique_ptr<Server> server_;
};

TEST_F(Http, ServesADaemonsPages) {
  StartServer();
  EXPECT_THAT(Get("/healthz"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\n\r\nok\n")));
  registry_.NewCounter("cairn_x_total", "X.").Increment(4);
  EXPECT_THAT(Get("/metrics"), AllOf(HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
                                     HasSubstr("cairn_x_total 4\n"), HasSubstr("process_resident_memory_bytes")));
}

TEST_F(Http, ReadinessFollowsTheDaemonAndSaysWhatIsMissing) {
  StartServer();
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200 "));
  ready_ = false;
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("2 of 3 DataNodes are missing\n")));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Http, GivesTheHandlerPathAndQuery) {
  StartServer();
  EXPECT_THAT(Get("/echo?a=1&b=?"), HasSubstr("GET /echo [a=1&b=?]"));
  EXPECT_THAT(Get("/echo"), HasSubstr("GET /echo []"));
}

TEST_F(Http, HeadHasTheLengthButNoBody) {
  StartServer();
  const std::string answer = Ask("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Length: 3\r\n"), HasSubstr("\r\n\r\n<end>")));
}

TEST_F(Http, UnknownPathsAndMethodsAreRefused) {
  StartServer();
  EXPECT_THAT(Get("/healthz/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("http://x/healthz"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("PUT /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD\r\n")));
}

TEST_F(Http, AConnectionServesManyRequestsAlsoSentAtOnce) {
  StartServer();
  const Peer peer(server_->local());
  for (int i = 0; i < 3; ++i) {
    peer.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(peer.ReadUntil("\r\n\r\nok\n"), StartsWith("HTTP/1.1 200 "));
  }
  peer.Send("GET /echo?1 HTTP/1.1\r\nHost: x\r\n\r\nGET /echo?2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(peer.ReadAll(), AllOf(HasSubstr("/echo [1]"), HasSubstr("/echo [2]<end>")));
}

TEST_F(Http, GarbageGetsOneClearAnswerAndHarmsNobody) {
  StartServer();
  std::string binary;
  for (int i = 0; i < 256; ++i) binary += static_cast<char>(i);
  for (const std::string& garbage :
       {std::string("hello there\r\n\r\n"), binary, std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nno colon\r\n\r\n"), std::string("hrpc\x09\x00\x00", 7) + std::string(300, '\0'),
        std::string("GET / HTTP/1.1\r\nContent-Length: minus\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15)}) {
    EXPECT_THAT(Ask(garbage), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("not HTTP/1.1: "))) << garbage;
  }
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Http, OversizeRequestsAreRefusedWithoutBeingRead) {
  StartServer();
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nX: " + std::string(20 << 10, 'x') + "\r\n\r\n"), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Ask("GET /" + std::string(100 << 10, 'x') + " HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  EXPECT_THAT(Ask("GET /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk), StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Http, AHalfSentRequestIsJustClosed) {
  StartServer();
  EXPECT_EQ(Ask("GET /heal"), "<end>");
  EXPECT_EQ(Ask(""), "<end>");
}

TEST_F(Http, ASilentConnectionIsClosedAfterTheIdleTimeout) {
  StartServer(256, absl::Milliseconds(50));
  const Peer peer(server_->local());
  peer.Send("GET /healthz HT");
  EXPECT_EQ(peer.ReadAll(), "<end>");
}

TEST_F(Http, ConnectionsOverTheLimitAreClosedAndTheOthersServed) {
  StartServer(2);
  const Peer first(server_->local());
  first.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(first.ReadUntil("ok\n"), StartsWith("HTTP/1.1 200 "));
  const Peer second(server_->local());
  second.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(second.ReadUntil("ok\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(server_->connections(), 2u);
  const Peer third(server_->local());
  EXPECT_THAT(third.ReadAll(), Not(HasSubstr("HTTP")));
  first.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(first.ReadUntil("ok\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Http, StoppingClosesOpenConnections) {
  StartServer();
  const Peer peer(server_->local());
  peer.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(peer.ReadUntil("ok\n"), StartsWith("HTTP/1.1 200 "));
  server_.reset();
  EXPECT_EQ(peer.ReadAll(), "<end>");
}

TEST_F(Http, AnAddressThatCannotBeBoundIsAnErrorThatNamesIt) {
  StartServer();
  Server::Options options;
  options.bind = server_->local();
  const absl::Status busy = Server::Start(options, {}).status();
  EXPECT_EQ(KindOf(busy), ErrorKind::kInvalidArgument);
  EXPECT_THAT(std::string(busy.message()), HasSubstr("127.0.0.1:" + std::to_string(server_->local().port)));
  options.bind = HostPort{"no.such.host.invalid", 1};
  EXPECT_THAT(std::string(Server::Start(options, {}).status().message()), HasSubstr("no.such.host.invalid:1"));
}

}  // namespace
}  // namespace cairn::http
