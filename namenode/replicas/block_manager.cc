#include "namenode/replicas/block_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.h"
#include "common/fault_points.h"
#include "common/status.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace/records.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

constexpr absl::Duration kScanPause = absl::Milliseconds(5);  // Between steps: the executor has other work.
constexpr absl::Duration kScanEvery = absl::Minutes(10);      // When nothing asks for one.
constexpr absl::Duration kNotPublished = absl::Seconds(1);    // A freed block whose freeing the snapshot does not show yet.
constexpr absl::Duration kResendCheck = absl::Seconds(30);
constexpr absl::Duration kDropWithin = absl::Minutes(2);  // A replica whose place the balancer has filled.

RepairQueue::Limits RepairLimits(const ReplicaPlane::Options& options) {
  RepairQueue::Limits limits;
  limits.per_node = options.max_repairs_per_node;
  limits.timeout = options.repair_timeout;
  return limits;
}

RecoveryQueue::Limits RecoveryLimits(const ReplicaPlane::Options& options) {
  RecoveryQueue::Limits limits;
  limits.first_round = options.recovery_round;
  return limits;
}

bool IsHeldBackByPause(const BlockVerdict::Go& go) { return go.reason == GoReason::kGarbage || go.reason == GoReason::kExcess; }

// No two NameNode starts share a command id.
uint64_t FirstCommandId(Epoch epoch) { return (epoch.value() << 40) + 1; }

}  // namespace

BlockManager::BlockManager(const ReplicaPlane::Options& options, const ReplicaPlane::Identity& identity, Parts parts,
                           GenerationStamp next_stamp, Random random, AskStorage ask)
    : options_(options),
      identity_(identity),
      parts_(parts),
      random_(random),
      ask_(std::move(ask)),
      started_(parts.clock->Now()),
      invalidations_({}, FirstCommandId(identity.epoch)),
      repairs_(RepairLimits(options)),
      spreads_(RepairLimits(options)),
      recoveries_(RecoveryLimits(options)),
      first_own_stamp_(next_stamp),
      next_command_id_(FirstCommandId(identity.epoch) + (uint64_t{1} << 39)),
      keep_unknown_(options.keep_unknown_replicas),
      moves_(kDropWithin) {}

absl::StatusOr<bool> BlockManager::DeletesArePaused(const ReadView& view) {
  ASSIGN_OR_RETURN(const std::optional<v1::ReclaimControl> control,
                   FindRecord<v1::ReclaimControl>(view, Family::kMeta, kMetaReclaimControl));
  return control && control->paused();
}

absl::StatusOr<std::vector<BlockManager::Judged>> BlockManager::Evaluate(const std::vector<BlockId>& blocks) {
  std::vector<Judged> all;
  for (BlockId block : blocks) {
    ASSIGN_OR_RETURN(const std::vector<ReplicaRow> rows, parts_.store->ReplicasOf(block));
    Judged judged;
    judged.block = block;
    judged.evidence.id = block;
    for (const ReplicaRow& row : rows)
      judged.evidence.replicas.push_back(
          {row, parts_.registry->StandingOf(row.storage), invalidations_.IsTold(row.storage, block, row.stamp)});
    all.push_back(std::move(judged));
  }
  const std::shared_ptr<const ReadView> view = parts_.space->Snapshot();
  ASSIGN_OR_RETURN(const Counters counters, ReadCounters(*view));
  ASSIGN_OR_RETURN(const bool paused, DeletesArePaused(*view));
  const int64_t now_ms = absl::ToUnixMillis(parts_.clock->WallNow());
  const size_t racks = parts_.registry->RackCount();
  const bool last_good_goes = !FaultPoint("replicas.invalidate_last").ok();
  for (Judged& judged : all) {
    BlockEvidence& evidence = judged.evidence;
    ASSIGN_OR_RETURN(evidence.record, FindBlock(*view, judged.block));
    evidence.next_block_id = counters.next_block_id.value();
    evidence.keep_unknown = keep_unknown_;
    evidence.now_ms = now_ms;
    evidence.acknowledged_grace_ms = absl::ToInt64Milliseconds(options_.acknowledged_grace);
    evidence.starting = starting_;
    evidence.maintenance_minimum = options_.maintenance_minimum;
    evidence.min_replication = options_.min_replication;
    evidence.racks = racks;
    if (const BalanceMove* const move = moves_.Find(judged.block)) {
      evidence.leaving = move->source_storage;
      evidence.arriving = move->target;
    }
    if (evidence.record && evidence.record->state() == v1::COMMITTED) {
      for (uint32_t number : evidence.record->expected_storages()) {
        const StorageNumber storage(number);
        if (std::optional<StorageStanding> standing = parts_.registry->StandingOf(storage)) {
          evidence.expected.push_back(*std::move(standing));
        } else if (std::none_of(evidence.replicas.begin(), evidence.replicas.end(),
                                [&](const ReplicaEvidence& e) { return e.row.storage == storage; })) {
          ++evidence.unregistered_expected;
        }
      }
    }
    judged.verdict = JudgeBlock(evidence);
    if (paused && std::erase_if(judged.verdict.go, IsHeldBackByPause) > 0) held_back_ = true;
    if (last_good_goes) {
      judged.verdict.go.clear();
      for (StorageNumber storage : judged.verdict.sources)
        judged.verdict.go.push_back({storage, GenerationStamp(evidence.record->generation_stamp()), GoReason::kExcess});
    }
  }
  return all;
}

