#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/env.h"
#include "common/hadoop_ipc/call.h"
#include "common/task_group.h"

namespace cairn::ipc {

struct ServerOptions {
  size_t io_threads = 2;
  size_t max_connections = 16'384;                       // One more is closed at once.
  size_t max_calls = 16'384;                             // Under way in all; one more is told to come again (RetriableException).
  size_t max_calls_per_connection = 256;                 // Under way, or answered and not yet written: then no more of it is read.
  size_t max_unwritten_bytes = 4 << 20;                  // Answers that a client does not take: then no more of it is read.
  size_t max_frame_bytes = 2 << 20;                      // Of a call; no request of an ordinary client comes near.
  size_t max_request_bytes = 256 << 20;                  // Buffered and under way in all: above it only small requests are taken.
  absl::Duration handshake_timeout = absl::Seconds(20);  // From the connection's begin to its context.
  absl::Duration frame_timeout = absl::Minutes(2);       // From a frame's first byte to its last.
  absl::Duration idle_timeout = absl::Minutes(10);       // Without a byte from a client that waits for nothing.
  absl::Duration write_timeout = absl::Minutes(1);       // For a client to take what it is answered, 256 KiB of it.
  absl::Duration call_timeout = absl::Minutes(2);        // A client's own patience: the deadline that a call is handed on with.
};

// What all connections of a server share. The numbers are for everyone; the rest does not change.
struct ServerState {
  ServerOptions options;
  Handler* handler = nullptr;
  Env* env = nullptr;
  std::atomic<size_t> connections{0};
  std::atomic<size_t> calls{0};          // Under way.
  std::atomic<size_t> request_bytes{0};  // What came for calls, of those under way and of those that are on their way.
  std::atomic<uint64_t> calls_begun{0};
  std::atomic<uint64_t> refused_connections{0};  // Too many, or none of the protocol.
  std::atomic<uint64_t> refused_calls{0};        // Too many.
  std::atomic<bool> stopping{false};
};

// Listens for clients that speak Hadoop IPC, on threads of its own: a connection belongs to one of them, which reads it, hands its calls to
// the handler and writes the answers, in whatever order they come, many at a time. A client that sends garbage, half a frame or nothing
// costs a connection, and that for a bounded time.
//
// Thread-safe after Start.
class Server {
 public:
  // `handler` and `env` outlive this.
  Server(const ServerOptions& options, Handler* handler, Env* env);
  ~Server();  // Stops.
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // An error for a port that is taken, naming it. Returns the bound address. Once.
  absl::StatusOr<HostPort> Start(const HostPort& bind);
  // Closes all connections and waits until every call has been answered to it. Blocks; idempotent.
  void Stop();

  const ServerState& state() const { return *state_; }

 private:
  struct Lane {
    std::unique_ptr<Executor> executor;
    std::unique_ptr<TaskGroup> group;
  };

  Awaitable<void> AcceptLoop();
  Awaitable<void> ServeConnection(Lane* lane, std::unique_ptr<Connection> connection);

  const std::shared_ptr<ServerState> state_;  // Shared with the calls under way.
  std::vector<Lane> lanes_;
  std::unique_ptr<Listener> listener_;  // Of the first lane's executor.
  size_t next_lane_ = 0;                // Of the accept loop.
  bool started_ = false;
};

}  // namespace cairn::ipc
