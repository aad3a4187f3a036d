#include "common/env/real_network.h"

#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "common/check.h"
#include "common/env/file_system.h"
#include "common/env/wait.h"
#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"

namespace cairn {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Most parts of one sendmsg; below IOV_MAX (1024).
constexpr size_t kPartsPerCall = 64;
// A connection that never has to wait lets others of its executor run after so many bytes.
constexpr size_t kBytesPerTurn = 4 << 20;
// sendfile reads the disk on this thread: short steps.
constexpr size_t kSendFileBytes = 1 << 20;
constexpr absl::Duration kAcceptPause = absl::Milliseconds(50);

HostPort ToHostPort(const tcp::endpoint& endpoint) {
  asio::ip::address address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return HostPort{address.to_string(), endpoint.port()};
}

void SetOptions(tcp::socket& socket) {
  // Failing to set one makes a connection slower to send or to notice a dead peer, no more.
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const int idle_seconds = 60, interval_seconds = 10, count = 6;
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

// One direction's waiting for the socket. Its timer is left running when a wait ends in time, and looks at the newest deadline
// when it fires: with deadlines that move ahead with each call there is one timer a minute, not one a call.
struct Direction {
  SteadyTime deadline;  // Of the wait under way.
  bool waiting = false;
  bool timed_out = false;
  Executor::TimerId timer = 0;
  SteadyTime timer_at;
  asio::cancellation_signal cancel;
};

class RealConnection final : public Connection {
 public:
  RealConnection(tcp::socket socket, Executor* executor, const tcp::endpoint& peer)
      : socket_(std::move(socket)), executor_(executor), peer_(ToHostPort(peer)) {
    SetOptions(socket_);
    error_code ignored;
    socket_.native_non_blocking(true, ignored);
  }
  ~RealConnection() override { Close(); }

  Awaitable<absl::StatusOr<size_t>> Read(std::span<char> into, size_t at_least, SteadyTime deadline) override {
    size_t done = 0;
    while (!closed_) {
      const size_t wanted = into.size() - done;
      const ssize_t count = recv(socket_.native_handle(), into.data() + done, wanted, 0);
      if (count == 0) co_return done;
      if (count > 0) {
        done += static_cast<size_t>(count);
        if (done >= at_least) {
          const bool turn_over = Spend(static_cast<size_t>(count));
          if (turn_over) co_await LetOthersRun();
          co_return done;
        }
        if (static_cast<size_t>(count) == wanted) continue;
      } else if (errno == EINTR) {
        continue;
      } else if (errno != EAGAIN) {
        co_return Failed("read from", std::strerror(errno));
      }
      const absl::Status ready = co_await Wait(&reading_, tcp::socket::wait_read, "read from", deadline);
      if (!ready.ok()) co_return ready;
    }
    co_return Failed("read from", "it was closed here");
  }

  Awaitable<absl::Status> Write(std::vector<std::span<const char>> parts, SteadyTime deadline) override {
    size_t part = 0;
    size_t part_done = 0;  // Bytes of parts[part] that are sent.
    while (part < parts.size() && parts[part].empty()) ++part;
    while (part < parts.size()) {
      if (closed_) co_return Failed("write to", "it was closed here");
      const ssize_t count = SendSome(parts, part, part_done);
      if (count < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN) co_return Failed("write to", std::strerror(errno));
        const absl::Status ready = co_await Wait(&writing_, tcp::socket::wait_write, "write to", deadline);
        if (!ready.ok()) co_return ready;
        continue;
      }
      part_done += static_cast<size_t>(count);
      while (part < parts.size() && part_done >= parts[part].size()) part_done -= parts[part++].size();
      const bool turn_over = Spend(static_cast<size_t>(count));
      if (turn_over) co_await LetOthersRun();
    }
    co_return absl::OkStatus();
  }

  Awaitable<absl::Status> SendFile(File* file, uint64_t offset, uint64_t length, SteadyTime deadline) override {
    if (file->descriptor() < 0) co_return co_await CopyFile(file, offset, length, deadline);
    off_t position = static_cast<off_t>(offset);
    while (length > 0) {
      if (closed_) co_return Failed("write to", "it was closed here");
      const size_t wanted = static_cast<size_t>(std::min<uint64_t>(length, kSendFileBytes));
      const ssize_t count = sendfile(socket_.native_handle(), file->descriptor(), &position, wanted);
      if (count == 0) {
        co_return absl::OutOfRangeError(fmt::format("send {}: it ends at {}, {} bytes short", file->path(), position, length));
      }
      if (count < 0) {
        if (errno == EINTR) continue;
        if (errno == EIO) co_return absl::InternalError(fmt::format("read {} to send it: {}", file->path(), std::strerror(errno)));
        if (errno != EAGAIN) co_return Failed("write to", std::strerror(errno));
        const absl::Status ready = co_await Wait(&writing_, tcp::socket::wait_write, "write to", deadline);
        if (!ready.ok()) co_return ready;
        continue;
      }
      length -= static_cast<uint64_t>(count);
      const bool turn_over = Spend(static_cast<size_t>(count));
      if (turn_over) co_await LetOthersRun();
    }
    co_return absl::OkStatus();
  }

  void Close() override {
    if (std::exchange(closed_, true)) return;
    for (Direction* direction : {&reading_, &writing_}) {
      if (direction->timer != 0) executor_->CancelTimer(std::exchange(direction->timer, 0));
    }
    error_code ignored;
    socket_.close(ignored);  // Ends the waits.
  }

  std::string peer() const override { return peer_.ToString(); }
  std::string peer_address() const override { return peer_.host; }
  Executor& executor() const override { return *executor_; }

 private:
  ssize_t SendSome(const std::vector<std::span<const char>>& parts, size_t part, size_t part_done) {
    std::array<iovec, kPartsPerCall> vector;
    size_t used = 0;
    for (size_t i = part; i < parts.size() && used < kPartsPerCall; ++i) {
      vector[used].iov_base = const_cast<char*>(parts[i].data() + part_done);
      vector[used].iov_len = parts[i].size() - part_done;
      part_done = 0;
      ++used;
    }
    msghdr message{};
    message.msg_iov = vector.data();
    message.msg_iovlen = used;
    return sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
  }

  // For files that the kernel does not know.
  Awaitable<absl::Status> CopyFile(File* file, uint64_t offset, uint64_t length, SteadyTime deadline) {
    std::string buffer;
    while (length > 0) {
      buffer.resize(static_cast<size_t>(std::min<uint64_t>(length, kSendFileBytes)));
      const absl::StatusOr<size_t> read = file->ReadAt(offset, buffer);
      if (!read.ok()) co_return read.status();
      if (*read == 0) co_return absl::OutOfRangeError(fmt::format("send {}: it ends at {}", file->path(), offset));
      std::vector<std::span<const char>> parts(1, std::span<const char>(buffer.data(), *read));
      const absl::Status written = co_await Write(std::move(parts), deadline);
      if (!written.ok()) co_return written;
      offset += *read;
      length -= *read;
    }
    co_return absl::OkStatus();
  }

  // Until the socket is ready, in `direction`.
  Awaitable<absl::Status> Wait(Direction* direction, tcp::socket::wait_type type, const char* what, SteadyTime deadline) {
    CAIRN_CHECK(!direction->waiting, "two calls of one direction on a connection at once");
    since_wait_ = 0;
    direction->deadline = deadline;
    direction->waiting = true;
    direction->timed_out = false;
    Arm(direction);
    auto token = asio::bind_cancellation_slot(direction->cancel.slot(), asio::as_tuple(asio::use_awaitable));
    auto suspended = socket_.async_wait(type, std::move(token));
    const std::tuple<error_code> result = co_await std::move(suspended);
    direction->waiting = false;
    if (closed_) co_return Failed(what, "it was closed here");
    if (direction->timed_out) {
      co_return absl::DeadlineExceededError(fmt::format("{} {}: the deadline passed", what, peer_.ToString()));
    }
    const error_code error = std::get<0>(result);
    if (error) co_return Failed(what, error.message().c_str());
    co_return absl::OkStatus();
  }

  void Arm(Direction* direction) {
    if (direction->deadline == SteadyTime::Infinite()) return;
    if (direction->timer != 0) {
      if (direction->timer_at <= direction->deadline) return;  // It will look again then.
      executor_->CancelTimer(direction->timer);
    }
    direction->timer_at = direction->deadline;
    direction->timer = executor_->PostAt(direction->deadline, [this, direction] {
      direction->timer = 0;
      if (!direction->waiting) return;
      if (direction->deadline > executor_->clock().Now()) {
        Arm(direction);
        return;
      }
      direction->timed_out = true;
      direction->cancel.emit(asio::cancellation_type::terminal);
    });
  }

  // Counts bytes that were moved without waiting; true when it is others' turn.
  bool Spend(size_t bytes) {
    since_wait_ += bytes;
    return since_wait_ >= kBytesPerTurn;
  }
  Awaitable<void> LetOthersRun() {
    since_wait_ = 0;
    auto token = asio::use_awaitable;
    co_await asio::post(executor_->asio(), token);
  }

  absl::Status Failed(const char* what, const char* why) const {
    return absl::UnavailableError(fmt::format("{} {}: {}", what, peer_.ToString(), why));
  }

  tcp::socket socket_;
  Executor* const executor_;
  const HostPort peer_;
  Direction reading_;
  Direction writing_;
  size_t since_wait_ = 0;
  bool closed_ = false;
};

class RealListener final : public Listener {
 public:
  RealListener(tcp::acceptor acceptor, Executor* executor, HostPort local)
      : acceptor_(std::move(acceptor)), executor_(executor), local_(std::move(local)) {}
  ~RealListener() override { Close(); }

