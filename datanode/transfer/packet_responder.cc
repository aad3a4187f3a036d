#include "datanode/transfer/packet_responder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/env/wait.h"
#include "common/error.h"
#include "common/fault_points.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

constexpr size_t kMaxAnswerBytesAtOnce = 16 << 10;

// A switchable bug, for the tests that must catch it: nobody waits for the nodes downstream.
bool AcknowledgesTooEarly() { return !FaultPoint("datanode.receiver.ack_before_downstream").ok(); }

}  // namespace

PacketResponder::PacketResponder(TransferContext* context, Executor* executor, Connection* upstream, PacketWindow* window, Mirror* mirror,
                                 size_t nodes_downstream, Style style, bool sync_on_close, bool tells_slow, ReplicaWriter* writer,
                                 hdfs::ExtendedBlockProto block)
    : context_(context),
      executor_(executor),
      upstream_(upstream),
      window_(window),
      mirror_(mirror),
      nodes_downstream_(nodes_downstream),
      style_(style),
      sync_on_close_(sync_on_close),
      tells_slow_(tells_slow),
      writer_(writer),
      block_(std::move(block)) {
  if (style_ != Style::kPipeline || AcknowledgesTooEarly()) window_->ForgetDownstream();
}

std::vector<hdfs::Status> PacketResponder::DownstreamReplies(const PacketWindow::InFlight& packet) const {
  if (mirror_ == nullptr) return {};
  if (packet.downstream.has_value()) return *packet.downstream;
  if (!window_->downstream_failure().ok()) return {hdfs::ERROR};
  return std::vector<hdfs::Status>(nodes_downstream_, hdfs::SUCCESS);
}

Awaitable<absl::Status> PacketResponder::Run() {
  std::string answers;
  for (;;) {
    PacketWindow::InFlight* const ready = window_->Ready();
    if (ready == nullptr || answers.size() >= kMaxAnswerBytesAtOnce) {
      if (!answers.empty()) {
        std::string bytes = std::exchange(answers, std::string());
        const absl::Status sent = co_await Send(std::move(bytes));
        CO_RETURN_IF_ERROR(sent);
        continue;
      }
      if (window_->closed()) co_return absl::CancelledError("the stream ended before its last packet");
      window_->changed()->Reset();
      const bool set = co_await window_->changed()->Wait(SteadyTime::Infinite());
      static_cast<void>(set);
      continue;
    }
    const PacketWindow::InFlight packet = *ready;
    const bool last = packet.header.last_in_block;
    absl::Status own = packet.own;
    if (KindOf(own) == ErrorKind::kCancelled) co_return own;  // Revoked: another writer has the replica, this one is not answered.
    if (style_ != Style::kPipeline) {
      if (last || !own.ok()) {
        const absl::Status finished = co_await FinishTransfer(packet);
        co_return finished;
      }
      window_->Pop();
      continue;
    }

    std::vector<hdfs::Status> replies;
    if (own.ok()) replies = DownstreamReplies(packet);
    const bool downstream_ok = std::all_of(replies.begin(), replies.end(), [](hdfs::Status s) { return s == hdfs::SUCCESS; });
    if (own.ok() && downstream_ok && !packet.header.last_in_block && packet.header.data_length > 0) writer_->SetVisibleLength(packet.end);
    if (own.ok() && downstream_ok && last) {
      // What is ready goes first: finalizing may take long.
      if (!answers.empty()) {
        std::string bytes = std::exchange(answers, std::string());
        const absl::Status sent = co_await Send(std::move(bytes));
        CO_RETURN_IF_ERROR(sent);
      }
      own = co_await EndBlock(packet.end, sync_on_close_ || packet.header.sync_block);
    }
    if (own.ok() && std::find(replies.begin(), replies.end(), hdfs::ERROR_CHECKSUM) != replies.end()) own = co_await SuspectOwnCopy();
    co_await HoldAtFault(executor_, "datanode.receiver.before_ack");

    transfer::PipelineAck ack;
    ack.seqno = packet.header.seqno;
    ack.slow_nodes = packet.slow_downstream << 1 | (tells_slow_ && context_->slow.load(std::memory_order_relaxed) ? 1 : 0);
    ack.downstream_time = packet.downstream_time;
    ack.replies.push_back(transfer::WireStatusOf(own));
    ack.replies.insert(ack.replies.end(), replies.begin(), replies.end());
    if (ack.replies.size() > transfer::kMaxPipelineNodes) ack.replies.resize(transfer::kMaxPipelineNodes);
    answers += transfer::EncodeAck(ack);
    window_->Pop();
    if (!own.ok() || !downstream_ok || last) {
      const absl::Status sent = co_await Send(std::move(answers));
      CO_RETURN_IF_ERROR(own);
      if (!downstream_ok) {
        context_->counters.mirror_errors.fetch_add(1, std::memory_order_relaxed);
        if (!window_->downstream_failure().ok()) co_return window_->downstream_failure();
        co_return absl::UnavailableError("a node downstream refused a packet");
      }
      co_return sent;
    }
  }
}

