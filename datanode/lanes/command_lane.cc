#include "datanode/lanes/command_lane.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"

namespace cairn::datanode {
namespace {

bool IsMove(const v1::CommandDown& command) {
  return command.kind_case() == v1::CommandDown::kTransfer && command.transfer().traffic_class() == v1::BALANCING;
}

}  // namespace

class CommandLane::Handler : public api::MessageHandler<v1::CommandDown> {
 public:
  Handler(CommandLane* lane, std::shared_ptr<LaneMailbox> mailbox, uint64_t stream)
      : lane_(lane), mailbox_(std::move(mailbox)), stream_(stream) {}
  void OnMessage(v1::CommandDown command) override {
    mailbox_->Post([lane = lane_, stream = stream_, command = std::move(command)]() mutable { lane->OnDown(stream, std::move(command)); });
  }
  void OnClosed(absl::Status status) override {
    mailbox_->Post([lane = lane_, stream = stream_, status = std::move(status)] { lane->OnClosed(stream, status); });
  }

 private:
  CommandLane* const lane_;  // Alive while the mailbox takes tasks.
  const std::shared_ptr<LaneMailbox> mailbox_;
  const uint64_t stream_;
};

CommandLane::CommandLane(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode, BlockStore* store,
                         const EpochFence* fence, Random random, RegistrationRequests* registration, Callbacks callbacks,
                         Watchdog* watchdog)
    : options_(options),
      identity_(std::move(identity)),
      executor_(executor),
      namenode_(namenode),
      store_(store),
      fence_(fence),
      mailbox_(std::make_shared<LaneMailbox>(executor)),
      registration_(registration),
      watchdog_(watchdog),
      callbacks_(std::move(callbacks)),
      backoff_(options.first_retry, options.last_retry, std::move(random)) {}

CommandLane::~CommandLane() {
  if (sink_ != nullptr) sink_->Close(absl::CancelledError("the DataNode stops"));
}

void CommandLane::Start() {
  mailbox_->Post([this] {
    if (!std::exchange(started_, true)) return Open();
    if (reopen_ == 0) return;
    executor_->CancelTimer(std::exchange(reopen_, 0));
    Open();
  });
}

void CommandLane::EpochRaised() {
  mailbox_->Post([this] { StepSoon(); });
}

void CommandLane::Open() {
  const Watchdog::Step step(watchdog_, "command", "open");
  const uint64_t stream = ++stream_;
  granted_invalidations_ = 0;
  granted_commands_ = 0;
  sink_ = namenode_->Commands({}, std::make_shared<Handler>(this, mailbox_, stream));
  if (sink_ == nullptr) return Reopen();
  v1::CommandUp up;
  v1::CommandUp::Hello* hello = up.mutable_hello();
  hello->set_datanode_uuid(identity_.datanode_uuid);
  hello->set_incarnation(identity_.incarnation.value());
  hello->set_epoch(fence_->current().value());
  if (sink_->Send(std::move(up))) GrantCredit(/*all=*/true);  // Else OnClosed tells.
}

void CommandLane::Reopen() {
  ++stream_;
  if (sink_ != nullptr) std::exchange(sink_, nullptr)->Close(absl::CancelledError("opened again"));
  if (reopen_ != 0) return;
  reopen_ = executor_->PostAt(executor_->clock().Now() + backoff_.Next(), [this] {
    reopen_ = 0;
    Open();
  });
}

void CommandLane::OnClosed(uint64_t stream, const absl::Status& status) {
  if (stream != stream_) return;
  if (KindOf(status) == ErrorKind::kUnregistered) registration_->RegisterAgain("the command stream was refused: not registered");
  log::Debug("command stream closed: {}", std::string(status.message()));
  Reopen();
}

void CommandLane::GrantCredit(bool all) {
  if (sink_ == nullptr) return;
  const uint64_t invalidations_out = granted_invalidations_ + reclaim_.size();
  const uint64_t commands_out = granted_commands_ + control_.size() + repair_.size() + transfers_ + moves_ + verifications_ + recoveries_;
  const bool long_backlog = store_->deletion_backlog() >= options_.max_backlog;
  if (long_backlog && backlog_timer_ == 0) {
    backlog_timer_ = executor_->PostAt(executor_->clock().Now() + options_.backlog_check, [this] {
      backlog_timer_ = 0;
      GrantCredit(/*all=*/false);
    });
  }
  const uint64_t invalidations =
      !long_backlog && invalidations_out < options_.invalidations ? options_.invalidations - invalidations_out : 0;
  const uint64_t commands = commands_out < options_.commands ? options_.commands - commands_out : 0;
  v1::CommandUp up;
  v1::CommandUp::Credit* credit = up.mutable_credit();
  if (all || 2 * invalidations >= options_.invalidations) credit->set_invalidations(static_cast<uint32_t>(invalidations));
  if (all || 2 * commands >= options_.commands) credit->set_commands(static_cast<uint32_t>(commands));
  if (credit->invalidations() == 0 && credit->commands() == 0) return;
  granted_invalidations_ += credit->invalidations();
  granted_commands_ += credit->commands();
  static_cast<void>(sink_->Send(std::move(up)));  // A stream that has ended tells through OnClosed.
}

void CommandLane::OnDown(uint64_t stream, v1::CommandDown command) {
  if (stream != stream_) return;
  const Watchdog::Step step(watchdog_, "command", "receive");
  backoff_.Reset();
  const Epoch epoch(command.epoch());
  if (epoch > fence_->current()) registration_->MeetEpoch(epoch);
  const bool is_invalidation = command.kind_case() == v1::CommandDown::kInvalidate;
  uint64_t& granted = is_invalidation ? granted_invalidations_ : granted_commands_;
  const uint64_t used = is_invalidation ? static_cast<uint64_t>(command.invalidate().replicas_size()) : 1;
  if (used > granted) {
    log::Error("command stream: {} {} without credit; opening it again", used, is_invalidation ? "invalidations" : "commands");
    return Reopen();
  }
  granted -= used;
  const SteadyTime now = executor_->clock().Now();
  if (is_invalidation) {
    for (v1::InvalidateReplica& replica : *command.mutable_invalidate()->mutable_replicas()) {
      reclaim_.push_back({.replica = std::move(replica), .since = now, .epoch = epoch, .for_us = ForUs(command)});
    }
  } else if (command.kind_case() == v1::CommandDown::kTransfer || command.kind_case() == v1::CommandDown::kVerify ||
             command.kind_case() == v1::CommandDown::kRecover) {
    repair_.push_back({.command = std::move(command), .since = now});
  } else {
    control_.push_back({.command = std::move(command), .since = now});
  }
  CountQueued();
  StepSoon();
}

void CommandLane::CountQueued() {
  queued_.store(control_.size() + repair_.size() + reclaim_.size(), std::memory_order_relaxed);
  SteadyTime oldest = SteadyTime::Infinite();
  if (!control_.empty()) oldest = std::min(oldest, control_.front().since);
  if (!repair_.empty()) oldest = std::min(oldest, repair_.front().since);
  if (!reclaim_.empty()) oldest = std::min(oldest, reclaim_.front().since);
  const bool any = oldest != SteadyTime::Infinite();
  oldest_since_ns_.store(any ? absl::ToInt64Nanoseconds(oldest.since_start()) : kNothingQueued, std::memory_order_relaxed);
}

absl::Duration CommandLane::oldest_age() const {
  const int64_t since = oldest_since_ns_.load(std::memory_order_relaxed);
  if (since == kNothingQueued) return absl::ZeroDuration();
  return executor_->clock().Now().since_start() - absl::Nanoseconds(since);
}

void CommandLane::StepSoon() {
  if (std::exchange(step_posted_, true)) return;
  executor_->Post([this] {
    step_posted_ = false;
    Step();
  });
}

void CommandLane::Step() {
  const Watchdog::Step step(watchdog_, "command", "execute");
  const bool more = StepControl() || StepRepair() || StepReclaim();
  CountQueued();
  GrantCredit(/*all=*/false);
  if (more) StepSoon();
}

bool CommandLane::Ready(Epoch epoch, bool* voided) {
  const Epoch current = fence_->current();
  *voided = epoch < current;
  return epoch <= current;
}

uint64_t CommandLane::IdOf(const v1::CommandDown& command) {
  switch (command.kind_case()) {
    case v1::CommandDown::kTransfer: return command.transfer().command_id();
    case v1::CommandDown::kVerify: return command.verify().command_id();
    case v1::CommandDown::kRecover: return command.recover().command_id();
    default: return 0;  // The others have no outcome to send.
  }
}

// Each takes one step's worth of its queue; true if there is more to do at once.
bool CommandLane::StepControl() {
  bool voided = false;
  if (control_.empty() || !Ready(Epoch(control_.front().command.epoch()), &voided)) return false;
  v1::CommandDown command = std::move(control_.front().command);
  control_.pop_front();
  if (voided || !ForUs(command)) {
    log::Info("a control command of epoch {} is void", command.epoch());
  } else {
    Execute(std::move(command));
  }
  return true;
}

bool CommandLane::StepRepair() {
  // The end of one that runs comes back here. Until then kinds do not wait for one another: a recovery, on which a file's close hangs, not
  // for copies that take minutes; nor a repair for what the balancer moves, which has all the time.
  const auto busy = [this](const v1::CommandDown& command) {
    if (IsMove(command)) return moves_ >= options_.max_moves;
    if (command.kind_case() == v1::CommandDown::kTransfer) return transfers_ >= options_.max_transfers;
    if (command.kind_case() == v1::CommandDown::kRecover) return recoveries_ >= options_.max_recoveries;
    return verifications_ >= 1;
  };
  for (auto waiting = repair_.begin(); waiting != repair_.end(); ++waiting) {
    bool voided = false;
    if (!Ready(Epoch(waiting->command.epoch()), &voided)) return false;
    const bool is_void = voided || !ForUs(waiting->command);
    if (!is_void && busy(waiting->command)) continue;
    v1::CommandDown command = std::move(waiting->command);
    repair_.erase(waiting);
    if (is_void) {
      Outcome(IdOf(command),
              MakeError(ErrorKind::kCancelled, fmt::format("void: of epoch {}, incarnation {}", command.epoch(), command.incarnation())));
    } else {
      Execute(std::move(command));
    }
    return true;
  }
  return false;
}

bool CommandLane::StepReclaim() {
  for (size_t done = 0; done < options_.invalidations_per_step && !reclaim_.empty(); ++done) {
    bool voided = false;
    if (!Ready(reclaim_.front().epoch, &voided)) return false;
    const Invalidation invalidation = std::move(reclaim_.front());
    reclaim_.pop_front();
    const v1::InvalidateReplica& replica = invalidation.replica;
    // Asked once more inside the critical section: the epoch may rise between here and there.
    store_->Invalidate(
        replica.storage_uuid(), BlockId(replica.block_id()), GenerationStamp(replica.generation_stamp()), replica.command_id(),
        [fence = fence_, epoch = invalidation.epoch, for_us = invalidation.for_us] { return !for_us || epoch < fence->current(); });
    invalidations_done_.fetch_add(1, std::memory_order_relaxed);
  }
  return !reclaim_.empty();
}

void CommandLane::Execute(v1::CommandDown command) {
  switch (command.kind_case()) {
    case v1::CommandDown::kTransfer: {
      const uint64_t id = command.transfer().command_id();
      const bool move = IsMove(command);
      ++(move ? moves_ : transfers_);
      callbacks_.transfer(std::move(*command.mutable_transfer()), [this, mailbox = mailbox_, id, move](absl::Status status) {
        mailbox->Post([this, id, move, status = std::move(status)] { FinishTransfer(id, move, status); });
      });
      return;
    }
    case v1::CommandDown::kVerify: return StartVerify(command.verify());
    case v1::CommandDown::kRecover: return StartRecovery(std::move(*command.mutable_recover()));
    case v1::CommandDown::kKeys:
      if (callbacks_.keys) callbacks_.keys({command.keys().keys().begin(), command.keys().keys().end()});
      return;
    case v1::CommandDown::kShutdown:
      log::Warning("the NameNode asks this DataNode to stop: {}", command.shutdown().reason());
      if (callbacks_.shutdown) callbacks_.shutdown(command.shutdown().reason());
      return;
    case v1::CommandDown::kInvalidate:
    case v1::CommandDown::KIND_NOT_SET:  // Of a newer NameNode.
      return;
  }
}

void CommandLane::FinishTransfer(uint64_t command_id, bool move, const absl::Status& status) {
  --(move ? moves_ : transfers_);
  if (!status.ok()) log::Info("transfer {} failed: {}", command_id, std::string(status.message()));
  Outcome(command_id, status);
  StepSoon();
}

void CommandLane::StartVerify(const v1::CommandDown::Verify& verify) {
  const uint64_t command_id = verify.command_id();
  const BlockId block(verify.block().id());
  const GenerationStamp stamp(verify.block().generation_stamp());
  absl::StatusOr<Executor*> disk = store_->DiskOf(block);
  if (!disk.ok()) return Outcome(command_id, disk.status());
  ++verifications_;
  (*disk)->Post([this, store = store_, mailbox = mailbox_, block, stamp, command_id] {
    absl::Status verified = store->Verify(block, stamp);
    mailbox->Post([this, command_id, verified = std::move(verified)] {
      --verifications_;
      Outcome(command_id, verified);
      StepSoon();
    });
  });
}

void CommandLane::StartRecovery(v1::CommandDown::Recover recover) {
  const uint64_t command_id = recover.command_id();
  if (!callbacks_.recover) return Outcome(command_id, MakeError(ErrorKind::kUnsupported, "this DataNode recovers no blocks"));
  ++recoveries_;
  callbacks_.recover(std::move(recover), [this, mailbox = mailbox_, command_id](absl::Status status) {
    mailbox->Post([this, command_id, status = std::move(status)] {
      --recoveries_;
      Outcome(command_id, status);
      StepSoon();
    });
  });
}

void CommandLane::Outcome(uint64_t command_id, const absl::Status& status) {
  if (sink_ == nullptr) return;  // The NameNode gives up on its own time.
  v1::CommandUp up;
  v1::CommandUp::Outcome* outcome = up.mutable_outcome();
  outcome->set_command_id(command_id);
  outcome->set_ok(status.ok());
  outcome->set_message(std::string(status.message()));
  static_cast<void>(sink_->Send(std::move(up)));  // As above.
}

}  // namespace cairn::datanode