  Awaitable<absl::StatusOr<std::unique_ptr<Connection>>> Accept(Executor* on) override {
    while (!closed_) {
      auto token = asio::as_tuple(asio::use_awaitable);
      auto suspended = acceptor_.async_accept(on->asio(), token);
      std::tuple<error_code, tcp::socket> result = co_await std::move(suspended);
      const error_code error = std::get<0>(result);
      if (!error) {
        error_code gone;
        const tcp::endpoint peer = std::get<1>(result).remote_endpoint(gone);
        if (gone) continue;
        co_return std::make_unique<RealConnection>(std::move(std::get<1>(result)), on, peer);
      }
      if (closed_) break;
      const bool out_of_something = error == asio::error::no_descriptors || error == boost::system::errc::too_many_files_open_in_system ||
                                    error == asio::error::no_buffer_space || error == asio::error::no_memory;
      if (out_of_something) {  // The kernel keeps the connection: without a pause this would spin.
        co_await SleepUntil(executor_, executor_->clock().Now() + kAcceptPause);
        continue;
      }
      if (error == asio::error::connection_aborted) continue;
      co_return absl::UnavailableError(fmt::format("accept on {}: {}", local_.ToString(), error.message()));
    }
    co_return absl::UnavailableError(fmt::format("listener {} is closed", local_.ToString()));
  }