void BlockManager::Judge(std::vector<BlockId> blocks) { JudgeNow(blocks, false); }

void BlockManager::JudgeNow(const std::vector<BlockId>& blocks, bool asking) {
  absl::StatusOr<std::vector<Judged>> all = Evaluate(blocks);
  if (!all.ok()) {  // A damaged row somewhere: nothing is deleted or repaired on half of the evidence; the next scan tries again.
    scan_wanted_ = true;
    return;
  }
  for (const Judged& judged : *all) Act(judged, asking);
}

void BlockManager::OnFreed(const std::vector<BlockId>& blocks) {
  absl::StatusOr<std::vector<Judged>> all = Evaluate(blocks);
  if (!all.ok()) {
    scan_wanted_ = true;
    return;
  }
  for (const Judged& judged : *all) {
    Act(judged, false);
    if (judged.evidence.record && recheck_.size() < kRemembered) recheck_.insert({parts_.clock->Now() + kNotPublished, judged.block});
  }
}

void BlockManager::Act(const Judged& judged, bool asking) {
  const BlockVerdict& verdict = judged.verdict;
  const SteadyTime now = parts_.clock->Now();
  const bool committed = verdict.wanted > 0;
  FollowMove(judged);
  if (judged.evidence.record && judged.evidence.record->state() == v1::UNDER_RECOVERY) {
    NeedRecovery(judged.block);
  } else if (recoveries_.Settled(judged.block)) {
    StartRecoveriesSoon();  // There is room for another.
  }
  if (verdict.under_replicated) {
    if (!repairs_.Need(judged.block, verdict.left, now)) scan_wanted_ = true;
  } else {
    repairs_.Settled(judged.block);
    asked_.erase(judged.block);
  }
  if (verdict.mis_replicated) {
    static_cast<void>(spreads_.Need(judged.block, verdict.left, now));  // A later scan finds those that are too many.
  } else {
    spreads_.Settled(judged.block);
  }
  if (const auto known = missing_.find(judged.block); known != missing_.end()) {
    missing_of_one_ -= known->second ? 1 : 0;
    missing_.erase(known);
  }
  if (committed && verdict.missing && missing_.size() < kRemembered) {
    missing_[judged.block] = verdict.wanted == 1;
    missing_of_one_ += verdict.wanted == 1 ? 1 : 0;
  }
  if (const auto known = corrupt_.find(judged.block); known != corrupt_.end()) {
    corrupt_replicas_ -= known->second;
    corrupt_.erase(known);
  }
  if (verdict.corrupt > 0 && corrupt_.size() < kRemembered) {
    corrupt_[judged.block] = verdict.corrupt;
    corrupt_replicas_ += verdict.corrupt;
  }
  if (verdict.quarantined && quarantined_.size() < kRemembered) {
    quarantined_.insert(judged.block);
  } else if (!verdict.quarantined) {
    quarantined_.erase(judged.block);
  }
  for (const BlockVerdict::Go& go : verdict.go) {
    if (!invalidations_.Add(go.storage, judged.block, now)) scan_wanted_ = true;
    PumpSoon(go.storage);
  }
  if (!committed || !verdict.unconfirmed) return;
  if (verdict.in_grace) {
    const int64_t age_ms = std::max<int64_t>(0, judged.evidence.now_ms - judged.evidence.record->committed_ms());
    const absl::Duration left = std::max(options_.acknowledged_grace - absl::Milliseconds(age_ms), absl::ZeroDuration());
    if (recheck_.size() < kRemembered) recheck_.insert({now + left + absl::Milliseconds(1), judged.block});
  } else if (asking && verdict.under_replicated) {
    AskExpected(judged);
  }
}

