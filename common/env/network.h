#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/clock.h"
#include "common/env/executor.h"

namespace cairn {

class File;

template <class T>
using Awaitable = boost::asio::awaitable<T>;

struct HostPort {
  std::string host;  // Name or address.
  uint16_t port = 0;
  std::string ToString() const;  // "host:port", "[::1]:port".
  bool operator==(const HostPort&) const = default;
};

// A byte stream between two ends. Belongs to one executor: every call and every continuation runs there. One read and one
// write may be under way at once, no more. Errors: UNAVAILABLE for a broken or closed connection, DEADLINE_EXCEEDED;
// messages name the peer. After an error other than a deadline of a read that got nothing the connection is of no more use.
class Connection {
 public:
  virtual ~Connection() = default;

  // Reads at least `at_least` (>= 1) and at most into.size() bytes. Fewer than at_least only at the end of the stream, then
  // the count is what came (0: clean end). `into` outlives the call.
  virtual Awaitable<absl::StatusOr<size_t>> Read(std::span<char> into, size_t at_least, SteadyTime deadline) = 0;
  // Writes all parts in order. The bytes outlive the call.
  virtual Awaitable<absl::Status> Write(std::vector<std::span<const char>> parts, SteadyTime deadline) = 0;
  // Sends file[offset, offset + length) with no copy through user space where the system can.
  virtual Awaitable<absl::Status> SendFile(File* file, uint64_t offset, uint64_t length, SteadyTime deadline) = 0;
  // Ends pending calls with UNAVAILABLE. Idempotent.
  virtual void Close() = 0;

  virtual std::string peer() const = 0;  // "address:port", for messages and logs.
  virtual std::string peer_address() const = 0;
  virtual Executor& executor() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // The next connection; it will belong to `*on`, which may differ from the listener's executor. UNAVAILABLE after Close.
  virtual Awaitable<absl::StatusOr<std::unique_ptr<Connection>>> Accept(Executor* on) = 0;
  virtual void Close() = 0;
  virtual HostPort local() const = 0;  // With the port that was given for port 0.
};

// Thread-safe.
class Network {
 public:
  virtual ~Network() = default;
  // Resolves and connects; on return runs on `*on`, to which the connection belongs. Must be awaited on that executor.
  virtual Awaitable<absl::StatusOr<std::unique_ptr<Connection>>> Connect(HostPort to, Executor* on, SteadyTime deadline) = 0;
  // Binds and listens. A port in use is an error that names it.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(HostPort bind, Executor* on) = 0;
  // This machine's name, as advertised when nothing is configured.
  virtual std::string HostName() = 0;
};

}  // namespace cairn
