#include "common/http/server.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <pthread.h>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>

#include "common/error.h"
#include "common/log.h"

namespace cairn::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::asio::ip::tcp;
using Message = beast::http::response<beast::http::string_body>;

constexpr uint32_t kMaxHeaderBytes = 8 << 10;
constexpr uint64_t kMaxBodyBytes = 64 << 10;
constexpr size_t kMaxPathInAnswer = 200;
constexpr size_t kMaxDrainedBytes = 1 << 20;
constexpr std::chrono::seconds kMaxLinger{2};

std::string Name(const HostPort& address) { return fmt::format("{}:{}", address.host, address.port); }

Response Plain(int status, std::string text) {
  Response response;
  response.status = status;
  response.body = std::move(text) + "\n";
  return response;
}

// What all connections share; touched on the server's thread only, but for the count.
struct Shared {
  Routes routes;
  size_t max_connections = 0;
  std::chrono::milliseconds idle_timeout{};
  std::atomic<size_t> connections{0};
};

// One connection: read a request, answer it, again. Owned by its pending operation.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Shared* shared) : stream_(std::move(socket)), shared_(shared) { ++shared_->connections; }
  ~Session() { --shared_->connections; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(kMaxBodyBytes);
    stream_.expires_after(shared_->idle_timeout);
    beast::http::async_read(stream_, buffer_, *parser_,
                            [self = shared_from_this()](beast::error_code error, size_t) { self->OnRead(error); });
  }

 private:
  void OnRead(beast::error_code error) {
    if (!error) {
      const auto& request = parser_->get();
      return Write(Answer(request), request.method() == beast::http::verb::head, request.keep_alive());
    }
    // The parser's complaints are the sender's fault and are answered; the rest is a peer that went, or was silent too long.
    if (error == beast::http::error::header_limit) return Write(Plain(431, "the header is over 8 KiB"), false, false);
    if (error == beast::http::error::body_limit) return Write(Plain(413, "the body is over 64 KiB"), false, false);
    if (error == beast::http::error::end_of_stream || error == beast::http::error::partial_message) return Close();
    if (error.category() == beast::http::make_error_code(beast::http::error::bad_method).category())
      return Write(Plain(400, "not HTTP/1.1: " + error.message()), false, false);
    Close();
  }

  Response Answer(const beast::http::request<beast::http::string_body>& request) const {
    if (request.method() != beast::http::verb::get && request.method() != beast::http::verb::head)
      return Plain(405, "only GET and HEAD are served here");
    const std::string target(request.target());
    if (!target.starts_with('/')) return Plain(400, "the path has to begin with /");
    const size_t question = target.find('?');
    Request asked;
    asked.method = std::string(request.method_string());
    asked.path = target.substr(0, question);
    if (question != std::string::npos) asked.query = target.substr(question + 1);
    const auto route = shared_->routes.find(asked.path);
    if (route == shared_->routes.end()) return Plain(404, "no page " + asked.path.substr(0, kMaxPathInAnswer));
    return route->second(asked);
  }

  void Write(Response response, bool head, bool keep_alive) {
    message_ = Message(static_cast<beast::http::status>(response.status), 11);
    message_.set(beast::http::field::server, "cairn");
    message_.set(beast::http::field::content_type, response.content_type);
    message_.set(beast::http::field::cache_control, "no-store");
    if (response.status == 405) message_.set(beast::http::field::allow, "GET, HEAD");
    message_.keep_alive(keep_alive);
    const size_t size = response.body.size();
    if (!head) message_.body() = std::move(response.body);
    message_.content_length(size);  // Of HEAD, too: what GET would send.
    stream_.expires_after(shared_->idle_timeout);
    const auto done = [self = shared_from_this(), keep_alive](beast::error_code error, size_t) {
      if (!error && keep_alive) return self->Read();
      self->Close();
    };
    if (head) {
      serializer_.emplace(message_);
      beast::http::async_write_header(stream_, *serializer_, done);
    } else {
      beast::http::async_write(stream_, message_, done);
    }
  }

  // Says that no more comes, then reads what the peer still sends, within bounds: closing with unread bytes would reset the connection and
  // with it the answer on its way.
  void Close() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kMaxLinger);
    Drain(kMaxDrainedBytes);
  }

  void Drain(size_t left) {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kMaxHeaderBytes), [self = shared_from_this(), left](beast::error_code error, size_t count) {
      if (!error && count < left) self->Drain(left - count);
    });
  }

  beast::tcp_stream stream_;
  Shared* const shared_;
  beast::flat_buffer buffer_{kMaxHeaderBytes + kMaxBodyBytes};
  std::optional<beast::http::request_parser<beast::http::string_body>> parser_;
  std::optional<beast::http::response_serializer<beast::http::string_body>> serializer_;
  Message message_;
};

class BeastServer : public Server {
 public:
  BeastServer(const Options& options, Routes routes) : acceptor_(io_), retry_(io_) {
    shared_.routes = std::move(routes);
    shared_.max_connections = options.max_connections;
    shared_.idle_timeout = std::chrono::milliseconds(absl::ToInt64Milliseconds(options.idle_timeout));
  }

  ~BeastServer() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen(const HostPort& bind) {
    const auto failed = [&bind](const char* what, const beast::error_code& error) {
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("HTTP: {} {}: {}", what, Name(bind), error.message()));
    };
    beast::error_code error;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(bind.host, std::to_string(bind.port), tcp::resolver::passive, error);
    if (error || found.empty()) return failed("cannot resolve", error);
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) return failed("cannot listen on", error);
    local_.host = acceptor_.local_endpoint().address().to_string();
    local_.port = acceptor_.local_endpoint().port();
    Accept();
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "http");
      io_.run();
    });
    return absl::OkStatus();
  }

  HostPort local() const override { return local_; }
  size_t connections() const override { return shared_.connections.load(); }

 private:
  void Accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error) return AcceptLater(error);
      // Over the limit the socket closes here: whoever waits in the queue is served no worse.
      if (shared_.connections.load() < shared_.max_connections) std::make_shared<Session>(std::move(socket), &shared_)->Read();
      Accept();
    });
  }

  // Out of descriptors, most likely: the listener would spin.
  void AcceptLater(const beast::error_code& error) {
    log::Warning("HTTP on {}: cannot accept: {}", Name(local_), error.message());
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this](beast::error_code stopped) {
      if (!stopped) Accept();
    });
  }

  Shared shared_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  HostPort local_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options, Routes routes) {
  auto server = std::make_unique<BeastServer>(options, std::move(routes));
  if (absl::Status status = server->Listen(options.bind); !status.ok()) return status;
  return server;
}

}  // namespace cairn::http
