#include "datanode/transfer/block_sender.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/env/wait.h"
#include "common/error.h"
#include "common/status.h"
#include "datanode/transfer/replica_stream.h"

namespace cairn::datanode {

Awaitable<absl::StatusOr<std::shared_ptr<ReplicaReader>>> OpenForReading(BlockStore* store, Executor* executor, BlockId id,
                                                                         GenerationStamp at_least) {
  CO_ASSIGN_OR_RETURN(Executor * disk, store->DiskOf(id));
  using ReaderOr = absl::StatusOr<std::shared_ptr<ReplicaReader>>;
  absl::AnyInvocable<ReaderOr()> open = [store, id, at_least] { return store->OpenForRead(id, at_least); };
  ReaderOr replica = co_await RunOn<ReaderOr>(executor, disk, std::move(open));
  co_return replica;
}

BlockSender::BlockSender(TransferContext* context, Executor* executor, Connection* to, transfer::WireReader* reader,
                         hdfs::OpReadBlockProto op)
    : context_(context), executor_(executor), to_(to), reader_(reader), op_(std::move(op)) {}

absl::StatusOr<std::string> BlockSender::Plan(const ReplicaReader& replica) {
  const uint64_t length = replica.length();
  if (op_.offset() > length || op_.len() > length - op_.offset())
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("{} bytes at {} were asked for; {} are visible here", op_.len(), op_.offset(), length));
  const uint64_t chunk = replica.bytes_per_checksum();
  start_ = op_.offset() / chunk * chunk;
  end_ = std::min((op_.offset() + op_.len() + chunk - 1) / chunk * chunk, length);
  if (op_.len() == 0) end_ = start_;  // Not a byte, but still an answer and the last packet.

  hdfs::BlockOpResponseProto response;
  response.set_status(hdfs::SUCCESS);
  hdfs::ReadOpChecksumInfoProto* info = response.mutable_readopchecksuminfo();
  const ChecksumType type = op_.sendchecksums() ? replica.checksum_type() : ChecksumType::kNull;
  *info->mutable_checksum() = transfer::MakeChecksum(type, replica.bytes_per_checksum());
  info->set_chunkoffset(start_);
  return transfer::EncodeResponse(std::move(response));
}

Awaitable<absl::StatusOr<bool>> BlockSender::Run() {
  const hdfs::BaseHeaderProto& header = op_.header().baseheader();
  const std::string name = NameOf(header.block());
  const GenerationStamp stamp(header.block().generationstamp());
  absl::Status status = co_await CheckAccess(context_, executor_, &header, stamp, static_cast<uint8_t>(TokenMode::kRead));
  std::shared_ptr<ReplicaReader> replica;
  std::string answer;
  if (status.ok()) {
    absl::StatusOr<std::shared_ptr<ReplicaReader>> opened =
        co_await OpenForReading(context_->store, executor_, BlockId(header.block().blockid()), stamp);
    status = opened.status();
    if (status.ok()) {
      replica = std::move(*opened);
      absl::StatusOr<std::string> planned = Plan(*replica);
      status = planned.status();
      if (status.ok()) answer = std::move(*planned);
    }
  }
  if (!status.ok()) {
    std::string failure =
        transfer::EncodeFailure(transfer::WireStatusOf(status), "", status.message().empty() ? "" : std::string(status.message()));
    const absl::Status answered = co_await Answer(std::move(failure));
    IgnoreError(answered, "the first error is the one to tell");
    co_return Annotate(status, name);
  }
  absl::Status sent = co_await Answer(std::move(answer));
  if (sent.ok()) {
    const size_t packet_bytes = op_.cairnpacketbytes() != 0 ? op_.cairnpacketbytes() : context_->options.read_packet_bytes;
    ReplicaStream stream(context_, executor_, to_, replica.get(), packet_bytes, op_.sendchecksums());
    sent = co_await stream.Send(start_, end_, SteadyTime::Infinite());
  }
  if (absl::IsUnavailable(sent) && KindOf(sent) == ErrorKind::kNone) co_return false;  // The reader has had enough.
  if (!sent.ok()) co_return Annotate(sent, name);
  context_->counters.blocks_read.fetch_add(1, std::memory_order_relaxed);

  // The verdict may never come: some clients just close.
  hdfs::ClientReadStatusProto verdict;
  const SteadyTime deadline = executor_->clock().Now() + context_->options.socket_timeout;
  const absl::Status read = co_await transfer::ReadMessage(reader_, &verdict, transfer::kMaxAnswerBytes, deadline);
  if (!read.ok()) co_return false;
  if (verdict.status() == hdfs::ERROR_CHECKSUM) context_->counters.checksum_errors.fetch_add(1, std::memory_order_relaxed);
  co_return verdict.status() == hdfs::SUCCESS || verdict.status() == hdfs::CHECKSUM_OK;
}

Awaitable<absl::Status> BlockSender::Answer(std::string bytes) {
  std::vector<std::span<const char>> parts(1, std::span<const char>(bytes));
  const SteadyTime deadline = executor_->clock().Now() + context_->options.write_timeout;
  absl::Status sent = co_await to_->Write(std::move(parts), deadline);
  co_return sent;
}

}  // namespace cairn::datanode