void BlockManager::AskExpected(const Judged& judged) {
  const SteadyTime now = parts_.clock->Now();
  if (asked_.size() >= kRemembered) asked_.clear();
  if (const auto asked = asked_.find(judged.block); asked != asked_.end() && now - asked->second < options_.walk_period) return;
  asked_[judged.block] = now;
  for (const StorageStanding& expected : judged.evidence.expected) {
    if (expected.node == v1::DEAD || expected.state >= v1::FAILED) continue;
    if (std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(expected.storage))
      ask_(expected.datanode_uuid, location->storage_uuid(), judged.block);
  }
}

void BlockManager::OnReportEffects(Incarnation incarnation, const ReportEffects& effects) {
  const SteadyTime now = parts_.clock->Now();
  for (const ReportEffects::Answer& answer : effects.answers) invalidations_.Answered(answer.storage, answer.block, answer.command_id);
  for (const ReportEffects::Passed& passed : effects.passed) invalidations_.Passed(passed.storage, passed.first, passed.end, incarnation);
  for (StorageNumber storage : effects.state_changed) storage_scans_.push_back({storage, 0});
  if (effects.marked || effects.walk_completed) scan_wanted_ = true;
  for (const BlockId block : effects.changed) {
    repairs_.Reconsider(block, now);
    spreads_.Reconsider(block, now);
  }
  if (!effects.changed.empty()) JudgeNow(effects.changed, false);
}

void BlockManager::OnReportsLost(const std::string& datanode_uuid) {
  const auto session = sessions_.find(datanode_uuid);
  if (session == sessions_.end()) return;  // Its Hello sends all again.
  std::deque<InvalidationQueue::Told>& again = resend_[datanode_uuid];
  again.clear();
  for (StorageNumber storage : parts_.registry->StoragesOf(datanode_uuid))
    for (InvalidationQueue::Told& told : invalidations_.Resend(storage, session->second->incarnation(), true, parts_.clock->Now()))
      again.push_back(std::move(told));
  to_pump_.insert(datanode_uuid);
}

void BlockManager::OnBadReplica(const v1::Block& block, const std::string& storage_uuid) {
  const std::optional<StorageNumber> storage = parts_.registry->NumberOf(storage_uuid);
  if (!storage) return;
  const std::optional<StorageStanding> standing = parts_.registry->StandingOf(*storage);
  const auto session = standing ? sessions_.find(standing->datanode_uuid) : sessions_.end();
  if (session == sessions_.end() || !session->second->room()) return;  // Its own scanner finds it.
  v1::CommandDown command;
  command.set_command_class(v1::CONTROL);
  command.mutable_verify()->set_command_id(next_command_id_++);
  *command.mutable_verify()->mutable_block() = block;
  command.mutable_verify()->set_storage_uuid(storage_uuid);
  session->second->Queue(std::move(command));
}

void BlockManager::Tick() {
  const SteadyTime now = parts_.clock->Now();
  if (starting_ && now - started_ >= options_.dead_after) {  // Who has not come by now is lost.
    starting_ = false;
    scan_wanted_ = true;
  }
  const DatanodeRegistry::Changes changes = parts_.registry->Sweep();
  for (const auto* nodes : {&changes.died, &changes.returned}) {
    for (const std::string& uuid : *nodes) {
      for (StorageNumber storage : parts_.registry->StoragesOf(uuid)) {
        if (nodes == &changes.died) invalidations_.ForgetWaiting(storage);
        storage_scans_.push_back({storage, 0});
      }
      if (nodes == &changes.died) OnNodeDied(uuid);
    }
  }
  if (!changes.returned.empty()) OnNodeCame();
  FollowDrains();
  std::vector<BlockId> due;
  while (!recheck_.empty() && recheck_.begin()->first <= now && due.size() < kStep) {
    due.push_back(recheck_.begin()->second);
    recheck_.erase(recheck_.begin());
  }
  if (!due.empty()) JudgeNow(due, true);
  if (held_back_) {
    const absl::StatusOr<bool> paused = DeletesArePaused(*parts_.space->Snapshot());
    if (paused.ok() && !*paused) {
      held_back_ = false;
      scan_wanted_ = true;
    }
  }
  repairs_.Expire(now);
  spreads_.Expire(now);
  if (!repairing_) BeginRepairs();
  FollowBalance();
  StartRecoveries();
  if (now >= next_resend_ && !safe_mode_) {
    next_resend_ = now + kResendCheck;
    for (const auto& [uuid, session] : sessions_) {
      for (StorageNumber storage : parts_.registry->StoragesOf(uuid))
        for (InvalidationQueue::Told& told : invalidations_.Resend(storage, session->incarnation(), false, now))
          resend_[uuid].push_back(std::move(told));
    }
  }
  if (!scanning_) ScanStep();
  for (const auto& [uuid, session] : sessions_) to_pump_.insert(uuid);
  PumpAll();
  PublishFigures();
}

