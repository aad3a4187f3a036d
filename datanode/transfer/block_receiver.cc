#include "datanode/transfer/block_receiver.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/env/wait.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

using hdfs::OpWriteBlockProto;

constexpr size_t kMaxBytesPerWrite = 4 << 20;
constexpr size_t kMaxPacketsPerWrite = 64;
constexpr absl::Duration kLongestPause = absl::Seconds(5);  // Of the balancer's pace: its sender keeps to one, too.
// Writers of HDFS go on without a slow node however few are left, and fail with the last: it says nothing to them with none to spare.
constexpr uint32_t kNodesToTellSlow = 3;
constexpr uint32_t kMinBytesPerChecksum = 64;
constexpr uint32_t kMaxBytesPerChecksum = 1 << 20;
// From this length on the replica is synced while the nodes downstream still sync theirs, at the price of a second, small sync.
constexpr uint64_t kEarlySyncBytes = 4 << 20;

GenerationStamp StampAfterSetUp(const OpWriteBlockProto& op) {
  const uint64_t latest = op.latestgenerationstamp();
  return GenerationStamp(latest != 0 ? latest : op.header().baseheader().block().generationstamp());
}

PacketResponder::Style StyleOf(const OpWriteBlockProto& op) {
  if (op.stage() == OpWriteBlockProto::TRANSFER_FINALIZED) return PacketResponder::Style::kTransferFinalized;
  if (op.stage() == OpWriteBlockProto::TRANSFER_RBW) return PacketResponder::Style::kTransferRbw;
  return PacketResponder::Style::kPipeline;
}

absl::Status Invalid(std::string message) { return MakeError(ErrorKind::kInvalidArgument, std::move(message)); }

}  // namespace

BlockReceiver::BlockReceiver(TransferContext* context, TaskGroup* owner, Executor* executor, Connection* upstream,
                             transfer::WireReader* reader, OpWriteBlockProto op)
    : context_(context),
      owner_(owner),
      executor_(executor),
      upstream_(upstream),
      reader_(reader),
      op_(std::move(op)),
      name_(NameOf(op_.header().baseheader().block())),
      stamp_(StampAfterSetUp(op_)),
      style_(StyleOf(op_)),
      window_(executor, context->options.window_bytes,
              PacketWindow::Share{.total_bytes = context->options.memory_bytes, .active_streams = &context->counters.active_streams},
              op_.targets_size() > 0),
      to_write_changed_(executor),
      upstream_ended_(executor),
      self_(std::make_shared<BlockReceiver*>(this)),
      parts_(executor) {}

BlockReceiver::~BlockReceiver() { *self_ = nullptr; }

Awaitable<absl::Status> BlockReceiver::Run() {
  const std::unique_ptr<TaskGroup::StopHook> hook = owner_->OnStop([this] { Abort(absl::CancelledError("the DataNode stops")); });
  absl::Status status = co_await SetUp();
  if (status.ok() && writer_ != nullptr) status = co_await Stream();
  if (mirror_ != nullptr) mirror_->Close();
  if (!status.ok()) co_return Annotate(status, name_);
  co_return status;
}

absl::Status BlockReceiver::CheckRequest() {
  type_ = transfer::TypeOf(op_.requestedchecksum());
  bytes_per_checksum_ = op_.requestedchecksum().bytesperchecksum();
  sync_on_close_ = op_.has_cairnsynconclose() ? op_.cairnsynconclose() : context_->options.sync_on_close;
  if (bytes_per_checksum_ < kMinBytesPerChecksum || bytes_per_checksum_ > kMaxBytesPerChecksum)
    return Invalid(
        fmt::format("{} bytes per checksum; must be in [{}, {}]", bytes_per_checksum_, kMinBytesPerChecksum, kMaxBytesPerChecksum));
  if (static_cast<size_t>(op_.targets_size()) >= transfer::kMaxPipelineNodes)
    return Invalid(fmt::format("pipeline of more than {} nodes", transfer::kMaxPipelineNodes));
  switch (op_.stage()) {
    case OpWriteBlockProto::PIPELINE_SETUP_CREATE:
    case OpWriteBlockProto::PIPELINE_SETUP_APPEND:
    case OpWriteBlockProto::PIPELINE_SETUP_APPEND_RECOVERY:
    case OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY:
    case OpWriteBlockProto::PIPELINE_CLOSE_RECOVERY:
    case OpWriteBlockProto::TRANSFER_RBW:
    case OpWriteBlockProto::TRANSFER_FINALIZED: return absl::OkStatus();
    case OpWriteBlockProto::DATA_STREAMING:
    case OpWriteBlockProto::PIPELINE_CLOSE:
      return Invalid(fmt::format("stage {} does not begin a stream", OpWriteBlockProto::BlockConstructionStage_Name(op_.stage())));
  }
  return Invalid("unknown stage");
}

