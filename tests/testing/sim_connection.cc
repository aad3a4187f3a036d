// The simulated twins of sockets, over SimFlow.

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/check.h"
#include "common/env/file_system.h"
#include "common/env/wait.h"
#include "common/status.h"
#include "tests/testing/sim_network.h"
#include "tests/testing/sim_world.h"

namespace cairn::testing {

constexpr uint64_t kControlBytes = 64;       // What a handshake costs on a link with a bandwidth.
constexpr size_t kSegmentBytes = 256 << 10;  // Most bytes of one message.

// The two ends of one connection. `arrived` is what the end has received and not read.
struct SimPipe {
  struct End {
    Event* readable = nullptr;  // Of the Connection, while there is one.
    Event* writable = nullptr;
    std::deque<std::string> arrived;
    size_t front_offset = 0;
    uint64_t arrived_bytes = 0;
    uint64_t unread_by_peer = 0;  // Sent, and not yet read at the other end.
    bool finished = false;        // The other end has closed: nothing more arrives, and writing is of no use.
    bool closed = false;          // This end has.
    HostPort address;

    void Wake() const {
      if (readable != nullptr) readable->Set();
      if (writable != nullptr) writable->Set();
    }
  };

  static std::shared_ptr<SimPipe> Open(std::shared_ptr<SimFlow> flow) {
    auto pipe = std::make_shared<SimPipe>();
    pipe->flow = std::move(flow);
    for (int side = 0; side < 2; ++side) {
      pipe->flow->OnBroken(side, [weak = std::weak_ptr<SimPipe>(pipe), side] {
        if (std::shared_ptr<SimPipe> live = weak.lock()) live->ends[side].Wake();
      });
    }
    return pipe;
  }

  std::shared_ptr<SimFlow> flow;
  End ends[2];
};

class SimConnection final : public Connection {
 public:
  SimConnection(SimNetwork* network, std::shared_ptr<SimPipe> pipe, int side, Executor* executor)
      : window_bytes_(network->window_bytes()),
        pipe_(std::move(pipe)),
        side_(side),
        executor_(executor),
        readable_(executor),
        writable_(executor) {
    end().readable = &readable_;
    end().writable = &writable_;
  }
  ~SimConnection() override {
    Close();
    end().readable = nullptr;
    end().writable = nullptr;
  }

  Awaitable<absl::StatusOr<size_t>> Read(std::span<char> into, size_t at_least, SteadyTime deadline) override {
    size_t read = 0;
    for (;;) {
      read += Take(into.subspan(read));
      if (read >= at_least && read > 0) co_return read;
      if (end().closed) co_return Broken("read from", "it was closed here");
      if (end().finished) co_return read;
      if (pipe_->flow->broken(side_)) co_return Broken("read from", "connection reset by peer");
      readable_.Reset();
      const bool in_time = co_await readable_.Wait(deadline);
      if (!in_time) co_return absl::DeadlineExceededError(fmt::format("read from {}: nothing before the deadline", peer()));
    }
  }

  Awaitable<absl::Status> Write(std::vector<std::span<const char>> parts, SteadyTime deadline) override {
    for (const std::span<const char> part : parts) {
      for (size_t done = 0; done < part.size();) {
        if (end().closed) co_return Broken("write to", "it was closed here");
        if (end().finished || pipe_->flow->broken(side_)) co_return Broken("write to", "connection reset by peer");
        if (end().unread_by_peer >= window_bytes_) {
          writable_.Reset();
          const bool in_time = co_await writable_.Wait(deadline);
          if (!in_time) co_return absl::DeadlineExceededError(fmt::format("write to {}: the deadline passed", peer()));
          continue;
        }
        const size_t count = std::min({part.size() - done, static_cast<size_t>(window_bytes_ - end().unread_by_peer), kSegmentBytes});
        Send(std::string(part.data() + done, count));
        done += count;
      }
    }
    co_return absl::OkStatus();
  }

