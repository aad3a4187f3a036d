#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
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
    size_t row_cache_bytes = 64 << 20;  // 0: none.
    bool scarce_space = false;          // Opening writes no tables, only what it must.
    bool simulated = false;             // Options that repeat from a seed and never wait; see tests/testing/sim_rocksdb_env.h.
  };

  virtual ~MetaStore() = default;
  // Creates an empty database, for --format: kAlreadyExists if there is one. The caller syncs the entries of its parents.
  static absl::Status Create(const Options& options, Env* env);
  // Opens it. Scans the logs and the current MANIFEST first (journal/wal_scan.h): a torn tail is cut and logged, other damage is
  // kCorruptMetadata naming file and offset.
  static absl::StatusOr<std::unique_ptr<MetaStore>> Open(const Options& options, Env* env);

  // Rewrites all tables of a database that nobody has open, as Open would open it, so that nothing is left of what was deleted; `done`
  // hears of each family. Needs as much free space again as the largest family has. Can be stopped at any moment, and begun anew.
  static absl::Status Compact(const Options& options, Env* env, absl::FunctionRef<void(Family family)> done);

  // A database that nobody changes meanwhile, to look at: takes no lock, writes nothing, leaves out a torn last record of the log.
  static absl::StatusOr<std::shared_ptr<const ReadView>> OpenForReading(const Options& options, Env* env);

  // The newest published state; holds a RocksDB snapshot while it lives: drop it within 10 s.
  virtual std::shared_ptr<const ReadView> Snapshot() const = 0;
  // The same state, read from memory only: for threads that must not wait for a disk.
  virtual std::shared_ptr<const ReadView> MemorySnapshot() const = 0;
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
  // OK, or the first failure of a write or of background work, after which the database writes nothing more; reads go on. kDiskFull if it
  // was for want of room and Reopen may mend it; anything else (a failed sync, a damaged table) needs a restart. Thread-safe.
  virtual absl::Status health() const = 0;
  // Brings the database back after a kDiskFull failure: closes it and opens it anew, as a restart would, while readers go on. What a batch
  // of unknown outcome left in the log is kept if it is whole (then applied_index() is its own), else cut; either way it is on disk before
  // a snapshot shows it. To be called from the writer's executor until it answers true. False: readers still hold snapshots of the closed
  // state; call again soon. kDiskFull: no room yet, call again later; another error is final.
  //
  // From the first call until it has answered true neither NewTransaction, Write nor Publish may be called.
  virtual absl::StatusOr<bool> Reopen() = 0;
  // A copy of the database as it stands, in `directory`, which must not exist: hard links to its tables, copies of the rest, all synced.
  // Nobody waits for it but the caller; thread-safe.
  virtual absl::Status Checkpoint(const std::string& directory) = 0;
  // Row count estimates and RocksDB figures, for metrics.
  virtual uint64_t EstimatedRows(Family family) const = 0;
};

}  // namespace cairn::namenode
