#pragma once

// A look at RocksDB's logs before RocksDB opens them.
//
// Why: a power cut may tear the last record of the newest log, whose write was under way; that record was never acknowledged
// and may go. But RocksDB cannot tell it from a synced record in which a bit flipped: it either drops both silently (and all that follows)
// or refuses both. We can: a torn write misses whole sectors, a flipped bit does not, and nothing is ever written after
// a record that was not synced.
//
// A MANIFEST is written by groups: a flush adds its edit and one that gives up old logs, others may join it, and then comes one sync. So
// whole records may follow one that misses sectors, and all of its group goes with it; what was synced misses none.
//
// Format of a log (WAL and MANIFEST), as RocksDB's db/log_format.h has it: blocks of 32,768 bytes; in a block fragments of
//   u32 masked CRC-32C of type and payload, little-endian | u16 payload length, little-endian | u8 type | payload
// type 1 full, 2 first, 3 middle, 4 last; a record is one full fragment or first, middle..., last, each in the next block. Fewer
// than 7 bytes at the end of a block are zeros. Types 5 to 8 belong to recycled logs, which we never make. Masked means rotated right by
// 15 bits, plus 0xa282ead8.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/file_system.h"

namespace cairn::namenode {

struct LogScan {
  uint64_t records = 0;
  // Set when the log ends in a record that misses whole sectors and nothing follows it (of a MANIFEST: no synced record): where it begins.
  std::optional<uint64_t> torn_at;
};

enum class LogKind { kWal, kManifest };

// Reads a whole log. kCorruptMetadata naming `name` and the offset for any damage that is not a torn last record, or, of a MANIFEST, a torn
// last group: `torn_at` is where its first torn record begins.
absl::StatusOr<LogScan> ScanLog(std::string_view bytes, std::string_view name, LogKind kind = LogKind::kWal);

// Calls `each` with the first `most_bytes` of every record, up to the first that is not whole.
void ForEachRecord(std::string_view bytes, size_t most_bytes, absl::FunctionRef<void(std::string_view record)> each);

// Scans all *.log files of a database directory and the MANIFEST that CURRENT names. A torn last record of the newest log or of
// the MANIFEST is cut off (synced), and the cut is logged. The newest log is the last one that holds a record: after a write that failed
// for want of room RocksDB may begin further ones, into which nothing is written. kNotFound without CURRENT; kCorruptMetadata naming file
// and offset for other damage, also for a torn record in an older log, which was whole before the newer one was begun, and for a MANIFEST
// that would name too little after the cut (log_gap.h); then nothing was changed.
absl::Status RepairTornTails(const std::string& directory, LocalFileSystem& files);

// Syncs the newest log of a database directory, if there is one: what can be read of it now is then there after a power cut.
absl::Status SyncNewestLog(const std::string& directory, LocalFileSystem& files);

}  // namespace cairn::namenode
