#include "namenode/replicas/block_states.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace cairn::namenode {
namespace {

enum class Kind : uint8_t { kGood, kCorrupt, kStale, kWrongLength, kLeftOver, kOther };

Kind KindOfRow(const ReplicaRow& row, const v1::BlockRecord& record) {
  if (row.stamp.value() < record.generation_stamp()) return Kind::kStale;
  if (row.corrupt) return Kind::kCorrupt;
  if (row.stamp.value() != record.generation_stamp()) return Kind::kOther;  // Newer: a recovery that is under way.
  if (row.state == v1::RWR) return Kind::kLeftOver;
  if (row.state != v1::FINALIZED) return Kind::kOther;
  return row.length_bytes == record.length_bytes() ? Kind::kGood : Kind::kWrongLength;
}

bool Stays(const StorageStanding& standing) { return standing.admin == v1::NODE_NORMAL; }

bool InMaintenance(const StorageStanding& standing) {
  return standing.admin == v1::ENTERING_MAINTENANCE || standing.admin == v1::IN_MAINTENANCE;
}

bool Reachable(const StorageStanding& standing) { return standing.node != v1::DEAD && standing.state < v1::FAILED; }

bool IsGood(const ReplicaEvidence& replica, const v1::BlockRecord& record) {
  return replica.standing && !replica.told_to_go && Reachable(*replica.standing) && IsWhole(replica.row, record);
}

bool Counts(const ReplicaEvidence& replica, const v1::BlockRecord& record) {
  if (!IsGood(replica, record) || !Stays(*replica.standing)) return false;
  const StorageStanding& standing = *replica.standing;
  return standing.node == v1::LIVE && standing.state == v1::HEALTHY && standing.marked && standing.floor <= replica.row.block.value();
}

bool CanBeTold(const ReplicaEvidence& replica) { return replica.standing && !replica.told_to_go && Reachable(*replica.standing); }

void JudgeGarbage(const BlockEvidence& evidence, BlockVerdict* verdict) {
  if (evidence.replicas.empty()) return;
  if (evidence.keep_unknown || evidence.id.value() >= evidence.next_block_id) {
    verdict->quarantined = true;
    return;
  }
  for (const ReplicaEvidence& replica : evidence.replicas)
    if (CanBeTold(replica)) verdict->go.push_back({replica.row.storage, replica.row.stamp, GoReason::kGarbage});
}

// Counted copies on different nodes, without those whose places are in `gone`.
size_t CountedNodes(const BlockEvidence& evidence, const std::set<size_t>& gone) {
  std::set<std::string> nodes;
  for (size_t i = 0; i < evidence.replicas.size(); ++i)
    if (!gone.contains(i) && Counts(evidence.replicas[i], *evidence.record)) nodes.insert(evidence.replicas[i].standing->datanode_uuid);
  return nodes.size();
}

// Whether those that would be left by a move are on as many racks as those that were there before it.
bool KeepsRacks(const BlockEvidence& evidence, const std::set<size_t>& gone, size_t without) {
  std::set<std::string> before, left;
  for (size_t i = 0; i < evidence.replicas.size(); ++i) {
    if (gone.contains(i) || !IsGood(evidence.replicas[i], *evidence.record)) continue;
    const StorageStanding& standing = *evidence.replicas[i].standing;
    if (standing.datanode_uuid != evidence.arriving) before.insert(standing.rack);
    if (i != without) left.insert(standing.rack);
  }
  return left.size() >= before.size();
}

// Of good replicas the one that is missed least: one that leaves, a second one on its node, then one on the most crowded rack,
// then the fullest storage.
std::optional<size_t> LeastMissed(const BlockEvidence& evidence, const std::set<size_t>& gone) {
  std::optional<size_t> best;
  std::tuple<bool, size_t, size_t, uint64_t, uint64_t> best_rank;
  for (size_t i = 0; i < evidence.replicas.size(); ++i) {
    const ReplicaEvidence& replica = evidence.replicas[i];
    if (gone.contains(i) || !IsGood(replica, *evidence.record) || !Stays(*replica.standing)) continue;
    std::set<size_t> without = gone;
    without.insert(i);
    if (CountedNodes(evidence, without) < evidence.record->replication()) continue;
    size_t on_node = 0, on_rack = 0;
    for (size_t j = 0; j < evidence.replicas.size(); ++j) {
      const ReplicaEvidence& other = evidence.replicas[j];
      if (gone.contains(j) || !IsGood(other, *evidence.record)) continue;
      on_node += other.standing->datanode_uuid == replica.standing->datanode_uuid;
      on_rack += other.standing->rack == replica.standing->rack;
    }
    const bool leaves = evidence.leaving == replica.row.storage && KeepsRacks(evidence, gone, i);
    const auto rank =
        std::make_tuple(leaves, on_node, on_rack, UINT64_MAX - replica.standing->remaining_bytes, replica.row.storage.value());
    if (best && rank <= best_rank) continue;
    best = i;
    best_rank = rank;
  }
  return best;
}

void JudgeDeletion(const BlockEvidence& evidence, BlockVerdict* verdict) {
  const v1::BlockRecord& record = *evidence.record;
  std::set<size_t> gone;
  for (size_t i = 0; i < evidence.replicas.size(); ++i) {
    const ReplicaEvidence& replica = evidence.replicas[i];
    if (!CanBeTold(replica)) continue;
    switch (KindOfRow(replica.row, record)) {
      case Kind::kStale:
        if (verdict->counted >= 1) verdict->go.push_back({replica.row.storage, replica.row.stamp, GoReason::kStale});
        break;
      case Kind::kCorrupt:
        if (verdict->counted >= 1) verdict->go.push_back({replica.row.storage, replica.row.stamp, GoReason::kCorrupt});
        break;
      case Kind::kWrongLength:
        if (verdict->counted >= record.replication()) verdict->go.push_back({replica.row.storage, replica.row.stamp, GoReason::kCorrupt});
        break;
      case Kind::kLeftOver:
        if (verdict->counted >= record.replication()) verdict->go.push_back({replica.row.storage, replica.row.stamp, GoReason::kExcess});
        break;
      case Kind::kGood:
      case Kind::kOther: break;
    }
  }
  if (record.replication() == 0) return;  // Never a live block's wish; deleting all on a damaged row would be final.
  while (std::optional<size_t> victim = LeastMissed(evidence, gone)) {
    gone.insert(*victim);
    const ReplicaRow& row = evidence.replicas[*victim].row;
    verdict->go.push_back({row.storage, row.stamp, GoReason::kExcess});
  }
}

void JudgePresence(const BlockEvidence& evidence, BlockVerdict* verdict) {
  const v1::BlockRecord& record = *evidence.record;
  std::set<std::string> present, holders, left, live, draining, maintenance, racks;
  bool racks_are_known = true;
  std::vector<std::pair<bool, StorageNumber>> sources;
  for (const ReplicaEvidence& replica : evidence.replicas) {
    verdict->corrupt += replica.row.corrupt;
    if (!replica.standing) {
      if (evidence.starting && IsWhole(replica.row, record))
        present.insert(std::to_string(replica.row.storage.value()));  // No uuid looks so.
      racks_are_known = racks_are_known && !evidence.starting;
      continue;
    }
    const std::string& uuid = replica.standing->datanode_uuid;
    holders.insert(uuid);
    if (InMaintenance(*replica.standing) && !replica.told_to_go && replica.standing->state < v1::FAILED && IsWhole(replica.row, record)) {
      maintenance.insert(uuid);
      racks.insert(replica.standing->rack);  // It comes back: no copy is needed in its place.
    }
    if (!IsGood(replica, record)) continue;
    left.insert(uuid);
    if (Stays(*replica.standing)) {
      present.insert(uuid);
      racks.insert(replica.standing->rack);
      live.insert(uuid);
    } else if (!InMaintenance(*replica.standing)) {
      draining.insert(uuid);
    }
    if (replica.standing->state == v1::HEALTHY) sources.emplace_back(replica.standing->node != v1::LIVE, replica.row.storage);
  }
  std::sort(sources.begin(), sources.end());
  for (const auto& [stale, storage] : sources) verdict->sources.push_back(storage);

  verdict->in_grace = evidence.now_ms - record.committed_ms() < evidence.acknowledged_grace_ms;
  for (const StorageStanding& expected : evidence.expected) {
    const auto replica = std::find_if(evidence.replicas.begin(), evidence.replicas.end(),
                                      [&](const ReplicaEvidence& e) { return e.row.storage == expected.storage; });
    const bool has_row = replica != evidence.replicas.end();
    if (has_row && (IsGood(*replica, record) || replica->told_to_go || replica->row.corrupt || replica->row.state == v1::RWR)) continue;
    if (!Reachable(expected)) continue;
    verdict->unconfirmed = true;
    if (!verdict->in_grace) continue;
    if (Stays(expected)) {
      present.insert(expected.datanode_uuid);
      racks.insert(expected.rack);
    }
    left.insert(expected.datanode_uuid);
    holders.insert(expected.datanode_uuid);
  }
  verdict->present = static_cast<uint32_t>(present.size() + (evidence.starting ? evidence.unregistered_expected : 0));
  left.insert(present.begin(), present.end());
  verdict->left = std::max(static_cast<uint32_t>(left.size()), verdict->present);
  verdict->live = static_cast<uint32_t>(live.size());
  verdict->draining = static_cast<uint32_t>(draining.size());
  verdict->maintenance = static_cast<uint32_t>(maintenance.size());
  verdict->holders.assign(holders.begin(), holders.end());
  const uint32_t least = std::min(evidence.maintenance_minimum, verdict->wanted);
  verdict->needed = std::max(least, verdict->wanted - std::min(verdict->wanted, verdict->maintenance));
  if (verdict->maintenance == 0) verdict->needed = verdict->wanted;
  verdict->under_replicated = verdict->present < verdict->needed;
  verdict->mis_replicated = !verdict->under_replicated && racks_are_known && evidence.unregistered_expected == 0 && verdict->wanted > 1 &&
                            present.size() > 1 && evidence.racks > 1 && racks.size() == 1;
  if (verdict->mis_replicated) verdict->rack = *racks.begin();
}

// Of a block that is being written or recovered: who has all that was acknowledged of it, as far as rows know. What a host that lost its
// power has left is less; and while a recovery looks for the bytes, nobody who may have them is let go.
void JudgeOpen(const BlockEvidence& evidence, BlockVerdict* verdict) {
  verdict->open = evidence.record->state() != v1::RESERVED;
  std::set<std::string> live;
  for (const ReplicaEvidence& replica : evidence.replicas) {
    if (!replica.standing || replica.told_to_go || replica.row.corrupt || !Reachable(*replica.standing) || !Stays(*replica.standing))
      continue;
    const bool whole = replica.row.state == v1::RBW || replica.row.state == v1::FINALIZED;
    if (whole && replica.row.stamp.value() >= evidence.record->generation_stamp()) live.insert(replica.standing->datanode_uuid);
  }
  verdict->live = static_cast<uint32_t>(live.size());
}

}  // namespace