  void Close() override {
    if (std::exchange(closed_, true)) return;
    error_code ignored;
    acceptor_.close(ignored);
  }

  HostPort local() const override { return local_; }

 private:
  tcp::acceptor acceptor_;
  Executor* const executor_;
  const HostPort local_;
  bool closed_ = false;
};

class RealNetwork final : public Network {
 public:
  Awaitable<absl::StatusOr<std::unique_ptr<Connection>>> Connect(HostPort to, Executor* on, SteadyTime deadline) override {
    const absl::StatusOr<std::vector<tcp::endpoint>> endpoints = co_await Resolve(to, on, deadline);
    if (!endpoints.ok()) co_return endpoints.status();
    absl::Status last = absl::UnavailableError(fmt::format("connect to {}: the name has no address", to.ToString()));
    for (const tcp::endpoint& endpoint : *endpoints) {
      auto socket = std::make_shared<tcp::socket>(on->asio());
      absl::AnyInvocable<void(absl::AnyInvocable<void(absl::StatusOr<bool>)>)> start =
          [socket, endpoint](absl::AnyInvocable<void(absl::StatusOr<bool>)> done) {
            socket->async_connect(endpoint, [socket, done = std::move(done)](error_code error) mutable {
              if (error) {
                done(absl::UnavailableError(error.message()));
              } else {
                done(true);
              }
            });
          };
      const absl::StatusOr<bool> connected = co_await AwaitCallback<bool>(on, deadline, std::move(start));
      if (connected.ok()) co_return std::make_unique<RealConnection>(std::move(*socket), on, endpoint);
      error_code ignored;
      socket->close(ignored);
      last = Annotate(connected.status(), fmt::format("connect to {} ({})", to.ToString(), ToHostPort(endpoint).ToString()));
      if (connected.status().code() == absl::StatusCode::kDeadlineExceeded) break;
    }
    co_return last;
  }

