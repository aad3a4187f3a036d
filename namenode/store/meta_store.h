#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/env.h"
#include "namenode/store/effect_batch.h"
#include "namenode/store/meta_transaction.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// The namespace's RocksDB. Readers take the published snapshot, which a commit replaces; they never wait for the writer.
// Thread-safe, except that transactions and commits belong to the writer's executor.
class MetaStore {
 public:
  struct Options {
    std::string directory;  // Of the database itself ("<namenode dir>/namespace").
    size_t block_cache_bytes = 256 << 20;
    size_t write_buffer_bytes = 64 << 20;
    bool simulated = false;  // Options that repeat from a seed and never wait; see tests/testing/sim_rocksdb_env.h.
  };

  virtual ~MetaStore() = default;
  // Creates an empty database, for --format: kAlreadyExists if there is one. The caller syncs the entries of its parents.
  static absl::Status Create(const Options& options, Env* env);
  // Opens it. Scans the logs and the current MANIFEST first (journal/wal_scan.h): a torn tail is cut and logged, other damage is
  // kCorruptMetadata naming file and offset.
  static absl::StatusOr<std::unique_ptr<MetaStore>> Open(const Options& options, Env* env);

  // The newest published state; holds a RocksDB snapshot while it lives: drop it within 10 s.
  virtual std::shared_ptr<const ReadView> Snapshot() const = 0;
  virtual std::unique_ptr<StoreTransaction> NewTransaction() = 0;
  // Writes a batch, with a sync of the write-ahead log if `sync`. After an error the state on disk is unknown, except for one that is
  // kCorruptMetadata because the batch cannot be read or is not the next one: then nothing was written.
  virtual absl::Status Write(const EffectBatch& batch, bool sync) = 0;
  // Makes what is written visible to Snapshot().
  virtual void Publish() = 0;
  // Of the last batch written.
  virtual uint64_t applied_index() const = 0;
  // Starts writing all families from memory to tables, and does not wait for it. For simulations, which flush by counts of their own.
  virtual absl::Status StartFlush() = 0;
  // Tombstones of deleted rows that scans had to step over, the writer's and readers', since it was opened.
  virtual uint64_t tombstones_skipped() const = 0;
  // Row count estimates and RocksDB figures, for metrics.
  virtual uint64_t EstimatedRows(Family family) const = 0;
};

}  // namespace cairn::namenode