  Awaitable<absl::Status> SendFile(File* file, uint64_t offset, uint64_t length, SteadyTime deadline) override {
    std::string buffer;
    while (length > 0) {
      buffer.resize(static_cast<size_t>(std::min<uint64_t>(length, kSegmentBytes)));
      const absl::StatusOr<size_t> read = file->ReadAt(offset, buffer);
      if (!read.ok()) co_return read.status();
      if (*read == 0) co_return absl::OutOfRangeError(fmt::format("send {}: ends at {}", file->path(), offset));
      std::vector<std::span<const char>> parts(1, std::span<const char>(buffer.data(), *read));
      const absl::Status written = co_await Write(std::move(parts), deadline);
      if (!written.ok()) co_return written;
      offset += *read;
      length -= *read;
    }
    co_return absl::OkStatus();
  }

  void Close() override {
    if (std::exchange(end().closed, true)) return;
    end().Wake();
    pipe_->flow->Send(side_, kControlBytes, [pipe = pipe_, other = 1 - side_] {
      pipe->ends[other].finished = true;
      pipe->ends[other].Wake();
    });
  }

  std::string peer() const override { return pipe_->ends[1 - side_].address.ToString(); }
  std::string peer_address() const override { return pipe_->ends[1 - side_].address.host; }
  Executor& executor() const override { return *executor_; }

 private:
  SimPipe::End& end() const { return pipe_->ends[side_]; }

  absl::Status Broken(const char* what, const char* why) const {
    return absl::UnavailableError(fmt::format("{} {}: {}", what, peer(), why));
  }

  size_t Take(std::span<char> into) {
    size_t taken = 0;
    while (taken < into.size() && !end().arrived.empty()) {
      const std::string& front = end().arrived.front();
      const size_t count = std::min(into.size() - taken, front.size() - end().front_offset);
      std::memcpy(into.data() + taken, front.data() + end().front_offset, count);
      taken += count;
      end().front_offset += count;
      if (end().front_offset == front.size()) {
        end().arrived.pop_front();
        end().front_offset = 0;
      }
    }
    if (taken > 0) {
      end().arrived_bytes -= taken;
      SimPipe::End& sender = pipe_->ends[1 - side_];
      sender.unread_by_peer -= taken;
      if (sender.writable != nullptr) sender.writable->Set();
    }
    return taken;
  }

  void Send(std::string bytes) {
    end().unread_by_peer += bytes.size();
    const uint64_t size = bytes.size();
    pipe_->flow->Send(side_, size, [pipe = pipe_, other = 1 - side_, bytes = std::move(bytes)]() mutable {
      SimPipe::End& to = pipe->ends[other];
      if (to.closed) return;
      to.arrived_bytes += bytes.size();
      to.arrived.push_back(std::move(bytes));
      if (to.readable != nullptr) to.readable->Set();
    });
  }

  const uint64_t window_bytes_;
  const std::shared_ptr<SimPipe> pipe_;
  const int side_;
  Executor* const executor_;
  Event readable_;
  Event writable_;
};

class SimListener final : public Listener {
 public:
  SimListener(SimNetwork* network, SimProcess* process, HostPort local, Executor* executor)
      : network_(network), process_(process), local_(std::move(local)), arrived_(executor) {
    network_->listeners_[Key()] = this;
    on_death_ = process_->OnDeath([this] {
      on_death_ = 0;
      Close();
    });
  }
  ~SimListener() override { Close(); }

  Awaitable<absl::StatusOr<std::unique_ptr<Connection>>> Accept(Executor* on) override {
    for (;;) {
      if (closed_) co_return absl::UnavailableError(fmt::format("listener {} is closed", local_.ToString()));
      if (!backlog_.empty()) {
        std::shared_ptr<SimPipe> pipe = std::move(backlog_.front());
        backlog_.pop_front();
        co_return std::make_unique<SimConnection>(network_, std::move(pipe), 1, on);
      }
      arrived_.Reset();
      const bool set = co_await arrived_.Wait(SteadyTime::Infinite());
      static_cast<void>(set);
    }
  }

  void Close() override {
    if (std::exchange(closed_, true)) return;
    if (on_death_ != 0) process_->ForgetOnDeath(std::exchange(on_death_, 0));
    network_->listeners_.erase(Key());
    for (const std::shared_ptr<SimPipe>& pipe : backlog_) pipe->flow->Abandon(1);
    backlog_.clear();
    arrived_.Set();
  }

  HostPort local() const override { return local_; }

