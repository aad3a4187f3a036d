#include "namenode/store/replica_store.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <rocksdb/write_batch.h>

#include <string_view>

#include "absl/container/btree_set.h"
#include "common/error.h"
#include "common/fault_points.h"
#include "common/mutex.h"
#include "common/status.h"
#include "namenode/store/keys.h"
#include "namenode/store/rocksdb_options.h"

namespace cairn::namenode {
namespace {

constexpr char kRowLayout = 1;
constexpr char kPositionLayout = 1;
constexpr size_t kRowBytes = 1 + 8 + 8 + 1 + 1 + 4;
constexpr uint8_t kCorruptFlag = 1;
constexpr char kIdentityKey[] = "identity";

// Which column family a write goes to; the order in which they are opened.
enum Table : uint32_t { kDefault, kReplica, kByStorage, kStream, kTableCount };
constexpr const char* kTableNames[kTableCount] = {"default", "replica", "by_storage", "stream"};

template <class T>
void AppendBigEndian(T value, std::string& to) {
  for (size_t i = sizeof(T); i-- > 0;) to.push_back(static_cast<char>(static_cast<uint8_t>(value >> (8 * i))));
}

template <class T>
T ReadBigEndian(std::string_view from, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = value << 8 | static_cast<uint8_t>(from[at + i]);
  return static_cast<T>(value);
}

std::string ReplicaKey(BlockId block, StorageNumber storage) {
  std::string key;
  AppendBigEndian<uint64_t>(block.value(), key);
  AppendBigEndian<uint32_t>(static_cast<uint32_t>(storage.value()), key);
  return key;
}

std::string ByStorageKey(StorageNumber storage, uint64_t block) {
  std::string key;
  AppendBigEndian<uint32_t>(static_cast<uint32_t>(storage.value()), key);
  AppendBigEndian<uint64_t>(block, key);
  return key;
}

std::string EncodeRow(const ReplicaRow& row) {
  std::string value(1, kRowLayout);
  AppendBigEndian<uint64_t>(row.stamp.value(), value);
  AppendBigEndian<uint64_t>(row.length_bytes, value);
  AppendBigEndian<uint8_t>(static_cast<uint8_t>(row.state), value);
  AppendBigEndian<uint8_t>(row.corrupt ? kCorruptFlag : uint8_t{0}, value);
  AppendBigEndian<uint32_t>(row.group_index, value);
  return value;
}

// In state UNSPECIFIED if it cannot be made out.
ReplicaRow DecodeRow(BlockId block, StorageNumber storage, std::string_view value) {
  ReplicaRow row;
  row.block = block;
  row.storage = storage;
  if (value.size() != kRowBytes || value[0] != kRowLayout) return row;
  row.stamp = GenerationStamp(ReadBigEndian<uint64_t>(value, 1));
  row.length_bytes = ReadBigEndian<uint64_t>(value, 9);
  row.state = static_cast<v1::ReplicaState>(ReadBigEndian<uint8_t>(value, 17));
  row.corrupt = (ReadBigEndian<uint8_t>(value, 18) & kCorruptFlag) != 0;
  row.group_index = ReadBigEndian<uint32_t>(value, 19);
  return row;
}

// Layout 1 (u8), incarnation (u64), applied (u64), then for each storage its number (u32) and floor (u64).
std::string EncodePosition(const StreamPosition& position) {
  std::string value(1, kPositionLayout);
  AppendBigEndian<uint64_t>(position.incarnation.value(), value);
  AppendBigEndian<uint64_t>(position.applied, value);
  for (const StreamPosition::Walk& walk : position.walks) {
    AppendBigEndian<uint32_t>(static_cast<uint32_t>(walk.storage.value()), value);
    AppendBigEndian<uint64_t>(walk.floor, value);
  }
  return value;
}

std::optional<StreamPosition> DecodePosition(std::string_view value) {
  if (value.size() < 17 || value[0] != kPositionLayout || (value.size() - 17) % 12 != 0) return std::nullopt;
  StreamPosition position;
  position.incarnation = Incarnation(ReadBigEndian<uint64_t>(value, 1));
  position.applied = ReadBigEndian<uint64_t>(value, 9);
  for (size_t at = 17; at < value.size(); at += 12)
    position.walks.push_back({StorageNumber(ReadBigEndian<uint32_t>(value, at)), ReadBigEndian<uint64_t>(value, at + 4)});
  return position;
}

std::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status FromRocks(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  return MakeError(ErrorKind::kCorruptMetadata, fmt::format("replica database: {}: {}", what, status.ToString()));
}

rocksdb::Options DatabaseOptions(const ReplicaStore::Options& options, Env* env) {
  rocksdb::Options result;
  result.env = env->rocksdb_env();
  result.create_if_missing = true;
  result.create_missing_column_families = true;
  // Unsynced by design: a torn tail is normal, and any prefix is a state that its own positions describe.
  result.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  result.compression = rocksdb::kNoCompression;
  result.bottommost_compression = rocksdb::kNoCompression;
  result.stats_dump_period_sec = 0;
  result.stats_persist_period_sec = 0;
  result.max_open_files = 512;
  result.info_log = options.simulated ? NoInfoLog() : ForwardingInfoLog();
  result.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  // A table of which a stretch is mostly tombstones is compacted at once.
  result.table_properties_collector_factories.push_back(rocksdb::NewCompactOnDeletionCollectorFactory(4096, 2048));
  if (options.simulated) {  // Nothing that waits for another thread, and the same file operations from the same seed.
    result.max_file_opening_threads = 1;
    result.max_subcompactions = 1;
    result.max_bgerror_resume_count = 0;
    result.avoid_flush_during_shutdown = true;
    result.allow_concurrent_memtable_write = false;
    result.enable_write_thread_adaptive_yield = false;
    result.write_buffer_size = size_t{1} << 30;
    result.skip_stats_update_on_db_open = true;
    result.skip_checking_sst_file_sizes_on_db_open = true;
  }
  return result;
}

}  // namespace

struct ReplicaStore::Batch::Impl {
  struct Change {
    Table table;
    std::string key;
    std::optional<std::string> value;  // Nothing: deleted.
  };
  std::vector<Change> changes;
};

ReplicaStore::Batch::Batch() : impl_(std::make_unique<Impl>()) {}
ReplicaStore::Batch::~Batch() = default;
ReplicaStore::Batch::Batch(Batch&&) noexcept = default;
ReplicaStore::Batch& ReplicaStore::Batch::operator=(Batch&&) noexcept = default;

void ReplicaStore::Batch::Put(const ReplicaRow& row) {
  const std::string value = EncodeRow(row);
  // Armed: a row that nobody can make out, in one table or both.
  const auto damaged = [&value] { return FaultPoint("replica_store.damage_row").ok() ? value : value.substr(1); };
  impl_->changes.push_back({kReplica, ReplicaKey(row.block, row.storage), damaged()});
  impl_->changes.push_back({kByStorage, ByStorageKey(row.storage, row.block.value()), damaged()});
}

void ReplicaStore::Batch::Delete(StorageNumber storage, BlockId block) {
  impl_->changes.push_back({kReplica, ReplicaKey(block, storage), std::nullopt});
  impl_->changes.push_back({kByStorage, ByStorageKey(storage, block.value()), std::nullopt});
}

void ReplicaStore::Batch::SetPosition(const std::string& datanode_uuid, const StreamPosition& position) {
  impl_->changes.push_back({kStream, datanode_uuid, EncodePosition(position)});
}

void ReplicaStore::Batch::ForgetPosition(const std::string& datanode_uuid) {
  impl_->changes.push_back({kStream, datanode_uuid, std::nullopt});
}

bool ReplicaStore::Batch::empty() const { return impl_->changes.empty(); }

struct ReplicaStore::Impl {
  static constexpr size_t kMostDamaged = 500;
  Mutex damaged_mu;
  absl::btree_set<std::pair<StorageNumber, BlockId>> damaged ABSL_GUARDED_BY(damaged_mu);
  std::unique_ptr<rocksdb::DB> db;                   // Constant once it is open.
  std::vector<rocksdb::ColumnFamilyHandle*> tables;  // Constant once it is open.
  bool simulated = false;                            // Constant once it is open.

