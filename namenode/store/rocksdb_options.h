#pragma once

#include <cstddef>

#include <absl/status/status.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

namespace cairn::namenode {

struct DatabaseTuning {
  size_t block_cache_bytes;
  size_t write_buffer_bytes;  // Of all families together.
  bool simulated;
};

// Options that the NameNode's databases share; tables of all families use one bounded block cache, which also holds index and
// filter blocks, so that memory is what was configured. In simulation: no threads, no waits, flushes only on demand.
rocksdb::Options DatabaseOptions(const DatabaseTuning& tuning, rocksdb::Env* env);

// Corruption is kCorruptMetadata, a full disk kDiskFull, everything else INTERNAL; `context` comes first in the message.
absl::Status FromRocksdb(const rocksdb::Status& status, const char* context);

}  // namespace cairn::namenode
