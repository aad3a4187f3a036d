#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "common/mutex.h"
#include "namenode/store/key_hash.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// The newest values of rows that were read or written lately, in front of RocksDB: a path's directories are asked for by every call, and a
// Get there costs ten times a look-up here. Bounded in bytes.
//
// Only the newest committed value of a row is ever kept, with the index of a batch since which it holds. A reader of a state before that
// index gets nothing and asks its snapshot; a reader of a state that is not the newest any more adds nothing, since what it read may be
// changed already. So a hit is what the snapshot would have answered.
//
// A row stands here as bytes until somebody asks for its message, and as that message from then on.
//
// Rows live in shards by the number that their key begins with, so that all of one directory stand together and a range delete of
// its children looks at one shard. A shard has two generations: rows go into the young one, and an old row that is asked for goes back to
// it; when the young one holds half of the bytes, the old one is dropped and it takes its place.
//
// The children of a small directory are kept a second time, as one group, so that a listing asks nothing else. A change of any of them ends
// the group.
//
// The Finds and Adds are thread-safe. The writer alone calls Begin, Put, Delete and DeleteRange, after the batch was written and before its
// state is published.
class RowCache {
 public:
  RowCache(size_t max_bytes, uint64_t applied_index);

  // Families whose rows are kept.
  static bool Keeps(Family family);

  // The row as of batch `index`, if it is here.
  std::optional<std::string> Find(Family family, std::string_view key, uint64_t index);
  // The same as a message; null if it is not here, or is no message.
  SharedMessage FindMessage(Family family, std::string_view key, uint64_t index, ParseRow parse);
  // A row as it was read from the state of batch `index`.
  void Add(Family family, std::string_view key, std::string_view value, uint64_t index);
  void AddMessage(Family family, std::string_view key, SharedMessage message, size_t serialized_bytes, uint64_t index);

  // All rows of kInode that begin with `number`, as of batch `index`; null if they are not here as a group.
  std::shared_ptr<const RowGroup> FindGroup(std::string_view number, uint64_t index);
  // Those rows as they were read from the state of batch `index`, of that many bytes.
  void AddGroup(std::string_view number, std::shared_ptr<const RowGroup> group, size_t serialized_bytes, uint64_t index);

  // Batch `index` was written; its effects follow.
  void Begin(uint64_t index);
  void Put(Family family, std::string_view key, std::string_view value);
  void PutMessage(Family family, std::string_view key, SharedMessage message, size_t serialized_bytes);
  void Delete(Family family, std::string_view key);
  void DeleteRange(Family family, std::string_view begin, std::string_view end);

  // Of keys and values with what keeping them costs, an estimate.
  size_t bytes() const;

 private:
  struct Entry {
    std::string value;      // Empty where there is a message.
    SharedMessage message;  // May be null.
    uint64_t since = 0;
    size_t bytes = 0;  // That the value or the message takes, about.
  };
  using Rows = absl::flat_hash_map<std::string, Entry, KeyHash, std::equal_to<>>;
  struct Group {
    std::shared_ptr<const RowGroup> rows;
    uint64_t since = 0;
    size_t bytes = 0;
  };
  struct Generation {
    std::array<Rows, kFamilyCount> rows;
    absl::flat_hash_map<std::string, Group, KeyHash, std::equal_to<>> groups;  // By number.
    size_t bytes = 0;
  };
  struct Shard {
    mutable Mutex mu;
    Generation young ABSL_GUARDED_BY(mu);
    Generation old ABSL_GUARDED_BY(mu);
  };
  static constexpr size_t kShards = 64;

  static size_t Cost(std::string_view key, const Entry& entry);
  static Entry Parsed(SharedMessage message, size_t serialized_bytes, uint64_t since);
  Shard& ShardOf(std::string_view key);
  void AddEntry(Family family, std::string_view key, Entry entry);
  void PutEntry(Family family, std::string_view key, Entry entry);
  // The entry as of `index`, in the young generation; null if there is none.
  static Entry* Touch(Shard& shard, Family family, std::string_view key, uint64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mu);
  static Entry* Insert(Shard& shard, Family family, std::string_view key, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mu);
  void Age(Shard& shard) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mu);
  static void Erase(Shard& shard, Family family, std::string_view key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mu);
  // The group that the row belongs to.
  static void EraseGroup(Shard& shard, Family family, std::string_view key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mu);

  const size_t max_generation_bytes_;  // Of a shard.
  std::atomic<uint64_t> newest_;       // Index of the last batch written.
  std::array<Shard, kShards> shards_;
};

}  // namespace cairn::namenode