Awaitable<absl::Status> BlockReceiver::SetUp() {
  std::string own_link = fmt::format("{}:{}", context_->options.advertised.host, context_->options.advertised.port);
  absl::Status status = CheckRequest();
  if (status.ok()) {
    // A writer may also copy; a token for copies only may not write.
    uint8_t modes = static_cast<uint8_t>(TokenMode::kWrite);
    if (style_ != PacketResponder::Style::kPipeline) modes |= static_cast<uint8_t>(TokenMode::kTransfer);
    status = co_await CheckAccess(context_, executor_, &op_.header().baseheader(), stamp_, modes);
  }
  // The node downstream sets itself up while we do.
  std::string bad_link = own_link;
  if (status.ok() && op_.targets_size() > 0) {
    absl::StatusOr<std::unique_ptr<Mirror>> mirror = co_await Mirror::Open(context_, executor_, op_, sync_on_close_);
    status = mirror.status();
    if (status.ok()) {
      mirror_ = std::move(*mirror);
    } else {
      bad_link = transfer::LinkName(op_.targets(0));
      context_->counters.mirror_errors.fetch_add(1, std::memory_order_relaxed);
      if (style_ != PacketResponder::Style::kPipeline) {
        window_.DownstreamFailed(status);  // The copy here is worth as much without the next.
        status = absl::OkStatus();
      }
    }
  }
  if (status.ok()) {
    status = co_await OpenReplica();
    bad_link = own_link;
  }
  // Those who send a copy do not wait for an answer.
  if (style_ != PacketResponder::Style::kPipeline) {
    if (!status.ok()) {
      hdfs::DNTransferAckProto ack;
      ack.set_status(transfer::WireStatusOf(status));
      std::string answer = transfer::Delimited(ack);
      const absl::Status answered = co_await AnswerSetUp(std::move(answer));
      IgnoreError(answered, "the first error is the one to tell");
    }
    co_return status;
  }
  std::string message(status.message());
  hdfs::Status wire = transfer::WireStatusOf(status);
  if (status.ok() && mirror_ != nullptr) {
    absl::StatusOr<hdfs::BlockOpResponseProto> answer = co_await mirror_->ReadSetUpAnswer();
    if (!answer.ok()) {
      status = answer.status();
      wire = hdfs::ERROR;
      bad_link = mirror_->link_name();
    } else if (answer->status() != hdfs::SUCCESS) {
      status = transfer::StatusOfResponse(*answer, mirror_->link_name());
      wire = answer->status();
      bad_link = answer->firstbadlink().empty() ? mirror_->link_name() : answer->firstbadlink();
    }
    // A refusal passes upstream in its own words, of which the first may be meant for programs.
    message = answer.ok() && !answer->message().empty() ? answer->message() : std::string(status.message());
    if (!status.ok()) context_->counters.mirror_errors.fetch_add(1, std::memory_order_relaxed);
  }
  std::string answer = status.ok() ? transfer::EncodeSuccess() : transfer::EncodeFailure(wire, bad_link, message);
  const absl::Status answered = co_await AnswerSetUp(std::move(answer));
  CO_RETURN_IF_ERROR(status);
  co_return answered;
}

Awaitable<absl::Status> BlockReceiver::AnswerSetUp(std::string answer) {
  std::vector<std::span<const char>> parts(1, std::span<const char>(answer));
  const SteadyTime deadline = executor_->clock().Now() + context_->options.write_timeout;
  absl::Status sent = co_await upstream_->Write(std::move(parts), deadline);
  co_return sent;
}

