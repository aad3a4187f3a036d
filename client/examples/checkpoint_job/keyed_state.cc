#include "keyed_state.h"

#include <algorithm>
#include <cstring>

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>

namespace {

absl::Status FromRocks(const rocksdb::Status& status) {
  return status.ok() ? absl::OkStatus() : absl::InternalError("state: " + status.ToString());
}

std::string KeyOf(std::string_view word, std::string_view file) {
  std::string key(word);
  key += '\0';
  key += file;
  return key;
}

std::string Encode(const Occurrences& found) { return {reinterpret_cast<const char*>(&found), sizeof found}; }

absl::StatusOr<Occurrences> Decode(const rocksdb::Slice& value) {
  Occurrences found;
  if (value.size() != sizeof found) return absl::DataLossError("state: a value has another size");
  std::memcpy(&found, value.data(), sizeof found);
  return found;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeyedState>> KeyedState::Open(const std::string& directory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;  // Bytes are what this job is about.
  options.write_buffer_size = 64 << 20;
  options.level0_file_num_compaction_trigger = 2;
  options.max_bytes_for_level_base = 512 << 20;
  options.target_file_size_base = 192 << 20;  // Some files are larger than a block of 128 MiB.
  options.max_background_jobs = 2;
  rocksdb::BlockBasedTableOptions table;
  table.block_restart_interval = 1;  // Keys whole: no prefix compression either.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.block_cache = rocksdb::NewLRUCache(64 << 20);
  table.checksum = rocksdb::kXXH3;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* db = nullptr;
  if (absl::Status opened = FromRocks(rocksdb::DB::Open(options, directory, &db)); !opened.ok()) return opened;
  return std::unique_ptr<KeyedState>(new KeyedState(std::unique_ptr<rocksdb::DB>(db)));
}

KeyedState::KeyedState(std::unique_ptr<rocksdb::DB> db) : db_(std::move(db)) {}
KeyedState::~KeyedState() = default;

absl::Status KeyedState::Add(std::string_view word, std::string_view file, Occurrences found) {
  const std::string key = KeyOf(word, file);
  rocksdb::PinnableSlice old;
  const rocksdb::Status got = db_->Get(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), key, &old);
  if (got.ok()) {
    absl::StatusOr<Occurrences> before = Decode(old);
    if (!before.ok()) return before.status();
    found.count += before->count;
    found.first_offset = std::min(found.first_offset, before->first_offset);
    found.last_offset = std::max(found.last_offset, before->last_offset);
  } else if (!got.IsNotFound()) {
    return FromRocks(got);
  }
  rocksdb::WriteOptions write;
  write.disableWAL = true;  // Durability comes from checkpoints, as in a stream processor.
  return FromRocks(db_->Put(write, key, Encode(found)));
}

absl::Status KeyedState::ForEach(const std::function<void(std::string_view, std::string_view, uint64_t)>& each) {
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string_view key(it->key().data(), it->key().size());
    const size_t separator = key.find('\0');
    if (separator == std::string_view::npos) return absl::DataLossError("state: a key has no separator");
    absl::StatusOr<Occurrences> found = Decode(it->value());
    if (!found.ok()) return found.status();
    each(key.substr(0, separator), key.substr(separator + 1), found->count);
  }
  return FromRocks(it->status());
}

absl::StatusOr<std::vector<std::string>> KeyedState::SnapshotTo(const std::string& directory) {
  rocksdb::Checkpoint* made = nullptr;
  if (absl::Status status = FromRocks(rocksdb::Checkpoint::Create(db_.get(), &made)); !status.ok()) return status;
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (absl::Status status = FromRocks(checkpoint->CreateCheckpoint(directory, 0)); !status.ok()) return status;
  std::vector<std::string> names;
  if (absl::Status status = FromRocks(rocksdb::Env::Default()->GetChildren(directory, &names)); !status.ok()) return status;
  return names;
}
