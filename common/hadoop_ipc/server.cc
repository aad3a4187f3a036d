#include "common/hadoop_ipc/server.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/env/wait.h"
#include "common/hadoop_ipc/session.h"
#include "common/log.h"
#include "common/status.h"

namespace cairn::ipc {
namespace {

// After an accept that failed for want of descriptors or memory, which would fail again at once.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

std::shared_ptr<ServerState> NewState(const ServerOptions& options, Handler* handler, Env* env) {
  auto state = std::make_shared<ServerState>();
  state->options = options;
  state->handler = handler;
  state->env = env;
  return state;
}

}  // namespace

Server::Server(const ServerOptions& options, Handler* handler, Env* env) : state_(NewState(options, handler, env)) {
  for (size_t i = 0; i < std::max<size_t>(options.io_threads, 1); ++i) {
    Lane lane;
    lane.executor = env->executors().NewExecutor(fmt::format("hadoop-ipc-{}", i));
    lane.group = std::make_unique<TaskGroup>(lane.executor.get());
    lanes_.push_back(std::move(lane));
  }
}

Server::~Server() { Stop(); }

absl::StatusOr<HostPort> Server::Start(const HostPort& bind) {
  ASSIGN_OR_RETURN(listener_, state_->env->network().Listen(bind, lanes_[0].executor.get()));
  started_ = true;
  lanes_[0].group->Spawn("accept", [this] { return AcceptLoop(); });
  return listener_->local();
}

Awaitable<void> Server::AcceptLoop() {
  TaskGroup* const group = lanes_[0].group.get();
  const std::unique_ptr<TaskGroup::StopHook> hook = group->OnStop([this] { listener_->Close(); });
  while (!group->stopping()) {
    Lane* const lane = &lanes_[next_lane_++ % lanes_.size()];
    absl::StatusOr<std::unique_ptr<Connection>> accepted = co_await listener_->Accept(lane->executor.get());
    if (!accepted.ok()) {
      if (group->stopping()) break;
      log::Warning("Hadoop IPC: accept: {}", std::string(accepted.status().message()));
      const SteadyTime again = state_->env->clock().Now() + kAcceptPause;
      co_await SleepUntil(lanes_[0].executor.get(), again);
      continue;
    }
    lane->group->Spawn("connection",
                       [this, lane, connection = std::move(*accepted)]() mutable { return ServeConnection(lane, std::move(connection)); });
  }
}

Awaitable<void> Server::ServeConnection(Lane* lane, std::unique_ptr<Connection> connection) {
  if (state_->connections.fetch_add(1) < state_->options.max_connections) {
    Session session(state_, lane->group.get(), std::move(connection));
    co_await session.Run();
  } else {
    state_->refused_connections.fetch_add(1, std::memory_order_relaxed);
    connection->Close();
  }
  state_->connections.fetch_sub(1);
}

void Server::Stop() {
  if (!started_) return;
  started_ = false;
  state_->stopping.store(true);
  Env* const env = state_->env;
  auto left = std::make_shared<std::atomic<size_t>>(lanes_.size());
  for (Lane& lane : lanes_) {
    lane.group->StopAndThen([left, env] {
      left->fetch_sub(1);
      env->Wake();
    });
  }
  // Calls that wait for the namespace answer to nobody now, but on these threads.
  env->BlockUntil([&] { return left->load() == 0 && state_->calls.load() == 0; }, SteadyTime::Infinite());
}

}  // namespace cairn::ipc
