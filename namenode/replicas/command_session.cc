#include "namenode/replicas/command_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"

namespace cairn::namenode {

CommandSession::CommandSession(Epoch epoch, std::weak_ptr<CommandSource> source, Executor* executor,
                               std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler)
    : epoch_(epoch), source_(std::move(source)), executor_(executor), handler_(std::move(handler)) {}

bool CommandSession::Send(v1::CommandUp message) {
  if (closed_.load()) return false;
  if (queued_.fetch_add(1) >= kMaxUnhandled) {
    queued_.fetch_sub(1);
    Close(MakeError(ErrorKind::kBusy, "too many messages on the command stream"));
    return false;
  }
  executor_->Post([self = shared_from_this(), message = std::move(message)]() mutable {
    self->queued_.fetch_sub(1);
    if (self->handler_) self->Handle(std::move(message));
  });
  return true;
}

void CommandSession::Close(absl::Status status) {
  if (closed_.exchange(true)) return;
  executor_->Post([self = shared_from_this(), status = std::move(status)]() mutable { self->End(std::move(status)); });
}

void CommandSession::End(absl::Status status) {
  closed_.store(true);
  if (!handler_) return;
  const std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler = std::move(handler_);
  handler_ = nullptr;
  const bool was_open = open_;
  open_ = false;
  control_.clear();
  repair_.clear();
  if (std::shared_ptr<CommandSource> source = source_.lock(); source && was_open) source->OnCommandsClosed(*this);
  handler->OnClosed(std::move(status));
}

void CommandSession::Handle(v1::CommandUp message) {
  const std::shared_ptr<CommandSource> source = source_.lock();
  if (!source) return End(MakeError(ErrorKind::kCancelled, "the NameNode is stopping"));
  switch (message.kind_case()) {
    case v1::CommandUp::kHello: return HandleHello(message.hello());
    case v1::CommandUp::kCredit:
      if (!open_) break;
      invalidation_credit_ = std::min(kMaxCredit, invalidation_credit_ + message.credit().invalidations());
      command_credit_ = std::min(kMaxCredit, command_credit_ + message.credit().commands());
      return Pump();
    case v1::CommandUp::kOutcome:
      if (!open_) break;
      return source->OnOutcome(*this, message.outcome());
    case v1::CommandUp::KIND_NOT_SET: break;
  }
  End(MakeError(ErrorKind::kInvalidArgument, "command stream: a message out of order or of unknown kind"));
}

void CommandSession::HandleHello(const v1::CommandUp::Hello& hello) {
  if (open_ || hello.datanode_uuid().empty())
    return End(MakeError(ErrorKind::kInvalidArgument, "command stream: a second hello, or one without uuid"));
  if (hello.epoch() > epoch_.value())
    return End(MakeError(ErrorKind::kStandby, fmt::format("DataNode {} knows epoch {}, this NameNode is of epoch {}", hello.datanode_uuid(),
                                                          hello.epoch(), epoch_.value())));
  datanode_uuid_ = hello.datanode_uuid();
  incarnation_ = Incarnation(hello.incarnation());
  open_ = true;
  const std::shared_ptr<CommandSource> source = source_.lock();
  if (absl::Status accepted = source->OnCommandsOpened(shared_from_this()); !accepted.ok()) {
    open_ = false;
    End(std::move(accepted));
  }
}

void CommandSession::Queue(v1::CommandDown command) {
  if (!open_) return;
  (command.command_class() == v1::CONTROL ? control_ : repair_).push_back(std::move(command));
  Pump();
}

void CommandSession::Deliver(v1::CommandDown command) {
  command.set_epoch(epoch_.value());
  command.set_incarnation(incarnation_.value());
  handler_->OnMessage(std::move(command));
}

void CommandSession::Pump() {
  while (open_ && command_credit_ > 0 && (!control_.empty() || !repair_.empty())) {
    std::deque<v1::CommandDown>& queue = control_.empty() ? repair_ : control_;
    v1::CommandDown command = std::move(queue.front());
    queue.pop_front();
    --command_credit_;
    Deliver(std::move(command));
  }
  while (open_ && invalidation_credit_ > 0) {
    const std::shared_ptr<CommandSource> source = source_.lock();
    if (!source) return;
    std::vector<v1::InvalidateReplica> replicas =
        source->TakeInvalidations(*this, std::min<size_t>(kReplicasPerCommand, invalidation_credit_));
    if (replicas.empty()) return;
    invalidation_credit_ -= std::min<uint64_t>(invalidation_credit_, replicas.size());
    v1::CommandDown command;
    command.set_command_class(v1::RECLAIM);
    for (v1::InvalidateReplica& replica : replicas) *command.mutable_invalidate()->add_replicas() = std::move(replica);
    Deliver(std::move(command));
  }
}

}  // namespace cairn::namenode
