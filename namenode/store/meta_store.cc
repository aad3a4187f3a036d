#include "namenode/store/meta_store.h"

#include <atomic>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/write_batch.h>

#include "common/check.h"
#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"
#include "namenode/journal/wal_scan.h"
#include "namenode/store/keys.h"
#include "namenode/store/rocksdb_options.h"

namespace cairn::namenode {
namespace {

using rocksdb::Slice;

Slice ToSlice(std::string_view view) { return {view.data(), view.size()}; }
std::string_view ToView(const Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status ReadError(const rocksdb::Status& status, Family family) {
  return MakeError(ErrorKind::kCorruptMetadata, fmt::format("reading family {}: {}", FamilyName(family), status.ToString()));
}

// The open database: owned by the store and by every view and cursor, so that none outlives it.
struct Database {
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() {
    for (rocksdb::ColumnFamilyHandle* handle : handles)
      if (handle != nullptr) db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    if (db != nullptr) db->Close().PermitUncheckedError();
  }
  rocksdb::ColumnFamilyHandle* handle(Family family) const { return handles[static_cast<size_t>(family)]; }

  // A scan of `family` had to step over the tombstones of `count` deleted rows. Tombstones in memory are never compacted away, so if they
  // are many the family is written to a table, which its many tombstones have compacted at once (rocksdb_options.cc): the next scan of
  // that range has none to step over.
  void NoteSkipped(Family family, uint64_t count) const {
    tombstones_skipped.fetch_add(count, std::memory_order_relaxed);
    if (simulated || count < kTombstonesWorthAFlush) return;
    uint64_t deletes = 0;
    if (!db->GetIntProperty(handle(family), rocksdb::DB::Properties::kNumDeletesActiveMemTable, &deletes)) return;
    if (deletes < kTombstonesWorthAFlush) return;
    rocksdb::FlushOptions options;
    options.wait = false;
    options.allow_write_stall = true;
    db->Flush(options, handle(family)).PermitUncheckedError();  // If it fails now, a later scan asks again.
  }

  static constexpr uint64_t kTombstonesWorthAFlush = 2048;  // As many as have a table compacted.

  bool simulated = false;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;  // By family; the unused default family comes last.
  mutable std::atomic<uint64_t> tombstones_skipped{0};
};

// RocksDB counts per thread, also without being asked.
uint64_t SkippedByThisThread() { return rocksdb::get_perf_context()->internal_delete_skipped_count; }

class DatabaseCursor : public Cursor {
 public:
  DatabaseCursor(std::shared_ptr<const Database> database, std::shared_ptr<const rocksdb::Snapshot> snapshot, Family family,
                 std::string_view begin, std::string_view end)
      : database_(std::move(database)), snapshot_(std::move(snapshot)), family_(family), end_(end), end_slice_(ToSlice(end_)) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot_.get();
    if (!end_.empty()) options.iterate_upper_bound = &end_slice_;
    iterator_.reset(database_->db->NewIterator(options, database_->handle(family)));
    const uint64_t skipped = SkippedByThisThread();
    iterator_->Seek(ToSlice(begin));
    skipped_ += SkippedByThisThread() - skipped;
  }
  ~DatabaseCursor() override {
    iterator_.reset();
    if (skipped_ > 0) database_->NoteSkipped(family_, skipped_);
  }
  DatabaseCursor(const DatabaseCursor&) = delete;
  DatabaseCursor& operator=(const DatabaseCursor&) = delete;
  bool Valid() const override { return iterator_->Valid(); }
  std::string_view key() const override { return ToView(iterator_->key()); }
  std::string_view value() const override { return ToView(iterator_->value()); }
  void Next() override {
    const uint64_t skipped = SkippedByThisThread();
    iterator_->Next();
    skipped_ += SkippedByThisThread() - skipped;
  }
  absl::Status status() const override {
    const rocksdb::Status status = iterator_->status();
    return status.ok() ? absl::OkStatus() : ReadError(status, family_);
  }

 private:
  std::shared_ptr<const Database> database_;
  std::shared_ptr<const rocksdb::Snapshot> snapshot_;
  const Family family_;
  const std::string end_;
  const Slice end_slice_;
  std::unique_ptr<rocksdb::Iterator> iterator_;  // Before what it points into is gone.
  uint64_t skipped_ = 0;                         // Tombstones.
};

// One state of the database; without a snapshot the newest, for the writer, under whom nothing changes.
class DatabaseView : public ReadView {
 public:
  DatabaseView(std::shared_ptr<const Database> database, std::shared_ptr<const rocksdb::Snapshot> snapshot)
      : database_(std::move(database)), snapshot_(std::move(snapshot)) {}

