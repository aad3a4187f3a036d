#pragma once

// Data Transfer Protocol, version 28, the parts that client and DataNode share. Byte layout of a packet: i32 PLEN (4 + checksums + data), u16 HLEN,
// PacketHeaderProto of HLEN bytes, checksums (4 bytes big-endian a chunk), data. All big-endian. As HDFS's PacketHeader and
// PacketReceiver; docs/formats.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "common/crc32c.h"
#include "common/env/network.h"

namespace cairn::transfer {

inline constexpr uint16_t kDataTransferVersion = 28;
inline constexpr size_t kMaxPacketBytes = 16 << 20;  // As dfs.data.transfer.max.packet.size.
inline constexpr int64_t kHeartbeatSeqno = -1;

enum class Opcode : uint8_t {
  kWriteBlock = 80, kReadBlock = 81, kReadMetadata = 82, kReplaceBlock = 83, kCopyBlock = 84, kBlockChecksum = 85,
  kTransferBlock = 86, kRequestShortCircuitFds = 87, kReleaseShortCircuitFds = 88, kRequestShortCircuitShm = 89,
  kBlockGroupChecksum = 90, kCustom = 127,
};

// Parameters of a packet. Plain values.
struct PacketHeader {
  int64_t offset_in_block = 0;
  int64_t seqno = 0;
  bool last_in_block = false;
  bool sync_block = false;
  uint32_t data_length = 0;
};

// One packet, in one buffer as it is on the wire, so that it can be forwarded without being built again. Moved; Share() for a second owner.
class Packet {
 public:
  Packet() = default;
  Packet(PacketHeader header, Buffer frame, size_t checksums_at, size_t data_at)
      : header_(header), frame_(std::move(frame)), checksums_at_(checksums_at), data_at_(data_at) {}

  const PacketHeader& header() const { return header_; }
  // The whole packet as on the wire.
  std::span<const char> frame() const { return frame_.span(); }
  std::span<const char> checksums() const { return frame_.span().subspan(checksums_at_, data_at_ - checksums_at_); }
  std::span<const char> data() const { return frame_.span().subspan(data_at_); }
  Packet Share() const { return *this; }

 private:
  PacketHeader header_;
  Buffer frame_;
  size_t checksums_at_ = 0;
  size_t data_at_ = 0;
};

// Builds a packet: room for the header and `max_data` bytes is laid out first, data is appended in place, checksums are filled in by
// Finish. Chunks are counted from the packet's first byte.
class PacketBuilder {
 public:
  PacketBuilder(ChecksumType type, uint32_t bytes_per_checksum, size_t max_data);
  size_t room() const;
  size_t size() const;
  void Append(std::span<const char> data);  // At most room().
  // Ends the packet; the builder is then empty.
  Packet Finish(PacketHeader header);

 private:
  ChecksumType type_;
  uint32_t bytes_per_checksum_;
  size_t max_data_;
  Buffer buffer_;
  size_t data_at_ = 0;
  size_t data_size_ = 0;
};

// A packet without data: heartbeat, flush, last.
Packet EmptyPacket(PacketHeader header);

// Buffered reading of one connection: delimited messages and packets, many at a time when they are small.
// Belongs to the connection's executor. Errors: UNAVAILABLE for a broken stream, kInvalidArgument for bytes that are not the protocol.
class WireReader {
 public:
  explicit WireReader(Connection* connection, size_t buffer_bytes = 128 << 10);

  // Up to `count` raw bytes (the operation header).
  Awaitable<absl::StatusOr<std::string>> ReadExactly(size_t count, SteadyTime deadline);
  // A varint length and that many bytes; at most `max_bytes`. Nothing at a clean end of the stream before the first byte.
  Awaitable<absl::StatusOr<std::optional<std::string>>> ReadDelimited(size_t max_bytes, SteadyTime deadline);
  // The next packet; large ones are read straight into their own buffer. `bytes_per_checksum` 0 or type kNull: no checksums expected.
  Awaitable<absl::StatusOr<Packet>> ReadPacket(ChecksumType type, uint32_t bytes_per_checksum, SteadyTime deadline);

 private:
  Awaitable<absl::Status> Fill(size_t at_least, SteadyTime deadline);
  Connection* connection_;
  Buffer buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

// "varint length, message" in one string, for one send.
template <class Message>
std::string Delimited(const Message& message);

}  // namespace cairn::transfer
