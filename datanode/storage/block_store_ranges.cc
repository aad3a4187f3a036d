// Range statements and marks: how FileBlockStore tells what it holds, in one order with its changes.

#include <xxhash.h>

#include <algorithm>
#include <limits>

#include "datanode/storage/file_block_store.h"

namespace cairn::datanode {
namespace {

constexpr size_t kMaxRangeReplicas = 1024;
constexpr uint64_t kEndOfIds = std::numeric_limits<uint64_t>::max();

void AppendBigEndian(std::string& out, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(static_cast<unsigned char>(value >> shift)));
}

v1::ReplicaEntry EntryOf(BlockId id, const ReplicaRecord& record) {
  v1::ReplicaEntry entry;
  entry.set_block_id(id.value());
  entry.set_generation_stamp(record.stamp().value());
  entry.set_length_bytes(record.length());
  entry.set_state(static_cast<v1::ReplicaState>(record.state()));
  entry.set_corrupt(record.corrupt());
  return entry;
}

void AppendRange(Volume* volume, v1::ReportRange range) {
  v1::ReportEvent event;
  event.set_type(v1::RANGE);
  event.set_storage_uuid(volume->storage_uuid());
  *event.mutable_range() = std::move(range);
  volume->events().Append(std::move(event));
}

// Numbers a statement about the highest ids below `end_id` and not below `lowest`, as many as one statement holds. The caller holds the
// shard's lock. Returns the first id that it covers.
uint64_t StateRange(Volume* volume, const ReplicaIndex& replicas, uint64_t lowest, uint64_t end_id, uint64_t walk, bool expanded) {
  std::vector<ReplicaIndex::const_iterator> members;
  auto at = replicas.lower_bound(BlockId(end_id));
  uint64_t first = lowest;
  while (at != replicas.begin()) {
    --at;
    if (at->first.value() < lowest) break;
    if (!at->second.reported()) continue;
    if (members.size() == kMaxRangeReplicas) {
      first = members.back()->first.value();
      break;
    }
    members.push_back(at);
  }
  std::reverse(members.begin(), members.end());
  v1::ReportRange range;
  range.set_first_id(first);
  range.set_end_id(end_id);
  range.set_walk(walk);
  range.set_expanded(expanded);
  range.set_last(first == 0);
  std::string covered;
  uint32_t finalized = 0;
  for (const auto& member : members) {
    const auto& [id, record] = *member;
    if (!record.in_digest()) {
      *range.add_others() = EntryOf(id, record);
      continue;
    }
    ++finalized;
    AppendBigEndian(covered, id.value());
    AppendBigEndian(covered, record.stamp().value());
    AppendBigEndian(covered, record.length());
    if (expanded) *range.add_entries() = EntryOf(id, record);
  }
  range.set_finalized(finalized);
  range.set_digest(XXH3_64bits(covered.data(), covered.size()));
  AppendRange(volume, std::move(range));
  return first;
}

}  // namespace

void FileBlockStore::MarkEpoch(Epoch epoch) {
  // Whoever decided something by an older epoch did so under one of these locks: after each was taken once, its event has its number.
  for (const auto& volume : volumes_) {
    MutexLock lock(volume->shard().mu);
  }
  v1::ReportEvent event;
  event.set_type(v1::EPOCH_MARK);
  event.set_epoch(epoch.value());
  events_->Append(std::move(event));
}

uint64_t FileBlockStore::WalkStep(const std::string& storage_uuid, uint64_t end_id, uint64_t walk) {
  Volume* volume = VolumeOf(storage_uuid);
  if (volume == nullptr) {
    // One that this process never had has failed: that is what the NameNode takes it for as long as nobody names it. It may just have come.
    MutexLock lock(change_mu_);
    volume = VolumeOf(storage_uuid);
    if (volume == nullptr) {
      events_->AppendState(storage_uuid, removed_.contains(storage_uuid) ? v1::REMOVED : v1::FAILED);
      return 0;
    }
  }
  ReplicaShard& shard = volume->shard();
  MutexLock lock(shard.mu);
  if (volume->failed()) {  // Asked under the lock: a volume that is taken out is empty before anyone can look.
    // One that was retired since it was found has told its REMOVED itself, or gives its place to another, which tells of it.
    if (!volume->retired()) events_->AppendState(storage_uuid, v1::FAILED);
    return 0;
  }
  uint64_t lowest = 0;
  if (end_id == kEndOfIds && !shard.replicas.empty()) lowest = shard.replicas.rbegin()->first.value() + 1;
  return StateRange(volume, shard.replicas, lowest, end_id, walk, /*expanded=*/false);
}

void FileBlockStore::ExpandRange(const std::string& storage_uuid, uint64_t first_id, uint64_t end_id, uint64_t walk) {
  Volume* volume = VolumeOf(storage_uuid);
  if (volume == nullptr || first_id >= end_id) return;
  // More than one statement only if the interval has filled up since it was stated.
  for (uint64_t end = end_id; end > first_id;) {
    MutexLock lock(volume->shard().mu);
    if (volume->failed()) return;
    end = StateRange(volume, volume->shard().replicas, first_id, end, walk, /*expanded=*/true);
  }
}

}  // namespace cairn::datanode
