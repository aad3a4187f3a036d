#include "namenode/journal/wal_scan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/crc32c.h"
#include "common/error.h"
#include "common/status.h"
#include "namenode/journal/log_gap.h"

namespace cairn::namenode {
namespace {

constexpr uint64_t kBlockBytes = 32768;
constexpr uint64_t kHeaderBytes = 7;
constexpr uint64_t kSectorBytes = 512;
// A record holds one batch, of which one mutation of 1 MiB may be most: a longer damaged area is more than one torn write.
constexpr uint64_t kLongestTornRecord = 4 << 20;
// Of the edits that RocksDB writes to a MANIFEST before it syncs it: a flush's, with two keys for each file, and what else waits.
constexpr uint64_t kLongestTornGroup = 64 << 10;

enum FragmentType : uint8_t { kZero = 0, kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

uint32_t Byte(std::string_view bytes, uint64_t at) { return static_cast<unsigned char>(bytes[at]); }

bool AllZeros(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

// The checksum of the fragment at `at`, taken over all up to `end`.
bool ChecksumFits(std::string_view bytes, uint64_t at, uint64_t end) {
  const uint32_t masked = Byte(bytes, at) | Byte(bytes, at + 1) << 8 | Byte(bytes, at + 2) << 16 | Byte(bytes, at + 3) << 24;
  const uint32_t rotated = masked - 0xa282ead8u;
  return Crc32c({bytes.data() + at + 6, end - at - 6}) == (rotated >> 17 | rotated << 15);
}

struct Fragment {
  uint8_t type = kZero;
  uint64_t end = 0;        // Offset after the payload, by the length field; may lie beyond the file.
  bool plausible = false;  // A type that we write, ending within its block, and at its end if the record goes on.
  bool intact = false;     // Plausible, within the file, and the checksum is right.
};

// There are at least kHeaderBytes in block and file at `at`.
Fragment ReadFragment(std::string_view bytes, uint64_t at) {
  Fragment fragment;
  const uint64_t length = Byte(bytes, at + 4) | Byte(bytes, at + 5) << 8;
  const uint64_t block_end = (at / kBlockBytes + 1) * kBlockBytes;
  fragment.type = static_cast<uint8_t>(Byte(bytes, at + 6));
  fragment.end = at + kHeaderBytes + length;
  const bool goes_on = fragment.type == kFirst || fragment.type == kMiddle;
  fragment.plausible =
      fragment.type >= kFull && fragment.type <= kLast && (goes_on ? fragment.end == block_end : fragment.end <= block_end);
  fragment.intact = fragment.plausible && fragment.end <= bytes.size() && ChecksumFits(bytes, at, fragment.end);
  return fragment;
}

// True if the record that begins in `bytes` at `from` and reaches to `end` or further lacks a sector: one that lies
// partly in it (from `from` on) and is zero there, or that the file does not reach.
bool MissesSector(std::string_view bytes, uint64_t from, uint64_t end) {
  if (end > bytes.size()) return true;
  for (uint64_t at = from; at < end;) {
    const uint64_t sector_end = std::min<uint64_t>((at / kSectorBytes + 1) * kSectorBytes, bytes.size());
    if (AllZeros(bytes.substr(at, sector_end - at))) return true;
    at = sector_end;
  }
  return false;
}

// True if an intact fragment that begins a record stands at `from` or later: looked for at every byte, since the damage may have
// taken the lengths that lead there.
bool RecordFollows(std::string_view bytes, uint64_t from) {
  for (uint64_t at = from; at + kHeaderBytes <= bytes.size(); ++at) {
    const uint32_t type = Byte(bytes, at + 6);
    if (type != kFull && type != kFirst) continue;
    if (kBlockBytes - at % kBlockBytes < kHeaderBytes) continue;
    if (ReadFragment(bytes, at).intact) return true;
  }
  return false;
}

// A log being judged: damage was found.
struct Damage {
  std::string_view bytes;
  std::string_view name;
  uint64_t record;  // Where the record begins that holds it.
  uint64_t offset;
  uint64_t intact_records;  // Before it.
  std::string what;
  LogKind kind;
};

absl::Status Refuse(const Damage& damage, std::string_view reason) {
  return MakeError(ErrorKind::kCorruptMetadata, fmt::format("{}: offset {}: {}; not a write torn by a crash, since {}", damage.name,
                                                            damage.offset, damage.what, reason));
}

// Says where to cut if the damage is a torn last record, and refuses otherwise. Doubts are refusals: cutting a synced record
// loses what was acknowledged, a refusal only costs an operator's time.
absl::StatusOr<LogScan> Judge(const Damage& damage) {
  const std::string_view bytes = damage.bytes;
  const uint64_t at = damage.offset;
  const bool in_group = damage.kind == LogKind::kManifest;  // Others of its write may follow, whole.
  uint64_t written_end = bytes.size();
  while (written_end > damage.record && bytes[written_end - 1] == 0) --written_end;
  if (written_end - damage.record > (in_group ? kLongestTornGroup : kLongestTornRecord))
    return Refuse(damage, fmt::format("{} bytes follow the start of the record", written_end - damage.record));
  if (!in_group && RecordFollows(bytes, at + 1)) return Refuse(damage, "a whole record follows");

  if (bytes.size() - at >= kHeaderBytes) {
    const Fragment fragment = ReadFragment(bytes, at);
    if (fragment.plausible) {
      const bool ends_record = fragment.type == kFull || fragment.type == kLast;
      if (!in_group && ends_record && fragment.end < written_end)
        return Refuse(damage, fmt::format("{} bytes follow the end of the record", written_end - fragment.end));
      // A bad length that points past the end looks like a torn write; then the checksum fits what is there.
      if (fragment.end > bytes.size() && ChecksumFits(bytes, at, bytes.size())) return Refuse(damage, "only its length is wrong");
      if (!MissesSector(bytes, at, fragment.end)) return Refuse(damage, "no sector of it is missing");
    } else if (!MissesSector(bytes, at, at + kHeaderBytes)) {
      return Refuse(damage, "the sector of its header is there");
    }
  }
  return LogScan{.records = damage.intact_records, .torn_at = damage.record};
}

}  // namespace

absl::StatusOr<LogScan> ScanLog(std::string_view bytes, std::string_view name, LogKind kind) {
  LogScan scan;
  uint64_t at = 0;
  std::optional<uint64_t> open_record;  // Begun and not yet ended.
  while (at < bytes.size()) {
    const uint64_t left_in_block = kBlockBytes - at % kBlockBytes;
    Damage damage{.bytes = bytes,
                  .name = name,
                  .record = open_record.value_or(at),
                  .offset = at,
                  .intact_records = scan.records,
                  .what = {},
                  .kind = kind};
    if (left_in_block < kHeaderBytes) {
      const uint64_t trailer = std::min<uint64_t>(left_in_block, bytes.size() - at);
      damage.what = "bytes at the end of a block where zeros belong";
      if (!AllZeros(bytes.substr(at, trailer))) return Refuse(damage, "nothing is ever written there");
      at += trailer;
      continue;
    }
    if (bytes.size() - at < kHeaderBytes) {
      damage.what = "the file ends inside a header";
      return Judge(damage);
    }
    const Fragment fragment = ReadFragment(bytes, at);
    if (!fragment.intact) {
      damage.what = fragment.plausible ? "the checksum of a record is wrong" : "no header of a record";
      return Judge(damage);
    }
    const bool begins = fragment.type == kFull || fragment.type == kFirst;
    if (begins == open_record.has_value()) {
      damage.what = fmt::format("a fragment of type {} out of order", fragment.type);
      return Refuse(damage, "the fragment itself is whole");
    }
    if (fragment.type == kFirst) open_record = at;
    if (fragment.type == kFull || fragment.type == kLast) {
      open_record.reset();
      ++scan.records;
    }
    at = fragment.end;
  }
  scan.torn_at = open_record;  // The file ends between two fragments of a record.
  return scan;
}

void ForEachRecord(std::string_view bytes, size_t most_bytes, absl::FunctionRef<void(std::string_view record)> each) {
  std::string record;
  for (uint64_t at = 0; at + kHeaderBytes <= bytes.size();) {
    const uint64_t left_in_block = kBlockBytes - at % kBlockBytes;
    if (left_in_block < kHeaderBytes) {
      at += left_in_block;
      continue;
    }
    const Fragment fragment = ReadFragment(bytes, at);
    if (!fragment.intact) return;
    if (fragment.type == kFull || fragment.type == kFirst) record.clear();
    const std::string_view payload = bytes.substr(at + kHeaderBytes, fragment.end - at - kHeaderBytes);
    record.append(payload.substr(0, most_bytes - std::min(most_bytes, record.size())));
    if (fragment.type == kFull || fragment.type == kLast) each(record);
    at = fragment.end;
  }
}

namespace {

struct Cut {
  std::string path;
  uint64_t at;
  uint64_t size_bytes;
  uint64_t records;  // That stay.
};

// A MANIFEST may have been torn only if what it names without its tail leads to all that is in the logs.
absl::Status CheckCutOfManifest(const Cut& cut, const std::string& directory, const std::map<uint64_t, std::string>& names,
                                const std::vector<Cut>& cuts, LocalFileSystem& files) {
  ASSIGN_OR_RETURN(std::string manifest, files.ReadWhole(cut.path));
  manifest.resize(cut.at);
  std::vector<std::pair<std::string, std::string>> logs;
  for (const auto& [number, name] : names) {
    const std::string path = directory + "/" + name;
    ASSIGN_OR_RETURN(std::string bytes, files.ReadWhole(path));
    for (const Cut& other : cuts)
      if (other.path == path) bytes.resize(other.at);
    logs.emplace_back(path, std::move(bytes));
  }
  return Annotate(CheckNothingIsMissing(manifest, logs),
                  fmt::format("{}: offset {}: damaged, and not by a crash that tore a write", cut.path, cut.at));
}

// Scans one file and adds to `cuts` what has to be cut; its whole records. Reads it whole: a log is about as long as the write buffers.
absl::StatusOr<uint64_t> ScanOne(const std::string& path, LogKind kind, bool may_be_torn, LocalFileSystem& files, std::vector<Cut>& cuts) {
  ASSIGN_OR_RETURN(const std::string bytes, files.ReadWhole(path));
  ASSIGN_OR_RETURN(const LogScan scan, ScanLog(bytes, path, kind));
  if (!scan.torn_at) return scan.records;
  if (!may_be_torn) {
    return MakeError(
        ErrorKind::kCorruptMetadata,
        fmt::format("{}: offset {}: the last record is not whole, though a newer log was begun after it", path, *scan.torn_at));
  }
  cuts.push_back({.path = path, .at = *scan.torn_at, .size_bytes = bytes.size(), .records = scan.records});
  return scan.records;
}

// "000012.log" -> 12.
std::optional<uint64_t> LogNumber(std::string_view name) {
  constexpr std::string_view kSuffix = ".log";
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

}  // namespace

absl::Status SyncNewestLog(const std::string& directory, LocalFileSystem& files) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  std::optional<uint64_t> newest;
  std::string path;
  for (const std::string& name : names) {
    const std::optional<uint64_t> number = LogNumber(name);
    if (!number || (newest && *newest > *number)) continue;
    newest = number;
    path = directory + "/" + name;
  }
  if (!newest) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.Open(path, LocalFileSystem::OpenMode::kReadWrite));
  return file->Sync();
}

absl::Status RepairTornTails(const std::string& directory, LocalFileSystem& files) {
  const std::string current_path = directory + "/CURRENT";
  ASSIGN_OR_RETURN(const std::string current, files.ReadWhole(current_path));
  if (!current.starts_with("MANIFEST-") || !current.ends_with('\n') || current.find('/') != std::string::npos)
    return MakeError(ErrorKind::kCorruptMetadata, fmt::format("{}: offset 0: not the name of a MANIFEST", current_path));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  std::map<uint64_t, std::string> logs;
  for (const std::string& name : names) {
    if (const auto number = LogNumber(name)) logs.emplace(*number, name);
  }
  std::vector<Cut> cuts;
  const std::string manifest = directory + "/" + current.substr(0, current.size() - 1);
  RETURN_IF_ERROR(ScanOne(manifest, LogKind::kManifest, /*may_be_torn=*/true, files, cuts).status());
  bool is_newest = true;
  for (auto log = logs.rbegin(); log != logs.rend(); ++log) {
    ASSIGN_OR_RETURN(const uint64_t records, ScanOne(directory + "/" + log->second, LogKind::kWal, is_newest, files, cuts));
    is_newest &= records == 0;
  }
  for (const Cut& cut : cuts)
    if (cut.path == manifest) RETURN_IF_ERROR(CheckCutOfManifest(cut, directory, logs, cuts, files));
  for (const Cut& cut : cuts) {
    spdlog::warn("{}: cutting {} bytes at offset {}: the last record was torn by a crash before it was acknowledged; {} records stay",
                 cut.path, cut.size_bytes - cut.at, cut.at, cut.records);
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.Open(cut.path, LocalFileSystem::OpenMode::kReadWrite));
    RETURN_IF_ERROR(file->Truncate(cut.at));
    RETURN_IF_ERROR(file->Sync());
  }
  return absl::OkStatus();
}

}  // namespace cairn::namenode