  absl::StatusOr<std::unique_ptr<Listener>> Listen(HostPort bind, Executor* on) override {
    error_code error;
    asio::ip::address address = asio::ip::make_address(bind.host.empty() ? "0.0.0.0" : bind.host, error);
    if (error) {
      tcp::resolver resolver(on->asio());
      const tcp::resolver::results_type results = resolver.resolve(bind.host, std::to_string(bind.port), tcp::resolver::passive, error);
      if (error || results.empty()) {
        return absl::UnavailableError(fmt::format("listen on {}: {}", bind.ToString(), error.message()));
      }
      address = results.begin()->endpoint().address();
    }
    const tcp::endpoint endpoint(address, bind.port);
    tcp::acceptor acceptor(on->asio());
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    tcp::endpoint local;
    if (!error) local = acceptor.local_endpoint(error);
    if (error == asio::error::address_in_use) {
      return absl::UnavailableError(
          fmt::format("listen on {}: port {} is in use; stop what has it, or configure another port", bind.ToString(), bind.port));
    }
    if (error) return absl::UnavailableError(fmt::format("listen on {}: {}", bind.ToString(), error.message()));
    return std::make_unique<RealListener>(std::move(acceptor), on, ToHostPort(local));
  }

  std::string HostName() override {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
    return name.data();
  }

 private:
  static Awaitable<absl::StatusOr<std::vector<tcp::endpoint>>> Resolve(HostPort to, Executor* on, SteadyTime deadline) {
    using Endpoints = std::vector<tcp::endpoint>;
    error_code not_an_address;
    const asio::ip::address address = asio::ip::make_address(to.host, not_an_address);
    if (!not_an_address) co_return Endpoints(1, tcp::endpoint(address, to.port));
    // Asio asks the system's resolver on a thread of its own.
    auto resolver = std::make_shared<tcp::resolver>(on->asio());
    absl::AnyInvocable<void(absl::AnyInvocable<void(absl::StatusOr<Endpoints>)>)> start =
        [resolver, to](absl::AnyInvocable<void(absl::StatusOr<Endpoints>)> done) {
          resolver->async_resolve(to.host, std::to_string(to.port), tcp::resolver::numeric_service,
                                  [resolver, done = std::move(done)](error_code error, tcp::resolver::results_type results) mutable {
                                    if (error) {
                                      done(absl::UnavailableError(error.message()));
                                      return;
                                    }
                                    Endpoints endpoints;
                                    for (const auto& result : results) endpoints.push_back(result.endpoint());
                                    done(std::move(endpoints));
                                  });
        };
    absl::StatusOr<Endpoints> endpoints = co_await AwaitCallback<Endpoints>(on, deadline, std::move(start));
    if (!endpoints.ok()) co_return Annotate(endpoints.status(), fmt::format("connect to {}: resolve {}", to.ToString(), to.host));
    co_return endpoints;
  }
};

}  // namespace

absl::Status CheckResolves(const std::string& host) {
  AssertMayBlock("resolve");
  error_code error;
  asio::ip::make_address(host, error);
  if (!error) return absl::OkStatus();
  asio::io_context context;
  tcp::resolver resolver(context);
  const tcp::resolver::results_type results = resolver.resolve(host, "", error);
  if (!error && !results.empty()) return absl::OkStatus();
  return MakeError(ErrorKind::kNotFound,
                   fmt::format("the host name {} cannot be resolved: {}", host, error ? error.message() : "no address"));
}

std::unique_ptr<Network> NewRealNetwork() {
  // sendfile(2) knows no MSG_NOSIGNAL: without this a peer that hangs up would end the process.
  struct sigaction action{};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
  return std::make_unique<RealNetwork>();
}

}  // namespace cairn
