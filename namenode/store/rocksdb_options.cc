#include "namenode/store/rocksdb_options.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <spdlog/spdlog.h>

#include "common/error.h"

namespace cairn::namenode {
namespace {

// RocksDB tells a sync from a write only in words. The last is LocalFileSystem's.
bool IsOfSync(const std::string& message) {
  for (const char* words : {"While fdatasync", "While fsync", "While sync_file_range", "fdatasync "})
    if (message.find(words) != std::string::npos) return true;
  return false;
}

class NoLogger : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
  rocksdb::Status Close() override { return rocksdb::Status::OK(); }
};

class ForwardingLogger : public rocksdb::Logger {
 public:
  ForwardingLogger() : Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    std::array<char, 1024> line;
    const int length = std::vsnprintf(line.data(), line.size(), format, arguments);  // NOLINT(cert-err33-c): shown or not.
    if (length > 0) spdlog::warn("rocksdb: {}", line.data());
  }
  rocksdb::Status Close() override { return rocksdb::Status::OK(); }
};

void MakeRepeatable(rocksdb::Options& options) {
  options.info_log = std::make_shared<NoLogger>();
  // Memtables never fill: the simulation flushes by its own count, since sizes in bytes differ between runs.
  options.write_buffer_size = 1ull << 30;
  options.db_write_buffer_size = 0;
  options.arena_block_size = 64 << 10;
  options.max_write_buffer_number = 64;
  options.memtable_prefix_bloom_size_ratio = 0;  // A share of that size.
  options.max_total_wal_size = 1ull << 40;
  // Writes never wait for a background job, which only runs when the simulation pumps.
  options.level0_slowdown_writes_trigger = 1 << 20;
  options.level0_stop_writes_trigger = 1 << 20;
  options.soft_pending_compaction_bytes_limit = 0;
  options.hard_pending_compaction_bytes_limit = 0;
  options.max_file_opening_threads = 1;
  options.max_subcompactions = 1;
  options.max_bgerror_resume_count = 0;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.avoid_flush_during_shutdown = true;
  options.allow_concurrent_memtable_write = false;
  options.enable_write_thread_adaptive_yield = false;
  options.manifest_preallocation_size = 0;
  options.skip_checking_sst_file_sizes_on_db_open = true;  // Would use a thread.
}

}  // namespace

rocksdb::Options DatabaseOptions(const DatabaseTuning& tuning, rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  // What one family has in the logs fills no buffer when it is recovered, or it would be written to a table all the same.
  options.write_buffer_size = tuning.write_buffer_bytes * (tuning.scarce_space ? 4 : 1);
  options.db_write_buffer_size = tuning.write_buffer_bytes;
  options.max_total_wal_size = 4 * tuning.write_buffer_bytes;
  options.compression = rocksdb::kNoCompression;
  options.bottommost_compression = rocksdb::kNoCompression;
  options.level_compaction_dynamic_level_bytes = true;
  options.max_background_jobs = 2;
  options.max_open_files = 512;
  options.bytes_per_sync = 1 << 20;
  options.info_log = ForwardingInfoLog();
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;

  // Most questions that come past the row cache are for what is not there: a new name. They end at the memtable's filter.
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.02;

  // One thread writes.
  options.allow_concurrent_memtable_write = false;

  // Logs: a record that was synced must never be dropped in silence, and a missing log must be noticed. Recycled logs would hold
  // whole old records behind the newest one.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  options.recycle_log_file_num = 0;
  options.avoid_flush_during_recovery = tuning.scarce_space;
  options.wal_compression = rocksdb::kNoCompression;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(tuning.block_cache_bytes);
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.checksum = rocksdb::kXXH3;  // Debian's CRC32C is a table look-up.
  table.block_size = 8 << 10;
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // A listing beside a mass deletion must not step over every tombstone for ever: files full of them are compacted early.
  options.table_properties_collector_factories.push_back(rocksdb::NewCompactOnDeletionCollectorFactory(4096, 2048));

  if (tuning.trouble != nullptr) options.listeners.push_back(tuning.trouble);
  if (tuning.simulated) MakeRepeatable(options);
  return options;
}

std::shared_ptr<rocksdb::Logger> ForwardingInfoLog() { return std::make_shared<ForwardingLogger>(); }

std::shared_ptr<rocksdb::Logger> NoInfoLog() { return std::make_shared<NoLogger>(); }

void TroubleListener::OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) {
  const bool flush = reason == rocksdb::BackgroundErrorReason::kFlush || reason == rocksdb::BackgroundErrorReason::kFlushNoWAL;
  const bool compaction = reason == rocksdb::BackgroundErrorReason::kCompaction;
  const absl::Status status = FromRocksdb(*error, flush ? "flushing" : compaction ? "compacting" : "writing a batch");
  const MutexLock lock(mu_);
  if (first_.ok()) first_ = status;
}

void TroubleListener::OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool* auto_recovery) { *auto_recovery = false; }

absl::Status TroubleListener::first() const {
  const MutexLock lock(mu_);
  return first_;
}

absl::Status FromRocksdb(const rocksdb::Status& status, const char* context) {
  if (status.ok()) return absl::OkStatus();
  std::string message = fmt::format("{}: {}", context, status.ToString());
  if (status.IsCorruption()) return MakeError(ErrorKind::kCorruptMetadata, std::move(message));
  if (status.IsNoSpace() && !IsOfSync(status.ToString())) return MakeError(ErrorKind::kDiskFull, std::move(message));
  return absl::InternalError(message);
}

}  // namespace cairn::namenode
