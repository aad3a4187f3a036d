#include "common/transfer/wire_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"

namespace cairn::transfer {
namespace {

constexpr size_t kMessageChunk = 8 << 10;    // Enough for operations and acknowledgements.
constexpr size_t kPacketsChunk = 512 << 10;  // Where small packets are collected.
constexpr size_t kMaxVarintBytes = 5;

}  // namespace

WireReader::WireReader(Connection* connection, BufferPool* pool) : connection_(connection), pool_(pool) {}

void WireReader::MakeRoom(size_t want) {
  // With nothing buffered, a chunk whose rest is too small for the expected packet is left now, when that costs no copy.
  const size_t wish = buffered() == 0 ? std::max(want, expected_frame_) : want;
  if (begin_ + wish <= chunk_.capacity()) return;
  if (!shared_ && wish <= chunk_.capacity()) {
    std::memmove(chunk_.data(), chunk_.data() + begin_, buffered());
  } else {
    size_t size = std::max(wish, kMessageChunk);
    if (expected_frame_ > 0 && expected_frame_ <= kPacketsChunk / 2) {
      // A whole number of packets.
      size = std::max(size, kPacketsChunk / expected_frame_ * expected_frame_);
    }
    Buffer fresh = pool_->Get(size);
    if (buffered() > 0) std::memcpy(fresh.data(), chunk_.data() + begin_, buffered());
    chunk_ = std::move(fresh);
    shared_ = false;
  }
  end_ = buffered();
  begin_ = 0;
}

Awaitable<absl::StatusOr<bool>> WireReader::Fill(size_t want, SteadyTime deadline) {
  if (buffered() >= want) co_return true;
  MakeRoom(want);
  size_t limit = chunk_.capacity();
  if (expected_frame_ > 0) {
    // No further than a whole number of packets, so that the chunk's last one is whole.
    const size_t whole = (limit - begin_) / expected_frame_ * expected_frame_;
    limit = begin_ + std::max(whole, want);
  }
  std::span<char> into(chunk_.data() + end_, limit - end_);
  const size_t at_least = want - buffered();
  absl::StatusOr<size_t> count = co_await connection_->Read(into, at_least, deadline);
  CO_RETURN_IF_ERROR(count.status());
  end_ += *count;
  if (*count >= at_least) co_return true;
  if (buffered() == 0) co_return false;
  co_return absl::UnavailableError(
      fmt::format("{}: the connection ended after {} of {} bytes of a message", connection_->peer(), buffered(), want));
}

Awaitable<absl::StatusOr<std::optional<std::string>>> WireReader::ReadExactly(size_t count, SteadyTime deadline) {
  absl::StatusOr<bool> filled = co_await Fill(count, deadline);
  CO_RETURN_IF_ERROR(filled.status());
  std::optional<std::string> bytes;
  if (*filled) {
    bytes.emplace(chunk_.data() + begin_, count);
    begin_ += count;
  }
  co_return bytes;
}

Awaitable<absl::StatusOr<std::optional<std::string>>> WireReader::ReadDelimited(size_t max_bytes, SteadyTime deadline) {
  uint64_t length = 0;
  size_t varint_bytes = 0;
  for (;;) {
    absl::StatusOr<bool> filled = co_await Fill(varint_bytes + 1, deadline);
    CO_RETURN_IF_ERROR(filled.status());
    if (!*filled) co_return std::optional<std::string>();
    const auto byte = static_cast<unsigned char>(chunk_.data()[begin_ + varint_bytes]);
    length |= static_cast<uint64_t>(byte & 0x7f) << (7 * varint_bytes);
    ++varint_bytes;
    if ((byte & 0x80) == 0) break;
    if (varint_bytes == kMaxVarintBytes)
      co_return MakeError(ErrorKind::kInvalidArgument,
                          fmt::format("{}: the length of a message is not a varint of 32 bits", connection_->peer()));
  }
  if (length > max_bytes)
    co_return MakeError(ErrorKind::kInvalidArgument,
                        fmt::format("{}: message of {} bytes; at most {}", connection_->peer(), length, max_bytes));
  const size_t total = varint_bytes + static_cast<size_t>(length);
  absl::StatusOr<bool> filled = co_await Fill(total, deadline);
  CO_RETURN_IF_ERROR(filled.status());
  std::optional<std::string> message(std::in_place, chunk_.data() + begin_ + varint_bytes, static_cast<size_t>(length));
  begin_ += total;
  co_return message;
}

Awaitable<absl::StatusOr<Packet>> WireReader::ReadPacket(ChecksumType type, uint32_t bytes_per_checksum, SteadyTime deadline) {
  absl::StatusOr<bool> filled = co_await Fill(kPacketPrefixBytes, deadline);
  CO_RETURN_IF_ERROR(filled.status());
  if (!*filled)
    co_return absl::UnavailableError(fmt::format("{}: the connection ended before the last packet of the block", connection_->peer()));
  absl::StatusOr<FrameLayout> layout = DecodePacketPrefix(std::span<const char>(chunk_.data() + begin_, kPacketPrefixBytes));
  if (!layout.ok()) co_return Annotate(layout.status(), connection_->peer());

  filled = co_await Fill(layout->checksums_at, deadline);
  CO_RETURN_IF_ERROR(filled.status());
  const std::span<const char> message(chunk_.data() + begin_ + layout->header_at, layout->checksums_at - layout->header_at);
  absl::StatusOr<PacketHeader> header = DecodePacketHeader(message, type, bytes_per_checksum, &*layout);
  if (!header.ok()) co_return Annotate(header.status(), connection_->peer());
  if (header->data_length > 0) expected_frame_ = layout->end;

  filled = co_await Fill(layout->end, deadline);
  CO_RETURN_IF_ERROR(filled.status());
  Packet packet(*header, chunk_.Share(), begin_, *layout);
  begin_ += layout->end;
  shared_ = true;
  co_return packet;
}

}  // namespace cairn::transfer
