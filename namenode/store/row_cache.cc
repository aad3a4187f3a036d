#include "namenode/store/row_cache.h"

#include <utility>

namespace cairn::namenode {
namespace {

constexpr size_t kEntryOverhead = 96;     // Two strings, a number, the table's slack, the allocator's: about.
constexpr size_t kMessageOverhead = 160;  // A message and what points to it, without its strings: about.
constexpr size_t kPrefixBytes = 8;        // The number that a key begins with.
constexpr size_t kShardBits = 6;

}  // namespace

RowCache::RowCache(size_t max_bytes, uint64_t applied_index) : max_generation_bytes_(max_bytes / kShards / 2), newest_(applied_index) {}

bool RowCache::Keeps(Family family) {
  switch (family) {
    case Family::kInode:
    case Family::kInodeById:
    case Family::kBlock:
    case Family::kUsage:
    case Family::kRetry: return true;
    // Read once or in ranges, or so few that RocksDB's own memory serves as well.
    case Family::kFileBlock:
    case Family::kLease:
    case Family::kWork:
    case Family::kDatanode:
    case Family::kMeta: return false;
  }
  return false;
}

size_t RowCache::Cost(std::string_view key, const Entry& entry) { return key.size() + entry.bytes + kEntryOverhead; }

RowCache::Entry RowCache::Parsed(SharedMessage message, size_t serialized_bytes, uint64_t since) {
  return Entry{.value = {}, .message = std::move(message), .since = since, .bytes = kMessageOverhead + 2 * serialized_bytes};
}

RowCache::Shard& RowCache::ShardOf(std::string_view key) {
  static_assert(kShards == 1 << kShardBits);
  // By the upper bits: where a key is its prefix, the tables tell its shard's rows apart by the lower ones of the same hash.
  return shards_[KeyHash()(key.substr(0, kPrefixBytes)) >> (64 - kShardBits)];
}

RowCache::Entry* RowCache::Touch(Shard& shard, Family family, std::string_view key, uint64_t index) {
  const auto number = static_cast<size_t>(family);
  if (const auto row = shard.young.rows[number].find(key); row != shard.young.rows[number].end())
    return row->second.since <= index ? &row->second : nullptr;
  const auto row = shard.old.rows[number].find(key);
  if (row == shard.old.rows[number].end() || row->second.since > index) return nullptr;
  Entry entry = std::move(row->second);
  shard.old.bytes -= Cost(key, entry);
  shard.old.rows[number].erase(row);
  return Insert(shard, family, key, std::move(entry));
}

std::optional<std::string> RowCache::Find(Family family, std::string_view key, uint64_t index) {
  Shard& shard = ShardOf(key);
  const MutexLock lock(shard.mu);
  const Entry* const entry = Touch(shard, family, key, index);
  if (entry == nullptr) return std::nullopt;
  std::string value = entry->message == nullptr ? entry->value : entry->message->SerializeAsString();
  Age(shard);
  return value;
}

SharedMessage RowCache::FindMessage(Family family, std::string_view key, uint64_t index, ParseRow parse) {
  Shard& shard = ShardOf(key);
  const MutexLock lock(shard.mu);
  Entry* const entry = Touch(shard, family, key, index);
  if (entry == nullptr) return nullptr;
  if (entry->message == nullptr) {
    SharedMessage message = parse(entry->value);
    if (message == nullptr) return nullptr;
    shard.young.bytes -= Cost(key, *entry);
    *entry = Parsed(std::move(message), entry->value.size(), entry->since);
    shard.young.bytes += Cost(key, *entry);
  }
  SharedMessage found = entry->message;
  Age(shard);
  return found;
}

void RowCache::Add(Family family, std::string_view key, std::string_view value, uint64_t index) {
  AddEntry(family, key, Entry{.value = std::string(value), .message = nullptr, .since = index, .bytes = value.size()});
}

void RowCache::AddMessage(Family family, std::string_view key, SharedMessage message, size_t serialized_bytes, uint64_t index) {
  AddEntry(family, key, Parsed(std::move(message), serialized_bytes, index));
}

void RowCache::AddEntry(Family family, std::string_view key, Entry entry) {
  Shard& shard = ShardOf(key);
  const MutexLock lock(shard.mu);
  // Read under the lock: a batch that begins after this finds the row here and corrects it.
  if (newest_.load() != entry.since) return;
  Insert(shard, family, key, std::move(entry));
  Age(shard);
}

std::shared_ptr<const RowGroup> RowCache::FindGroup(std::string_view number, uint64_t index) {
  Shard& shard = ShardOf(number);
  const MutexLock lock(shard.mu);
  if (const auto group = shard.young.groups.find(number); group != shard.young.groups.end())
    return group->second.since <= index ? group->second.rows : nullptr;
  const auto group = shard.old.groups.find(number);
  if (group == shard.old.groups.end() || group->second.since > index) return nullptr;
  std::shared_ptr<const RowGroup> found = group->second.rows;
  shard.old.bytes -= group->second.bytes;
  shard.young.bytes += group->second.bytes;
  shard.young.groups.insert_or_assign(number, std::move(group->second));
  shard.old.groups.erase(group);
  Age(shard);
  return found;
}

void RowCache::AddGroup(std::string_view number, std::shared_ptr<const RowGroup> group, size_t serialized_bytes, uint64_t index) {
  const size_t bytes = kEntryOverhead + (group->rows.size() * kMessageOverhead) + (2 * serialized_bytes);
  Shard& shard = ShardOf(number);
  const MutexLock lock(shard.mu);
  if (newest_.load() != index) return;  // As in AddEntry.
  EraseGroup(shard, Family::kInode, number);
  shard.young.bytes += bytes;
  shard.young.groups.emplace(number, Group{.rows = std::move(group), .since = index, .bytes = bytes});
  Age(shard);
}

void RowCache::Begin(uint64_t index) { newest_.store(index); }

void RowCache::Put(Family family, std::string_view key, std::string_view value) {
  PutEntry(family, key, Entry{.value = std::string(value), .message = nullptr, .since = newest_.load(), .bytes = value.size()});
}

void RowCache::PutMessage(Family family, std::string_view key, SharedMessage message, size_t serialized_bytes) {
  PutEntry(family, key, Parsed(std::move(message), serialized_bytes, newest_.load()));
}

void RowCache::PutEntry(Family family, std::string_view key, Entry entry) {
  if (!Keeps(family)) return;
  Shard& shard = ShardOf(key);
  const MutexLock lock(shard.mu);
  EraseGroup(shard, family, key);
  Insert(shard, family, key, std::move(entry));
  Age(shard);
}

void RowCache::Delete(Family family, std::string_view key) {
  if (!Keeps(family)) return;
  Shard& shard = ShardOf(key);
  const MutexLock lock(shard.mu);
  EraseGroup(shard, family, key);
  Erase(shard, family, key);
}

void RowCache::DeleteRange(Family family, std::string_view begin, std::string_view end) {
  if (!Keeps(family)) return;
  const auto number = static_cast<size_t>(family);
  const auto erase_from = [&](Generation& generation) {
    absl::erase_if(generation.rows[number], [&](const auto& row) {
      if (row.first < begin || (!end.empty() && row.first >= end)) return false;
      generation.bytes -= Cost(row.first, row.second);
      return true;
    });
    if (family != Family::kInode) return;
    absl::erase_if(generation.groups, [&](const auto& group) {
      if (group.first < begin.substr(0, kPrefixBytes) || (!end.empty() && group.first >= end)) return false;
      generation.bytes -= group.second.bytes;
      return true;
    });
  };
  // One number's rows, or some of them: [8 bytes..., the next number).
  std::string next(begin.substr(0, kPrefixBytes));
  for (auto byte = next.rbegin(); byte != next.rend() && ++*byte == 0; ++byte) {
  }
  const bool one_shard = begin.size() >= kPrefixBytes && !end.empty() && end <= next;
  for (Shard& shard : shards_) {
    if (one_shard && &shard != &ShardOf(begin)) continue;
    const MutexLock lock(shard.mu);
    erase_from(shard.young);
    erase_from(shard.old);
  }
}

RowCache::Entry* RowCache::Insert(Shard& shard, Family family, std::string_view key, Entry entry) {
  const auto number = static_cast<size_t>(family);
  shard.young.bytes += Cost(key, entry);
  const auto [place, is_new] = shard.young.rows[number].try_emplace(key);
  if (!is_new) {
    shard.young.bytes -= Cost(key, place->second);
  } else if (auto row = shard.old.rows[number].find(key); row != shard.old.rows[number].end()) {
    shard.old.bytes -= Cost(key, row->second);
    shard.old.rows[number].erase(row);
  }
  place->second = std::move(entry);
  return &place->second;
}

void RowCache::Age(Shard& shard) const {
  if (shard.young.bytes <= max_generation_bytes_) return;
  shard.old = std::move(shard.young);
  shard.young = Generation();
}

void RowCache::Erase(Shard& shard, Family family, std::string_view key) {
  const auto number = static_cast<size_t>(family);
  for (Generation* generation : {&shard.young, &shard.old}) {
    const auto row = generation->rows[number].find(key);
    if (row == generation->rows[number].end()) continue;
    generation->bytes -= Cost(key, row->second);
    generation->rows[number].erase(row);
  }
}

void RowCache::EraseGroup(Shard& shard, Family family, std::string_view key) {
  if (family != Family::kInode) return;
  for (Generation* generation : {&shard.young, &shard.old}) {
    if (generation->groups.empty()) continue;
    const auto group = generation->groups.find(key.substr(0, kPrefixBytes));
    if (group == generation->groups.end()) continue;
    generation->bytes -= group->second.bytes;
    generation->groups.erase(group);
  }
}

size_t RowCache::bytes() const {
  size_t bytes = 0;
  for (const Shard& shard : shards_) {
    const MutexLock lock(shard.mu);
    bytes += shard.young.bytes + shard.old.bytes;
  }
  return bytes;
}

}  // namespace cairn::namenode