bool IsWhole(const ReplicaRow& row, const v1::BlockRecord& record) { return KindOfRow(row, record) == Kind::kGood; }

BlockVerdict JudgeBlock(const BlockEvidence& evidence) {
  BlockVerdict verdict;
  if (!evidence.record) {
    JudgeGarbage(evidence, &verdict);
    return verdict;
  }
  if (evidence.record->state() != v1::COMMITTED) {
    JudgeOpen(evidence, &verdict);
    return verdict;
  }
  verdict.wanted = evidence.record->replication();
  verdict.counted = static_cast<uint32_t>(CountedNodes(evidence, {}));
  JudgePresence(evidence, &verdict);
  verdict.missing = verdict.left == 0;
  JudgeDeletion(evidence, &verdict);
  return verdict;
}

bool HoldsBack(const BlockEvidence& evidence, const BlockVerdict& verdict, v1::NodeAdminState state) {
  const bool maintenance = state == v1::ENTERING_MAINTENANCE || state == v1::IN_MAINTENANCE;
  if (evidence.record && evidence.record->state() == v1::UNDER_RECOVERY) return true;
  if (verdict.open) return verdict.live < (maintenance ? evidence.maintenance_minimum : evidence.min_replication);
  if (verdict.wanted == 0) return false;  // Garbage, or not part of a file yet.
  return verdict.live < (maintenance ? std::min(evidence.maintenance_minimum, verdict.wanted) : verdict.needed);
}

}  // namespace cairn::namenode