  absl::StatusOr<std::optional<std::string>> Get(Family family, std::string_view key) const override {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot_.get();
    rocksdb::PinnableSlice value;
    const rocksdb::Status status = database_->db->Get(options, database_->handle(family), ToSlice(key), &value);
    if (status.IsNotFound()) return std::nullopt;
    if (!status.ok()) return ReadError(status, family);
    return std::string(ToView(value));
  }
  std::unique_ptr<Cursor> Scan(Family family, std::string_view begin, std::string_view end) const override {
    return std::make_unique<DatabaseCursor>(database_, snapshot_, family, begin, end);
  }

 private:
  std::shared_ptr<const Database> database_;
  std::shared_ptr<const rocksdb::Snapshot> snapshot_;
};

std::shared_ptr<const ReadView> TakeSnapshot(const std::shared_ptr<Database>& database) {
  std::shared_ptr<const rocksdb::Snapshot> snapshot(database->db->GetSnapshot(),
                                                    [database](const rocksdb::Snapshot* taken) { database->db->ReleaseSnapshot(taken); });
  return std::make_shared<DatabaseView>(database, std::move(snapshot));
}

class BatchBuilder : public EffectVisitor {
 public:
  explicit BatchBuilder(const Database* database) : database_(database) {}

  void Put(Family family, std::string_view key, std::string_view value) override {
    Note(batch.Put(database_->handle(family), ToSlice(key), ToSlice(value)));
  }
  void Delete(Family family, std::string_view key) override { Note(batch.Delete(database_->handle(family), ToSlice(key))); }
  void DeleteRange(Family family, std::string_view begin, std::string_view end) override {
    // RocksDB has no open end. No key of ours is as long as this, nor begins with so many 0xff bytes.
    static const std::string kBeyondAllKeys(64, '\xff');
    Note(batch.DeleteRange(database_->handle(family), ToSlice(begin), end.empty() ? Slice(kBeyondAllKeys) : ToSlice(end)));
  }

  rocksdb::WriteBatch batch;
  rocksdb::Status status;  // The first failure.

 private:
  void Note(const rocksdb::Status& result) {
    if (status.ok() && !result.ok()) status = result;
  }
  const Database* database_;
};

class RocksMetaStore : public MetaStore {
 public:
  RocksMetaStore(std::shared_ptr<Database> database, bool simulated, uint64_t applied_index)
      : simulated_(simulated), database_(std::move(database)), applied_index_(applied_index), published_(TakeSnapshot(database_)) {}

  std::shared_ptr<const ReadView> Snapshot() const override ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    return published_;
  }

  std::unique_ptr<StoreTransaction> NewTransaction() override {
    auto newest = std::make_shared<DatabaseView>(database_, nullptr);
    return std::make_unique<MetaTransaction>(std::move(newest), applied_index() + 1);
  }

  absl::Status Write(const EffectBatch& batch, bool sync) override {
    BatchBuilder builder(database_.get());
    ASSIGN_OR_RETURN(const uint64_t index, DecodeEffects(batch.bytes, builder));
    if (index != applied_index() + 1)
      return MakeError(ErrorKind::kCorruptMetadata, fmt::format("journal batch {} cannot follow batch {}", index, applied_index()));
    builder.Put(Family::kMeta, kMetaAppliedIndex, EncodeU64(index));
    RETURN_IF_ERROR(FromRocksdb(builder.status, "building a write batch"));
    rocksdb::WriteOptions options;
    options.sync = sync;
    options.no_slowdown = simulated_;
    RETURN_IF_ERROR(FromRocksdb(database_->db->Write(options, &builder.batch), "writing a batch"));
    applied_index_.store(index);
    return absl::OkStatus();
  }

