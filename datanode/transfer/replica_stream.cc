#include "datanode/transfer/replica_stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/env/wait.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

constexpr size_t kMaxPacketData = 4 << 20;
constexpr uint64_t kChecksumsAtOnce = 16 << 10;  // Chunks; 64 KiB of checksums for 8 MiB of data.

uint64_t WholeChunks(size_t bytes, uint64_t chunk) {
  const uint64_t bounded = std::min<uint64_t>(bytes, kMaxPacketData);
  return std::max<uint64_t>(bounded / chunk * chunk, chunk);
}

}  // namespace

ReplicaStream::ReplicaStream(TransferContext* context, Executor* executor, Connection* to, ReplicaReader* replica, size_t packet_bytes,
                             bool checksums)
    : context_(context),
      executor_(executor),
      to_(to),
      replica_(replica),
      chunk_bytes_(replica->bytes_per_checksum()),
      packet_bytes_(WholeChunks(packet_bytes, replica->bytes_per_checksum())),
      with_checksums_(checksums) {}

Awaitable<absl::Status> ReplicaStream::Send(uint64_t start, uint64_t end, SteadyTime deadline) {
  end_ = end;
  int64_t seqno = 0;
  for (uint64_t offset = start; offset < end; ++seqno) {
    const uint64_t packet_end = std::min(offset + packet_bytes_, end);
    if (pace_ != nullptr) co_await pace_->Wait(executor_, owner_, packet_end - offset, deadline);
    const absl::Status sent = co_await SendPacket(seqno, offset, packet_end, deadline);
    CO_RETURN_IF_ERROR(sent);
    offset = packet_end;
  }
  absl::Status sent = co_await SendEmptyLast(seqno, deadline);
  co_return sent;
}

Awaitable<absl::Status> ReplicaStream::SendPacket(int64_t seqno, uint64_t offset, uint64_t packet_end, SteadyTime deadline) {
  if (with_checksums_) {
    const absl::Status loaded = co_await LoadChecksums(offset, packet_end);
    CO_RETURN_IF_ERROR(loaded);
  }
  const uint64_t whole_end = packet_end / chunk_bytes_ * chunk_bytes_;
  std::string tail(static_cast<size_t>(packet_end - whole_end), '\0');
  if (!tail.empty()) {
    absl::AnyInvocable<absl::StatusOr<size_t>()> read = [replica = replica_, whole_end, &tail] {
      return replica->ReadData(whole_end, std::span<char>(tail));
    };
    const absl::StatusOr<size_t> count = co_await RunOn<absl::StatusOr<size_t>>(executor_, replica_->disk(), std::move(read));
    CO_RETURN_IF_ERROR(count.status());
    if (*count != tail.size())
      co_return absl::DataLossError(fmt::format("{} bytes at {} where {} should be", *count, whole_end, tail.size()));
  }

  transfer::PacketHeader header;
  header.offset_in_block = static_cast<int64_t>(offset);
  header.seqno = seqno;
  header.data_length = static_cast<uint32_t>(packet_end - offset);
  std::span<const char> checksums;
  if (with_checksums_) {
    const size_t at = static_cast<size_t>(4 * (offset / chunk_bytes_ - first_chunk_));
    checksums = std::span<const char>(checksums_)
                    .subspan(at, transfer::ChecksumBytes(ChecksumType::kCrc32c, static_cast<uint32_t>(chunk_bytes_), header.data_length));
  }
  char start[transfer::kPacketPrefixBytes + transfer::kMaxPacketHeaderBytes];
  const size_t start_bytes = transfer::EncodePacketStart(header, checksums.size(), start);

  const SteadyTime until = std::min(deadline, executor_->clock().Now() + context_->options.write_timeout);
  std::vector<std::span<const char>> parts;
  parts.push_back(std::span<const char>(start, start_bytes));
  if (!checksums.empty()) parts.push_back(checksums);
  if (whole_end <= offset) parts.push_back(tail);  // Nothing but a partial chunk: one write for all.
  absl::Status sent = co_await to_->Write(std::move(parts), until);
  CO_RETURN_IF_ERROR(sent);
  if (whole_end > offset) {
    sent = co_await to_->SendFile(replica_->file(), replica_->data_offset() + offset, whole_end - offset, until);
    CO_RETURN_IF_ERROR(sent);
    if (!tail.empty()) {
      std::vector<std::span<const char>> rest(1, std::span<const char>(tail));
      sent = co_await to_->Write(std::move(rest), until);
      CO_RETURN_IF_ERROR(sent);
    }
  }
  context_->counters.bytes_sent.fetch_add(header.data_length, std::memory_order_relaxed);
  co_return absl::OkStatus();
}

Awaitable<absl::Status> ReplicaStream::LoadChecksums(uint64_t offset, uint64_t packet_end) {
  const uint64_t first = offset / chunk_bytes_;
  const uint64_t needed_end = (packet_end + chunk_bytes_ - 1) / chunk_bytes_;
  if (first >= first_chunk_ && 4 * (needed_end - first_chunk_) <= checksums_.size()) co_return absl::OkStatus();
  const uint64_t all_end = (end_ + chunk_bytes_ - 1) / chunk_bytes_;
  const uint64_t count = std::min(std::max(kChecksumsAtOnce, needed_end - first), all_end - first);
  absl::AnyInvocable<absl::StatusOr<std::string>()> read = [replica = replica_, first, count] {
    return replica->ReadChecksums(first, count);
  };
  absl::StatusOr<std::string> checksums = co_await RunOn<absl::StatusOr<std::string>>(executor_, replica_->disk(), std::move(read));
  CO_RETURN_IF_ERROR(checksums.status());
  if (checksums->size() != 4 * count)
    co_return absl::DataLossError(fmt::format("{} bytes of checksums for {} chunks from {} on", checksums->size(), count, first));
  checksums_ = std::move(*checksums);
  first_chunk_ = first;
  co_return absl::OkStatus();
}

Awaitable<absl::Status> ReplicaStream::SendEmptyLast(int64_t seqno, SteadyTime deadline) {
  transfer::PacketHeader header;
  header.offset_in_block = static_cast<int64_t>(end_);
  header.seqno = seqno;
  header.last_in_block = true;
  const transfer::Packet packet = transfer::EmptyPacket(header);
  std::vector<std::span<const char>> parts(1, packet.frame());
  const SteadyTime until = std::min(deadline, executor_->clock().Now() + context_->options.write_timeout);
  absl::Status sent = co_await to_->Write(std::move(parts), until);
  co_return sent;
}

}  // namespace cairn::datanode
