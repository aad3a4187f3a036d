#include "tests/bench/remembered_store.h"

#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/error.h"

namespace cairn::bench {
namespace {

constexpr uint64_t kEndOfIds = std::numeric_limits<uint64_t>::max();
constexpr size_t kMostInARange = 1024;

}  // namespace

RememberedStore::RememberedStore(std::string datanode_uuid, std::string storage_uuid, Replicas replicas)
    : storage_uuid_(std::move(storage_uuid)), replicas_(replicas), held_(replicas.count, true), count_(replicas.count) {
  identity_.datanode_uuid = std::move(datanode_uuid);
}

void RememberedStore::SetEvents(datanode::EventLog* events) {
  const MutexLock lock(mu_);
  events_ = events;
}

uint64_t RememberedStore::ranges() const {
  const MutexLock lock(mu_);
  return ranges_;
}

uint64_t RememberedStore::PlaceOf(uint64_t id) const {
  if (id <= replicas_.first.value()) return 0;
  return std::min(replicas_.count, (id - replicas_.first.value() + kBlockIdStep - 1) / kBlockIdStep);
}

uint64_t RememberedStore::IdAt(uint64_t place) const { return replicas_.first.value() + place * kBlockIdStep; }

v1::ReplicaEntry RememberedStore::EntryAt(uint64_t place) const {
  v1::ReplicaEntry entry;
  entry.set_block_id(IdAt(place));
  entry.set_generation_stamp(replicas_.first_stamp.value() + place);
  entry.set_length_bytes(replicas_.length);
  entry.set_state(v1::FINALIZED);
  return entry;
}

v1::ReportEvent RememberedStore::NewEvent(v1::ReportEventType type) const {
  v1::ReportEvent event;
  event.set_type(type);
  event.set_storage_uuid(storage_uuid_);
  return event;
}

void RememberedStore::Invalidate(const std::string& storage_uuid, BlockId id, GenerationStamp stamp, uint64_t command_id,
                                 const absl::AnyInvocable<bool() const>& voided) {
  const uint64_t place = PlaceOf(id.value());
  const MutexLock lock(mu_);
  const bool exact = storage_uuid == storage_uuid_ && place < replicas_.count && IdAt(place) == id.value() && held_[place] &&
                     replicas_.first_stamp.value() + place == stamp.value();
  v1::ReportEvent event = NewEvent(exact && !voided() ? v1::DROPPED : v1::KEPT);
  event.mutable_replica()->set_block_id(id.value());
  event.mutable_replica()->set_generation_stamp(stamp.value());
  event.set_command_id(command_id);
  if (event.type() == v1::KEPT) {
    events_->Append(std::move(event));
    return;
  }
  *event.mutable_replica() = EntryAt(place);
  held_[place] = false;
  --count_;
  events_->Append(event);
  event.set_type(v1::DELETED);
  event.clear_command_id();
  events_->Append(std::move(event));
}

void RememberedStore::MarkEpoch(Epoch epoch) {
  const MutexLock lock(mu_);
  v1::ReportEvent event;
  event.set_type(v1::EPOCH_MARK);
  event.set_epoch(epoch.value());
  events_->Append(std::move(event));
}

uint64_t RememberedStore::WalkStep(const std::string&, uint64_t end_id, uint64_t walk) {
  const MutexLock lock(mu_);
  return StateRange(end_id == kEndOfIds && replicas_.count > 0 ? IdAt(replicas_.count) : 0, end_id, walk, /*expanded=*/false);
}

void RememberedStore::ExpandRange(const std::string&, uint64_t first_id, uint64_t end_id, uint64_t walk) {
  const MutexLock lock(mu_);
  StateRange(first_id, end_id, walk, /*expanded=*/true);
}

uint64_t RememberedStore::StateRange(uint64_t lowest, uint64_t end_id, uint64_t walk, bool expanded) {
  std::vector<uint64_t> places;
  uint64_t first = lowest;
  for (uint64_t place = PlaceOf(end_id); place > PlaceOf(lowest);) {
    if (!held_[--place]) continue;
    if (places.size() == kMostInARange) {
      first = IdAt(places.back());
      break;
    }
    places.push_back(place);
  }
  std::reverse(places.begin(), places.end());
  v1::ReportEvent event = NewEvent(v1::RANGE);
  v1::ReportRange& range = *event.mutable_range();
  range.set_first_id(first);
  range.set_end_id(end_id);
  range.set_walk(walk);
  range.set_expanded(expanded);
  range.set_last(first == 0);
  range.set_finalized(static_cast<uint32_t>(places.size()));
  std::string covered;
  for (const uint64_t place : places) {
    for (const uint64_t word : {IdAt(place), replicas_.first_stamp.value() + place, replicas_.length})
      for (int shift = 56; shift >= 0; shift -= 8) covered.push_back(static_cast<char>(word >> shift & 0xff));
    if (expanded) *range.add_entries() = EntryAt(place);
  }
  range.set_digest(XXH3_64bits(covered.data(), covered.size()));
  events_->Append(std::move(event));
  ++ranges_;
  return first;
}

std::vector<v1::StorageStatistics> RememberedStore::Statistics() {
  v1::StorageStatistics statistics;
  statistics.set_storage_uuid(storage_uuid_);
  statistics.set_state(v1::HEALTHY);
  statistics.set_capacity_bytes(uint64_t{1} << 40);
  statistics.set_remaining_bytes(0);  // Nobody is to write here.
  statistics.set_replicas(replica_count());
  return {statistics};
}

size_t RememberedStore::replica_count() const {
  const MutexLock lock(mu_);
  return count_;
}

datanode::VersionRecord RememberedStore::Get() const {
  const MutexLock lock(mu_);
  return identity_;
}

absl::Status RememberedStore::AdoptCluster(std::string cluster_id, std::string pool_id) {
  const MutexLock lock(mu_);
  identity_.cluster_id = std::move(cluster_id);
  identity_.pool_id = std::move(pool_id);
  return absl::OkStatus();
}

absl::Status RememberedStore::RememberEpoch(Epoch epoch) {
  const MutexLock lock(mu_);
  identity_.highest_epoch = std::max(identity_.highest_epoch, epoch.value());
  return absl::OkStatus();
}

}  // namespace cairn::bench
