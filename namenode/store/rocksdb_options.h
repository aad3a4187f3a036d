#pragma once

#include <cstddef>
#include <memory>

#include <absl/status/status.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include "common/mutex.h"

namespace cairn::namenode {

// Keeps the first error of a database's background work (flushes, compactions) and of its writes, after which it writes nothing more, and
// keeps RocksDB from mending itself: whether what is on disk can be trusted is for us to say. Thread-safe.
class TroubleListener : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason, rocksdb::Status error, bool* auto_recovery) override;
  // OK, or the first error, as FromRocksdb says it.
  absl::Status first() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable Mutex mu_;
  absl::Status first_ ABSL_GUARDED_BY(mu_);
};

struct DatabaseTuning {
  size_t block_cache_bytes;
  size_t write_buffer_bytes;  // Of all families together.
  bool simulated;
  bool scarce_space = false;
  std::shared_ptr<TroubleListener> trouble = nullptr;
};

// Options that the NameNode's databases share; tables of all families use one bounded block cache, which also holds index and
// filter blocks, so that memory is what was configured. In simulation: no threads, no waits, flushes only on demand.
rocksdb::Options DatabaseOptions(const DatabaseTuning& tuning, rocksdb::Env* env);

// Writes nothing: for a database that is only read.
std::shared_ptr<rocksdb::Logger> NoInfoLog();
// RocksDB's warnings and errors as lines of ours. Without it a database keeps a LOG file beside it, and a line of that file that finds the
// disk full makes RocksDB, as Debian builds it, abort at the next one.
std::shared_ptr<rocksdb::Logger> ForwardingInfoLog();

// Corruption is kCorruptMetadata; a write that found no room kDiskFull; everything else INTERNAL, also a sync that found no room: what it
// was to make durable may be lost though it can still be read. `context` comes first in the message.
absl::Status FromRocksdb(const rocksdb::Status& status, const char* context);

}  // namespace cairn::namenode
