#pragma once

// Data Transfer Protocol, version 28, the parts that client and DataNode share: packets here, byte streams of them in wire_reader.h,
// operations and acknowledgements in ops.h. Byte layout of a packet: i32 PLEN (4 + checksums + data), u16 HLEN, PacketHeaderProto of HLEN
// bytes, checksums (4 bytes big-endian a chunk), data. All big-endian. As HDFS's PacketHeader and PacketReceiver; docs/formats.md.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "common/crc32c.h"

namespace cairn::transfer {

inline constexpr uint16_t kDataTransferVersion = 28;
inline constexpr size_t kMaxPacketBytes = 16 << 20;  // As dfs.data.transfer.max.packet.size.
inline constexpr int64_t kHeartbeatSeqno = -1;

// Parameters of a packet. Plain values.
struct PacketHeader {
  int64_t offset_in_block = 0;
  int64_t seqno = 0;
  bool last_in_block = false;
  bool sync_block = false;  // On disk before the acknowledgement.
  uint32_t data_length = 0;

  bool operator==(const PacketHeader&) const = default;
};

// Where the parts of a frame are, counted from its first byte.
struct FrameLayout {
  size_t header_at = 0;     // 6.
  size_t checksums_at = 0;  // = end of the header.
  size_t data_at = 0;       // Known once the header is.
  size_t end = 0;           // Bytes of the whole frame.
};

inline constexpr size_t kPacketPrefixBytes = 6;      // PLEN and HLEN.
inline constexpr size_t kMaxPacketHeaderBytes = 27;  // Of ours; others may send unknown fields, up to 1,024 bytes.

// The first 6 bytes of a packet: everything but data_at. kInvalidArgument for lengths that no packet has.
absl::StatusOr<FrameLayout> DecodePacketPrefix(std::span<const char> prefix);
// The header message of a packet; sets data_at. kInvalidArgument if it is none, or if its lengths disagree with the prefix or with the
// number of checksums that `type` and `bytes_per_checksum` ask for (type kNull: none).
absl::StatusOr<PacketHeader> DecodePacketHeader(std::span<const char> message, ChecksumType type, uint32_t bytes_per_checksum,
                                                FrameLayout* layout);
// PLEN, HLEN and header, 31 or 33 bytes (33 with sync_block, as HDFS leaves the field out unless it is true), for `checksum_bytes` and
// header.data_length bytes that follow. Returns the bytes used of `out`, which has at least 33.
size_t EncodePacketStart(const PacketHeader& header, size_t checksum_bytes, std::span<char> out);

// Of checksums for `data_length` bytes: 4 a chunk.
size_t ChecksumBytes(ChecksumType type, uint32_t bytes_per_checksum, size_t data_length);

// One packet as it is on the wire, in one piece of a shared buffer, so that it can be forwarded without being built again.
// Cheap to move; Share() for a second owner. Immutable, so thread-safe.
class Packet {
 public:
  Packet() = default;
  // The frame begins at `at` of `storage`; `layout` counts from there.
  Packet(const PacketHeader& header, Buffer storage, size_t at, const FrameLayout& layout)
      : header_(header), storage_(std::move(storage)), at_(at), layout_(layout) {}

  const PacketHeader& header() const { return header_; }
  std::span<const char> frame() const { return Part(0, layout_.end); }  // The whole packet.
  std::span<const char> checksums() const { return Part(layout_.checksums_at, layout_.data_at); }
  std::span<const char> data() const { return Part(layout_.data_at, layout_.end); }
  bool heartbeat() const { return header_.seqno == kHeartbeatSeqno; }
  Packet Share() const { return *this; }

 private:
  std::span<const char> Part(size_t begin, size_t end) const {
    return end == 0 ? std::span<const char>() : std::span<const char>(storage_.data() + at_ + begin, end - begin);
  }

  PacketHeader header_;
  Buffer storage_;
  size_t at_ = 0;
  FrameLayout layout_;
};

// Builds a packet in place: data is appended behind room for header and checksums, which Finish fills in right before it. Chunks are
// counted from the packet's first byte. Not thread-safe.
class PacketBuilder {
 public:
  // `max_data` bytes at most in one packet; the buffer comes from `pool`.
  PacketBuilder(ChecksumType type, uint32_t bytes_per_checksum, size_t max_data, BufferPool* pool = &BufferPool::Shared());

  size_t room() const { return max_data_ - data_size_; }
  size_t size() const { return data_size_; }
  bool empty() const { return data_size_ == 0; }
  void Append(std::span<const char> data);  // At most room().
  // Where the next `room()` bytes go, to be written in place and then counted by Advance.
  std::span<char> free_space();
  void Advance(size_t count);
  // Ends the packet, with `header`'s data length set to what was appended; the builder is then empty. The space for it is taken again
  // at the next Append.
  Packet Finish(PacketHeader header);

 private:
  void Reserve();

  ChecksumType type_;
  uint32_t bytes_per_checksum_;
  size_t max_data_;
  BufferPool* pool_;
  Buffer buffer_;
  size_t data_at_ = 0;
  size_t data_size_ = 0;
};

// A packet without data: heartbeat, flush, last.
Packet EmptyPacket(PacketHeader header);

}  // namespace cairn::transfer
