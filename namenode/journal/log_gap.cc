#include "namenode/journal/log_gap.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/journal/wal_scan.h"

namespace cairn::namenode {
namespace {

// Tags of what an edit begins with. All but the two names are varints; what follows them is of no interest here.
constexpr uint64_t kTagComparator = 1;
constexpr uint64_t kTagLogNumber = 2;
constexpr uint64_t kTagNextFileNumber = 3;
constexpr uint64_t kTagLastSequence = 4;
constexpr uint64_t kTagPrevLogNumber = 9;
constexpr uint64_t kTagMinLogNumberToKeep = 10;
constexpr uint64_t kTagMaxColumnFamily = 203;
constexpr uint64_t kTagDatabaseId = (1 << 13) + 1;

constexpr size_t kBatchHeaderBytes = 12;

std::optional<uint64_t> TakeVarint(std::string_view* bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// The last sequence number of which an edit says that it is in a table.
uint64_t LastSequenceOf(std::string_view edit) {
  while (const std::optional<uint64_t> tag = TakeVarint(&edit)) {
    const std::optional<uint64_t> value = TakeVarint(&edit);
    if (!value) return 0;
    switch (*tag) {
      case kTagLastSequence: return *value;
      case kTagComparator:
      case kTagDatabaseId:
        if (*value > edit.size()) return 0;
        edit.remove_prefix(static_cast<size_t>(*value));
        break;
      case kTagLogNumber:
      case kTagNextFileNumber:
      case kTagPrevLogNumber:
      case kTagMinLogNumberToKeep:
      case kTagMaxColumnFamily: break;
      default: return 0;
    }
  }
  return 0;
}

uint64_t LittleEndian(std::string_view bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

absl::Status CheckNothingIsMissing(std::string_view manifest, const std::vector<std::pair<std::string, std::string>>& logs) {
  uint64_t known = 0;  // All batches up to here are in a table, or in a log that was looked at.
  ForEachRecord(manifest, manifest.size(), [&](std::string_view edit) { known = std::max(known, LastSequenceOf(edit)); });
  for (const auto& [name, bytes] : logs) {
    std::optional<uint64_t> gap;
    ForEachRecord(bytes, kBatchHeaderBytes, [&](std::string_view batch) {
      if (gap || batch.size() < kBatchHeaderBytes) return;
      const uint64_t first = LittleEndian(batch, 8);
      const uint64_t count = LittleEndian(batch.substr(8), 4);
      if (first > known + 1) gap = first;
      if (count > 0) known = std::max(known, first + count - 1);
    });
    if (gap)
      return MakeError(
          ErrorKind::kCorruptMetadata,
          fmt::format("{}: its changes begin with number {}, and neither a log nor a table that would stay holds those before it", name,
                      *gap));
  }
  return absl::OkStatus();
}

}  // namespace cairn::namenode
