#include "datanode/storage/packet_checksums.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "datanode/storage/replica_format.h"

namespace cairn::datanode {
namespace {

absl::Status Mismatch(const std::string& what) { return MakeError(ErrorKind::kChecksum, what); }

}  // namespace

absl::StatusOr<ChecksumPlan> PlanChecksums(ChecksumType type, uint32_t bytes_per_checksum, const StoredEnd& stored, uint64_t offset,
                                           std::span<const char> data, std::span<const char> checksums, bool verify,
                                           absl::AnyInvocable<absl::StatusOr<std::string>()> read_partial) {
  const uint64_t chunk = bytes_per_checksum;
  const uint64_t received = stored.received;
  const uint64_t end = offset + data.size();
  const uint64_t partial_start = received - received % chunk;
  const bool inside_chunk = received != partial_start;
  const bool given = !checksums.empty();
  const bool aligned = offset % chunk == 0;

  if (given) {
    const uint64_t expected = 4 * ChunkCount(data.size(), bytes_per_checksum);
    if (checksums.size() != expected) {
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("packet [{}, {}) has {} bytes of checksums, its {} bytes of data need {}",
                                                                offset, end, checksums.size(), data.size(), expected));
    }
    if (verify || !aligned) {
      RETURN_IF_ERROR(Annotate(VerifyChunkChecksums(type, bytes_per_checksum, data, checksums), fmt::format("packet at {}", offset)));
    } else if (inside_chunk) {
      const uint64_t index = (partial_start - offset) / chunk;
      const auto bytes = data.subspan(index * chunk, std::min(chunk, data.size() - index * chunk));
      RETURN_IF_ERROR(Annotate(VerifyChunkChecksums(type, bytes_per_checksum, bytes, checksums.subspan(4 * index, 4)),
                               fmt::format("chunk at {} that continues a stored one", partial_start)));
    }
  }

  if (inside_chunk && offset < received) {
    if (offset <= partial_start) {
      const auto resent = data.subspan(partial_start - offset, received - partial_start);
      if (ChunkChecksum(type, resent) != stored.partial_checksum) {
        return Mismatch(fmt::format("bytes [{}, {}) were sent again and differ from those stored", partial_start, received));
      }
    } else {
      ASSIGN_OR_RETURN(const std::string bytes, read_partial());
      if (bytes.size() != received - partial_start || ChunkChecksum(type, bytes) != stored.partial_checksum) {
        return Mismatch(fmt::format("stored bytes [{}, {}) do not match their checksum", partial_start, received));
      }
      const std::string_view overlap = std::string_view(bytes).substr(offset - partial_start);
      if (overlap != std::string_view(data.data(), overlap.size())) {
        return Mismatch(fmt::format("bytes [{}, {}) were sent again and differ from those stored", offset, received));
      }
    }
  }

  ChecksumPlan plan;
  plan.first_chunk = received / chunk;
  if (given && aligned) {
    const uint64_t skipped = plan.first_chunk - offset / chunk;
    const uint64_t whole = end / chunk - plan.first_chunk;
    plan.entries.assign(checksums.data() + 4 * skipped, 4 * whole);
    if (end % chunk != 0) plan.partial_checksum = LoadChunkChecksum(checksums.data() + 4 * (skipped + whole));
    return plan;
  }
  uint32_t running = inside_chunk ? stored.partial_checksum : 0;
  for (uint64_t at = received; at < end;) {
    const uint64_t stop = std::min(end, at - at % chunk + chunk);
    running = ChunkChecksum(type, data.subspan(at - offset, stop - at), running);
    at = stop;
    if (at % chunk != 0) break;
    plan.entries.resize(plan.entries.size() + 4);
    StoreChunkChecksum(running, plan.entries.data() + plan.entries.size() - 4);
    running = 0;
  }
  plan.partial_checksum = running;
  return plan;
}

}  // namespace cairn::datanode