// --- scans

void BlockManager::ScanStep() {
  scanning_ = false;
  const SteadyTime now = parts_.clock->Now();
  if (!scan_at_ && (scan_wanted_ || now >= next_scan_)) {
    scan_wanted_ = false;
    scan_at_ = BlockId(0);
    next_scan_ = now + kScanEvery;
  }
  const bool more = storage_scans_.empty() ? ScanAllStep() : ScanStorageStep();
  if (!more && storage_scans_.empty() && !scan_at_) return;  // The next tick looks again.
  scanning_ = true;
  parts_.executor->PostAt(now + kScanPause, [weak = weak_from_this()] {
    if (const std::shared_ptr<BlockManager> self = weak.lock()) self->ScanStep();
  });
}

bool BlockManager::ScanStorageStep() {
  auto& [storage, from] = storage_scans_.front();
  absl::StatusOr<std::vector<ReplicaRow>> rows = parts_.store->ReplicasOn(storage, from, kNothingWalked, kStep);
  if (!rows.ok() || rows->empty()) {
    storage_scans_.pop_front();
    return true;
  }
  from = rows->back().block.value() + 1;
  std::vector<BlockId> blocks;
  for (const ReplicaRow& row : *rows) blocks.push_back(row.block);
  JudgeNow(blocks, false);
  return true;
}

bool BlockManager::ScanAllStep() {
  if (!scan_at_) return false;
  const auto finish = [this] {
    scan_at_.reset();
    return false;
  };
  // Every block that has rows here or a record there: the two lists, merged as far as both reach.
  absl::StatusOr<std::vector<BlockId>> here = parts_.store->BlocksFrom(*scan_at_, kStep);
  if (!here.ok()) return finish();
  std::vector<BlockId> there;
  {
    const std::shared_ptr<const ReadView> view = parts_.space->Snapshot();
    std::unique_ptr<Cursor> cursor = view->Scan(Family::kBlock, BlockKey(*scan_at_), "");
    for (; cursor->Valid() && there.size() < kStep; cursor->Next())
      if (std::optional<BlockId> block = ParseBlockKey(cursor->key())) there.push_back(*block);
    if (!cursor->status().ok()) return finish();
  }
  uint64_t end = UINT64_MAX;
  if (here->size() == kStep) end = here->back().value();
  if (there.size() == kStep) end = std::min(end, there.back().value());
  std::vector<BlockId> blocks = std::move(*here);
  blocks.insert(blocks.end(), there.begin(), there.end());
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  while (!blocks.empty() && blocks.back().value() > end) blocks.pop_back();
  JudgeNow(blocks, true);
  if (end == UINT64_MAX) return finish();
  scan_at_ = BlockId(end + 1);
  return true;
}

// --- figures

void BlockManager::PublishFigures() {
  ReplicaPlane::Figures figures;
  figures.under_replicated_blocks = repairs_.size();
  figures.repairs_running = repairs_.running();
  figures.repairs_waiting = repairs_.waiting();
  figures.repairs_timed_out = repairs_.timed_out();
  figures.repairs_parked_no_source = repairs_.parked(ParkReason::kNoSource);
  figures.repairs_parked_no_target = repairs_.parked(ParkReason::kNoTarget);
  figures.at_risk_blocks = repairs_.WithCopies(1);
  figures.oldest_repair = repairs_.OldestAge(parts_.clock->Now());
  figures.oldest_invalidation = invalidations_.OldestAge(parts_.clock->Now());
  figures.missing_blocks = missing_.size();
  figures.missing_blocks_replication_one = missing_of_one_;
  figures.corrupt_blocks = corrupt_.size();
  figures.corrupt_replicas = corrupt_replicas_;
  figures.mis_replicated_blocks = spreads_.size();
  figures.quarantined_blocks = quarantined_.size();
  figures.invalidations_waiting = invalidations_.waiting();
  figures.invalidations_told = invalidations_.told();
  figures.command_sessions = sessions_.size();
  figures.recovering_blocks = recoveries_.size();
  figures.oldest_recovery = recoveries_.OldestAge(parts_.clock->Now());
  figures.unknown_replicas_kept = keep_unknown_;
  figures.moves_in_flight = moves_.size();
  figures.moved_replicas = moves_.moved_blocks();
  figures.moved_bytes = moves_.moved_bytes();
  figures.failed_moves = moves_.failed();
  Board::Drains drains;
  for (const auto& [uuid, drain] : drains_) drains[uuid] = {drain.left(), drain.open_left(), drain.looked_at(), drain.looked_once()};
  board_.Set(figures, std::move(drains));
}

}  // namespace cairn::namenode
