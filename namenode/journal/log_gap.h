#pragma once

// Whether a database whose MANIFEST is to be cut would still have all its batches.
//
// A cut takes off edits that were never synced, so whatever they made superfluous is still there: a flush whose edit goes has left its
// logs where they were. A disk that loses a sector of edits that were synced looks the same, and then logs have been deleted on the
// strength of what the cut takes away: RocksDB would open without their batches, and say nothing. Sequence numbers tell: they run through
// all batches without a gap, the MANIFEST says which of them are in tables, and each record of a log which it holds.
//
// Formats as in RocksDB 7.8: db/version_edit.cc (an edit: varint32 tags, each with its payload) and db/write_batch.cc (u64 sequence number
// of the first entry, u32 count of entries, both little-endian).

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace cairn::namenode {

// `manifest`: the whole records that stay. `logs`: names and contents of all logs, ascending by number, of the newest only what stays.
// kCorruptMetadata naming the log before which batches are missing.
absl::Status CheckNothingIsMissing(std::string_view manifest, const std::vector<std::pair<std::string, std::string>>& logs);

}  // namespace cairn::namenode