Awaitable<absl::Status> BlockReceiver::OpenReplica() {
  const hdfs::ExtendedBlockProto& block = op_.header().baseheader().block();
  const BlockId id(block.blockid());
  const GenerationStamp stamp(block.generationstamp());
  BlockStore* const store = context_->store;

  using WriterOr = absl::StatusOr<std::shared_ptr<ReplicaWriter>>;
  absl::AnyInvocable<WriterOr()> open;
  Executor* disk = nullptr;
  switch (op_.stage()) {
    case OpWriteBlockProto::PIPELINE_CLOSE_RECOVERY: {
      CO_ASSIGN_OR_RETURN(disk, store->DiskOf(id));
      absl::AnyInvocable<absl::Status()> close = [this, store, id, stamp] {
        return store->RecoverClose(id, stamp, stamp_, op_.minbytesrcvd(), sync_on_close_);
      };
      absl::Status closed = co_await RunOn<absl::Status>(executor_, disk, std::move(close));
      co_return closed;
    }
    case OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY: {
      CO_ASSIGN_OR_RETURN(disk, store->DiskOf(id));
      open = [this, store, id, stamp] { return store->RecoverRbw(id, stamp, stamp_, op_.minbytesrcvd(), op_.maxbytesrcvd()); };
      break;
    }
    case OpWriteBlockProto::PIPELINE_SETUP_APPEND:
    case OpWriteBlockProto::PIPELINE_SETUP_APPEND_RECOVERY: {
      CO_ASSIGN_OR_RETURN(disk, store->DiskOf(id));
      const bool recovery = op_.stage() == OpWriteBlockProto::PIPELINE_SETUP_APPEND_RECOVERY;
      open = [this, store, id, stamp, recovery] { return store->ReopenForAppend(id, stamp, stamp_, op_.minbytesrcvd(), recovery); };
      break;
    }
    case OpWriteBlockProto::PIPELINE_SETUP_CREATE:
    case OpWriteBlockProto::TRANSFER_RBW:
    case OpWriteBlockProto::TRANSFER_FINALIZED: {
      BlockStore::CreateOptions options;
      options.capacity = context_->options.block_capacity;
      options.checksum = type_ == ChecksumType::kNull ? ChecksumType::kCrc32c : type_;
      options.bytes_per_checksum = bytes_per_checksum_;
      options.storage_uuid = op_.storageid();
      const bool copy = style_ != PacketResponder::Style::kPipeline;
      if (copy) {
        // A client's numBytes may be anything, another DataNode's is the length.
        options.expected_bytes = block.numbytes();
        options.capacity = std::max(options.capacity, block.numbytes());
      }
      CO_ASSIGN_OR_RETURN(BlockStore::Placement placement, store->Place(options));
      disk = placement.disk;
      open = [this, store, id, placement, options, copy] {
        return copy ? store->CreateTemporary(placement, id, stamp_, options) : store->CreateRbw(placement, id, stamp_, options);
      };
      break;
    }
    case OpWriteBlockProto::DATA_STREAMING:
    case OpWriteBlockProto::PIPELINE_CLOSE: co_return Invalid("not a stage that opens a replica");  // CheckRequest refused it.
  }
  WriterOr writer = co_await RunOn<WriterOr>(executor_, disk, std::move(open));
  CO_RETURN_IF_ERROR(writer.status());
  if ((*writer)->bytes_per_checksum() != bytes_per_checksum_)
    co_return Invalid(
        fmt::format("chunks of {} bytes for a replica with chunks of {}", bytes_per_checksum_, (*writer)->bytes_per_checksum()));
  if (type_ != ChecksumType::kNull && (*writer)->checksum_type() != type_) co_return Invalid("another checksum type than the replica's");
  writer_ = std::move(*writer);
  next_offset_ = writer_->received();
  // Called on any thread, perhaps after this stream has ended.
  writer_->OnRevoked([self = self_, executor = executor_] {
    executor->Post([self] {
      if (*self != nullptr)
        (*self)->Abort(MakeError(ErrorKind::kCancelled, "another writer has taken over the replica, or it was invalidated"));
    });
  });
  co_return absl::OkStatus();
}

Awaitable<absl::Status> BlockReceiver::Stream() {
  if (!failure_.ok()) co_return failure_;  // Stopped or revoked meanwhile.
  parts_.Spawn("responder", [this] { return Respond(); });
  parts_.Spawn("disk writer", [this] { return WriteLoop(); });
  if (mirror_ != nullptr) {
    parts_.Spawn("mirror", [this] { return mirror_->SendLoop(&window_); });
    if (style_ == PacketResponder::Style::kPipeline) parts_.Spawn("mirror acks", [this] { return mirror_->AckLoop(&window_); });
  }
  absl::Status received = co_await Receive();
  upstream_ended_.Set();
  if (!received.ok()) Abort(std::move(received));
  co_await parts_.Join();
  co_return failure_;
}

Awaitable<absl::Status> BlockReceiver::Receive() {
  for (;;) {
    const SteadyTime deadline = executor_->clock().Now() + context_->options.socket_timeout;
    absl::StatusOr<transfer::Packet> packet = co_await reader_->ReadPacket(type_, bytes_per_checksum_, deadline);
    CO_RETURN_IF_ERROR(packet.status());
    if (failing_) continue;
    const bool room = co_await window_.WaitForRoom();
    if (!room) continue;  // The sender is being told why.
    const bool last = packet->header().last_in_block;
    const uint64_t bytes = packet->header().data_length;
    Take(std::move(*packet));
    if (last) co_return absl::OkStatus();
    if (op_.cairntrafficclass() == v1::BALANCING)
      co_await context_->balance_pace.Wait(executor_, owner_, bytes, executor_->clock().Now() + kLongestPause);
  }
}