  ~Impl() {
    for (rocksdb::ColumnFamilyHandle* table : tables)
      IgnoreError(FromRocks(db->DestroyColumnFamilyHandle(table), "closing"), "the database is being closed");
    if (db) IgnoreError(FromRocks(db->Close(), "closing"), "what is not written is asked for again");
  }

  static absl::StatusOr<std::unique_ptr<Impl>> Open(const ReplicaStore::Options& options, Env* env) {
    const rocksdb::Options database = DatabaseOptions(options, env);
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes);
    table.checksum = rocksdb::kXXH3;
    rocksdb::ColumnFamilyOptions family(database);
    family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const char* name : kTableNames) descriptors.emplace_back(name, family);
    auto impl = std::make_unique<Impl>();
    impl->simulated = options.simulated;
    rocksdb::DB* db = nullptr;
    const rocksdb::Status opened = rocksdb::DB::Open(database, options.directory, descriptors, &impl->tables, &db);
    RETURN_IF_ERROR(FromRocks(opened, fmt::format("opening {}", options.directory)));
    impl->db.reset(db);
    return impl;
  }

  // OK if the database is this cluster's; a new one is given its identity.
  absl::Status CheckIdentity(const std::string& wanted, bool* fresh) {
    std::string found;
    const rocksdb::Status got = db->Get({}, tables[kDefault], kIdentityKey, &found);
    *fresh = got.IsNotFound();
    if (got.IsNotFound()) return FromRocks(db->Put({}, tables[kDefault], kIdentityKey, wanted), "writing the identity");
    RETURN_IF_ERROR(FromRocks(got, "reading the identity"));
    if (found != wanted) return MakeError(ErrorKind::kInvalidArgument, "replica database of another cluster or layout");
    return absl::OkStatus();
  }

  // Up to `end`, which the caller keeps while it is used; null: to the end of the table. Beyond what is asked for there may be the
  // tombstones of a mass deletion, each of which an iterator without an end would step over.
  std::unique_ptr<rocksdb::Iterator> Iterate(Table table, const rocksdb::Slice* end, Reach reach = Reach::kDisk) const {
    rocksdb::ReadOptions read_options;
    read_options.iterate_upper_bound = end;
    if (reach == Reach::kMemory) read_options.read_tier = rocksdb::kBlockCacheTier;
    return std::unique_ptr<rocksdb::Iterator>(db->NewIterator(read_options, tables[table]));
  }
};