  // A connection request has arrived.
  void Arrive(std::shared_ptr<SimPipe> pipe) {
    pipe->flow->Attach(process_);
    backlog_.push_back(std::move(pipe));
    arrived_.Set();
  }

 private:
  std::pair<std::string, uint16_t> Key() const { return {process_->machine().name(), local_.port}; }

  SimNetwork* const network_;
  SimProcess* const process_;
  const HostPort local_;
  Event arrived_;
  std::deque<std::shared_ptr<SimPipe>> backlog_;
  uint64_t on_death_ = 0;
  bool closed_ = false;
};

class SimNetworkView final : public Network {
 public:
  SimNetworkView(SimNetwork* network, SimProcess* process) : network_(network), process_(process) {}

  Awaitable<absl::StatusOr<std::unique_ptr<Connection>>> Connect(HostPort to, Executor* on, SteadyTime deadline) override {
    if (!process_->alive()) co_return absl::UnavailableError(fmt::format("connect to {}: the process is dead", to.ToString()));
    const bool here = to.host == "localhost" || to.host == "127.0.0.1";
    SimMachine* machine = here ? &process_->machine() : network_->world_->FindMachine(to.host);
    if (machine == nullptr) co_return absl::UnavailableError(fmt::format("connect to {}: unknown host", to.ToString()));

    auto shared = std::make_shared<Attempt>(on);
    std::shared_ptr<SimFlow> flow = network_->OpenFlow(process_, machine);
    std::shared_ptr<SimPipe> pipe = SimPipe::Open(flow);
    pipe->ends[0].address = HostPort{process_->machine().address(), network_->next_port_++};
    pipe->ends[1].address = HostPort{machine->address(), to.port};
    Task request = [network = network_, machine, port = to.port, pipe, shared] {
      auto listener = network->listeners_.find({machine->name(), port});
      const bool found = listener != network->listeners_.end();
      if (found) listener->second->Arrive(pipe);
      pipe->flow->Send(1, kControlBytes, [shared, found] {
        shared->accepted = found;
        shared->answered.Set();
      });
    };
    flow->Send(0, kControlBytes, std::move(request));
    // Replaces the pipe's own; put back below, when there is a connection.
    flow->OnBroken(0, [shared] { shared->answered.Set(); });

    const bool in_time = co_await shared->answered.Wait(deadline);
    if (!in_time) {
      flow->Cut();
      co_return absl::DeadlineExceededError(fmt::format("connect to {}: no answer before the deadline", to.ToString()));
    }
    if (!shared->accepted) {
      const bool broken = flow->broken(0);
      flow->Abandon(0);
      co_return absl::UnavailableError(
          fmt::format("connect to {}: {}", to.ToString(), broken ? "connection reset by peer" : "connection refused"));
    }
    auto connection = std::make_unique<SimConnection>(network_, pipe, 0, on);
    flow->OnBroken(0, [weak = std::weak_ptr<SimPipe>(pipe)] {
      if (std::shared_ptr<SimPipe> live = weak.lock()) live->ends[0].Wake();
    });
    co_return connection;
  }

  absl::StatusOr<std::unique_ptr<Listener>> Listen(HostPort bind, Executor* on) override {
    if (!process_->alive()) return absl::UnavailableError("listen: the process is dead");
    HostPort local{process_->machine().address(), bind.port};
    while (local.port == 0 || (bind.port == 0 && Taken(local.port))) local.port = network_->next_port_++;
    if (Taken(local.port)) {
      return absl::UnavailableError(fmt::format("listen on {}: port {} is in use", bind.ToString(), bind.port));
    }
    return std::make_unique<SimListener>(network_, process_, std::move(local), on);
  }

  std::string HostName() override { return process_->machine().name(); }

 private:
  struct Attempt {
    explicit Attempt(Executor* executor) : answered(executor) {}
    Event answered;
    bool accepted = false;
  };

  bool Taken(uint16_t port) const { return network_->listeners_.contains({process_->machine().name(), port}); }

  SimNetwork* const network_;
  SimProcess* const process_;
};

std::unique_ptr<Network> SimNetwork::NewView(SimProcess* process) { return std::make_unique<SimNetworkView>(this, process); }

}  // namespace cairn::testing
