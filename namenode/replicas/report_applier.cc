#include "namenode/replicas/report_applier.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "absl/container/btree_map.h"
#include "common/error.h"
#include "common/fault_points.h"
#include "common/status.h"

namespace cairn::namenode {
namespace {

constexpr size_t kMaxRangeReplicas = 1024;
constexpr size_t kRowsAtOnce = 1024;
constexpr size_t kMaxWaitingRanges = 64;  // Of one storage; a DataNode has at most 8 unapplied.

absl::Status Malformed(std::string why) { return MakeError(ErrorKind::kInvalidArgument, std::move(why)); }

// XXH3-64, seed 0, over big-endian (id, stamp, length) of replicas, ascending.
class RangeDigest {
 public:
  RangeDigest() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void Add(uint64_t id, uint64_t stamp, uint64_t length) {
    std::array<unsigned char, 24> bytes;
    size_t at = 0;
    for (uint64_t word : {id, stamp, length})
      for (int shift = 56; shift >= 0; shift -= 8) bytes[at++] = static_cast<unsigned char>(word >> shift);
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

absl::StatusOr<ReplicaRow> RowOf(StorageNumber storage, const v1::ReplicaEntry& entry, v1::ReplicaState otherwise) {
  if (entry.block_id() == 0 || entry.block_id() >= kEndBlockId.value())
    return Malformed(fmt::format("a replica of block {}, which cannot be", entry.block_id()));
  ReplicaRow row;
  row.storage = storage;
  row.block = BlockId(entry.block_id());
  row.stamp = GenerationStamp(entry.generation_stamp());
  row.length_bytes = entry.length_bytes();
  row.state = entry.state() == v1::REPLICA_STATE_UNSPECIFIED ? otherwise : entry.state();
  row.corrupt = entry.corrupt();
  row.group_index = entry.group_index();
  if (!v1::ReplicaState_IsValid(row.state) || row.state == v1::REPLICA_STATE_UNSPECIFIED)
    return Malformed(fmt::format("a replica of block {} in an unknown state", entry.block_id()));
  return row;
}

}  // namespace

ReportApplier::ReportApplier(std::string datanode_uuid, Incarnation incarnation, Epoch epoch, ReplicaStore* store,
                             DatanodeRegistry* registry)
    : datanode_uuid_(std::move(datanode_uuid)), epoch_(epoch), store_(store), registry_(registry) {
  position_.incarnation = incarnation;
}

absl::StatusOr<bool> ReportApplier::Begin(uint64_t first_kept, uint64_t last) {
  ASSIGN_OR_RETURN(const std::optional<StreamPosition> stored, store_->PositionOf(datanode_uuid_));
  const bool resume =
      stored && stored->incarnation == position_.incarnation && stored->applied <= last && stored->applied + 1 >= first_kept;
  if (resume) {
    position_ = *stored;
    for (const StreamPosition::Walk& walk : position_.walks) registry_->SetFloor(walk.storage, position_.incarnation, walk.floor);
    return true;
  }
  position_.applied = std::max<uint64_t>(1, first_kept) - 1;
  position_.walks.clear();
  for (StorageNumber storage : registry_->StoragesOf(datanode_uuid_)) {
    position_.walks.push_back({storage, kNothingWalked});
    registry_->SetFloor(storage, position_.incarnation, kNothingWalked);
  }
  ReplicaStore::Batch batch;
  RETURN_IF_ERROR(Commit(&batch));
  return false;
}

absl::StatusOr<std::vector<StorageNumber>> ReportApplier::AddStorages() {
  std::vector<StorageNumber> added;
  for (StorageNumber storage : registry_->StoragesOf(datanode_uuid_)) {
    if (WalkOf(storage) != nullptr) continue;
    added.push_back(storage);
    position_.walks.push_back({storage, kNothingWalked});
    registry_->SetFloor(storage, position_.incarnation, kNothingWalked);
  }
  if (added.empty()) return added;
  ReplicaStore::Batch batch;
  RETURN_IF_ERROR(Commit(&batch));
  return added;
}

absl::Status ReportApplier::Commit(ReplicaStore::Batch* batch) {
  batch->SetPosition(datanode_uuid_, position_);
  absl::Status written = store_->Write(std::move(*batch));
  *batch = ReplicaStore::Batch();
  RETURN_IF_ERROR(written);
  // Only now: who sees the floor may trust the rows.
  for (StorageNumber storage : moved_) registry_->SetFloor(storage, position_.incarnation, FloorOf(storage));
  moved_.clear();
  return absl::OkStatus();
}

absl::Status ReportApplier::Apply(const google::protobuf::RepeatedPtrField<v1::ReportEvent>& events, ReportEffects* effects) {
  ReplicaStore::Batch batch;
  absl::Status result;
  bool pending = false;
  for (const v1::ReportEvent& event : events) {
    if (event.number() != position_.applied + 1) {
      result = Malformed(fmt::format("event {} where {} was due", event.number(), position_.applied + 1));
      break;
    }
    if (event.type() == v1::RANGE && pending) {  // A range is compared with what all earlier events left.
      RETURN_IF_ERROR(Commit(&batch));
      pending = false;
    }
    result = ApplyOne(event, &batch, effects);
    if (!result.ok()) break;
    position_.applied = event.number();
    pending = true;
    if (event.type() == v1::RANGE) {
      RETURN_IF_ERROR(Commit(&batch));
      pending = false;
    }
  }
  if (pending) RETURN_IF_ERROR(Commit(&batch));
  std::sort(effects->changed.begin(), effects->changed.end());
  effects->changed.erase(std::unique(effects->changed.begin(), effects->changed.end()), effects->changed.end());
  return result;
}

absl::Status ReportApplier::ApplyOne(const v1::ReportEvent& event, ReplicaStore::Batch* batch, ReportEffects* effects) {
  if (event.type() == v1::EPOCH_MARK) {
    if (event.epoch() == epoch_.value()) effects->marked = true;
    return absl::OkStatus();
  }
  const std::optional<StorageNumber> known = registry_->NumberOf(datanode_uuid_, event.storage_uuid());
  // A storage that has not registered has no rows; when it registers it is walked.
  if (!known || WalkOf(*known) == nullptr) return absl::OkStatus();
  const StorageNumber storage = *known;
  switch (event.type()) {
    case v1::RBW_CREATED:
    case v1::REPLICA_FINALIZED:
    case v1::STAMP_CHANGED:
    case v1::CORRUPT: {
      v1::ReplicaState otherwise = event.type() == v1::REPLICA_FINALIZED ? v1::FINALIZED : v1::RBW;
      if (event.type() == v1::CORRUPT) otherwise = v1::FINALIZED;
      ASSIGN_OR_RETURN(ReplicaRow row, RowOf(storage, event.replica(), otherwise));
      if (event.type() == v1::REPLICA_FINALIZED && !FaultPoint("replicas.lose_event").ok()) return absl::OkStatus();
      if (event.type() == v1::CORRUPT) row.corrupt = true;
      batch->Put(row);
      effects->changed.push_back(row.block);
      return absl::OkStatus();
    }
    case v1::DROPPED: {
      const BlockId block(event.replica().block_id());
      batch->Delete(storage, block);
      effects->changed.push_back(block);
      effects->answers.push_back({storage, block, event.command_id()});
      return absl::OkStatus();
    }
    case v1::KEPT: {
      const BlockId block(event.replica().block_id());
      effects->changed.push_back(block);
      effects->answers.push_back({storage, block, event.command_id()});
      return absl::OkStatus();
    }
    case v1::DELETED: return absl::OkStatus();
    case v1::STORAGE_STATE_CHANGED: {
      const v1::StorageState state = event.storage_state();
      if (state < v1::HEALTHY || state > v1::REMOVED) return Malformed(fmt::format("storage state {}", static_cast<int>(state)));
      registry_->SetStorageState(storage, state);
      effects->state_changed.push_back(storage);
      if (state == v1::FAILED || state == v1::REMOVED) {  // Its return starts a walk.
        WalkOf(storage)->floor = kNothingWalked;
        passed_below_.erase(storage);
        registry_->SetFloor(storage, position_.incarnation, kNothingWalked);
      }
      if (state == v1::REMOVED) effects->removed.push_back(storage);
      return absl::OkStatus();
    }
    case v1::RANGE: return ApplyRange(storage, event.storage_uuid(), event.range(), batch, effects);
    default: return Malformed(fmt::format("event {} of unknown type {}", event.number(), static_cast<int>(event.type())));
  }
}

absl::Status ReportApplier::ApplyRange(StorageNumber storage, const std::string& storage_uuid, const v1::ReportRange& range,
                                       ReplicaStore::Batch* batch, ReportEffects* effects) {
  const uint64_t first = range.first_id();
  const uint64_t end = range.end_id();
  const size_t listed = static_cast<size_t>(range.others_size()) + static_cast<size_t>(range.entries_size());
  if (first >= end || listed > kMaxRangeReplicas) return Malformed(fmt::format("a range [{}, {}) with {} replicas", first, end, listed));
  absl::btree_map<BlockId, ReplicaRow> said;
  for (const auto* list : {&range.others(), &range.entries()}) {
    for (const v1::ReplicaEntry& entry : *list) {
      ASSIGN_OR_RETURN(ReplicaRow row, RowOf(storage, entry, v1::FINALIZED));
      if (row.block.value() < first || row.block.value() >= end || !said.emplace(row.block, row).second)
        return Malformed(fmt::format("block {} twice in, or outside of, range [{}, {})", row.block.value(), first, end));
    }
  }
  // A row that is damaged here reads as one in no state: it goes, and the list brings it back.
  // Two digests: whether a corrupt FINALIZED replica, which is in `others` anyway, is covered too is left to
  // the DataNode.
  RangeDigest good, all;
  uint64_t good_count = 0, all_count = 0;
  std::vector<BlockId> vanished;
  // One that was asked for by itself: whatever of it is damaged here, in either table, is written anew.
  const bool single = end == first + 1;
  std::optional<ReplicaRow> intact;
  absl::btree_map<BlockId, ReplicaRow> changed = said;
  auto next_said = said.begin();
  const auto add_listed_below = [&](uint64_t below) {
    for (; next_said != said.end() && next_said->first.value() < below; ++next_said) {
      if (next_said->second.state != v1::FINALIZED) continue;
      all.Add(next_said->first.value(), next_said->second.stamp.value(), next_said->second.length_bytes);
      ++all_count;
    }
  };
  for (uint64_t from = first; from < end;) {
    ASSIGN_OR_RETURN(const std::vector<ReplicaRow> rows, store_->ReplicasOn(storage, from, end, kRowsAtOnce));
    for (const ReplicaRow& row : rows) {
      if (const auto listed_row = said.find(row.block); listed_row != said.end()) {
        if (listed_row->second == row) changed.erase(row.block);
        continue;
      }
      if (range.expanded() || row.state != v1::FINALIZED) {
        vanished.push_back(row.block);
      } else if (!row.corrupt) {
        add_listed_below(row.block.value());
        good.Add(row.block.value(), row.stamp.value(), row.length_bytes);
        all.Add(row.block.value(), row.stamp.value(), row.length_bytes);
        ++good_count;
        ++all_count;
        if (single) intact = row;
      } else {
        ++good_count;  // Not corrupt any more, it seems: let the count differ, and the list tell.
        ++all_count;
      }
    }
    if (rows.size() < kRowsAtOnce) break;
    from = rows.back().block.value() + 1;
  }
  add_listed_below(end);
  if (single) {
    changed = said;
    if (said.empty() && !intact) vanished.assign(1, BlockId(first));
    if (intact) batch->Put(*intact);
  }
  for (const auto& [block, row] : changed) {
    batch->Put(row);
    effects->changed.push_back(block);
  }
  for (BlockId block : vanished) {
    batch->Delete(storage, block);
    effects->changed.push_back(block);
  }
  const bool agrees = (good_count == range.finalized() && good.value() == range.digest()) ||
                      (all_count == range.finalized() && all.value() == range.digest());
  if (range.expanded() || agrees) {
    Passed(storage, first, end, effects);
    return absl::OkStatus();
  }
  v1::ReportDown::Expand expand;
  expand.set_storage_uuid(storage_uuid);
  expand.set_first_id(first);
  expand.set_end_id(end);
  expand.set_walk(range.walk());
  effects->expand.push_back(std::move(expand));
  Disagreed(storage, first, end);
  return absl::OkStatus();
}

// Until the list has come, this range has not been walked, whatever an earlier walk made of it: should the list be lost with a connection
// or with us, the walk is found standing still and is asked for again.
void ReportApplier::Disagreed(StorageNumber storage, uint64_t first, uint64_t end) {
  StreamPosition::Walk* walk = WalkOf(storage);
  std::map<uint64_t, uint64_t>& below = passed_below_[storage];
  if (walk->floor < end) {
    if (walk->floor < first) below[walk->floor] = first;
    walk->floor = end;
    moved_.push_back(storage);
  }
  for (auto at = below.begin(); at != below.end() && at->first < end;) {
    const auto [passed_first, passed_end] = *at;
    if (passed_end <= first) {
      ++at;
      continue;
    }
    at = below.erase(at);
    if (passed_first < first) below.emplace(passed_first, first);
    if (passed_end > end) below.emplace(end, passed_end);
  }
}

void ReportApplier::Passed(StorageNumber storage, uint64_t first, uint64_t end, ReportEffects* effects) {
  effects->passed.push_back({storage, first, end});
  StreamPosition::Walk* walk = WalkOf(storage);
  if (first >= walk->floor) return;  // Nothing new.
  // Ranges below one that is still to be expanded are on their way already: they wait here for the hole to close.
  std::map<uint64_t, uint64_t>& below = passed_below_[storage];
  uint64_t& kept_end = below[first];
  kept_end = std::max(kept_end, end);
  const uint64_t before = walk->floor;
  for (auto at = below.rbegin(); at != below.rend() && at->second >= walk->floor;) {
    walk->floor = std::min(walk->floor, at->first);
    below.erase(at->first);
    at = below.rbegin();
  }
  if (below.size() > kMaxWaitingRanges) below.erase(below.begin());  // A walk that is asked for again finds it.
  if (walk->floor == before) return;
  moved_.push_back(storage);
  if (walk->floor == 0) effects->walk_completed = true;
}

StreamPosition::Walk* ReportApplier::WalkOf(StorageNumber storage) {
  for (StreamPosition::Walk& walk : position_.walks)
    if (walk.storage == storage) return &walk;
  return nullptr;
}

uint64_t ReportApplier::FloorOf(StorageNumber storage) const {
  for (const StreamPosition::Walk& walk : position_.walks)
    if (walk.storage == storage) return walk.floor;
  return kNothingWalked;
}

}  // namespace cairn::namenode
