#include "namenode/replicas/block_inspector.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "common/status.h"
#include "namenode/replicas/block_states.h"

namespace cairn::namenode {
absl::StatusOr<v1::FsckBlock> BlockInspector::Inspect(BlockId id, const v1::BlockRecord& record, bool with_replicas) const {
  BlockEvidence evidence;
  evidence.id = id;
  evidence.record = record;
  evidence.next_block_id = UINT64_MAX;
  evidence.now_ms = absl::ToUnixMillis(parts_.clock->WallNow());
  evidence.acknowledged_grace_ms = absl::ToInt64Milliseconds(parts_.acknowledged_grace);
  evidence.maintenance_minimum = parts_.maintenance_minimum;
  evidence.racks = parts_.registry->RackCount();
  ASSIGN_OR_RETURN(const std::vector<ReplicaRow> rows, parts_.store->ReplicasOf(id));
  for (const ReplicaRow& row : rows) evidence.replicas.push_back({row, parts_.registry->StandingOf(row.storage)});
  if (record.state() == v1::COMMITTED) {
    for (const uint32_t number : record.expected_storages())
      if (std::optional<StorageStanding> standing = parts_.registry->StandingOf(StorageNumber(number)))
        evidence.expected.push_back(*std::move(standing));
  }
  const BlockVerdict verdict = JudgeBlock(evidence);

  v1::FsckBlock block;
  block.mutable_block()->set_id(id.value());
  block.mutable_block()->set_generation_stamp(record.generation_stamp());
  block.mutable_block()->set_length_bytes(record.length_bytes());
  block.set_state(record.state());
  block.set_wanted(record.replication());
  // What was just acknowledged is as good as told of, as for repair.
  block.set_live(verdict.open ? verdict.live : std::max(verdict.live, verdict.present));
  block.set_draining(verdict.draining);
  block.set_maintenance(verdict.maintenance);
  block.set_corrupt(verdict.corrupt);
  block.set_missing(verdict.missing);
  block.set_under_replicated(verdict.under_replicated);
  std::set<StorageNumber> excess;
  for (const BlockVerdict::Go& go : verdict.go)
    if (go.reason == GoReason::kExcess) excess.insert(go.storage);
  const std::set<StorageNumber> good(verdict.sources.begin(), verdict.sources.end());
  std::set<std::string> racks;
  for (const ReplicaEvidence& replica : evidence.replicas) {
    if (!replica.standing) continue;
    v1::FsckReplica& added = *block.add_replicas();
    if (std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(replica.row.storage))
      *added.mutable_location() = *std::move(location);
    added.set_node(replica.standing->node);
    added.set_admin_state(replica.standing->admin);
    added.set_state(replica.row.state);
    added.set_corrupt(replica.row.corrupt);
    added.set_stale(replica.standing->node == v1::STALE || replica.row.stamp.value() < record.generation_stamp());
    added.set_excess(excess.contains(replica.row.storage));
    added.set_live(good.contains(replica.row.storage) && replica.standing->admin == v1::NODE_NORMAL);
    if (added.live()) racks.insert(replica.standing->rack);
  }
  block.set_racks(static_cast<uint32_t>(racks.size()));
  block.set_mis_replicated(verdict.mis_replicated);
  const bool well = !verdict.missing && !verdict.under_replicated && verdict.corrupt == 0;
  if (well && !with_replicas) block.clear_replicas();
  return block;
}

}  // namespace cairn::namenode
