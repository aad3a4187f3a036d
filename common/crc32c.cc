#include "common/crc32c.h"

#include <isa-l/crc.h>

#include <fmt/format.h>

#include "common/check.h"
#include "common/error.h"

namespace cairn {
namespace {

void StoreBigEndian(uint32_t value, char* out) {
  out[0] = static_cast<char>(value >> 24);
  out[1] = static_cast<char>(value >> 16);
  out[2] = static_cast<char>(value >> 8);
  out[3] = static_cast<char>(value);
}

uint32_t LoadBigEndian(const char* in) {
  const auto byte = [in](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(in[i])); };
  return byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
}

}  // namespace

uint32_t Crc32c(std::span<const char> data, uint32_t so_far) {
  // ISA-L's is not const-correct, and takes an int.
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
  size_t left = data.size();
  uint32_t crc = ~so_far;
  constexpr size_t kMost = 1u << 30;
  while (left > 0) {
    const size_t part = left < kMost ? left : kMost;
    crc = crc32_iscsi(bytes, static_cast<int>(part), crc);
    bytes += part;
    left -= part;
  }
  return ~crc;
}

uint32_t Crc32(std::span<const char> data, uint32_t so_far) {
  return crc32_gzip_refl(so_far, reinterpret_cast<const unsigned char*>(data.data()), data.size());
}

uint32_t ChunkChecksum(ChecksumType type, std::span<const char> data, uint32_t so_far) {
  switch (type) {
    case ChecksumType::kNull: return 0;
    case ChecksumType::kCrc32: return Crc32(data, so_far);
    case ChecksumType::kCrc32c: return Crc32c(data, so_far);
  }
  return 0;
}

void ComputeChunkChecksums(ChecksumType type, uint32_t bytes_per_checksum, std::span<const char> data, std::span<char> out) {
  CAIRN_CHECK(out.size() >= 4 * ((data.size() + bytes_per_checksum - 1) / bytes_per_checksum), "no room for checksums");
  char* at = out.data();
  while (!data.empty()) {
    const auto chunk = data.first(data.size() < bytes_per_checksum ? data.size() : bytes_per_checksum);
    StoreBigEndian(ChunkChecksum(type, chunk), at);
    at += 4;
    data = data.subspan(chunk.size());
  }
}

absl::Status VerifyChunkChecksums(ChecksumType type, uint32_t bytes_per_checksum, std::span<const char> data,
                                  std::span<const char> checksums) {
  if (type == ChecksumType::kNull) return absl::OkStatus();
  const size_t chunks = (data.size() + bytes_per_checksum - 1) / bytes_per_checksum;
  if (checksums.size() != 4 * chunks)
    return MakeError(ErrorKind::kChecksum, fmt::format("{} bytes of checksums for {} chunks", checksums.size(), chunks));
  for (size_t i = 0; i < chunks; ++i) {
    const size_t offset = i * bytes_per_checksum;
    const size_t length = data.size() - offset < bytes_per_checksum ? data.size() - offset : bytes_per_checksum;
    const uint32_t actual = ChunkChecksum(type, data.subspan(offset, length));
    const uint32_t expected = LoadBigEndian(checksums.data() + 4 * i);
    if (actual != expected)
      return MakeError(ErrorKind::kChecksum, fmt::format("checksum mismatch in the {} bytes at {}: expected {:08x}, found {:08x}", length,
                                                         offset, expected, actual));
  }
  return absl::OkStatus();
}

}  // namespace cairn
