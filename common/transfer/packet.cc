#include "common/transfer/packet.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/error.h"
#include "common/status.h"
#include "hdfs/datatransfer.pb.h"

namespace cairn::transfer {
namespace {

constexpr size_t kMaxForeignHeaderBytes = 1024;
constexpr size_t kPlainHeaderBytes = 25;

// Tags of PacketHeaderProto's fields on the wire: number << 3 | type.
constexpr char kOffsetTag = 0x09;
constexpr char kSeqnoTag = 0x11;
constexpr char kLastTag = 0x18;
constexpr char kDataLengthTag = 0x25;
constexpr char kSyncTag = 0x28;

uint64_t LoadBig(const char* in, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(in[i]);
  return value;
}

void StoreBig(uint64_t value, int bytes, char* out) {
  for (int i = 0; i < bytes; ++i) out[i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
}

uint64_t LoadLittle(const char* in, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(in[i]);
  return value;
}

void StoreLittle(uint64_t value, int bytes, char* out) {
  for (int i = 0; i < bytes; ++i) out[i] = static_cast<char>(value >> (8 * i));
}

absl::Status Invalid(std::string message) { return MakeError(ErrorKind::kInvalidArgument, std::move(message)); }

// The layout every known sender uses, without the generality (and cost) of a protobuf parser.
bool DecodePlain(std::span<const char> m, PacketHeader* header) {
  if (m.size() != kPlainHeaderBytes && m.size() != kMaxPacketHeaderBytes) return false;
  if (m[0] != kOffsetTag || m[9] != kSeqnoTag || m[18] != kLastTag || m[20] != kDataLengthTag) return false;
  if (m.size() == kMaxPacketHeaderBytes && m[25] != kSyncTag) return false;
  if ((m[19] & ~1) != 0 || (m.size() == kMaxPacketHeaderBytes && (m[26] & ~1) != 0)) return false;
  header->offset_in_block = static_cast<int64_t>(LoadLittle(&m[1], 8));
  header->seqno = static_cast<int64_t>(LoadLittle(&m[10], 8));
  header->last_in_block = m[19] != 0;
  header->data_length = static_cast<uint32_t>(LoadLittle(&m[21], 4));
  header->sync_block = m.size() == kMaxPacketHeaderBytes && m[26] != 0;
  return true;
}

bool DecodeAny(std::span<const char> m, PacketHeader* header) {
  hdfs::PacketHeaderProto proto;
  if (!proto.ParsePartialFromArray(m.data(), static_cast<int>(m.size())) || !proto.IsInitialized()) return false;
  header->offset_in_block = proto.offsetinblock();
  header->seqno = proto.seqno();
  header->last_in_block = proto.lastpacketinblock();
  header->sync_block = proto.syncblock();
  header->data_length = static_cast<uint32_t>(proto.datalen());
  return true;
}

}  // namespace

size_t ChecksumBytes(ChecksumType type, uint32_t bytes_per_checksum, size_t data_length) {
  if (type == ChecksumType::kNull || bytes_per_checksum == 0) return 0;
  return 4 * ((data_length + bytes_per_checksum - 1) / bytes_per_checksum);
}

absl::StatusOr<FrameLayout> DecodePacketPrefix(std::span<const char> prefix) {
  CAIRN_CHECK(prefix.size() >= kPacketPrefixBytes, "short packet prefix");
  const uint64_t payload = LoadBig(prefix.data(), 4);
  const uint64_t header = LoadBig(prefix.data() + 4, 2);
  // A negative PLEN is a huge one here.
  if (payload < 4 || payload > kMaxPacketBytes)
    return Invalid(fmt::format("not a packet: payload length {} is not in [4, {}]", payload, kMaxPacketBytes));
  if (header < kPlainHeaderBytes || header > kMaxForeignHeaderBytes)
    return Invalid(fmt::format("not a packet: header length {} is not in [{}, {}]", header, kPlainHeaderBytes, kMaxForeignHeaderBytes));
  if (payload + header + 2 > kMaxPacketBytes)
    return Invalid(fmt::format("packet of {} bytes; at most {}", payload + header + 2, kMaxPacketBytes));
  FrameLayout layout;
  layout.header_at = kPacketPrefixBytes;
  layout.checksums_at = kPacketPrefixBytes + header;
  layout.end = layout.checksums_at + payload - 4;
  return layout;
}

absl::StatusOr<PacketHeader> DecodePacketHeader(std::span<const char> message, ChecksumType type, uint32_t bytes_per_checksum,
                                                FrameLayout* layout) {
  PacketHeader header;
  if (!DecodePlain(message, &header) && !DecodeAny(message, &header)) return Invalid("not a packet: its header does not parse");
  const size_t body = layout->end - layout->checksums_at;
  if (header.data_length > body)
    return Invalid(fmt::format("packet {}: {} bytes of data in a body of {}", header.seqno, header.data_length, body));
  const size_t checksums = body - header.data_length;
  if (const size_t expected = ChecksumBytes(type, bytes_per_checksum, header.data_length); checksums != expected)
    return Invalid(fmt::format("packet {}: {} bytes of checksums for {} bytes of data in chunks of {}; expected {}", header.seqno,
                               checksums, header.data_length, bytes_per_checksum, expected));
  if (header.offset_in_block < 0) return Invalid(fmt::format("packet {}: negative offset {}", header.seqno, header.offset_in_block));
  if (header.last_in_block && header.data_length != 0)
    return Invalid(fmt::format("packet {}: last of its block, but with {} bytes of data", header.seqno, header.data_length));
  layout->data_at = layout->checksums_at + checksums;
  return header;
}

size_t EncodePacketStart(const PacketHeader& header, size_t checksum_bytes, std::span<char> out) {
  CAIRN_CHECK(out.size() >= kPacketPrefixBytes + kMaxPacketHeaderBytes, "no room for a packet header");
  const size_t header_bytes = header.sync_block ? kMaxPacketHeaderBytes : kPlainHeaderBytes;
  StoreBig(4 + checksum_bytes + header.data_length, 4, &out[0]);
  StoreBig(header_bytes, 2, &out[4]);
  char* m = &out[kPacketPrefixBytes];
  m[0] = kOffsetTag;
  StoreLittle(static_cast<uint64_t>(header.offset_in_block), 8, m + 1);
  m[9] = kSeqnoTag;
  StoreLittle(static_cast<uint64_t>(header.seqno), 8, m + 10);
  m[18] = kLastTag;
  m[19] = header.last_in_block ? 1 : 0;
  m[20] = kDataLengthTag;
  StoreLittle(header.data_length, 4, m + 21);
  if (header.sync_block) {
    m[25] = kSyncTag;
    m[26] = 1;
  }
  return kPacketPrefixBytes + header_bytes;
}

PacketBuilder::PacketBuilder(ChecksumType type, uint32_t bytes_per_checksum, size_t max_data, BufferPool* pool)
    : type_(type), bytes_per_checksum_(bytes_per_checksum), max_data_(max_data), pool_(pool) {
  CAIRN_CHECK(bytes_per_checksum > 0 && max_data > 0, "packet without room");
  data_at_ = kPacketPrefixBytes + kMaxPacketHeaderBytes + ChecksumBytes(type, bytes_per_checksum, max_data);
  CAIRN_CHECK(data_at_ + max_data <= kMaxPacketBytes, "packet too large");
}

void PacketBuilder::Reserve() {
  if (buffer_.capacity() == 0) buffer_ = pool_->Get(data_at_ + max_data_);
}

void PacketBuilder::Append(std::span<const char> data) {
  if (data.empty()) return;
  std::memcpy(free_space().data(), data.data(), data.size());
  Advance(data.size());
}

std::span<char> PacketBuilder::free_space() {
  Reserve();
  return {buffer_.data() + data_at_ + data_size_, room()};
}

void PacketBuilder::Advance(size_t count) {
  CAIRN_CHECK(count <= room(), "packet overrun");
  data_size_ += count;
}

Packet PacketBuilder::Finish(PacketHeader header) {
  if (data_size_ == 0) return EmptyPacket(header);
  header.data_length = static_cast<uint32_t>(data_size_);
  const size_t checksum_bytes = ChecksumBytes(type_, bytes_per_checksum_, data_size_);
  const size_t checksums_at = data_at_ - checksum_bytes;
  char* bytes = buffer_.data();
  if (checksum_bytes > 0) {
    const std::span<const char> data(bytes + data_at_, data_size_);
    ComputeChunkChecksums(type_, bytes_per_checksum_, data, std::span<char>(bytes + checksums_at, checksum_bytes));
  }
  char start[kPacketPrefixBytes + kMaxPacketHeaderBytes];
  const size_t start_bytes = EncodePacketStart(header, checksum_bytes, start);
  const size_t at = checksums_at - start_bytes;
  std::memcpy(bytes + at, start, start_bytes);

  FrameLayout layout;
  layout.header_at = kPacketPrefixBytes;
  layout.checksums_at = start_bytes;
  layout.data_at = start_bytes + checksum_bytes;
  layout.end = layout.data_at + data_size_;
  buffer_.set_size(data_at_ + data_size_);
  data_size_ = 0;
  return Packet(header, std::exchange(buffer_, Buffer()), at, layout);
}

Packet EmptyPacket(PacketHeader header) {
  header.data_length = 0;
  Buffer buffer = Buffer::Allocate(kPacketPrefixBytes + kMaxPacketHeaderBytes);
  const size_t size = EncodePacketStart(header, 0, std::span<char>(buffer.data(), buffer.capacity()));
  buffer.set_size(size);
  FrameLayout layout;
  layout.header_at = kPacketPrefixBytes;
  layout.checksums_at = size;
  layout.data_at = size;
  layout.end = size;
  return Packet(header, std::move(buffer), 0, layout);
}

}  // namespace cairn::transfer
