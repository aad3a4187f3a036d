#include "client/src/client_core.h"

#include <fmt/format.h>

#include "client/src/blocking.h"
#include "common/status.h"

namespace cairn::client {
namespace {

// How long a client that goes waits for the NameNode to hear which files it leaves unfinished.
constexpr absl::Duration kFarewell = absl::Seconds(2);

CallerOptions CallerOptionsOf(const ClientOptions& options, Env* env) {
  CallerOptions caller;
  caller.user = options.user;
  caller.client_name = fmt::format("cairn-{}-{}", options.user, env->NewRandom().Uuid());
  caller.retry_budget = options.retry_budget;
  caller.call_timeout = options.call_timeout;
  caller.on_waiting = options.on_waiting;
  return caller;
}

}  // namespace

ClientCore::ClientCore(ClientOptions options, Env* env, api::ClientNamenode* namenode, std::shared_ptr<void> owned)
    : options_(std::move(options)), owned_(std::move(owned)), env_(env), host_(env->network().HostName()) {
  for (size_t i = 0; i < kIoExecutors; ++i) {
    Io& io = io_.emplace_back();
    io.executor = env->executors().NewExecutor(fmt::format("cairn-io-{}", i));
    io.group = std::make_unique<TaskGroup>(io.executor.get());
  }
  namenode_ = std::make_unique<NamenodeCaller>(env, namenode, CallerOptionsOf(options_, env));
  const Scope own(io_[0].executor.get(), io_[0].group.get());
  leases_ = std::make_unique<LeaseRenewer>(own, namenode_.get(), options_.lease_renew_interval);
  opens_ = std::make_unique<UncertainOpens>(own, namenode_.get(), leases_.get());
}

ClientCore::~ClientCore() {
  if (opens_->any()) leases_->Release(0);
  if (leases_->releases_pending() > 0) {
    const SteadyTime deadline = env_->clock().Now() + kFarewell;
    IgnoreError(RunBlocking<absl::Status>(env_, io_[0].group.get(), "farewell", [this, deadline] { return leases_->Drain(deadline); }),
                "what was not told runs out by itself");
  }
  for (Io& io : io_) StopBlocking(env_, io.group.get());
  opens_.reset();
  leases_.reset();
  namenode_.reset();  // From here late answers are dropped.
}

Executor* ClientCore::NextExecutor() { return io_[next_.fetch_add(1) % io_.size()].executor.get(); }

Scope ClientCore::LastingScope(Executor* executor) {
  for (Io& io : io_)
    if (io.executor.get() == executor) return Scope(executor, io.group.get());
  return CallScope();
}

Scope ClientCore::CallScope() {
  Io& io = io_[next_.fetch_add(1) % io_.size()];
  return Scope(io.executor.get(), io.group.get());
}

}  // namespace cairn::client
