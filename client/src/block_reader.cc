#include "client/src/block_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "common/ids.h"
#include "common/status.h"
#include "common/transfer/ops.h"
#include "hdfs/datatransfer.pb.h"

namespace cairn::client {

BlockReader::BlockReader(Scope scope, Network* network, Options options) : scope_(scope), network_(network), options_(std::move(options)) {}

BlockReader::~BlockReader() = default;

Awaitable<absl::Status> BlockReader::Open(v1::LocatedBlock block, int location, uint64_t offset, uint64_t length) {
  position_ = offset;
  end_ = offset + length;
  const v1::Endpoint& endpoint = block.locations(location).datanode().transfer();
  HostPort address;
  address.host = endpoint.host();
  address.port = static_cast<uint16_t>(endpoint.port());
  absl::StatusOr<std::unique_ptr<Connection>> connection =
      co_await network_->Connect(std::move(address), scope_.executor, scope_.executor->clock().Now() + options_.connect_timeout);
  CO_RETURN_IF_ERROR(connection.status());
  connection_ = std::move(*connection);
  reader_ = std::make_unique<transfer::WireReader>(connection_.get());
  hook_ = scope_.group->OnStop([this] { Close(); });

  hdfs::OpReadBlockProto op;
  *op.mutable_header()->mutable_baseheader() =
      transfer::MakeHeader(transfer::MakeBlock(options_.pool_id, BlockId(block.block().id()),
                                               GenerationStamp(block.block().generation_stamp()), block.block().length_bytes()),
                           block.token());
  op.mutable_header()->set_clientname(options_.client_name);
  op.set_offset(offset);
  op.set_len(length);
  op.set_sendchecksums(options_.verify);
  const std::string operation = transfer::EncodeOperation(transfer::Opcode::kReadBlock, op);
  const SteadyTime answer_by = scope_.executor->clock().Now() + options_.read_timeout;
  std::vector<std::span<const char>> parts;
  parts.emplace_back(operation.data(), operation.size());
  absl::Status status = co_await connection_->Write(std::move(parts), answer_by);
  CO_RETURN_IF_ERROR(status);
  hdfs::BlockOpResponseProto answer;
  status = co_await transfer::ReadMessage(reader_.get(), &answer, transfer::kMaxAnswerBytes, answer_by);
  CO_RETURN_IF_ERROR(status);
  CO_RETURN_IF_ERROR(transfer::StatusOfResponse(answer, connection_->peer()));
  const hdfs::ChecksumProto& checksum = answer.readopchecksuminfo().checksum();
  checksum_ = transfer::TypeOf(checksum);
  bytes_per_checksum_ = checksum.bytesperchecksum();
  stream_offset_ = answer.readopchecksuminfo().chunkoffset();
  // A DataNode that begins past the offset, or serves unverifiable bytes to one who asked for
  // checksums, is not to be believed.
  if (stream_offset_ > offset || bytes_per_checksum_ == 0 || (options_.verify && checksum_ == ChecksumType::kNull))
    co_return MakeError(ErrorKind::kInvalidArgument,
                        fmt::format("{} answered with chunk offset {} and checksum type {} of {} bytes", connection_->peer(),
                                    stream_offset_, static_cast<int>(checksum_), bytes_per_checksum_));
  if (!options_.verify) checksum_ = ChecksumType::kNull;
  co_return absl::OkStatus();
}

Awaitable<absl::StatusOr<Slice>> BlockReader::Next() {
  while (position_ < end_) {
    absl::StatusOr<transfer::Packet> packet =
        co_await reader_->ReadPacket(checksum_, bytes_per_checksum_, scope_.executor->clock().Now() + options_.read_timeout);
    CO_RETURN_IF_ERROR(packet.status());
    if (packet->header().seqno == transfer::kHeartbeatSeqno) continue;
    const auto begin = static_cast<uint64_t>(packet->header().offset_in_block);
    const uint64_t size = packet->data().size();
    if (begin != stream_offset_ || size == 0)
      co_return MakeError(ErrorKind::kInvalidArgument, fmt::format("{} sent {} bytes at offset {} where {} was due, before the end at {}",
                                                                   connection_->peer(), size, begin, stream_offset_, end_));
    if (checksum_ != ChecksumType::kNull) {
      const absl::Status verified = VerifyChunkChecksums(checksum_, bytes_per_checksum_, packet->data(), packet->checksums());
      if (!verified.ok()) co_return Annotate(verified, fmt::format("packet at offset {} from {}", begin, connection_->peer()));
    }
    stream_offset_ = begin + size;
    if (stream_offset_ <= position_) continue;
    const uint64_t skip = position_ - begin;
    const uint64_t take = std::min(stream_offset_, end_) - position_;
    position_ += take;
    Slice slice(*std::move(packet), static_cast<size_t>(skip), static_cast<size_t>(take));
    co_return slice;
  }
  absl::Status finished = co_await Finish();
  IgnoreError(finished, "all bytes are here; the farewell is a courtesy");
  co_return Slice();
}

// Tells the DataNode that the bytes verified, so that it knows a complete read from a broken one.
Awaitable<absl::Status> BlockReader::Finish() {
  if (!connection_) co_return absl::OkStatus();
  const SteadyTime deadline = scope_.executor->clock().Now() + absl::Seconds(1);
  absl::StatusOr<transfer::Packet> trailer = co_await reader_->ReadPacket(checksum_, bytes_per_checksum_, deadline);
  absl::Status status = trailer.status();
  if (status.ok()) {
    hdfs::ClientReadStatusProto verdict;
    verdict.set_status(options_.verify ? hdfs::CHECKSUM_OK : hdfs::SUCCESS);
    const std::string message = transfer::Delimited(verdict);
    std::vector<std::span<const char>> parts;
    parts.emplace_back(message.data(), message.size());
    status = co_await connection_->Write(std::move(parts), deadline);
  }
  Close();
  hook_.reset();
  reader_.reset();
  connection_.reset();
  co_return status;
}

void BlockReader::Close() {
  if (connection_) connection_->Close();
}

}  // namespace cairn::client
