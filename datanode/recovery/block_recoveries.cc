#include "datanode/recovery/block_recoveries.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "common/log.h"
#include "common/status.h"

namespace cairn::datanode {

BlockRecoveries::BlockRecoveries(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode,
                                 api::InterDatanode* self, api::InterDatanodeResolver resolve)
    : options_(options),
      identity_(std::move(identity)),
      executor_(executor),
      namenode_(namenode),
      self_(self),
      resolve_(std::move(resolve)),
      mailbox_(std::make_shared<LaneMailbox>(executor)) {}

void BlockRecoveries::Recover(v1::CommandDown::Recover command, Done done) {
  mailbox_->Post([this, command = std::move(command), done = std::move(done)]() mutable { Begin(std::move(command), std::move(done)); });
}

BlockRecoveries::Running* BlockRecoveries::Find(Id id) {
  const auto found = running_.find(id);
  return found == running_.end() ? nullptr : &found->second;
}

std::string BlockRecoveries::NameOf(const Running& running) {
  return fmt::format("recovery {} of block {}", running.command.recovery_id(), running.command.block().id());
}

void BlockRecoveries::Begin(v1::CommandDown::Recover command, Done done) {
  const Id id = next_id_++;
  Running& running = running_[id];
  running_count_.store(static_cast<uint32_t>(running_.size()), std::memory_order_relaxed);
  running.command = std::move(command);
  running.done = std::move(done);
  running.began = executor_->clock().Now();
  const absl::Duration budget =
      running.command.budget_ms() == 0 ? options_.default_budget : absl::Milliseconds(running.command.budget_ms());
  running.ask_by = running.began + budget * 0.4;
  running.update_by = running.began + budget * 0.8;
  running.end = running.began + budget;
  const auto count = static_cast<size_t>(running.command.replicas_size());
  running.answers.resize(count);
  running.peers.resize(count);
  running.unanswered = count;
  PlanAt(id, running.ask_by);
  if (count == 0) return Plan(id);
  for (size_t i = 0; i < count; ++i) {
    const v1::StorageLocation& replica = running.command.replicas(static_cast<int>(i));
    running.answers[i].storage_uuid = replica.storage_uuid();
    running.answers[i].status = absl::DeadlineExceededError("no answer in time");
    const bool ours = replica.datanode().uuid() == identity_.datanode_uuid;
    if (!ours && resolve_) running.peers[i] = resolve_(replica.datanode().admin());
    if (!ours && running.peers[i] == nullptr) {
      mailbox_->Post([this, id, i] { OnAnswer(id, i, absl::UnavailableError("no way to this DataNode")); });
      continue;
    }
    v1::InitReplicaRecoveryRequest request;
    *request.mutable_block() = running.command.block();
    request.set_recovery_id(running.command.recovery_id());
    request.set_token(running.command.token());
    request.set_storage_uuid(replica.storage_uuid());
    api::CallContext context;
    context.deadline = running.ask_by;
    Peer(running, i)
        ->InitReplicaRecovery(std::move(context), std::move(request),
                              [this, mailbox = mailbox_, id, i](absl::StatusOr<v1::InitReplicaRecoveryResponse> answer) {
                                mailbox->Post([this, id, i, answer = std::move(answer)]() mutable { OnAnswer(id, i, std::move(answer)); });
                              });
  }
}

void BlockRecoveries::PlanAt(Id id, SteadyTime when) {
  Running* running = Find(id);
  if (running->timer != 0) executor_->CancelTimer(running->timer);
  running->timer = executor_->PostAt(when, [this, id] {
    Running* due = Find(id);
    if (due == nullptr) return;
    due->timer = 0;
    Plan(id);
  });
}

void BlockRecoveries::OnAnswer(Id id, size_t index, absl::StatusOr<v1::InitReplicaRecoveryResponse> answer) {
  Running* running = Find(id);
  if (running == nullptr || running->planned) return;
  ReplicaAnswer& into = running->answers[index];
  into.status = answer.status();
  bool decisive = false;
  if (answer.ok()) {
    into.found = answer->found();
    into.stamp = GenerationStamp(answer->replica().generation_stamp());
    into.length = answer->replica().length_bytes();
    into.state = static_cast<ReplicaState>(answer->state());
    into.sure = answer->sure();
    into.corrupt = answer->corrupt();
    if (!answer->storage_uuid().empty()) into.storage_uuid = answer->storage_uuid();
    decisive = into.found && into.sure && !into.corrupt && into.length > 0;
  }
  if (--running->unanswered == 0) return Plan(id);
  const SteadyTime soon = executor_->clock().Now() + options_.patience;
  if (decisive && soon < running->ask_by) {
    running->ask_by = soon;
    PlanAt(id, soon);
  }
}

void BlockRecoveries::Plan(Id id) {
  Running* running = Find(id);
  if (std::exchange(running->planned, true)) return;
  if (running->timer != 0) executor_->CancelTimer(std::exchange(running->timer, 0));
  RecoveryQuestion question;
  question.known_length = running->command.block().length_bytes();
  question.kept_length = std::max(running->command.closed_length_bytes(), running->command.synced_length_bytes());
  question.oldest_stamp = GenerationStamp(running->command.oldest_stamp());
  if (running->command.has_new_length_bytes()) question.new_length = running->command.new_length_bytes();
  question.unreachable = running->command.unreachable();
  question.long_dead = running->command.long_dead();
  absl::StatusOr<RecoveryPlan> plan = PlanRecovery(question, running->answers);
  if (!plan.ok()) return Report(id, plan.status());
  running->plan = *std::move(plan);
  if (running->plan.drop) return Report(id, absl::OkStatus());
  SendUpdates(id, /*may_hold=*/true);
}

void BlockRecoveries::SendUpdates(Id id, bool may_hold) {
  Running* running = Find(id);
  if (running == nullptr) return;
  const std::optional<absl::Duration> hold = may_hold ? FaultHold("datanode.recovery.before_update") : std::nullopt;
  if (hold) {
    const bool for_ever = *hold == absl::InfiniteDuration();  // Asked again now and then.
    executor_->PostAt(executor_->clock().Now() + (for_ever ? absl::Milliseconds(10) : *hold),
                      [this, id, for_ever] { SendUpdates(id, for_ever); });
    return;
  }
  const std::vector<size_t> update = running->plan.update;
  running->updating = update.size();
  for (const size_t i : update) {
    v1::UpdateReplicaUnderRecoveryRequest request;
    *request.mutable_block() = running->command.block();
    request.set_recovery_id(running->command.recovery_id());
    request.set_new_length_bytes(running->plan.length);
    request.set_token(running->command.token());
    api::CallContext context;
    context.deadline = running->update_by;
    auto done = [this, mailbox = mailbox_, id, i](absl::StatusOr<v1::UpdateReplicaUnderRecoveryResponse> answer) {
      mailbox->Post([this, id, i, answer = std::move(answer)]() mutable { OnUpdated(id, i, std::move(answer)); });
    };
    Peer(*running, i)->UpdateReplicaUnderRecovery(std::move(context), std::move(request), std::move(done));
  }
  if (update.empty()) return Report(id, absl::OkStatus());
  // A peer whose transport forgets the deadline must not hold the others up.
  running->timer = executor_->PostAt(running->update_by + absl::Milliseconds(100), [this, id] {
    Running* due = Find(id);
    if (due == nullptr || due->updating == 0) return;
    due->timer = 0;
    due->updating = 0;
    Report(id, absl::DeadlineExceededError("not all replicas were brought into step in time"));
  });
}

void BlockRecoveries::OnUpdated(Id id, size_t index, absl::StatusOr<v1::UpdateReplicaUnderRecoveryResponse> answer) {
  Running* running = Find(id);
  if (running == nullptr || running->updating == 0) return;
  if (answer.ok()) {
    // As it was asked about: that storage is the one that the block is to end on, and a replica that its node has moved to another volume
    // meanwhile is still that node's.
    running->updated.push_back(running->command.replicas(static_cast<int>(index)).storage_uuid());
  } else {
    running->answers[index].status = Annotate(answer.status(), "bringing it into step");
  }
  if (--running->updating > 0) return;
  if (running->timer != 0) executor_->CancelTimer(std::exchange(running->timer, 0));
  Report(id, absl::OkStatus());
}

// With the plan carried out, or not: what the NameNode is told.
void BlockRecoveries::Report(Id id, absl::Status outcome) {
  Running* running = Find(id);
  const v1::CommandDown::Recover& command = running->command;
  if (running->plan.drop || !running->updated.empty()) {
    outcome = absl::OkStatus();  // One replica is enough; the NameNode makes more from it.
  } else if (outcome.ok()) {
    outcome = MakeError(ErrorKind::kRetriable, fmt::format("no replica could be brought to {} bytes; {}", running->plan.length,
                                                           DescribeAnswers(running->answers)));
  }
  running->outcome = Annotate(outcome, NameOf(*running));
  v1::CommitBlockRecoveryRequest& commit = running->commit;
  commit.set_datanode_uuid(identity_.datanode_uuid);
  commit.set_incarnation(identity_.incarnation.value());
  *commit.mutable_block() = command.block();
  commit.mutable_block()->set_generation_stamp(command.recovery_id());
  commit.set_recovery_id(command.recovery_id());
  if (!outcome.ok()) {
    *commit.mutable_error() = ToDetail(running->outcome);
  } else {
    commit.set_drop(running->plan.drop);
    commit.mutable_block()->set_length_bytes(running->plan.length);
    for (const std::string& storage : running->updated) commit.add_storage_uuids(storage);
  }
  for (size_t i = 0; i < running->answers.size(); ++i) {
    const ReplicaAnswer& answer = running->answers[i];
    v1::CommitBlockRecoveryRequest::StorageOutcome* said = commit.add_outcomes();
    said->set_storage_uuid(command.replicas(static_cast<int>(i)).storage_uuid());
    said->set_answered(answer.status.ok() || answer.found);
    said->set_found(answer.found);
    said->mutable_replica()->set_id(command.block().id());
    said->mutable_replica()->set_generation_stamp(answer.stamp.value());
    said->mutable_replica()->set_length_bytes(answer.length);
    said->set_state(answer.found ? static_cast<v1::ReplicaState>(answer.state) : v1::REPLICA_STATE_UNSPECIFIED);
    said->set_sure(answer.sure);
    if (!answer.status.ok()) said->set_error(std::string(answer.status.message()));
  }
  Commit(id);
}

void BlockRecoveries::Commit(Id id) {
  Running* running = Find(id);
  if (running == nullptr) return;
  api::CallContext context;
  context.deadline = running->end;
  namenode_->CommitBlockRecovery(std::move(context), running->commit,
                                 [this, mailbox = mailbox_, id](absl::StatusOr<v1::CommitBlockRecoveryResponse> answer) {
                                   mailbox->Post([this, id, answer = std::move(answer)]() mutable { OnCommitted(id, std::move(answer)); });
                                 });
}

void BlockRecoveries::OnCommitted(Id id, absl::StatusOr<v1::CommitBlockRecoveryResponse> answer) {
  Running* running = Find(id);
  if (running == nullptr) return;
  const SteadyTime again = executor_->clock().Now() + options_.commit_retry;
  if (!answer.ok() && IsRetriable(answer.status()) && again < running->end) {
    executor_->PostAt(again, [this, id] { Commit(id); });
    return;
  }
  if (!running->outcome.ok()) return End(id, running->outcome);
  End(id, Annotate(answer.status(), fmt::format("committing {}", NameOf(*running))));
}

void BlockRecoveries::End(Id id, absl::Status outcome) {
  const auto found = running_.find(id);
  Running ended = std::move(found->second);
  running_.erase(found);
  running_count_.store(static_cast<uint32_t>(running_.size()), std::memory_order_relaxed);
  if (ended.timer != 0) executor_->CancelTimer(ended.timer);
  if (outcome.ok()) {
    committed_.fetch_add(1, std::memory_order_relaxed);
    log::Info("{}: {}", NameOf(ended),
              ended.plan.drop ? std::string("dropped, nobody has a byte")
                              : fmt::format("{} bytes on {} storages", ended.plan.length, ended.updated.size()));
  } else {
    failed_.fetch_add(1, std::memory_order_relaxed);
    log::Warning("{}", std::string(outcome.message()));
  }
  ended.done(std::move(outcome));
}

}  // namespace cairn::datanode
