#include "client/src/block_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"

namespace cairn::client {
namespace {

using hdfs::OpWriteBlockProto;

constexpr char kSlow[] = "SLOW";         // The reason for going on without a node that works.
constexpr size_t kLeastWithoutSlow = 2;  // A writer that waits is better than bytes that one disk has.

// Set when the last owner lets go: also when a task was dropped before it began.
std::shared_ptr<void> SetWhenReleased(Event* event) {
  return std::shared_ptr<void>(event, [](void* e) { static_cast<Event*>(e)->Set(); });
}

Pipeline::Timeouts TimeoutsOf(const ClientOptions& options) {
  Pipeline::Timeouts timeouts;
  timeouts.connect = options.connect_timeout;
  timeouts.read = options.socket_timeout;
  return timeouts;
}

}  // namespace

BlockStream::BlockStream(FileBeingWritten* file, v1::LocatedBlock block)
    : file_(file),
      located_(std::move(block)),
      nodes_(located_.locations().begin(), located_.locations().end()),
      replica_stamp_(located_.block().generation_stamp()) {}

BlockStream::BlockStream(FileBeingWritten* file, v1::LocatedBlock block, uint64_t old_stamp) : BlockStream(file, std::move(block)) {
  replica_stamp_ = old_stamp;
  to_be_reopened_ = true;
  acked_length_ = located_.block().length_bytes();
  sent_length_ = acked_length_;
}

std::string BlockStream::Name() const { return fmt::format("{} block {}", file_->path, located_.block().id()); }

v1::Block BlockStream::block() const {
  v1::Block block = located_.block();
  block.set_length_bytes(acked_length_);
  return block;
}

v1::CommittedBlock BlockStream::committed() const {
  v1::CommittedBlock committed;
  *committed.mutable_block() = block();
  for (const v1::StorageLocation& node : nodes_) committed.add_acknowledged_storages(node.storage_uuid());
  return committed;
}

PipelineSetUp BlockStream::NewSetUp() const {
  PipelineSetUp set_up;
  set_up.pool_id = file_->pool_id;
  set_up.block = located_.block();
  set_up.block.set_generation_stamp(replica_stamp_);
  set_up.token = located_.token();
  set_up.nodes = nodes_;
  set_up.checksum = file_->checksum;
  set_up.bytes_per_checksum = file_->bytes_per_checksum;
  set_up.sync_on_close = file_->sync_on_close;
  set_up.client_name = file_->core->namenode().client_name();
  return set_up;
}

Awaitable<absl::Status> BlockStream::Open(PipelineFailure* failure) {
  if (nodes_.empty()) co_return MakeError(ErrorKind::kNoTargets, fmt::format("{}: the NameNode gave no DataNode", Name()));
  pipeline_ = std::make_unique<Pipeline>(file_->scope, &file_->core->env()->network(), TimeoutsOf(file_->core->options()));
  PipelineSetUp set_up = NewSetUp();
  absl::Status status = co_await pipeline_->SetUp(std::move(set_up), failure);
  co_return status;
}

Awaitable<absl::Status> BlockStream::OpenForAppend() {
  if (nodes_.empty()) co_return MakeError(ErrorKind::kNoTargets, fmt::format("{}: the NameNode knows no replica to append to", Name()));
  PipelineSetUp set_up = NewSetUp();
  set_up.stage = OpWriteBlockProto::PIPELINE_SETUP_APPEND;
  set_up.min_bytes = acked_length_;
  set_up.max_bytes = acked_length_;
  set_up.latest_stamp = located_.block().generation_stamp();
  pipeline_ = std::make_unique<Pipeline>(file_->scope, &file_->core->env()->network(), TimeoutsOf(file_->core->options()));
  absl::Status status = co_await pipeline_->SetUp(std::move(set_up), &failure_);
  if (status.ok()) {
    replica_stamp_ = located_.block().generation_stamp();
    to_be_reopened_ = false;
    co_return status;
  }
  if (file_->scope.group->stopping()) co_return MakeError(ErrorKind::kCancelled, fmt::format("{}: cancelled", Name()));
  failed_ = true;
  absl::Status recovered = co_await Recover();
  co_return recovered;
}

Awaitable<absl::Status> BlockStream::Run() {
  if (finished_) co_return absl::OkStatus();  // A close that the set-up did.
  for (;;) {
    co_await StreamOnce();
    if (finished_) co_return absl::OkStatus();
    TakeBackUnacked();
    if (file_->scope.group->stopping()) co_return MakeError(ErrorKind::kCancelled, fmt::format("{}: cancelled", Name()));
    absl::Status recovered = co_await Recover();
    CO_RETURN_IF_ERROR(recovered);
    if (finished_) co_return absl::OkStatus();
  }
}

Awaitable<void> BlockStream::StreamOnce() {
  failed_ = false;
  Event acks_ended(file_->scope.executor);
  std::shared_ptr<void> ended = SetWhenReleased(&acks_ended);
  file_->scope.group->Spawn("acknowledgements", [this, ended = std::move(ended)]() mutable { return AckLoop(std::move(ended)); });
  co_await SendLoop();
  const bool in_time = co_await acks_ended.Wait(SteadyTime::Infinite());
  static_cast<void>(in_time);
  pipeline_->Close();
}

Awaitable<void> BlockStream::SendLoop() {
  const absl::Duration heartbeat_after = file_->core->options().socket_timeout / 2;
  SteadyTime quiet_since = file_->scope.executor->clock().Now();
  while (!failed_ && !finished_) {
    // See the class comment: the last packet waits for all data. Behind it come packets of the next
    // block, which are not ours.
    const bool last_sent = !file_->unacked.empty() && file_->unacked.back().header().last_in_block;
    const bool ready = !last_sent && !file_->unsent.empty() && (!file_->unsent.front().header().last_in_block || file_->unacked.empty());
    transfer::Packet packet;
    if (ready) {
      OutgoingPacket next = std::move(file_->unsent.front());
      file_->unsent.pop_front();
      packet = next.packet.Share();
      sent_length_ = std::max(sent_length_, next.end());
      file_->unacked.push_back(std::move(next));
    } else {
      file_->changed.Reset();
      const bool moved = co_await file_->changed.Wait(quiet_since + heartbeat_after);
      if (moved || failed_ || finished_) continue;
      if (last_sent) {  // The last packet ends what a DataNode reads.
        quiet_since = file_->scope.executor->clock().Now();
        continue;
      }
      transfer::PacketHeader heartbeat;
      heartbeat.seqno = transfer::kHeartbeatSeqno;
      packet = transfer::EmptyPacket(heartbeat);
    }
    absl::Status sent = co_await pipeline_->Send(std::move(packet));
    quiet_since = file_->scope.executor->clock().Now();
    if (sent.ok() || failed_) continue;
    // An acknowledgement on its way may know better whose fault it is: give it a moment before the
    // first node is blamed.
    const SteadyTime verdict_by = quiet_since + absl::Seconds(1);
    while (!failed_ && !finished_) {
      file_->changed.Reset();
      const bool moved = co_await file_->changed.Wait(verdict_by);
      if (!moved) break;
    }
    if (!finished_) Fail(0, FailureReason(sent, false), Annotate(sent, "sending a packet"));
  }
}

Awaitable<void> BlockStream::AckLoop(std::shared_ptr<void> ended) {
  while (!failed_ && !finished_) {
    absl::StatusOr<transfer::PipelineAck> ack = co_await pipeline_->ReadAck();
    if (failed_) break;
    if (ack.ok()) {
      TakeAck(*ack);
    } else {
      Fail(0, FailureReason(ack.status(), false), Annotate(ack.status(), "reading acknowledgements"));
    }
  }
  ended.reset();
}

void BlockStream::TakeAck(const transfer::PipelineAck& ack) {
  if (const auto bad = ack.bad_node()) {
    const size_t index = std::min(*bad, nodes_.size() - 1);
    const hdfs::Status reply = ack.replies[*bad];
    const std::string word = reply == hdfs::ERROR ? "CONNECTION_LOST" : hdfs::Status_Name(reply);
    Fail(index, word, absl::UnavailableError(fmt::format("{} was reported as {}", nodes_[index].datanode().transfer().host(), word)));
    return;
  }
  if (ack.seqno == transfer::kHeartbeatSeqno) return;
  if (file_->unacked.empty() || ack.seqno != file_->unacked.front().header().seqno || ack.replies.size() != nodes_.size()) {
    Fail(0, "BAD_ACK",
         MakeError(ErrorKind::kInvalidArgument,
                   fmt::format("acknowledgement {} with {} replies is out of order", ack.seqno, ack.replies.size())));
    return;
  }
  without_progress_ = 0;
  Acknowledge(1);
  if (finished_) return;
  const std::optional<size_t> slow = CountSlow(ack.slow_nodes);
  if (!slow) return;
  const std::string& host = nodes_[*slow].datanode().transfer().host();
  Fail(*slow, kSlow, absl::UnavailableError(fmt::format("{} has said {} times running that it is slow", host, slow_packets_[*slow])));
}

std::optional<size_t> BlockStream::CountSlow(uint64_t slow_nodes) {
  const int threshold = file_->core->options().slow_node_threshold;
  if (threshold <= 0) return std::nullopt;
  slow_packets_.resize(nodes_.size());
  std::optional<size_t> slowest;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    slow_packets_[i] = (slow_nodes >> i & 1) != 0 ? slow_packets_[i] + 1 : 0;
    if (slow_packets_[i] >= threshold && nodes_.size() > kLeastWithoutSlow) slowest = i;
  }
  return slowest;
}

