#include "datanode/storage/replica_format.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "common/error.h"

namespace cairn::datanode {
namespace {

constexpr std::string_view kMagic = "CAIRNRPL";
constexpr size_t kHeaderChecksummed = 56;
constexpr size_t kSlotChecksummed = 48;

template <class T>
void Put(std::string& out, size_t at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out[at + i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
}

template <class T>
T Get(std::span<const char> in, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(in[at + i])) << (8 * i)));
  }
  return value;
}

void PutBytes(std::string& out, size_t at, std::string_view bytes, size_t most) {
  std::memcpy(out.data() + at, bytes.data(), std::min(bytes.size(), most));
}

}  // namespace

absl::Status CheckHeader(const ReplicaHeader& header) {
  if (header.checksum_type != ChecksumType::kCrc32 && header.checksum_type != ChecksumType::kCrc32c) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("checksum type {} cannot be stored", static_cast<int>(header.checksum_type)));
  }
  if (header.bytes_per_checksum < kMinBytesPerChecksum || header.bytes_per_checksum > kMaxBytesPerChecksum) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("{} bytes per checksum, must be {} to {}", header.bytes_per_checksum,
                                                              kMinBytesPerChecksum, kMaxBytesPerChecksum));
  }
  if (header.capacity > kMaxCapacity) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("capacity {} bytes, at most {}", header.capacity, kMaxCapacity));
  }
  if (header.id.value() >= kEndBlockId.value()) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("block id {} is not below 2^63", header.id.value()));
  }
  return absl::OkStatus();
}

std::string EncodeHeader(const ReplicaHeader& header) {
  std::string out(kHeaderBytes, '\0');
  PutBytes(out, 0, kMagic, kMagic.size());
  Put<uint32_t>(out, 8, kReplicaLayout);
  Put<uint8_t>(out, 12, static_cast<uint8_t>(header.checksum_type));
  Put<uint32_t>(out, 16, header.bytes_per_checksum);
  Put<uint64_t>(out, 24, header.capacity);
  PutBytes(out, 32, header.pool_id, kPoolIdBytes);
  Put<uint64_t>(out, 48, header.id.value());
  Put<uint32_t>(out, 56, Crc32c({out.data(), kHeaderChecksummed}));
  return out;
}

absl::StatusOr<ReplicaHeader> DecodeHeader(std::span<const char> bytes) {
  if (bytes.size() < kHeaderBytes) {
    return MakeError(ErrorKind::kCorruptMetadata, fmt::format("replica header of {} bytes, needs {}", bytes.size(), kHeaderBytes));
  }
  if (std::string_view(bytes.data(), kMagic.size()) != kMagic)
    return MakeError(ErrorKind::kCorruptMetadata, "no replica file: wrong magic");
  const uint32_t layout = Get<uint32_t>(bytes, 8);
  if (const uint32_t stored = Get<uint32_t>(bytes, 56), computed = Crc32c(bytes.first(kHeaderChecksummed)); stored != computed) {
    return MakeError(ErrorKind::kCorruptMetadata,
                     fmt::format("replica header's checksum is {:08x}, its bytes give {:08x}", stored, computed));
  }
  if (layout != kReplicaLayout) {
    return MakeError(ErrorKind::kUnsupported, fmt::format("replica file of layout {}, this version reads {}", layout, kReplicaLayout));
  }
  ReplicaHeader header;
  header.checksum_type = static_cast<ChecksumType>(Get<uint8_t>(bytes, 12));
  header.bytes_per_checksum = Get<uint32_t>(bytes, 16);
  header.capacity = Get<uint64_t>(bytes, 24);
  header.pool_id.assign(bytes.data() + 32, kPoolIdBytes);
  header.id = BlockId(Get<uint64_t>(bytes, 48));
  if (const absl::Status sane = CheckHeader(header); !sane.ok()) {
    return MakeError(ErrorKind::kCorruptMetadata, fmt::format("replica header: {}", std::string(sane.message())));
  }
  return header;
}

std::string EncodeSlot(const ReplicaSlot& slot) {
  std::string out(kSlotBytes, '\0');
  Put<uint64_t>(out, 0, slot.sequence);
  Put<uint64_t>(out, 8, slot.stamp.value());
  Put<uint64_t>(out, 16, slot.length);
  Put<uint8_t>(out, 24, static_cast<uint8_t>(slot.state));
  Put<uint8_t>(out, 25, slot.flags);
  Put<uint32_t>(out, 28, slot.partial_checksum);
  PutBytes(out, 32, slot.boot_id, kBootIdBytes);
  Put<uint32_t>(out, 48, Crc32c({out.data(), kSlotChecksummed}));
  return out;
}

std::optional<ReplicaSlot> DecodeSlot(std::span<const char> bytes) {
  if (bytes.size() < kSlotContentBytes) return std::nullopt;
  if (Get<uint32_t>(bytes, 48) != Crc32c(bytes.first(kSlotChecksummed))) return std::nullopt;
  ReplicaSlot slot;
  slot.sequence = Get<uint64_t>(bytes, 0);
  slot.stamp = GenerationStamp(Get<uint64_t>(bytes, 8));
  slot.length = Get<uint64_t>(bytes, 16);
  const uint8_t state = Get<uint8_t>(bytes, 24);
  slot.flags = Get<uint8_t>(bytes, 25);
  slot.partial_checksum = Get<uint32_t>(bytes, 28);
  slot.boot_id.assign(bytes.data() + 32, kBootIdBytes);
  if (slot.sequence == 0 || state < static_cast<uint8_t>(ReplicaState::kFinalized) ||
      state > static_cast<uint8_t>(ReplicaState::kTemporary)) {
    return std::nullopt;
  }
  slot.state = static_cast<ReplicaState>(state);
  return slot;
}

void StoreChunkChecksum(uint32_t checksum, char* out) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<char>(static_cast<unsigned char>(checksum >> (24 - 8 * i)));
}

uint32_t LoadChunkChecksum(const char* in) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(in[i]);
  return value;
}

}  // namespace cairn::datanode
