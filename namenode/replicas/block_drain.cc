// The part of BlockManager that lets nodes go: what one that is decommissioned or enters maintenance still holds, and what is in trouble.

#include <algorithm>

#include "common/log.h"
#include "common/status.h"
#include "namenode/replicas/block_manager.h"

namespace cairn::namenode {
namespace {
constexpr absl::Duration kDrainPause = absl::Milliseconds(5);  // Between steps: the executor has other work.
}  // namespace

void BlockManager::OnNodeAdminChanged(const std::string& datanode_uuid) {
  const v1::NodeAdminState state = parts_.registry->AdminOf(datanode_uuid).value_or(v1::NodeAdminRecord()).state();
  if (state != v1::DECOMMISSIONING && state != v1::ENTERING_MAINTENANCE)  // Whose drains judge every block they look at.
    for (StorageNumber storage : parts_.registry->StoragesOf(datanode_uuid)) storage_scans_.push_back({storage, 0});
  OnNodeCame();
  FollowDrains();
}

void BlockManager::FollowDrains() {
  const SteadyTime now = parts_.clock->Now();
  const int64_t now_ms = absl::ToUnixMillis(parts_.clock->WallNow());
  absl::btree_map<std::string, std::pair<v1::NodeAdminState, int64_t>> wanted;  // And since when.
  for (const auto& [uuid, record] : parts_.registry->Administered()) {
    const bool maintenance = record.state() == v1::ENTERING_MAINTENANCE || record.state() == v1::IN_MAINTENANCE;
    if (maintenance && record.until_ms() != 0 && record.until_ms() <= now_ms) {
      FinishDrain(uuid, record.state(), record.since_ms(), v1::NODE_NORMAL);
    } else if (record.state() == v1::DECOMMISSIONING || record.state() == v1::ENTERING_MAINTENANCE) {
      wanted[uuid] = {record.state(), record.since_ms()};
    }
  }
  for (auto drain = drains_.begin(); drain != drains_.end();) {
    const auto found = wanted.find(drain->first);
    const std::pair of_drain(drain->second.state(), drain->second.since_ms());
    drain = found == wanted.end() || found->second != of_drain ? drains_.erase(drain) : std::next(drain);
  }
  bool looking = false;
  for (const auto& [uuid, state] : wanted) {
    NodeDrain& drain = drains_.try_emplace(uuid, state.first, state.second).first->second;
    if (drain.Due(now)) drain.Begin(parts_.registry->StoragesOf(uuid));
    looking |= drain.looking();
  }
  if (looking && !draining_) DrainStep();
}

void BlockManager::DrainStep() {
  draining_ = false;
  // In turn, so that one that looks long holds nobody else up.
  const auto is_looking = [](const auto& entry) { return entry.second.looking(); };
  auto found = std::find_if(drains_.upper_bound(last_drained_), drains_.end(), is_looking);
  if (found == drains_.end()) found = std::find_if(drains_.begin(), drains_.end(), is_looking);
  if (found == drains_.end()) return;
  const std::string uuid = found->first;
  last_drained_ = uuid;
  NodeDrain& drain = found->second;
  if (const std::optional<NodeDrain::Slice> slice = drain.Next(kStep)) {
    DrainSlice(uuid, &drain, *slice);
  } else if (drain.End(parts_.clock->Now(), options_.drain_interval) && !parts_.registry->MayHoldMore(uuid)) {
    drain.SetFinishing(true);
    FinishDrain(uuid, drain.state(), drain.since_ms(), drain.state() == v1::DECOMMISSIONING ? v1::DECOMMISSIONED : v1::IN_MAINTENANCE);
  }
  draining_ = true;
  parts_.executor->PostAt(parts_.clock->Now() + kDrainPause, [weak = weak_from_this()] {
    if (const std::shared_ptr<BlockManager> self = weak.lock()) self->DrainStep();
  });
}

void BlockManager::DrainSlice(const std::string& datanode_uuid, NodeDrain* drain, const NodeDrain::Slice& slice) {
  std::vector<BlockId> blocks = slice.blocks;
  if (slice.storage) {
    absl::StatusOr<std::vector<ReplicaRow>> rows = parts_.store->ReplicasOn(*slice.storage, slice.from, kNothingWalked, kStep);
    if (!rows.ok()) return;  // The same slice again.
    for (const ReplicaRow& row : *rows) blocks.push_back(row.block);
    drain->Reached(*slice.storage, blocks.empty() ? std::nullopt : std::optional(blocks.back()));
  }
  absl::StatusOr<std::vector<Judged>> all = Evaluate(blocks);
  if (!all.ok()) {  // Nothing is known of these: they hold the node back.
    log::Warning("DataNode {} is not let go: {}", datanode_uuid, std::string(all.status().message()));
    for (BlockId block : blocks) drain->Saw(block, NodeDrain::Blocker{.since = parts_.clock->Now()});
    return;
  }
  for (const Judged& judged : *all) {
    Act(judged, false);
    std::optional<NodeDrain::Blocker> blocker;
    const bool here = std::any_of(judged.evidence.replicas.begin(), judged.evidence.replicas.end(), [&](const ReplicaEvidence& replica) {
      return replica.standing && replica.standing->datanode_uuid == datanode_uuid;
    });
    if (here && HoldsBack(judged.evidence, judged.verdict, drain->state()))
      blocker = NodeDrain::Blocker{parts_.clock->Now(), judged.verdict.open, judged.verdict.needed, judged.verdict.live};
    drain->Saw(judged.block, blocker);
  }
}

void BlockManager::FinishDrain(const std::string& datanode_uuid, v1::NodeAdminState from, int64_t since_ms, v1::NodeAdminState to) {
  if (parts_.life == nullptr || !ending_.insert(datanode_uuid).second) return;  // It is being written: its end lets the drain go on.
  parts_.life->Move(datanode_uuid, from, since_ms, to,
                    [weak = weak_from_this(), executor = parts_.executor, datanode_uuid](const absl::Status&) {
                      executor->Post([weak, datanode_uuid] {
                        const std::shared_ptr<BlockManager> self = weak.lock();
                        if (self == nullptr) return;
                        // Whatever came of it: what is wanted now decides whether there is still a drain.
                        self->ending_.erase(datanode_uuid);
                        const auto drain = self->drains_.find(datanode_uuid);
                        if (drain != self->drains_.end()) drain->second.SetFinishing(false);
                      });
                    });
}

// --- what is shown

void BlockManager::FillReport(v1::ClusterReportResponse* report) const {
  const Board::Drains drains = board_.drains();
  for (v1::DatanodeReport& node : *report->mutable_datanodes()) {
    const auto found = drains.find(node.info().uuid());
    if (found == drains.end()) continue;
    node.set_blocks_left(found->second.left);
    node.set_open_blocks_left(found->second.open_left);
    node.set_blocks_looked_at(found->second.looked_at);
    node.set_looked_once(found->second.looked_once);
  }
}

v1::ListNodeBlockersResponse BlockManager::NodeBlockers(const std::string& datanode_uuid, size_t limit) const {
  v1::ListNodeBlockersResponse response;
  const auto found = drains_.find(datanode_uuid);
  if (found == drains_.end()) return response;
  const SteadyTime now = parts_.clock->Now();
  response.set_blocks_left(found->second.left());
  for (const auto& [block, blocker] : found->second.Blockers(limit)) {
    v1::NodeBlocker& added = *response.add_blockers();
    added.mutable_block()->set_id(block.value());
    std::string reason = blocker.open ? "OPEN" : repairs_.StateOf(block);
    added.set_reason(reason.empty() ? "WAITING" : std::move(reason));
    added.set_age_ms(absl::ToInt64Milliseconds(now - blocker.since));
    added.set_wanted(blocker.wanted);
    added.set_live(blocker.live);
  }
  return response;
}

v1::ListBadBlocksResponse BlockManager::BadBlocks(v1::ListBadBlocksRequest::Kind kind, BlockId start_after, size_t limit) const {
  v1::ListBadBlocksResponse response;
  const BlockId first(start_after.value() + 1);
  const auto add = [&](BlockId block) {
    v1::BadBlock& added = *response.add_blocks();
    added.mutable_block()->set_id(block.value());
    return &added;
  };
  if (kind == v1::ListBadBlocksRequest::MISSING) {
    for (auto at = missing_.lower_bound(first); at != missing_.end() && response.blocks_size() < static_cast<int>(limit); ++at)
      add(at->first);
  } else if (kind == v1::ListBadBlocksRequest::CORRUPT) {
    for (auto at = corrupt_.lower_bound(first); at != corrupt_.end() && response.blocks_size() < static_cast<int>(limit); ++at)
      add(at->first);
  } else {
    for (const RepairQueue::Parked& parked : repairs_.ParkedFrom(first, limit, parts_.clock->Now())) {
      v1::BadBlock* const added = add(parked.block);
      added->set_reason(NameOf(parked.reason));
      added->set_age_ms(absl::ToInt64Milliseconds(parked.age));
    }
  }
  if (response.blocks_size() == static_cast<int>(limit)) response.set_next(response.blocks(response.blocks_size() - 1).block().id());
  return response;
}

}  // namespace cairn::namenode