ReplicaStore::ReplicaStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReplicaStore::~ReplicaStore() = default;

absl::StatusOr<std::unique_ptr<ReplicaStore>> ReplicaStore::Open(const Options& options, Env* env) {
  AssertMayBlock("ReplicaStore::Open");
  RETURN_IF_ERROR(env->files().MakeDirectories(options.directory));
  std::string identity = fmt::format("1\n{}\n", options.cluster_id);
  identity += options.pool_id;
  bool fresh = false;
  absl::StatusOr<std::unique_ptr<Impl>> impl = Impl::Open(options, env);
  if (impl.ok()) {
    if (!(*impl)->CheckIdentity(identity, &fresh).ok()) impl = absl::UnavailableError("");
  }
  if (!impl.ok()) {  // Disposable: the DataNodes know better than anything that could be salvaged.
    const rocksdb::Status destroyed = rocksdb::DestroyDB(options.directory, DatabaseOptions(options, env));
    RETURN_IF_ERROR(FromRocks(destroyed, fmt::format("throwing away {}", options.directory)));
    impl = Impl::Open(options, env);
    RETURN_IF_ERROR(impl.status());
    RETURN_IF_ERROR((*impl)->CheckIdentity(identity, &fresh));
  }
  std::unique_ptr<ReplicaStore> store(new ReplicaStore(*std::move(impl)));
  store->started_empty_ = fresh;
  return store;
}

