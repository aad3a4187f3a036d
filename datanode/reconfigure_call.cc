#include "datanode/reconfigure_call.h"

#include <optional>
#include <utility>

#include "common/error.h"
#include "common/log.h"
#include "common/mutex.h"
#include "datanode/datanode.h"

namespace cairn::datanode {

// Where the end of a change of volumes, on a thread of the store, meets the call that waits for it.
struct ReconfigureCall::Pending {
  using Then = absl::AnyInvocable<void(absl::Status)>;
  void Finish(absl::Status status) ABSL_LOCKS_EXCLUDED(mu) {
    Then ready;
    {
      MutexLock lock(mu);
      if (!then) {
        finished = std::move(status);
        return;
      }
      ready = std::move(then);
    }
    ready(std::move(status));
  }
  void WhenFinished(Then ready) ABSL_LOCKS_EXCLUDED(mu) {
    absl::Status status;
    {
      MutexLock lock(mu);
      if (!finished) {
        then = std::move(ready);
        return;
      }
      status = *std::move(finished);
    }
    ready(std::move(status));
  }

  Mutex mu;
  Then then ABSL_GUARDED_BY(mu);
  std::optional<absl::Status> finished ABSL_GUARDED_BY(mu);
};

ReconfigureCall::ReconfigureCall(Env* env, Reconfiguration* reconfiguration, ChangeableVolumes* volumes, Taker take)
    : env_(env),
      reconfiguration_(reconfiguration),
      volumes_(volumes),
      take_(std::move(take)),
      executor_(env->executors().NewExecutor("reconfigure")) {
  reconfiguration_->SetTaker([this](const Config& config) { Take(config); });
}

// Not by executor_.reset(), which clears the pointer first: a step that is under way still uses it.
ReconfigureCall::~ReconfigureCall() = default;

void ReconfigureCall::Close() {
  closed_.store(true, std::memory_order_release);
  executor_->Post([this] {
    for (auto& [number, done] : std::exchange(waiting_, {})) done(MakeError(ErrorKind::kCancelled, "the DataNode stops"));
    idle_.store(true, std::memory_order_release);
    env_->Wake();
  });
  env_->BlockUntil([this] { return idle_.load(std::memory_order_acquire); }, SteadyTime::Infinite());
}

void ReconfigureCall::Take(const Config& config) {
  const DatanodeOptions options = DatanodeOptionsFrom(config);
  if (take_) take_(options);
  volumes_->SetPace(options.storage.deleter, options.storage.scanner, options.storage.mover);
  pending_ = std::make_shared<Pending>();
  volumes_->ChangeVolumes(options.storage.directories, [pending = pending_](absl::Status status) { pending->Finish(std::move(status)); });
}

v1::ReconfigureResponse ReconfigureCall::Answer(const Reconfiguration::Outcome& outcome) const {
  v1::ReconfigureResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(env_->clock().WallNow()));
  Reconfiguration::Fill(outcome, &response);
  if (response.error().empty()) response.set_error(volume_error_);
  return response;
}

void ReconfigureCall::Call(v1::ReconfigureRequest request, api::Done<v1::ReconfigureResponse> done) {
  executor_->Post([this, action = request.action(), done = std::move(done)]() mutable {
    if (closed_.load(std::memory_order_acquire)) return done(MakeError(ErrorKind::kCancelled, "the DataNode stops"));
    switch (action) {
      case v1::ReconfigureRequest::STATUS: return done(Answer(reconfiguration_->last()));
      case v1::ReconfigureRequest::PROPERTIES: {
        v1::ReconfigureResponse response = Answer({});
        for (std::string& key : reconfiguration_->ReloadableKeys()) response.add_properties(std::move(key));
        return done(std::move(response));
      }
      case v1::ReconfigureRequest::START: break;
      default: return done(MakeError(ErrorKind::kInvalidArgument, "reconfigure: an unknown action"));
    }
    const Reconfiguration::Outcome outcome = reconfiguration_->Reload();
    volume_error_.clear();
    if (!outcome.status.ok()) return done(Answer(outcome));
    // Also when nothing has changed: what could not be done the last time may be possible now.
    if (pending_ == nullptr) Take(reconfiguration_->current());
    const uint64_t number = ++last_waiting_;
    waiting_.emplace(number, std::move(done));
    // The store, and with it the threads that answer, ends before this object does.
    std::exchange(pending_, nullptr)->WhenFinished([this, outcome, number](absl::Status status) {
      executor_->Post([this, outcome, number, status = std::move(status)] {
        if (!status.ok()) {
          volume_error_ = std::string(status.message());
          log::Error("dfs.datanode.data.dir: {}", volume_error_);
        }
        auto waiting = waiting_.extract(number);
        if (!waiting.empty()) waiting.mapped()(Answer(outcome));  // Else it has been closed meanwhile.
      });
    });
  });
}

}  // namespace cairn::datanode
