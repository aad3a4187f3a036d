#include "datanode/transfer/mirror.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

constexpr size_t kMaxBytesAtOnce = 4 << 20;
constexpr size_t kMaxPacketsAtOnce = 64;
// Each node further down may need this much longer to answer, so that the one that is slow is blamed and not those before it. As
// HDFS's timeout extension.
constexpr absl::Duration kExtension = absl::Seconds(5);

// Drops the first of `values`, if there is one: the next node is the first of its own targets no more.
template <class Repeated>
void DropFirst(Repeated* values) {
  if (!values->empty()) values->erase(values->begin());
}

hdfs::OpWriteBlockProto ForNextNode(hdfs::OpWriteBlockProto op) {
  op.clear_storagetype();
  op.clear_storageid();
  op.clear_pinning();
  if (!op.targetstoragetypes().empty()) op.set_storagetype(op.targetstoragetypes(0));
  if (!op.targetstorageids().empty()) op.set_storageid(op.targetstorageids(0));
  if (!op.targetpinnings().empty()) op.set_pinning(op.targetpinnings(0));
  DropFirst(op.mutable_targets());
  DropFirst(op.mutable_targetstoragetypes());
  DropFirst(op.mutable_targetstorageids());
  DropFirst(op.mutable_targetpinnings());
  return op;
}

}  // namespace

Mirror::Mirror(const TransferContext* context, Executor* executor, std::string link_name, size_t nodes,
               std::unique_ptr<Connection> connection)
    : context_(context),
      executor_(executor),
      link_name_(std::move(link_name)),
      nodes_(nodes),
      connection_(std::move(connection)),
      reader_(connection_.get()),
      outgoing_changed_(executor) {}

Awaitable<absl::StatusOr<std::unique_ptr<Mirror>>> Mirror::Open(TransferContext* context, Executor* executor, hdfs::OpWriteBlockProto op,
                                                                bool sync_on_close) {
  const hdfs::DatanodeInfoProto& next = op.targets(0);
  std::string link_name = transfer::LinkName(next);
  const auto nodes = static_cast<size_t>(op.targets_size());
  const SteadyTime deadline = executor->clock().Now() + context->options.connect_timeout;
  HostPort address = transfer::AddressOf(next);
  absl::StatusOr<std::unique_ptr<Connection>> connection = co_await context->network->Connect(std::move(address), executor, deadline);
  if (!connection.ok()) co_return Annotate(connection.status(), fmt::format("mirror {}", link_name));

  std::unique_ptr<Mirror> mirror(new Mirror(context, executor, std::move(link_name), nodes, std::move(*connection)));
  mirror->sync_on_close_ = sync_on_close;
  // The own work of a node in the middle is hidden behind its wait for those further down: beside it the end of a chain, which has
  // nothing to hide it behind, would seem slow. Only ends are compared.
  if (nodes == 1) mirror->latency_ = context->peers.Of(op.targets(0).id().datanodeuuid(), executor->clock().Now());
  const std::string bytes = transfer::EncodeOperation(transfer::Opcode::kWriteBlock, ForNextNode(std::move(op)));
  std::vector<std::span<const char>> parts(1, std::span<const char>(bytes));
  const absl::Status sent = co_await mirror->connection_->Write(std::move(parts), deadline);
  if (!sent.ok()) co_return Annotate(sent, fmt::format("mirror {}", mirror->link_name_));
  co_return mirror;
}

SteadyTime Mirror::AnswerDeadline() const {
  return executor_->clock().Now() + context_->options.socket_timeout + kExtension * static_cast<int>(nodes_);
}

Awaitable<absl::StatusOr<hdfs::BlockOpResponseProto>> Mirror::ReadSetUpAnswer() {
  hdfs::BlockOpResponseProto answer;
  const absl::Status read = co_await transfer::ReadMessage(&reader_, &answer, transfer::kMaxAnswerBytes, AnswerDeadline());
  if (!read.ok()) co_return Annotate(read, fmt::format("mirror {}", link_name_));
  co_return answer;
}

void Mirror::Send(uint64_t number, transfer::Packet packet) {
  Outgoing outgoing{number, std::move(packet)};
  outgoing_.push_back(std::move(outgoing));
  outgoing_changed_.Set();
}

