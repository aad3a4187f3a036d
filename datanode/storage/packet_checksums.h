#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/crc32c.h"

namespace cairn::datanode {

// Where a replica ends: the bytes received and the checksum of the last partial chunk (0 on a chunk's edge).
struct StoredEnd {
  uint64_t received = 0;
  uint32_t partial_checksum = 0;
};

// What the checksum region and the slot get when a packet has been stored.
struct ChecksumPlan {
  uint64_t first_chunk = 0;
  std::string entries;            // Of the whole chunks that end within the new bytes; 4 bytes each.
  uint32_t partial_checksum = 0;  // Of the new last partial chunk.
};

// Checks the packet [offset, offset + data.size()) against its checksums and what is stored, for offset <= received < its end, and works
// out the checksums to store. `checksums` counts chunks from the packet's first byte; empty means that the sender computes none.
//
// Everything is verified if `verify` is set or the packet's chunks are not the file's; else only the chunk that continues a stored one,
// because its new checksum will vouch for bytes that are on this disk already: by the packet's checksum, and its first bytes by
// the stored checksum. The stored checksum is then the packet's, or is continued over the new bytes; it is never computed
// from the disk, which would bless whatever rotted there. `read_partial` gives the stored bytes of the last partial chunk; it is
// asked only when a resent packet begins inside them.
//
// kChecksum when anything does not match, kInvalidArgument when the number of checksums is wrong. No I/O but read_partial.
absl::StatusOr<ChecksumPlan> PlanChecksums(ChecksumType type, uint32_t bytes_per_checksum, const StoredEnd& stored, uint64_t offset,
                                           std::span<const char> data, std::span<const char> checksums, bool verify,
                                           absl::AnyInvocable<absl::StatusOr<std::string>()> read_partial);

}  // namespace cairn::datanode
