#include "namenode/store/meta_store.h"

#include <atomic>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include "common/check.h"
#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"
#include "namenode/journal/wal_scan.h"
#include "namenode/store/keys.h"
#include "namenode/store/rocksdb_options.h"
#include "namenode/store/row_cache.h"

namespace cairn::namenode {
namespace {

using rocksdb::Slice;

Slice ToSlice(std::string_view view) { return {view.data(), view.size()}; }
std::string_view ToView(const Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status ReadError(const rocksdb::Status& status, Family family) {
  if (status.IsIncomplete()) return NotInMemory();  // Only where memory alone was asked.
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
    db.reset();
    closed->store(true);
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
  std::shared_ptr<TroubleListener> trouble = std::make_shared<TroubleListener>();
  std::shared_ptr<std::atomic<bool>> closed = std::make_shared<std::atomic<bool>>(false);  // Outlives it: set last.
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;  // By family; the unused default family comes last.
  mutable std::atomic<uint64_t> tombstones_skipped{0};
  std::unique_ptr<RowCache> cache;  // May be null; fixed once the store is open.
};

constexpr uint64_t kTombstonesInMemory = 256;

// RocksDB counts per thread, also without being asked.
uint64_t SkippedByThisThread() { return rocksdb::get_perf_context()->internal_delete_skipped_count; }

class DatabaseCursor : public Cursor {
 public:
  DatabaseCursor(std::shared_ptr<const Database> database, std::shared_ptr<const rocksdb::Snapshot> snapshot, Family family,
                 rocksdb::ReadTier tier, std::string_view begin, std::string_view end)
      : database_(std::move(database)), snapshot_(std::move(snapshot)), family_(family), end_(end), end_slice_(ToSlice(end_)) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot_.get();
    options.read_tier = tier;
    // Who must not wait for a disk must not step over a mass of tombstones either.
    if (tier == rocksdb::kBlockCacheTier) options.max_skippable_internal_keys = kTombstonesInMemory;
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

// One state of the database, that of batch `index`; without a snapshot the newest, for the writer, under whom nothing changes.
class DatabaseView : public ReadView {
 public:
  DatabaseView(std::shared_ptr<const Database> database, std::shared_ptr<const rocksdb::Snapshot> snapshot, uint64_t index,
               rocksdb::ReadTier tier = rocksdb::kReadAllTier)
      : database_(std::move(database)), snapshot_(std::move(snapshot)), index_(index), tier_(tier) {}

  absl::StatusOr<std::optional<std::string>> Get(Family family, std::string_view key) const override {
    RowCache* const cache = RowCache::Keeps(family) ? database_->cache.get() : nullptr;
    if (cache != nullptr) {
      if (std::optional<std::string> row = cache->Find(family, key, index_)) return row;
    }
    rocksdb::PinnableSlice value;
    ASSIGN_OR_RETURN(const bool found, Read(family, key, &value));
    if (!found) return std::nullopt;
    if (cache != nullptr) cache->Add(family, key, ToView(value), index_);
    return std::string(ToView(value));
  }
  absl::StatusOr<SharedMessage> GetMessage(Family family, std::string_view key, ParseRow parse) const override {
    RowCache* const cache = RowCache::Keeps(family) ? database_->cache.get() : nullptr;
    if (cache != nullptr) {
      if (SharedMessage row = cache->FindMessage(family, key, index_, parse)) return row;
    }
    rocksdb::PinnableSlice value;
    ASSIGN_OR_RETURN(const bool found, Read(family, key, &value));
    if (!found) return nullptr;
    SharedMessage message = parse(ToView(value));
    if (message == nullptr) return CorruptRow(family, key, "does not parse");
    if (cache != nullptr) cache->AddMessage(family, key, message, value.size(), index_);
    return message;
  }
  absl::StatusOr<std::shared_ptr<const RowGroup>> GetGroup(std::string_view number, ParseRow parse, size_t most) const override {
    RowCache* const cache = database_->cache.get();
    if (cache == nullptr) return nullptr;
    if (std::shared_ptr<const RowGroup> group = cache->FindGroup(number, index_)) return group;
    auto group = std::make_shared<RowGroup>();
    size_t bytes = 0;
    DatabaseCursor cursor(database_, snapshot_, Family::kInode, tier_, number, PrefixEnd(std::string(number)));
    for (; cursor.Valid(); cursor.Next()) {
      if (group->rows.size() == most) return nullptr;
      SharedMessage message = parse(cursor.value());
      if (message == nullptr) return CorruptRow(Family::kInode, cursor.key(), "does not parse");
      bytes += cursor.key().size() + cursor.value().size();
      group->rows.emplace_back(cursor.key(), std::move(message));
    }
    RETURN_IF_ERROR(cursor.status());
    cache->AddGroup(number, group, bytes, index_);
    return group;
  }
  std::unique_ptr<Cursor> Scan(Family family, std::string_view begin, std::string_view end) const override {
    return std::make_unique<DatabaseCursor>(database_, snapshot_, family, tier_, begin, end);
  }

 private:
  // Past the cache; false if there is no such row.
  absl::StatusOr<bool> Read(Family family, std::string_view key, rocksdb::PinnableSlice* value) const {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot_.get();
    options.read_tier = tier_;
    const rocksdb::Status status = database_->db->Get(options, database_->handle(family), ToSlice(key), value);
    if (status.IsNotFound()) return false;
    if (!status.ok()) return ReadError(status, family);
    return true;
  }

  std::shared_ptr<const Database> database_;
  std::shared_ptr<const rocksdb::Snapshot> snapshot_;
  const uint64_t index_;
  const rocksdb::ReadTier tier_;
};

// What readers take: one state, to be read from memory and disk or from memory alone.
struct PublishedState {
  std::shared_ptr<const ReadView> whole;
  std::shared_ptr<const ReadView> memory;
};

PublishedState TakeSnapshot(const std::shared_ptr<Database>& database, uint64_t index) {
  std::shared_ptr<const rocksdb::Snapshot> snapshot(database->db->GetSnapshot(),
                                                    [database](const rocksdb::Snapshot* taken) { database->db->ReleaseSnapshot(taken); });
  return {.whole = std::make_shared<DatabaseView>(database, snapshot, index),
          .memory = std::make_shared<DatabaseView>(database, snapshot, index, rocksdb::kBlockCacheTier)};
}

// Brings the cache up to a batch that was written.
class CacheUpdate : public EffectVisitor {
 public:
  CacheUpdate(RowCache* cache, const std::vector<SharedMessage>& messages) : cache_(cache), messages_(messages) {}
  void Put(Family family, std::string_view key, std::string_view value) override {
    const size_t place = next_++;
    if (place < messages_.size() && messages_[place] != nullptr) {
      cache_->PutMessage(family, key, messages_[place], value.size());
    } else {
      cache_->Put(family, key, value);
    }
  }
  void Delete(Family family, std::string_view key) override { cache_->Delete(family, key); }
  void DeleteRange(Family family, std::string_view begin, std::string_view end) override { cache_->DeleteRange(family, begin, end); }

 private:
  RowCache* cache_;
  const std::vector<SharedMessage>& messages_;
  size_t next_ = 0;
};

// Ranges are directories' children: they begin where no row is, at a directory's number alone.
bool MayBeginARange(Family family, std::string_view key) { return family == Family::kInode && key.size() == EncodeU64(0).size(); }

// A batch's rows come in the order of their keys, so the search in the memtable for one begins where the last one went. RocksDB 7.8 takes
// the places of rows and of ranges for each other where both are kept: ranges have none.
class PlaceOfLastRow : public rocksdb::SliceTransform {
 public:
  explicit PlaceOfLastRow(Family family) : family_(family) {}
  const char* Name() const override { return "cairn.PlaceOfLastRow"; }
  Slice Transform(const Slice&) const override { return {}; }  // One place a family.
  bool InDomain(const Slice& key) const override { return !MayBeginARange(family_, ToView(key)); }

 private:
  const Family family_;
};

class BatchBuilder : public EffectVisitor {
 public:
  explicit BatchBuilder(const Database* database) : database_(database) {}

  void Put(Family family, std::string_view key, std::string_view value) override {
    Note(batch.Put(database_->handle(family), ToSlice(key), ToSlice(value)));
  }
  void Delete(Family family, std::string_view key) override { Note(batch.Delete(database_->handle(family), ToSlice(key))); }
  void DeleteRange(Family family, std::string_view begin, std::string_view end) override {
    CAIRN_CHECK(MayBeginARange(family, begin), "a range that does not begin at a directory");
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

enum class OpenAs { kNew, kOwner, kReader };  // A reader takes no lock and writes nothing.

absl::StatusOr<std::shared_ptr<Database>> OpenDatabase(const MetaStore::Options& options, Env* env, OpenAs as) {
  auto database = std::make_shared<Database>();
  database->simulated = options.simulated;
  const DatabaseTuning tuning{.block_cache_bytes = options.block_cache_bytes,
                              .write_buffer_bytes = options.write_buffer_bytes,
                              .simulated = options.simulated,
                              .scarce_space = options.scarce_space,
                              .trouble = database->trouble};
  rocksdb::Options rocks = DatabaseOptions(tuning, env->rocksdb_env());
  rocks.create_if_missing = as == OpenAs::kNew;
  rocks.error_if_exists = as == OpenAs::kNew;
  rocks.create_missing_column_families = as == OpenAs::kNew;
  if (as == OpenAs::kReader) {
    rocks.info_log = NoInfoLog();
    rocks.max_open_files = -1;  // All tables are opened now: the owner may delete them while this is read.
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const auto family = static_cast<Family>(i);
    families.emplace_back(std::string(FamilyName(family)), rocks);
    families.back().options.memtable_insert_with_hint_prefix_extractor = std::make_shared<PlaceOfLastRow>(family);
  }
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocks);
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = as == OpenAs::kReader
                                     ? rocksdb::DB::OpenForReadOnly(rocks, options.directory, families, &database->handles, &opened)
                                     : rocksdb::DB::Open(rocks, options.directory, families, &database->handles, &opened);
  database->db.reset(opened);
  if (!status.ok()) return Annotate(FromRocksdb(status, "opening the database"), options.directory);
  return database;
}

absl::StatusOr<uint64_t> AppliedIndexOf(const std::shared_ptr<Database>& database, const std::string& directory) {
  const DatabaseView view(database, nullptr, 0);
  ASSIGN_OR_RETURN(const std::optional<std::string> row, view.Get(Family::kMeta, kMetaAppliedIndex));
  const std::optional<uint64_t> applied_index = row ? DecodeU64(*row) : 0;
  if (!applied_index)
    return MakeError(ErrorKind::kCorruptMetadata, fmt::format("{}: the applied index has {} bytes", directory, row->size()));
  return *applied_index;
}

void MakeCache(const MetaStore::Options& options, uint64_t applied_index, Database* database) {
  if (options.row_cache_bytes > 0) database->cache = std::make_unique<RowCache>(options.row_cache_bytes, applied_index);
}

class RocksMetaStore : public MetaStore {
 public:
  RocksMetaStore(const Options& options, Env* env, std::shared_ptr<Database> database, uint64_t applied_index)
      : options_(options),
        env_(env),
        applied_index_(applied_index),
        database_(std::move(database)),
        published_(TakeSnapshot(database_, applied_index)) {}

  std::shared_ptr<const ReadView> Snapshot() const override ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    return published_.whole;
  }
  std::shared_ptr<const ReadView> MemorySnapshot() const override ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    return published_.memory;
  }

  std::unique_ptr<StoreTransaction> NewTransaction() override {
    auto newest = std::make_shared<DatabaseView>(database(), nullptr, applied_index());
    return std::make_unique<MetaTransaction>(std::move(newest), applied_index() + 1);
  }

  absl::Status Write(const EffectBatch& batch, bool sync) override {
    const std::shared_ptr<Database> database = this->database();
    BatchBuilder builder(database.get());
    ASSIGN_OR_RETURN(const uint64_t index, DecodeEffects(batch.bytes, builder));
    if (index != applied_index() + 1)
      return MakeError(ErrorKind::kCorruptMetadata, fmt::format("journal batch {} cannot follow batch {}", index, applied_index()));
    builder.Put(Family::kMeta, kMetaAppliedIndex, EncodeU64(index));
    RETURN_IF_ERROR(FromRocksdb(builder.status, "building a write batch"));
    rocksdb::WriteOptions options;
    options.sync = sync;
    options.no_slowdown = options_.simulated;
    RETURN_IF_ERROR(FromRocksdb(database->db->Write(options, &builder.batch), "writing a batch"));
    if (database->cache != nullptr) {
      database->cache->Begin(index);
      CacheUpdate update(database->cache.get(), batch.messages);
      RETURN_IF_ERROR(DecodeEffects(batch.bytes, update).status());
    }
    applied_index_.store(index);
    return absl::OkStatus();
  }

  void Publish() override { Show(database()); }

  uint64_t applied_index() const override { return applied_index_.load(); }

  absl::Status StartFlush() override {
    rocksdb::FlushOptions options;
    options.wait = false;
    options.allow_write_stall = true;  // Else it waits until a flush would cause none.
    const std::shared_ptr<Database> database = this->database();
    return FromRocksdb(database->db->Flush(options, database->handles), "starting a flush");
  }

  absl::Status health() const override { return database()->trouble->first(); }

  absl::StatusOr<bool> Reopen() override {
    if (!reopening_) {
      // The log can be trusted, since no sync of it failed; but its end may still be in memory only.
      RETURN_IF_ERROR(SyncNewestLog(options_.directory, env_->files()));
      // A compaction that ends beside it deletes tables that the reader has just read of, and is about to open.
      if (!options_.simulated) rocksdb::CancelAllBackgroundWork(database()->db.get(), /*wait=*/true);
      ASSIGN_OR_RETURN(std::shared_ptr<Database> reader, OpenDatabase(options_, env_, OpenAs::kReader));
      closed_ = database()->closed;
      Show(std::move(reader));
      reopening_ = true;
    }
    if (!closed_->load()) return false;
    RETURN_IF_ERROR(RepairTornTails(options_.directory, env_->files()));
    ASSIGN_OR_RETURN(std::shared_ptr<Database> owner, OpenDatabase(options_, env_, OpenAs::kOwner));
    ASSIGN_OR_RETURN(const uint64_t index, AppliedIndexOf(owner, options_.directory));
    MakeCache(options_, index, owner.get());
    applied_index_.store(index);
    Show(std::move(owner));
    reopening_ = false;
    return true;
  }

  absl::Status Checkpoint(const std::string& directory) override {
    const std::shared_ptr<Database> database = this->database();
    rocksdb::Checkpoint* made = nullptr;
    RETURN_IF_ERROR(FromRocksdb(rocksdb::Checkpoint::Create(database->db.get(), &made), "preparing a checkpoint"));
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
    // Never flushed for it: what is in memory is in the log, whose newest file is copied.
    return FromRocksdb(checkpoint->CreateCheckpoint(directory, UINT64_MAX), "making a checkpoint");
  }

  uint64_t tombstones_skipped() const override { return database()->tombstones_skipped.load(std::memory_order_relaxed); }

  uint64_t EstimatedRows(Family family) const override {
    uint64_t rows = 0;
    const std::shared_ptr<Database> database = this->database();
    return database->db->GetIntProperty(database->handle(family), rocksdb::DB::Properties::kEstimateNumKeys, &rows) ? rows : 0;
  }

 private:
  std::shared_ptr<Database> database() const ABSL_LOCKS_EXCLUDED(mu_) {
    const MutexLock lock(mu_);
    return database_;
  }

  // Publishes the newest state of `database`, which is the one to use from now on.
  void Show(std::shared_ptr<Database> database) ABSL_LOCKS_EXCLUDED(mu_) {
    PublishedState next = TakeSnapshot(database, applied_index());
    {
      const MutexLock lock(mu_);
      std::swap(published_, next);
      database_.swap(database);
    }
    // The old ones are let go here, if this was their last owner: releasing them takes RocksDB's lock, which must not stand behind ours.
  }

  const Options options_;
  Env* const env_;
  std::atomic<uint64_t> applied_index_;  // Written by the writer alone.
  // The writer's executor's: whether Reopen has begun, and whether the last reader of what it closes has let go.
  bool reopening_ = false;
  std::shared_ptr<const std::atomic<bool>> closed_;
  mutable Mutex mu_;
  std::shared_ptr<Database> database_ ABSL_GUARDED_BY(mu_);
  PublishedState published_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::Status MetaStore::Create(const Options& options, Env* env) {
  ASSIGN_OR_RETURN(const bool exists, env->files().Exists(options.directory + "/CURRENT"));
  if (exists) return MakeError(ErrorKind::kAlreadyExists, fmt::format("{}: holds a database already", options.directory));
  RETURN_IF_ERROR(env->files().MakeDirectories(options.directory));
  RETURN_IF_ERROR(OpenDatabase(options, env, OpenAs::kNew).status());
  return env->files().SyncDirectory(options.directory);
}

absl::Status MetaStore::Compact(const Options& options, Env* env, absl::FunctionRef<void(Family family)> done) {
  ASSIGN_OR_RETURN(const bool exists, env->files().Exists(options.directory + "/CURRENT"));
  if (!exists) return MakeError(ErrorKind::kNotFound, fmt::format("{}: holds no database", options.directory));
  RETURN_IF_ERROR(RepairTornTails(options.directory, env->files()));
  ASSIGN_OR_RETURN(const std::shared_ptr<Database> database, OpenDatabase(options, env, OpenAs::kOwner));
  rocksdb::CompactRangeOptions whole;
  whole.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const auto family = static_cast<Family>(i);
    const rocksdb::Status status = database->db->CompactRange(whole, database->handle(family), nullptr, nullptr);
    RETURN_IF_ERROR(FromRocksdb(status, "compacting"));
    done(family);
  }
  return database->trouble->first();
}

absl::StatusOr<std::shared_ptr<const ReadView>> MetaStore::OpenForReading(const Options& options, Env* env) {
  ASSIGN_OR_RETURN(const bool exists, env->files().Exists(options.directory + "/CURRENT"));
  if (!exists) return MakeError(ErrorKind::kNotFound, fmt::format("{}: holds no database", options.directory));
  ASSIGN_OR_RETURN(const std::shared_ptr<Database> database, OpenDatabase(options, env, OpenAs::kReader));
  return TakeSnapshot(database, 0).whole;
}

absl::StatusOr<std::unique_ptr<MetaStore>> MetaStore::Open(const Options& options, Env* env) {
  ASSIGN_OR_RETURN(const bool exists, env->files().Exists(options.directory + "/CURRENT"));
  if (!exists) return MakeError(ErrorKind::kNotFound, fmt::format("{}: holds no database", options.directory));
  RETURN_IF_ERROR(RepairTornTails(options.directory, env->files()));
  ASSIGN_OR_RETURN(std::shared_ptr<Database> database, OpenDatabase(options, env, OpenAs::kOwner));
  ASSIGN_OR_RETURN(const uint64_t applied_index, AppliedIndexOf(database, options.directory));
  MakeCache(options, applied_index, database.get());
  return std::make_unique<RocksMetaStore>(options, env, std::move(database), applied_index);
}

}  // namespace cairn::namenode
