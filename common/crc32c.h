#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace cairn {

// As in the replica file and HDFS's ChecksumTypeProto. NULL never rests on a disk: it is stored as CRC32C.
enum class ChecksumType : uint8_t { kNull = 0, kCrc32 = 1, kCrc32c = 2 };

// CRC-32C (Castagnoli, reflected 0x82F63B78, init and xor 0xFFFFFFFF), by ISA-L. Crc32c("123456789") = 0xE3069283.
// `so_far`: the result for the bytes before, 0 at the start.
uint32_t Crc32c(std::span<const char> data, uint32_t so_far = 0);
// zlib's CRC-32 (0xEDB88320), by ISA-L.
uint32_t Crc32(std::span<const char> data, uint32_t so_far = 0);
// Of the given type; kNull gives 0.
uint32_t ChunkChecksum(ChecksumType type, std::span<const char> data, uint32_t so_far = 0);

// Checksums of consecutive chunks of `data`, 4 bytes big-endian each; the last chunk may be short. `out` has 4 x
// ceil(data.size() / bytes_per_checksum) bytes.
void ComputeChunkChecksums(ChecksumType type, uint32_t bytes_per_checksum, std::span<const char> data, std::span<char> out);
// OK, or kChecksum naming the first bad chunk's offset within `data`, and both values.
absl::Status VerifyChunkChecksums(ChecksumType type, uint32_t bytes_per_checksum, std::span<const char> data,
                                  std::span<const char> checksums);

}  // namespace cairn
