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

bool Reachable(const StorageStanding& standing) { return standing.node != v1::DEAD && standing.state < v1::FAILED; }

bool IsGood(const ReplicaEvidence& replica, const v1::BlockRecord& record) {
  return replica.standing && !replica.told_to_go && Reachable(*replica.standing) && KindOfRow(replica.row, record) == Kind::kGood;
}

bool Counts(const ReplicaEvidence& replica, const v1::BlockRecord& record) {
  if (!IsGood(replica, record)) return false;
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

// Of good replicas the one that is missed least: a second one on its node, then one on the most crowded rack,
// then the fullest storage.
std::optional<size_t> LeastMissed(const BlockEvidence& evidence, const std::set<size_t>& gone) {
  std::optional<size_t> best;
  std::tuple<size_t, size_t, uint64_t, uint64_t> best_rank;
  for (size_t i = 0; i < evidence.replicas.size(); ++i) {
    const ReplicaEvidence& replica = evidence.replicas[i];
    if (gone.contains(i) || !IsGood(replica, *evidence.record)) continue;
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
    const auto rank = std::make_tuple(on_node, on_rack, UINT64_MAX - replica.standing->remaining_bytes, replica.row.storage.value());
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
  std::set<std::string> present, holders;
  std::vector<std::pair<bool, StorageNumber>> sources;
  for (const ReplicaEvidence& replica : evidence.replicas) {
    verdict->corrupt += replica.row.corrupt;
    if (!replica.standing) {
      if (evidence.starting && KindOfRow(replica.row, record) == Kind::kGood)
        present.insert(std::to_string(replica.row.storage.value()));  // No uuid looks so.
      continue;
    }
    holders.insert(replica.standing->datanode_uuid);
    if (!IsGood(replica, record)) continue;
    present.insert(replica.standing->datanode_uuid);
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
    present.insert(expected.datanode_uuid);
    holders.insert(expected.datanode_uuid);
  }
  verdict->present = static_cast<uint32_t>(present.size() + (evidence.starting ? evidence.unregistered_expected : 0));
  verdict->holders.assign(holders.begin(), holders.end());
}

}  // namespace

BlockVerdict JudgeBlock(const BlockEvidence& evidence) {
  BlockVerdict verdict;
  if (!evidence.record) {
    JudgeGarbage(evidence, &verdict);
    return verdict;
  }
  if (evidence.record->state() != v1::COMMITTED) return verdict;
  verdict.wanted = evidence.record->replication();
  verdict.counted = static_cast<uint32_t>(CountedNodes(evidence, {}));
  JudgePresence(evidence, &verdict);
  verdict.under_replicated = verdict.present < verdict.wanted;
  verdict.missing = verdict.present == 0;
  JudgeDeletion(evidence, &verdict);
  return verdict;
}

}  // namespace cairn::namenode