Awaitable<void> Mirror::SendLoop(PacketWindow* window) {
  bool last = false;
  while (!last) {
    while (outgoing_.empty() && !closed_) {
      outgoing_changed_.Reset();
      const bool set = co_await outgoing_changed_.Wait(SteadyTime::Infinite());
      static_cast<void>(set);
    }
    if (closed_) co_return;
    co_await HoldAtFault(executor_, "datanode.receiver.before_mirror");

    std::vector<Outgoing> batch;
    std::vector<std::span<const char>> parts;
    size_t bytes = 0;
    while (!outgoing_.empty() && batch.size() < kMaxPacketsAtOnce && bytes < kMaxBytesAtOnce) {
      batch.push_back(std::move(outgoing_.front()));
      outgoing_.pop_front();
      parts.push_back(batch.back().packet.frame());
      bytes += parts.back().size();
      last = last || batch.back().packet.header().last_in_block;
    }
    const SteadyTime now = executor_->clock().Now();
    for (const Outgoing& outgoing : batch) window->Forwarding(outgoing.number, now);
    const absl::Status sent = co_await connection_->Write(std::move(parts), now + context_->options.write_timeout);
    if (!sent.ok()) {
      window->DownstreamFailed(Annotate(sent, fmt::format("mirror {}", link_name_)));
      co_return;
    }
    for (const Outgoing& outgoing : batch) window->Forwarded(outgoing.number);
  }
}

Awaitable<void> Mirror::AckLoop(PacketWindow* window) {
  for (;;) {
    const SteadyTime deadline = AnswerDeadline();
    const absl::StatusOr<transfer::PipelineAck> ack = co_await transfer::ReadAck(&reader_, deadline);
    if (closed_) co_return;
    if (!ack.ok()) {
      // A silent stream is owed nothing: only when it owes us an acknowledgement for that long is it broken.
      const std::optional<SteadyTime> owed_since = window->OldestOwed();
      const bool nothing_due = !owed_since.has_value() || *owed_since + context_->options.socket_timeout > executor_->clock().Now();
      if (absl::IsDeadlineExceeded(ack.status()) && reader_.buffered() == 0 && nothing_due) continue;
      window->DownstreamFailed(Annotate(ack.status(), fmt::format("mirror {}", link_name_)));
      co_return;
    }
    if (ack->seqno == transfer::kUnknownSeqno) continue;  // Out of band: it restarts soon. Its connection will tell.
    const SteadyTime now = executor_->clock().Now();
    const absl::StatusOr<const PacketWindow::InFlight*> taken = window->Acknowledged(*ack, now);
    if (!taken.ok()) {
      window->DownstreamFailed(Annotate(taken.status(), fmt::format("mirror {}", link_name_)));
      co_return;
    }
    if (*taken != nullptr) Measure(**taken, *ack, now);
    if (!ack->all_success()) co_return;
  }
}

void Mirror::Measure(const PacketWindow::InFlight& packet, const transfer::PipelineAck& ack, SteadyTime now) {
  if (latency_ == nullptr || !packet.alone || !ack.all_success()) return;
  const bool last = packet.header.last_in_block;
  // A heartbeat touches no disk; a sync in the middle of a block, or a close without one, is neither kind.
  if (last ? !sync_on_close_ && !packet.header.sync_block : packet.header.data_length == 0 || packet.header.sync_block) return;
  latency_->Note(last ? PeerLatency::Kind::kClose : PeerLatency::Kind::kData, packet.downstream_time - ack.downstream_time, now);
}

Awaitable<absl::Status> Mirror::ReadTransferAck() {
  hdfs::DNTransferAckProto ack;
  const absl::Status read = co_await transfer::ReadMessage(&reader_, &ack, transfer::kMaxAnswerBytes, AnswerDeadline());
  if (!read.ok()) co_return Annotate(read, fmt::format("target {}", link_name_));
  if (ack.status() != hdfs::SUCCESS)
    co_return absl::UnavailableError(fmt::format("target {} answered {}", link_name_, hdfs::Status_Name(ack.status())));
  co_return absl::OkStatus();
}

void Mirror::Close() {
  closed_ = true;
  outgoing_.clear();
  connection_->Close();
  outgoing_changed_.Set();
}

}  // namespace cairn::datanode
