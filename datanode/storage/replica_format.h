#pragma once

// The bytes of a replica file, layout 1: encoding and decoding only, no I/O. Little-endian, except the chunk checksums, which rest as they
// travel (big-endian), so that a sender can copy them.
//
//   offset      bytes   what
//   0           8       magic "CAIRNRPL"
//   8           4       layout version
//   12          1 + 3   checksum type (1 CRC32, 2 CRC32C), padding
//   16          4       bytes per checksum, 64 to 1 MiB
//   24          8       capacity: most data bytes this file can hold
//   32          16      pool id
//   48          8       block id
//   56          4       CRC32C of bytes 0 to 55
//   1024, 1536  512     durable slots
//   2048, 2560  512     progress slots
//   4096        4 each  checksums of whole chunks
//   align4096(4096 + 4 x ceil(capacity / bytes per checksum))   data
//
// A slot: sequence u64, stamp u64, length u64, state u8, flags u8, 2 bytes padding, checksum of the last partial chunk u32, boot id 16
// bytes, CRC32C of these 48 bytes u32; zeros up to 512 bytes. One slot is one disk sector, so a power cut leaves it old or new, never
// mixed.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/crc32c.h"
#include "common/ids.h"
#include "datanode/storage/block_store.h"

namespace cairn::datanode {

inline constexpr uint32_t kReplicaLayout = 1;
inline constexpr uint64_t kHeaderPageBytes = 4096;
inline constexpr size_t kHeaderBytes = 60;
inline constexpr size_t kSlotBytes = 512;
inline constexpr size_t kSlotContentBytes = 52;
inline constexpr size_t kSlotCount = 4;  // 0 and 1 are durable, 2 and 3 progress.
inline constexpr size_t kPoolIdBytes = 16;
inline constexpr size_t kBootIdBytes = 16;
inline constexpr uint32_t kMinBytesPerChecksum = 64;
inline constexpr uint32_t kMaxBytesPerChecksum = 1 << 20;
inline constexpr uint64_t kMaxCapacity = (1ull << 38) - 1;  // What a record of the replica map can count.

inline constexpr uint8_t kSlotSynced = 1;  // FINALIZED, and known to be on disk.
inline constexpr uint8_t kSlotCut = 2;     // Shortened: chunks beyond the length are old, never to be found again.
inline constexpr uint8_t kSlotCorrupt = 4;
inline constexpr uint8_t kSlotFree = 8;  // A recycled file, no replica.

struct ReplicaHeader {
  ChecksumType checksum_type = ChecksumType::kCrc32c;
  uint32_t bytes_per_checksum = 512;
  uint64_t capacity = 0;
  std::string pool_id;  // 16 bytes.
  BlockId id;
};

struct ReplicaSlot {
  uint64_t sequence = 0;
  GenerationStamp stamp;
  uint64_t length = 0;
  ReplicaState state = ReplicaState::kRbw;
  uint8_t flags = 0;
  uint32_t partial_checksum = 0;  // Of [floor(length / bytes per checksum) x bytes per checksum, length); 0 if that is empty.
  std::string boot_id;            // 16 bytes.
};

constexpr uint64_t SlotOffset(size_t index) { return 1024 + kSlotBytes * index; }
constexpr uint64_t AlignToPage(uint64_t bytes) { return (bytes + kHeaderPageBytes - 1) / kHeaderPageBytes * kHeaderPageBytes; }
constexpr uint64_t ChunkCount(uint64_t length, uint32_t bytes_per_checksum) {
  return (length + bytes_per_checksum - 1) / bytes_per_checksum;
}
constexpr uint64_t DataOffset(uint64_t capacity, uint32_t bytes_per_checksum) {
  return AlignToPage(kHeaderPageBytes + 4 * ChunkCount(capacity, bytes_per_checksum));
}
// What a replica of `length` bytes takes on disk: the rest of its file is a hole.
constexpr uint64_t UsedBytes(uint64_t length, uint32_t bytes_per_checksum) {
  return kHeaderPageBytes + AlignToPage(4 * ChunkCount(length, bytes_per_checksum)) + AlignToPage(length);
}

// kInvalidArgument for a header that no decoder would take.
absl::Status CheckHeader(const ReplicaHeader& header);
std::string EncodeHeader(const ReplicaHeader& header);  // kHeaderBytes.
// kCorruptMetadata; kUnsupported for a newer layout, naming both.
absl::StatusOr<ReplicaHeader> DecodeHeader(std::span<const char> bytes);

std::string EncodeSlot(const ReplicaSlot& slot);  // kSlotBytes.
// Nothing unless its own checksum and its fields are right.
std::optional<ReplicaSlot> DecodeSlot(std::span<const char> bytes);

void StoreChunkChecksum(uint32_t checksum, char* out);  // 4 bytes, big-endian.
uint32_t LoadChunkChecksum(const char* in);

}  // namespace cairn::datanode
