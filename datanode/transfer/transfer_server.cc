#include "datanode/transfer/transfer_server.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/env/wait.h"
#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "datanode/transfer/transfer_session.h"

namespace cairn::datanode {
namespace {

// After an accept that failed for want of descriptors or memory, which would fail again at once.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

// Connections beyond their bound that are told so, at a time; others are closed.
constexpr uint64_t kMostTurnedAway = 1024;

// Calls back when the last of several is done.
struct Countdown {
  std::atomic<size_t> left = 0;
  absl::AnyInvocable<void()> then;
};

}  // namespace

TransferServer::TransferServer(Env* env, BlockStore* store, const TokenVerifier* tokens, TransferOptions options)
    : env_(env), context_(std::move(options)) {
  context_.pool.Set(context_.options.pool_id);
  context_.store = store;
  context_.network = &env->network();
  context_.tokens = tokens;
  for (size_t i = 0; i < std::max<size_t>(context_.options.io_threads, 1); ++i) {
    Lane lane;
    lane.executor = env->executors().NewExecutor(fmt::format("transfer-{}", i));
    lane.group = std::make_unique<TaskGroup>(lane.executor.get());
    lanes_.push_back(std::move(lane));
  }
}

TransferServer::~TransferServer() { CAIRN_CHECK(!started_.load() || stopped_.load(), "the transfer server is destroyed while it runs"); }

absl::Status TransferServer::Start(const HostPort& bind) {
  ASSIGN_OR_RETURN(listener_, env_->network().Listen(bind, lanes_[0].executor.get()));
  local_ = listener_->local();
  if (context_.options.advertised.port == 0) context_.options.advertised.port = local_.port;
  if (context_.options.advertised.host.empty()) context_.options.advertised.host = local_.host;
  started_.store(true);
  lanes_[0].group->Spawn("accept", [this] { return AcceptLoop(); });
  return absl::OkStatus();
}

HostPort TransferServer::local() const { return local_; }

TransferServer::Lane* TransferServer::NextLane() { return &lanes_[next_lane_.fetch_add(1, std::memory_order_relaxed) % lanes_.size()]; }

Awaitable<void> TransferServer::AcceptLoop() {
  TaskGroup* const group = lanes_[0].group.get();
  const std::unique_ptr<TaskGroup::StopHook> hook = group->OnStop([this] { listener_->Close(); });
  while (!group->stopping()) {
    Lane* const lane = NextLane();
    absl::StatusOr<std::unique_ptr<Connection>> accepted = co_await listener_->Accept(lane->executor.get());
    if (!accepted.ok()) {
      if (group->stopping()) break;
      log::Warning("data transfer: accept: {}", std::string(accepted.status().message()));
      co_await SleepUntil(lanes_[0].executor.get(), env_->clock().Now() + kAcceptPause);
      continue;
    }
    lane->group->Spawn("connection",
                       [this, lane, connection = std::move(*accepted)]() mutable { return ServeConnection(lane, std::move(connection)); });
  }
}

Awaitable<void> TransferServer::ServeConnection(Lane* lane, std::unique_ptr<Connection> connection) {
  const uint64_t before = context_.counters.connections.fetch_add(1);
  const uint64_t most = 2 * context_.max_streams.load(std::memory_order_relaxed);
  if (before < most + kMostTurnedAway) {
    TransferSession session(&context_, lane->group.get(), std::move(connection));
    if (before < most) {
      co_await session.Run();
    } else {
      co_await session.TurnAway();
    }
  } else {
    context_.counters.refused_busy.fetch_add(1, std::memory_order_relaxed);
    connection->Close();
  }
  context_.counters.connections.fetch_sub(1);
}

void TransferServer::Transfer(TransferRequest request, absl::AnyInvocable<void(absl::Status)> done) {
  // Says kCancelled if it is destroyed uncalled, as when the lane has stopped.
  struct Promise {
    explicit Promise(absl::AnyInvocable<void(absl::Status)> callback) : done(std::move(callback)) {}
    ~Promise() {
      if (done) done(MakeError(ErrorKind::kCancelled, "the DataNode stops"));
    }
    void Keep(absl::Status status) { std::exchange(done, nullptr)(std::move(status)); }
    absl::AnyInvocable<void(absl::Status)> done;
  };
  struct Work {
    static Awaitable<void> Run(TransferContext* context, Lane* lane, std::shared_ptr<TransferRequest> request,
                               std::shared_ptr<Promise> promise) {
      context->counters.active_streams.fetch_add(1, std::memory_order_relaxed);
      absl::Status status = co_await TransferBlock(context, lane->group.get(), lane->executor.get(), std::move(*request));
      context->counters.active_streams.fetch_sub(1, std::memory_order_relaxed);
      promise->Keep(std::move(status));
    }
  };
  Lane* const lane = NextLane();
  lane->group->Spawn("transfer",
                     [context = &context_, lane, shared = std::make_shared<TransferRequest>(std::move(request)),
                      promise = std::make_shared<Promise>(std::move(done))] { return Work::Run(context, lane, shared, promise); });
}

void TransferServer::StopAndThen(absl::AnyInvocable<void()> then) {
  auto countdown = std::make_shared<Countdown>();
  countdown->left.store(lanes_.size());
  countdown->then = std::move(then);
  for (Lane& lane : lanes_) {
    lane.group->StopAndThen([this, countdown] {
      if (countdown->left.fetch_sub(1) != 1) return;
      absl::AnyInvocable<void()> last = std::move(countdown->then);
      stopped_.store(true);
      if (last) last();
    });
  }
}

}  // namespace cairn::datanode