void BlockStream::Acknowledge(size_t count) {
  uint64_t bytes = 0;
  for (; count > 0; --count) {
    const OutgoingPacket& packet = file_->unacked.front();
    acked_length_ = std::max(acked_length_, packet.end());
    file_->acked_seqno = packet.header().seqno;
    bytes += packet.header().data_length;
    if (packet.header().last_in_block) finished_ = true;
    file_->unacked.pop_front();
  }
  if (bytes > 0) file_->progress->RemovePending(bytes);
  file_->changed.Set();
}

void BlockStream::Fail(size_t bad_node, std::string reason, absl::Status status) {
  if (failed_) return;
  failed_ = true;
  failure_ = PipelineFailure(bad_node, std::move(reason), std::move(status));
  pipeline_->Close();
  file_->changed.Set();
}

bool BlockStream::OnlyLastIsUnacked() const { return !file_->unsent.empty() && file_->unsent.front().header().last_in_block; }

void BlockStream::TakeBackUnacked() {
  while (!file_->unacked.empty()) {
    file_->unsent.push_front(std::move(file_->unacked.back()));
    file_->unacked.pop_back();
  }
}

Awaitable<absl::Status> BlockStream::Recover() {
  for (;;) {
    const SteadyTime now = file_->scope.executor->clock().Now();
    // A slow node the NameNode knows, and chooses when no other is left: without it new blocks would have fewer copies.
    if (failure_.reason != kSlow) file_->core->excluded().Add(nodes_[failure_.bad_node].datanode().uuid(), failure_.reason, now);
    nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(failure_.bad_node));
    slow_packets_.clear();  // Each is to be sure of itself in the new pipeline, too.
    if (nodes_.empty() || ++without_progress_ > kMaxRecoveriesWithoutProgress)
      co_return Annotate(failure_.status, fmt::format("{}: no DataNode of its pipeline is left", Name()));
    ++recoveries_;
    // Whether the last packet was sent or not: with all data acknowledged the close can be done by
    // the set-up.
    const bool close_only = OnlyLastIsUnacked() && acked_length_ > 0;
    absl::Status status = co_await SetUpSurvivors(close_only);
    if (status.ok()) co_return status;
    if (file_->scope.group->stopping()) co_return MakeError(ErrorKind::kCancelled, fmt::format("{}: cancelled", Name()));
    if (!failed_) co_return status;  // The NameNode's word, not a DataNode's failure.
  }
}