Awaitable<absl::Status> PacketResponder::EndBlock(uint64_t length, bool sync) {
  const bool to_rbw = style_ == Style::kTransferRbw;
  absl::AnyInvocable<absl::Status()> work = [writer = writer_, length, sync, to_rbw] {
    if (!to_rbw) return writer->Finalize(length, sync);
    if (writer->received() != length)
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("the last packet is at {}, but {} bytes came", length, writer->received()));
    writer->SetVisibleLength(length);
    return writer->ConvertToRbw();
  };
  absl::Status ended = co_await RunOn<absl::Status>(executor_, writer_->disk(), std::move(work));
  if (ended.ok()) context_->counters.blocks_written.fetch_add(1, std::memory_order_relaxed);
  co_return ended;
}

Awaitable<absl::Status> PacketResponder::SuspectOwnCopy() {
  context_->counters.checksum_errors.fetch_add(1, std::memory_order_relaxed);
  // This stream ends after its answer, whatever comes out: a revocation, which a bad replica brings, must not cut the answer off.
  writer_->OnRevoked([] {});
  // The bytes came through here unverified. If they are bad here too, the replica must say so, or it would be taken for good in recovery.
  absl::AnyInvocable<absl::Status()> work = [store = context_->store, id = BlockId(block_.blockid()), stamp = writer_->Describe().stamp] {
    return store->Verify(id, stamp);
  };
  absl::Status verified = co_await RunOn<absl::Status>(executor_, writer_->disk(), std::move(work));
  if (KindOf(verified) == ErrorKind::kChecksum) co_return verified;
  co_return absl::OkStatus();
}

Awaitable<absl::Status> PacketResponder::FinishTransfer(PacketWindow::InFlight packet) {
  // A node downstream that failed costs its own copy only, and the source is told; ours is as good as it was.
  absl::Status downstream = window_->downstream_failure();
  absl::Status own = packet.own;
  if (own.ok() && mirror_ != nullptr && downstream.ok()) downstream = co_await mirror_->ReadTransferAck();
  if (own.ok()) own = co_await EndBlock(packet.end, sync_on_close_ || packet.header.sync_block);
  window_->Pop();
  hdfs::DNTransferAckProto ack;
  ack.set_status(transfer::WireStatusOf(own.ok() ? downstream : own));
  if (ack.status() != hdfs::SUCCESS && own.ok()) ack.set_status(hdfs::ERROR);
  std::string bytes = transfer::Delimited(ack);
  const absl::Status sent = co_await Send(std::move(bytes));
  CO_RETURN_IF_ERROR(own);
  CO_RETURN_IF_ERROR(downstream);
  co_return sent;
}

Awaitable<absl::Status> PacketResponder::Send(std::string bytes) {
  std::vector<std::span<const char>> parts(1, std::span<const char>(bytes));
  const SteadyTime deadline = executor_->clock().Now() + context_->options.write_timeout;
  absl::Status sent = co_await upstream_->Write(std::move(parts), deadline);
  co_return sent;
}

}  // namespace cairn::datanode
