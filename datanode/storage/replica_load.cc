#include "datanode/storage/replica_load.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

constexpr uint64_t kReadBytes = 1 << 20;  // At a time, when a whole replica is read.

absl::StatusOr<bool> VerifyFinalized(ReplicaFile& file, const ReplicaSlot& slot) {
  const uint64_t whole = slot.length - slot.length % file.header().bytes_per_checksum;
  ASSIGN_OR_RETURN(const uint64_t verified, VerifyWholeChunks(file, 0, whole));
  if (verified != whole) return false;
  return VerifyPartialChunk(file, slot.length, slot.partial_checksum);
}

absl::StatusOr<LoadedReplica> ExtendWithoutReboot(ReplicaFile& file, const ReplicaSlot& slot) {
  LoadedReplica loaded{.stamp = slot.stamp, .length = slot.length, .partial_checksum = slot.partial_checksum, .sure = true};
  loaded.cut = (slot.flags & kSlotCut) != 0;
  if (loaded.cut) return loaded;
  const uint32_t chunk = file.header().bytes_per_checksum;
  const uint64_t first = slot.length / chunk;
  ASSIGN_OR_RETURN(const uint64_t more, VerifyWholeChunks(file, first, file.header().capacity));
  if (more > 0) {
    loaded.length = first * chunk + more;
    loaded.partial_checksum = 0;
  }
  return loaded;
}

absl::StatusOr<LoadedReplica> LongestPrefix(ReplicaFile& file, const ReplicaSlot& slot, const std::vector<ReplicaSlot>& valid) {
  LoadedReplica loaded{.stamp = slot.stamp};
  loaded.cut = (slot.flags & kSlotCut) != 0;
  const uint64_t limit = loaded.cut ? slot.length : file.header().capacity;
  ASSIGN_OR_RETURN(loaded.length, VerifyWholeChunks(file, 0, limit));
  const uint64_t edge = loaded.length;
  for (const ReplicaSlot& other : valid) {  // Any slot's partial checksum may prove a few bytes more of the next chunk.
    if (other.length <= loaded.length || other.length > limit || other.length >= edge + file.header().bytes_per_checksum) continue;
    ASSIGN_OR_RETURN(const bool verifies, VerifyPartialChunk(file, other.length, other.partial_checksum));
    if (!verifies) continue;
    loaded.length = other.length;
    loaded.partial_checksum = other.partial_checksum;
  }
  return loaded;
}

}  // namespace

absl::StatusOr<uint64_t> VerifyWholeChunks(ReplicaFile& file, uint64_t first_chunk, uint64_t end) {
  const uint32_t chunk = file.header().bytes_per_checksum;
  const uint64_t end_chunk = end / chunk;
  const uint64_t batch = std::max<uint64_t>(1, kReadBytes / chunk);
  std::string data;
  for (uint64_t at = first_chunk; at < end_chunk;) {
    const uint64_t count = std::min(batch, end_chunk - at);
    data.resize(count * chunk);
    ASSIGN_OR_RETURN(const size_t got, file.ReadData(at * chunk, data));
    const uint64_t whole = got / chunk;
    ASSIGN_OR_RETURN(const std::string entries, file.ReadChecksums(at, whole));
    for (uint64_t i = 0; i < whole; ++i, ++at) {
      const uint32_t checksum = ChunkChecksum(file.header().checksum_type, std::span<const char>(data).subspan(i * chunk, chunk));
      if (checksum != LoadChunkChecksum(entries.data() + 4 * i)) return (at - first_chunk) * chunk;
    }
    if (whole < count) return (at - first_chunk) * chunk;  // The end of the file.
  }
  return end_chunk <= first_chunk ? 0 : (end_chunk - first_chunk) * chunk;
}

absl::StatusOr<bool> VerifyPartialChunk(ReplicaFile& file, uint64_t length, uint32_t partial_checksum) {
  const uint64_t bytes = length % file.header().bytes_per_checksum;
  if (bytes == 0) return true;
  std::string data(bytes, '\0');
  ASSIGN_OR_RETURN(const size_t got, file.ReadData(length - bytes, data));
  return got == bytes && ChunkChecksum(file.header().checksum_type, data) == partial_checksum;
}

absl::StatusOr<uint32_t> PartialChecksumAt(ReplicaFile& file, uint64_t received, uint32_t received_checksum, uint64_t length) {
  const uint32_t chunk = file.header().bytes_per_checksum;
  if (length % chunk == 0) return 0u;
  if (length == received) return received_checksum;
  const uint64_t start = length - length % chunk;
  const uint64_t end = std::min(received, start + chunk);
  std::string bytes(end - start, '\0');
  ASSIGN_OR_RETURN(const size_t got, file.ReadData(start, bytes));
  uint32_t expected = received_checksum;
  if (end == start + chunk) {
    ASSIGN_OR_RETURN(const std::string entry, file.ReadChecksums(start / chunk, 1));
    expected = LoadChunkChecksum(entry.data());
  }
  if (got != bytes.size() || ChunkChecksum(file.header().checksum_type, bytes) != expected) {
    return MakeError(ErrorKind::kChecksum, fmt::format("{}: bytes [{}, {}) do not match their checksum", file.path(), start, end));
  }
  return ChunkChecksum(file.header().checksum_type, std::span<const char>(bytes).first(length - start));
}

absl::StatusOr<LoadedReplica> LoadReplica(ReplicaFile& file, const BootId& boot_id) {
  const std::vector<ReplicaSlot> valid = file.ValidSlots();
  for (const ReplicaSlot& slot : valid) {
    const bool rebooted = slot.boot_id != boot_id.bytes;
    if ((slot.flags & kSlotFree) != 0) break;  // A recycled file holds no replica.
    const bool finalized = slot.state == ReplicaState::kFinalized;
    LoadedReplica as_it_says{.stamp = slot.stamp,
                             .state = finalized ? ReplicaState::kFinalized : ReplicaState::kRwr,
                             .length = slot.length,
                             .partial_checksum = slot.partial_checksum,
                             .sure = true};
    if ((slot.flags & kSlotCorrupt) != 0) {
      as_it_says.corrupt = true;
      return as_it_says;
    }
    if (slot.state == ReplicaState::kTemporary) {
      as_it_says.state = ReplicaState::kTemporary;
      return as_it_says;
    }
    // Known to be on disk: what does not verify now is rot, for the reader and the scanner to find; an older slot would not be truer.
    if (finalized && (slot.flags & kSlotSynced) != 0) return as_it_says;
    const bool read_in_full = finalized && rebooted;
    absl::StatusOr<bool> verifies =
        read_in_full ? VerifyFinalized(file, slot) : VerifyPartialChunk(file, slot.length, slot.partial_checksum);
    RETURN_IF_ERROR(verifies.status());
    if (!*verifies) {
      if (rebooted) continue;
      as_it_says.corrupt = true;
      return as_it_says;
    }
    if (finalized) {
      as_it_says.newly_verified = rebooted;
      return as_it_says;
    }
    // A slot that was passed over is newer and of an earlier boot, so this one is of an earlier boot too: not sure.
    if (rebooted) return LongestPrefix(file, slot, valid);
    return ExtendWithoutReboot(file, slot);
  }
  // Slots there are, none stands: after a reboot nothing but what verifies by itself is left.
  if (!valid.empty() && (valid.back().flags & kSlotFree) == 0) return LongestPrefix(file, valid.back(), valid);
  return MakeError(ErrorKind::kCorruptMetadata, fmt::format("{}: none of the four slots is valid", file.path()));
}

}  // namespace cairn::datanode