  void Publish() override ABSL_LOCKS_EXCLUDED(mu_) {
    std::shared_ptr<const ReadView> next = TakeSnapshot(database_);
    {
      const MutexLock lock(mu_);
      published_.swap(next);
    }
    // The old one is let go here, if this was its last owner: releasing it takes RocksDB's lock, which must not stand behind ours.
  }

  uint64_t applied_index() const override { return applied_index_.load(); }

  absl::Status StartFlush() override {
    rocksdb::FlushOptions options;
    options.wait = false;
    options.allow_write_stall = true;  // Else it waits until a flush would cause none.
    return FromRocksdb(database_->db->Flush(options, database_->handles), "starting a flush");
  }

  uint64_t tombstones_skipped() const override { return database_->tombstones_skipped.load(std::memory_order_relaxed); }

  uint64_t EstimatedRows(Family family) const override {
    uint64_t rows = 0;
    return database_->db->GetIntProperty(database_->handle(family), rocksdb::DB::Properties::kEstimateNumKeys, &rows) ? rows : 0;
  }

 private:
  const bool simulated_;
  const std::shared_ptr<Database> database_;
  std::atomic<uint64_t> applied_index_;  // Written by the writer alone.
  mutable Mutex mu_;
  std::shared_ptr<const ReadView> published_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<std::shared_ptr<Database>> OpenDatabase(const MetaStore::Options& options, Env* env, bool create) {
  const DatabaseTuning tuning{
      .block_cache_bytes = options.block_cache_bytes, .write_buffer_bytes = options.write_buffer_bytes, .simulated = options.simulated};
  rocksdb::Options rocks = DatabaseOptions(tuning, env->rocksdb_env());
  rocks.create_if_missing = create;
  rocks.error_if_exists = create;
  rocks.create_missing_column_families = create;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (size_t i = 0; i < kFamilyCount; ++i) families.emplace_back(std::string(FamilyName(static_cast<Family>(i))), rocks);
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocks);
  auto database = std::make_shared<Database>();
  database->simulated = options.simulated;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(rocks, options.directory, families, &database->handles, &opened);
  database->db.reset(opened);
  if (!status.ok()) return Annotate(FromRocksdb(status, "opening the database"), options.directory);
  return database;
}

}  // namespace

absl::Status MetaStore::Create(const Options& options, Env* env) {
  ASSIGN_OR_RETURN(const bool exists, env->files().Exists(options.directory + "/CURRENT"));
  if (exists) return MakeError(ErrorKind::kAlreadyExists, fmt::format("{}: holds a database already", options.directory));
  RETURN_IF_ERROR(env->files().MakeDirectories(options.directory));
  RETURN_IF_ERROR(OpenDatabase(options, env, /*create=*/true).status());
  return env->files().SyncDirectory(options.directory);
}

absl::StatusOr<std::unique_ptr<MetaStore>> MetaStore::Open(const Options& options, Env* env) {
  ASSIGN_OR_RETURN(const bool exists, env->files().Exists(options.directory + "/CURRENT"));
  if (!exists) return MakeError(ErrorKind::kNotFound, fmt::format("{}: holds no database", options.directory));
  RETURN_IF_ERROR(RepairTornTails(options.directory, env->files()));
  ASSIGN_OR_RETURN(std::shared_ptr<Database> database, OpenDatabase(options, env, /*create=*/false));
  const DatabaseView view(database, nullptr);
  ASSIGN_OR_RETURN(const std::optional<std::string> row, view.Get(Family::kMeta, kMetaAppliedIndex));
  const std::optional<uint64_t> applied_index = row ? DecodeU64(*row) : 0;
  if (!applied_index)
    return MakeError(ErrorKind::kCorruptMetadata, fmt::format("{}: the applied index has {} bytes", options.directory, row->size()));
  return std::make_unique<RocksMetaStore>(std::move(database), options.simulated, *applied_index);
}

}  // namespace cairn::namenode
