// The half of BlockManager that talks to command streams: repairs handed out, replicas told to go.

#include <algorithm>

#include "common/error.h"
#include "common/status.h"
#include "namenode/replicas/block_manager.h"

namespace cairn::namenode {
namespace {
constexpr absl::Duration kTokenLife = absl::Minutes(10);
constexpr size_t kCandidatesAtOnce = 256;
constexpr absl::Duration kLookPause = absl::Milliseconds(1);  // Between steps: the executor has other work.
constexpr absl::Duration kAfterDamage = absl::Seconds(5);
constexpr absl::Duration kLandedWithin = absl::Seconds(10);  // From a source's "done" to the target's report of a moved replica.
}  // namespace

// --- repairs

bool BlockManager::HasRoom(const std::string& datanode_uuid) const {
  return repairs_.LoadOf(datanode_uuid) + spreads_.LoadOf(datanode_uuid) < options_.max_repairs_per_node;
}

void BlockManager::BeginRepairs() {
  const SteadyTime now = parts_.clock->Now();
  looked_ = started_repairs_ = 0;
  if (safe_mode_ || (repairs_.Ready(1, now).empty() && spreads_.Ready(1, now).empty())) return;
  repair_nodes_ = parts_.registry->PlacementNodes();
  repair_node_at_.clear();
  for (size_t i = 0; i < repair_nodes_.size(); ++i) {
    repair_nodes_[i].busy = !HasRoom(repair_nodes_[i].datanode_uuid);
    repair_node_at_.emplace(repair_nodes_[i].datanode_uuid, i);
  }
  RepairStep();
}

void BlockManager::RepairStep() {
  repairing_ = false;
  if (safe_mode_) return;
  // What cannot be started leaves the line, so that it takes no place of what can: only started ones count.
  const size_t of_step = std::clamp<size_t>(kNodesOfALook / std::max<size_t>(1, repair_nodes_.size()), 1, kBlocksOfALook);
  const size_t most = std::min({of_step, kRepairsAtOnce - started_repairs_, kLooksAtOnce - looked_});
  RepairQueue* queue = &repairs_;
  std::vector<BlockId> ready = queue->Ready(most, parts_.clock->Now());
  if (ready.empty()) {
    queue = &spreads_;
    ready = queue->Ready(most, parts_.clock->Now());
  }
  if (ready.empty()) return;
  looked_ += ready.size();
  started_repairs_ += LookAt(queue, ready);
  if (started_repairs_ >= kRepairsAtOnce || looked_ >= kLooksAtOnce) return;  // The next tick begins another round.
  repairing_ = true;
  parts_.executor->PostAt(parts_.clock->Now() + kLookPause, [weak = weak_from_this()] {
    if (const std::shared_ptr<BlockManager> self = weak.lock()) self->RepairStep();
  });
}

size_t BlockManager::LookAt(RepairQueue* queue, const std::vector<BlockId>& blocks) {
  size_t started = 0;
  absl::StatusOr<std::vector<Judged>> all = Evaluate(blocks);
  if (!all.ok() && blocks.size() > 1) {  // A damaged row: it must not hold up the others.
    for (const BlockId block : blocks) started += LookAt(queue, {block});
    return started;
  }
  if (!all.ok()) {
    scan_wanted_ = true;
    queue->Postpone(blocks.front(), kAfterDamage, parts_.clock->Now());
    return 0;
  }
  for (const Judged& judged : *all) {
    if (queue == &repairs_ ? judged.verdict.under_replicated : judged.verdict.mis_replicated) {
      started += StartRepair(judged, queue);
    } else {
      Act(judged, false);
    }
  }
  return started;
}

v1::CommandDown BlockManager::CopyOrder(uint64_t command_id, const Judged& judged, StorageNumber source, v1::TrafficClass traffic_class,
                                        absl::Duration patience) const {
  const v1::BlockRecord& record = *judged.evidence.record;
  v1::CommandDown command;
  command.set_command_class(v1::REPAIR_WORK);
  v1::CommandDown::Transfer& transfer = *command.mutable_transfer();
  transfer.set_command_id(command_id);
  transfer.mutable_block()->set_id(judged.block.value());
  transfer.mutable_block()->set_generation_stamp(record.generation_stamp());
  transfer.mutable_block()->set_length_bytes(record.length_bytes());
  transfer.set_traffic_class(traffic_class);
  if (const std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(source))
    transfer.set_storage_uuid(location->storage_uuid());
  transfer.set_token(WriterToken(judged.block, GenerationStamp(record.generation_stamp()), patience + kTokenLife));
  return command;
}

bool BlockManager::StartRepair(const Judged& judged, RepairQueue* queue) {
  const BlockVerdict& verdict = judged.verdict;
  const SteadyTime now = parts_.clock->Now();
  std::vector<std::pair<StorageNumber, std::string>> sources;
  bool crowded = false;
  for (StorageNumber storage : verdict.sources) {
    const std::optional<StorageStanding> standing = parts_.registry->StandingOf(storage);
    if (!standing) continue;
    const auto session = sessions_.find(standing->datanode_uuid);
    if (session == sessions_.end() || session->second->incarnation() != standing->incarnation) continue;
    if (session->second->room() && HasRoom(standing->datanode_uuid)) {
      sources.emplace_back(storage, standing->datanode_uuid);
    } else {
      crowded = true;
    }
  }
  if (sources.empty()) {
    if (crowded) {
      queue->Postpone(judged.block, options_.repair_interval, now);
    } else {
      queue->Park(judged.block, ParkReason::kNoSource, now);
    }
    return false;
  }
  const auto& [source_storage, source] = sources[static_cast<size_t>(random_.Below(sources.size()))];

  PlacementRequest request;
  request.names_nodes = false;
  if (queue == &repairs_) {
    request.replication = verdict.needed - verdict.present;
  } else {
    request.replication = 1;
    request.other_than_rack = verdict.rack;
  }
  request.block_size_bytes = std::max<uint64_t>(1, judged.evidence.record->length_bytes());
  request.holding = verdict.holders;
  for (StorageNumber storage : invalidations_.ToldOf(judged.block))
    if (std::optional<StorageStanding> standing = parts_.registry->StandingOf(storage)) request.holding.push_back(standing->datanode_uuid);
  RejectionCounts rejected{};
  absl::StatusOr<std::vector<StorageNumber>> targets = PlaceBlock(repair_nodes_, request, &random_, &rejected);
  if (!targets.ok()) {
    if (rejected[static_cast<size_t>(Rejection::kBusy)] > 0) {  // Not for long.
      queue->Postpone(judged.block, options_.repair_interval, now);
    } else {
      queue->Park(judged.block, ParkReason::kNoTarget, now);
    }
    return false;
  }

  Repair repair;
  repair.command_id = next_command_id_++;
  repair.block = judged.block;
  repair.source = source;
  v1::CommandDown command = CopyOrder(repair.command_id, judged, source_storage, v1::REPAIR, options_.repair_timeout);
  for (StorageNumber target : *targets) {
    std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(target);
    if (!location) continue;
    repair.targets.push_back(location->datanode().uuid());
    *command.mutable_transfer()->add_targets() = *std::move(location);
  }
  const std::vector<std::string> taken = repair.targets;
  queue->Started(std::move(repair), parts_.clock->Now());
  for (const std::string& uuid : taken)
    if (const auto at = repair_node_at_.find(uuid); at != repair_node_at_.end()) repair_nodes_[at->second].busy = !HasRoom(uuid);
  if (const auto at = repair_node_at_.find(source); at != repair_node_at_.end()) repair_nodes_[at->second].busy = !HasRoom(source);
  sessions_.at(source)->Queue(std::move(command));
  return true;
}

// --- command streams

absl::Status BlockManager::OnCommandsOpened(const std::shared_ptr<CommandSession>& session) {
  const std::string& uuid = session->datanode_uuid();
  RETURN_IF_ERROR(parts_.registry->Heard(uuid, session->incarnation()));
  if (const auto older = sessions_.find(uuid); older != sessions_.end()) {
    const std::shared_ptr<CommandSession> ended = older->second;
    ended->End(MakeError(ErrorKind::kCancelled, "a newer command stream of this DataNode"));
  }
  sessions_[uuid] = session;
  OnReportsLost(uuid);  // What the broken stream swallowed is sent again.
  recoveries_.PrimaryFound(parts_.clock->Now());
  StartRecoveriesSoon();
  return absl::OkStatus();
}

void BlockManager::OnCommandsClosed(const CommandSession& session) {
  const auto found = sessions_.find(session.datanode_uuid());
  if (found == sessions_.end() || found->second.get() != &session) return;
  repairs_.SourceLost(session.datanode_uuid(), parts_.clock->Now());
  spreads_.SourceLost(session.datanode_uuid(), parts_.clock->Now());
  OnMovesOver(moves_.SourceLost(session.datanode_uuid()));
  recoveries_.PrimaryLost(session.datanode_uuid(), parts_.clock->Now());
  resend_.erase(session.datanode_uuid());
  sessions_.erase(found);
}

void BlockManager::EndSessions(const absl::Status& status) {
  const absl::btree_map<std::string, std::shared_ptr<CommandSession>> sessions = sessions_;
  for (const auto& [uuid, session] : sessions) session->End(status);
}

void BlockManager::OnOutcome(const CommandSession& session, const v1::CommandUp::Outcome& outcome) {
  IgnoreError(parts_.registry->Heard(session.datanode_uuid(), session.incarnation()), "a superseded DataNode's word changes nothing here");
  repairs_.Outcome(outcome.command_id(), outcome.ok(), parts_.clock->Now());
  spreads_.Outcome(outcome.command_id(), outcome.ok(), parts_.clock->Now());
  recoveries_.Outcome(outcome.command_id(), outcome.ok(), parts_.clock->Now());
  std::vector<BalanceMove> failed;
  if (moves_.Outcome(outcome.command_id(), outcome.ok(), parts_.clock->Now() + kLandedWithin, &failed)) OnMovesOver(failed);
}

std::vector<v1::InvalidateReplica> BlockManager::TakeInvalidations(const CommandSession& session, size_t limit) {
  std::vector<v1::InvalidateReplica> taken;
  if (safe_mode_) return taken;  // All of it waits in its queue; the next tick after the end pumps.
  const SteadyTime now = parts_.clock->Now();
  const auto tell = [&](StorageNumber storage, BlockId block, GenerationStamp stamp, uint64_t command_id) {
    const std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(storage);
    if (!location) return;
    v1::InvalidateReplica replica;
    replica.set_storage_uuid(location->storage_uuid());
    replica.set_block_id(block.value());
    replica.set_generation_stamp(stamp.value());
    replica.set_command_id(command_id);
    taken.push_back(std::move(replica));
  };
  if (const auto again = resend_.find(session.datanode_uuid()); again != resend_.end()) {
    while (!again->second.empty() && taken.size() < limit) {
      const InvalidationQueue::Told told = again->second.front();
      again->second.pop_front();
      if (told.incarnation == session.incarnation() && invalidations_.IsNewest(told))
        tell(told.storage, told.block, told.stamp, told.command_id);
    }
  }
  for (StorageNumber storage : parts_.registry->StoragesOf(session.datanode_uuid())) {
    const std::optional<StorageStanding> standing = parts_.registry->StandingOf(storage);
    if (!standing || standing->incarnation != session.incarnation()) continue;
    while (taken.size() < limit) {
      const std::vector<BlockId> candidates = invalidations_.Take(storage, std::min(kCandidatesAtOnce, limit - taken.size()));
      if (candidates.empty()) break;
      absl::StatusOr<std::vector<Judged>> all = Evaluate(candidates);
      if (!all.ok()) {
        scan_wanted_ = true;
        break;
      }
      for (const Judged& judged : *all) {
        for (const BlockVerdict::Go& go : judged.verdict.go) {
          if (go.storage != storage) {  // Its own turn comes.
            if (!invalidations_.Add(go.storage, judged.block, now)) scan_wanted_ = true;
            PumpSoon(go.storage);
            continue;
          }
          if (std::optional<uint64_t> id = invalidations_.Tell(storage, judged.block, go.stamp, session.incarnation(), now)) {
            tell(storage, judged.block, go.stamp, *id);
          } else {
            scan_wanted_ = true;  // Too many are told: a later scan finds it again.
          }
        }
      }
    }
  }
  return taken;
}

void BlockManager::PumpSoon(StorageNumber storage) {
  const std::optional<StorageStanding> standing = parts_.registry->StandingOf(storage);
  if (!standing || !sessions_.contains(standing->datanode_uuid)) return;
  to_pump_.insert(standing->datanode_uuid);
  if (pump_posted_) return;
  pump_posted_ = true;
  parts_.executor->Post([weak = weak_from_this()] {
    if (const std::shared_ptr<BlockManager> self = weak.lock()) self->PumpAll();
  });
}

void BlockManager::PumpAll() {
  pump_posted_ = false;
  const absl::btree_set<std::string> uuids = std::move(to_pump_);
  to_pump_.clear();
  for (const std::string& uuid : uuids) {
    const auto session = sessions_.find(uuid);
    if (session == sessions_.end()) continue;
    const std::shared_ptr<CommandSession> held = session->second;
    held->Pump();
  }
}

}  // namespace cairn::namenode