void BlockReceiver::Take(transfer::Packet packet) {
  const transfer::PacketHeader header = packet.header();
  context_->counters.bytes_received.fetch_add(header.data_length, std::memory_order_relaxed);
  const uint64_t number = window_.Add(packet, executor_->clock().Now());
  const auto offset = static_cast<uint64_t>(header.offset_in_block);
  if (!packet.heartbeat() && offset > next_offset_) {
    window_.Written(number,
                    Invalid(fmt::format("packet {} begins at {}, but only {} bytes came before", header.seqno, offset, next_offset_)));
    return;
  }
  if (mirror_ != nullptr && window_.downstream_failure().ok()) mirror_->Send(number, packet.Share());
  if (packet.heartbeat()) {
    window_.Written(number, absl::OkStatus());
    return;
  }
  next_offset_ = std::max(next_offset_, offset + header.data_length);
  ToWrite entry{number, std::move(packet)};
  to_write_.push_back(std::move(entry));
  to_write_changed_.Set();
}

Awaitable<void> BlockReceiver::WriteLoop() {
  bool last = false;
  while (!last) {
    while (to_write_.empty() && !window_.closed()) {
      to_write_changed_.Reset();
      const bool set = co_await to_write_changed_.Wait(SteadyTime::Infinite());
      static_cast<void>(set);
    }
    if (window_.closed()) co_return;
    co_await HoldAtFault(executor_, "datanode.receiver.before_write");

    std::vector<ToWrite> batch;
    size_t bytes = 0;
    while (!to_write_.empty() && batch.size() < kMaxPacketsPerWrite && bytes < kMaxBytesPerWrite) {
      batch.push_back(std::move(to_write_.front()));
      to_write_.pop_front();
      bytes += batch.back().packet.frame().size();
    }
    last = batch.back().packet.header().last_in_block;
    const bool end_of_chain = mirror_ == nullptr;
    const bool sync_early = last && !end_of_chain && sync_on_close_ && next_offset_ >= kEarlySyncBytes;
    using Results = std::vector<absl::Status>;
    absl::AnyInvocable<Results()> work = [this, &batch, end_of_chain, sync_early] {
      Results results;
      for (const ToWrite& entry : batch) {
        const transfer::PacketHeader& header = entry.packet.header();
        absl::Status status;
        if (header.data_length > 0) {
          PacketToWrite packet;
          packet.offset = static_cast<uint64_t>(header.offset_in_block);
          packet.data = entry.packet.data();
          packet.checksums = entry.packet.checksums();
          packet.verify = end_of_chain;
          packet.sync = header.sync_block;
          status = writer_->Write(packet);
        } else if ((header.sync_block && !header.last_in_block) || (header.last_in_block && sync_early)) {
          status = writer_->Sync();
        }
        results.push_back(status);
        if (!status.ok()) break;
      }
      return results;
    };
    const Results results = co_await RunOn<Results>(executor_, writer_->disk(), std::move(work));
    for (size_t i = 0; i < results.size(); ++i) {
      if (KindOf(results[i]) == ErrorKind::kChecksum) context_->counters.checksum_errors.fetch_add(1, std::memory_order_relaxed);
      window_.Written(batch[i].number, results[i]);
      if (!results[i].ok()) co_return;
    }
  }
}

Awaitable<void> BlockReceiver::Respond() {
  const hdfs::ExtendedBlockProto block = op_.header().baseheader().block();
  const bool tells_slow = context_->options.tell_slow && op_.pipelinesize() >= kNodesToTellSlow;
  PacketResponder responder(context_, executor_, upstream_, &window_, mirror_.get(), static_cast<size_t>(op_.targets_size()), style_,
                            sync_on_close_, tells_slow, writer_.get(), block);
  absl::Status status = co_await responder.Run();
  if (status.ok()) {
    window_.Close();
    if (mirror_ != nullptr) mirror_->Close();
    co_return;
  }
  failing_ = true;
  if (failure_.ok()) failure_ = status;
  window_.Close();
  to_write_changed_.Set();
  if (mirror_ != nullptr) mirror_->Close();
  // The sender may be in the middle of a packet. Closing now would reset the connection and might take the answer with it.
  const SteadyTime patience = executor_->clock().Now() + context_->options.linger;
  const bool ended = co_await upstream_ended_.Wait(patience);
  static_cast<void>(ended);
  Abort(std::move(status));
}

void BlockReceiver::Abort(absl::Status why) {
  failing_ = true;
  if (failure_.ok()) failure_ = std::move(why);
  window_.Close();
  to_write_changed_.Set();
  if (mirror_ != nullptr) mirror_->Close();
  upstream_->Close();
  upstream_ended_.Set();
}

}  // namespace cairn::datanode