absl::StatusOr<std::vector<ReplicaRow>> ReplicaStore::ReplicasOf(BlockId block, Reach reach) const {
  if (reach == Reach::kDisk) AssertMayBlock("ReplicaStore::ReplicasOf");
  std::vector<ReplicaRow> rows;
  const std::string first = ReplicaKey(block, StorageNumber(0));
  const std::string end = PrefixEnd(EncodeU64(block.value()));
  const rocksdb::Slice end_slice(end);
  std::unique_ptr<rocksdb::Iterator> it = impl_->Iterate(kReplica, end.empty() ? nullptr : &end_slice, reach);
  for (it->Seek(first); it->Valid(); it->Next()) {
    const ReplicaRow row = DecodeRow(block, StorageNumber(ReadBigEndian<uint32_t>(View(it->key()), 8)), View(it->value()));
    if (row.state != v1::REPLICA_STATE_UNSPECIFIED) {
      rows.push_back(row);
      continue;
    }
    MutexLock lock(impl_->damaged_mu);
    if (impl_->damaged.size() < Impl::kMostDamaged) impl_->damaged.emplace(row.storage, block);
  }
  if (it->status().IsIncomplete()) return NotInMemory();
  RETURN_IF_ERROR(FromRocks(it->status(), fmt::format("reading block {}", block.value())));
  return rows;
}

absl::StatusOr<std::vector<ReplicaRow>> ReplicaStore::ReplicasOn(StorageNumber storage, uint64_t first, uint64_t end, size_t limit) const {
  AssertMayBlock("ReplicaStore::ReplicasOn");
  std::vector<ReplicaRow> rows;
  const std::string from = ByStorageKey(storage, first);
  const std::string until = ByStorageKey(storage, end);
  const rocksdb::Slice end_slice(until);
  std::unique_ptr<rocksdb::Iterator> it = impl_->Iterate(kByStorage, &end_slice);
  for (it->Seek(from); it->Valid() && rows.size() < limit; it->Next()) {
    const uint64_t block = ReadBigEndian<uint64_t>(View(it->key()), 4);
    rows.push_back(DecodeRow(BlockId(block), storage, View(it->value())));
  }
  RETURN_IF_ERROR(FromRocks(it->status(), fmt::format("reading storage {}", storage.value())));
  return rows;
}

std::vector<std::pair<StorageNumber, BlockId>> ReplicaStore::TakeDamaged() {
  MutexLock lock(impl_->damaged_mu);
  std::vector<std::pair<StorageNumber, BlockId>> taken(impl_->damaged.begin(), impl_->damaged.end());
  impl_->damaged.clear();
  return taken;
}

absl::StatusOr<std::vector<BlockId>> ReplicaStore::BlocksFrom(BlockId from, size_t limit) const {
  AssertMayBlock("ReplicaStore::BlocksFrom");
  std::vector<BlockId> blocks;
  std::unique_ptr<rocksdb::Iterator> it = impl_->Iterate(kReplica, nullptr);
  for (it->Seek(ReplicaKey(from, StorageNumber(0))); it->Valid(); it->Next()) {
    const BlockId block(ReadBigEndian<uint64_t>(View(it->key()), 0));
    if (!blocks.empty() && blocks.back() == block) continue;
    if (blocks.size() == limit) break;
    blocks.push_back(block);
  }
  RETURN_IF_ERROR(FromRocks(it->status(), "scanning blocks"));
  return blocks;
}

absl::StatusOr<std::optional<StreamPosition>> ReplicaStore::PositionOf(const std::string& datanode_uuid) const {
  AssertMayBlock("ReplicaStore::PositionOf");
  std::string value;
  const rocksdb::Status got = impl_->db->Get({}, impl_->tables[kStream], datanode_uuid, &value);
  if (got.IsNotFound()) return std::nullopt;
  RETURN_IF_ERROR(FromRocks(got, fmt::format("reading the stream position of {}", datanode_uuid)));
  return DecodePosition(value);
}

absl::Status ReplicaStore::Write(Batch batch) {
  AssertMayBlock("ReplicaStore::Write");
  rocksdb::WriteBatch changes;
  for (const Batch::Impl::Change& change : batch.impl_->changes) {
    rocksdb::ColumnFamilyHandle* table = impl_->tables[change.table];
    const rocksdb::Status added = change.value ? changes.Put(table, change.key, *change.value) : changes.Delete(table, change.key);
    RETURN_IF_ERROR(FromRocks(added, "making a batch"));
  }
  rocksdb::WriteOptions options;
  options.no_slowdown = impl_->simulated;
  return FromRocks(impl_->db->Write(options, &changes), "writing");
}

absl::Status ReplicaStore::Sync() {
  AssertMayBlock("ReplicaStore::Sync");
  return FromRocks(impl_->db->SyncWAL(), "syncing");
}

}  // namespace cairn::namenode
