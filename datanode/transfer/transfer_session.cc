#include "datanode/transfer/transfer_session.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "datanode/transfer/block_receiver.h"
#include "datanode/transfer/block_sender.h"
#include "datanode/transfer/block_transfer.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kClientTransferTime = absl::Minutes(10);
constexpr absl::Duration kRefusalTime = absl::Seconds(5);  // Of an operation that is refused unread.

// Counts an operation as an active stream while it lives.
class StreamCount {
 public:
  explicit StreamCount(TransferCounters* counters) : counters_(counters) {
    before_ = counters_->active_streams.fetch_add(1, std::memory_order_relaxed);
  }
  ~StreamCount() { counters_->active_streams.fetch_sub(1, std::memory_order_relaxed); }
  StreamCount(const StreamCount&) = delete;
  StreamCount& operator=(const StreamCount&) = delete;
  uint64_t before() const { return before_; }

 private:
  TransferCounters* const counters_;
  uint64_t before_;
};

}  // namespace

TransferSession::TransferSession(TransferContext* context, TaskGroup* owner, std::unique_ptr<Connection> connection)
    : context_(context),
      owner_(owner),
      connection_(std::move(connection)),
      executor_(&connection_->executor()),
      reader_(connection_.get()) {}

Awaitable<void> TransferSession::Run() {
  const std::unique_ptr<TaskGroup::StopHook> hook = owner_->OnStop([this] { connection_->Close(); });
  absl::Duration patience = context_->options.socket_timeout;
  for (bool more = true; more;) {
    const SteadyTime deadline = executor_->clock().Now() + patience;
    const absl::StatusOr<std::optional<transfer::Opcode>> opcode = co_await transfer::ReadOpcode(&reader_, deadline);
    if (!opcode.ok()) {
      // Silence and a connection that went away are everyday; bytes that are not the protocol are worth a line.
      if (KindOf(opcode.status()) != ErrorKind::kNone) {
        context_->counters.bad_requests.fetch_add(1, std::memory_order_relaxed);
        log::Warning("data transfer: {}: {}; closed the connection", connection_->peer(), std::string(opcode.status().message()));
      }
      break;
    }
    if (!opcode->has_value()) break;
    const absl::StatusOr<bool> served = co_await Serve(**opcode);
    if (!served.ok() && !owner_->stopping())
      log::Warning("data transfer: {}: {}", connection_->peer(), std::string(served.status().message()));
    more = served.ok() && *served;
    patience = context_->options.keep_alive;
  }
  connection_->Close();
}

Awaitable<absl::StatusOr<bool>> TransferSession::Serve(transfer::Opcode opcode) {
  std::optional<StreamCount> stream(std::in_place, &context_->counters);
  const size_t max_streams = context_->max_streams.load(std::memory_order_relaxed);
  if (stream->before() >= max_streams) {
    std::string why = fmt::format("{} streams are open, dfs.datanode.max.transfer.threads allows {}", stream->before(), max_streams);
    stream.reset();  // Being refused takes its time; it must not be one of the streams for which others are.
    co_await RefuseBusy(std::move(why));
    co_return false;
  }
  absl::StatusOr<bool> served = false;
  switch (opcode) {
    case transfer::Opcode::kWriteBlock: served = co_await ServeWrite(); break;
    case transfer::Opcode::kReadBlock: served = co_await ServeRead(); break;
    case transfer::Opcode::kTransferBlock: served = co_await ServeTransfer(); break;
    case transfer::Opcode::kReadMetadata:
    case transfer::Opcode::kReplaceBlock:
    case transfer::Opcode::kCopyBlock:
    case transfer::Opcode::kBlockChecksum:
    case transfer::Opcode::kRequestShortCircuitFds:
    case transfer::Opcode::kReleaseShortCircuitFds:
    case transfer::Opcode::kRequestShortCircuitShm:
    case transfer::Opcode::kBlockGroupChecksum:
    case transfer::Opcode::kCustom: {
      context_->counters.bad_requests.fetch_add(1, std::memory_order_relaxed);
      std::string refusal =
          transfer::EncodeFailure(hdfs::ERROR_UNSUPPORTED, "", fmt::format("operation {} is not supported", static_cast<unsigned>(opcode)));
      const absl::Status answered = co_await Answer(std::move(refusal));
      IgnoreError(answered, "the peer learns it from the closed connection too");
      co_return MakeError(ErrorKind::kUnsupported,
                          fmt::format("operation {} is not supported; closed the connection", static_cast<unsigned>(opcode)));
    }
  }
  co_return served;
}