Awaitable<absl::Status> BlockStream::SetUpSurvivors(bool close_only) {
  failed_ = false;
  v1::UpdateBlockForPipelineRequest stamp_request;
  stamp_request.set_path(file_->path);
  stamp_request.set_inode_id(file_->inode_id);
  *stamp_request.mutable_block() = block();
  const absl::StatusOr<v1::UpdateBlockForPipelineResponse> stamp =
      co_await file_->core->namenode().Mutate(file_->scope, &api::ClientNamenode::UpdateBlockForPipeline, std::move(stamp_request));
  if (!stamp.ok()) co_return Annotate(stamp.status(), Name());

  PipelineSetUp set_up = NewSetUp();
  set_up.token = stamp->token();
  set_up.stage = close_only        ? OpWriteBlockProto::PIPELINE_CLOSE_RECOVERY
                 : to_be_reopened_ ? OpWriteBlockProto::PIPELINE_SETUP_APPEND_RECOVERY
                                   : OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY;
  set_up.min_bytes = acked_length_;
  set_up.max_bytes = close_only ? acked_length_ : sent_length_;
  set_up.latest_stamp = stamp->new_generation_stamp();
  pipeline_ = std::make_unique<Pipeline>(file_->scope, &file_->core->env()->network(), TimeoutsOf(file_->core->options()));
  PipelineFailure failure;
  absl::Status status = co_await pipeline_->SetUp(std::move(set_up), &failure);
  if (!status.ok()) {
    failed_ = true;
    failure_ = std::move(failure);
    co_return status;
  }

  v1::UpdatePipelineRequest update;
  update.set_path(file_->path);
  update.set_inode_id(file_->inode_id);
  *update.mutable_old_block() = block();
  *update.mutable_new_block() = block();
  update.mutable_new_block()->set_generation_stamp(stamp->new_generation_stamp());
  for (const v1::StorageLocation& node : nodes_) update.add_storages(node.storage_uuid());
  const absl::StatusOr<v1::UpdatePipelineResponse> updated =
      co_await file_->core->namenode().Mutate(file_->scope, &api::ClientNamenode::UpdatePipeline, std::move(update));
  if (!updated.ok()) co_return Annotate(updated.status(), Name());
  located_.mutable_block()->set_generation_stamp(stamp->new_generation_stamp());
  located_.set_token(stamp->token());
  replica_stamp_ = stamp->new_generation_stamp();
  to_be_reopened_ = false;
  if (close_only) {  // The set-up finalized the replicas: the last packet need not be sent.
    file_->unacked.push_back(std::move(file_->unsent.front()));
    file_->unsent.pop_front();
    Acknowledge(1);
    pipeline_->Close();
  }
  co_return absl::OkStatus();
}

}  // namespace cairn::client