Awaitable<absl::StatusOr<bool>> TransferSession::ServeWrite() {
  hdfs::OpWriteBlockProto op;
  const SteadyTime deadline = executor_->clock().Now() + context_->options.socket_timeout;
  const absl::Status read = co_await transfer::ReadMessage(&reader_, &op, transfer::kMaxOperationBytes, deadline);
  if (!read.ok()) {
    context_->counters.bad_requests.fetch_add(1, std::memory_order_relaxed);
    co_return read;
  }
  BlockReceiver receiver(context_, owner_, executor_, connection_.get(), &reader_, std::move(op));
  const absl::Status status = co_await receiver.Run();
  CO_RETURN_IF_ERROR(status);
  co_return false;
}

Awaitable<absl::StatusOr<bool>> TransferSession::ServeRead() {
  hdfs::OpReadBlockProto op;
  const SteadyTime deadline = executor_->clock().Now() + context_->options.socket_timeout;
  const absl::Status read = co_await transfer::ReadMessage(&reader_, &op, transfer::kMaxOperationBytes, deadline);
  if (!read.ok()) {
    context_->counters.bad_requests.fetch_add(1, std::memory_order_relaxed);
    co_return read;
  }
  BlockSender sender(context_, executor_, connection_.get(), &reader_, std::move(op));
  absl::StatusOr<bool> again = co_await sender.Run();
  co_return again;
}

Awaitable<absl::StatusOr<bool>> TransferSession::ServeTransfer() {
  hdfs::OpTransferBlockProto op;
  const SteadyTime deadline = executor_->clock().Now() + context_->options.socket_timeout;
  absl::Status status = co_await transfer::ReadMessage(&reader_, &op, transfer::kMaxOperationBytes, deadline);
  if (!status.ok()) {
    context_->counters.bad_requests.fetch_add(1, std::memory_order_relaxed);
    co_return status;
  }
  const hdfs::BaseHeaderProto& header = op.header().baseheader();
  const GenerationStamp stamp(header.block().generationstamp());
  const auto modes = static_cast<uint8_t>(static_cast<uint8_t>(TokenMode::kTransfer) | static_cast<uint8_t>(TokenMode::kWrite));
  status = co_await CheckAccess(context_, executor_, &header, stamp, modes);
  if (status.ok()) {
    TransferRequest request;
    request.block = BlockId(header.block().blockid());
    request.stamp = stamp;
    request.token = header.token().identifier();
    request.client_name = op.header().clientname();
    request.targets.assign(op.targets().begin(), op.targets().end());
    request.storage_uuids.assign(op.targetstorageids().begin(), op.targetstorageids().end());
    request.traffic_class = v1::FOREGROUND;
    request.deadline = executor_->clock().Now() + kClientTransferTime;
    status = co_await TransferBlock(context_, owner_, executor_, std::move(request));
  }
  std::string answer =
      status.ok() ? transfer::EncodeSuccess() : transfer::EncodeFailure(transfer::WireStatusOf(status), "", std::string(status.message()));
  const absl::Status answered = co_await Answer(std::move(answer));
  CO_RETURN_IF_ERROR(status);
  CO_RETURN_IF_ERROR(answered);
  co_return false;
}

Awaitable<void> TransferSession::TurnAway() {
  const std::unique_ptr<TaskGroup::StopHook> hook = owner_->OnStop([this] { connection_->Close(); });
  const SteadyTime deadline = executor_->clock().Now() + kRefusalTime;
  const absl::StatusOr<std::optional<transfer::Opcode>> opcode = co_await transfer::ReadOpcode(&reader_, deadline);
  if (opcode.ok() && opcode->has_value()) {
    std::string why =
        fmt::format("{} connections are open, twice what dfs.datanode.max.transfer.threads ({}) allows, or more",
                    context_->counters.connections.load(std::memory_order_relaxed), context_->max_streams.load(std::memory_order_relaxed));
    co_await RefuseBusy(std::move(why));
  }
  connection_->Close();
}

// All of the operation is read first: a connection that is closed with bytes unread is reset, and the answer may be lost with it.
Awaitable<void> TransferSession::RefuseBusy(std::string why) {
  context_->counters.refused_busy.fetch_add(1, std::memory_order_relaxed);
  const SteadyTime deadline = executor_->clock().Now() + kRefusalTime;
  const absl::StatusOr<std::optional<std::string>> operation = co_await reader_.ReadDelimited(transfer::kMaxOperationBytes, deadline);
  IgnoreError(operation.status(), "it is refused whatever it is");
  std::string busy = transfer::EncodeFailure(hdfs::ERROR, "", fmt::format("BUSY: {}", why));
  const absl::Status answered = co_await Answer(std::move(busy));
  IgnoreError(answered, "the peer learns it from the closed connection too");
}

Awaitable<absl::Status> TransferSession::Answer(std::string bytes) {
  std::vector<std::span<const char>> parts(1, std::span<const char>(bytes));
  const SteadyTime deadline = executor_->clock().Now() + context_->options.write_timeout;
  absl::Status sent = co_await connection_->Write(std::move(parts), deadline);
  co_return sent;
}

}  // namespace cairn::datanode
