// The part of BlockManager that moves replicas from full nodes to empty ones. What a run is, balance_run.h says; here its replicas are
// looked for, and the copies ordered and followed.
//
// Only what is beyond doubt is moved: a committed block with exactly its copies, all of which count for deletion, and of which nothing
// else is about to change. The copy is made first; the source's replica goes by the one rule by which any excess goes (block_states.h), as
// soon as the new one counts: so the block never has fewer than its wanted copies for it.

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/api/balance.h"
#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "namenode/namespace/datanode_rows.h"
#include "namenode/replicas/block_manager.h"

namespace cairn::namenode {
namespace {

constexpr absl::Duration kBalancePause = absl::Milliseconds(5);  // Between steps: the executor has other work.
constexpr size_t kLeastRows = 16;                                // Of one look.
constexpr size_t kMostRows = 256;
constexpr double kBrim = 0.05;                              // Of a volume, that no move fills.
constexpr absl::Duration kWalksWithin = absl::Minutes(10);  // Of the start: a walk that takes longer is not waited for.

// Where the replica goes on that node: to the volume with the largest free share.
std::optional<StorageNumber> RoomiestVolume(const PlacementNode& node, uint64_t length_bytes, const BalanceMoves& moves) {
  std::optional<StorageNumber> best;
  double best_share = 0;
  for (const PlacementNode::Storage& storage : node.storages) {
    const uint64_t taken = moves.BytesOnTheWayTo(storage.storage) + length_bytes;
    if (storage.remaining_bytes <= taken) continue;
    const auto left = static_cast<double>(storage.remaining_bytes - taken);
    const auto capacity = static_cast<double>(std::max(storage.capacity_bytes, storage.remaining_bytes));
    if (left / capacity < kBrim || (best && left / capacity <= best_share)) continue;
    best = storage.storage;
    best_share = left / capacity;
  }
  return best;
}

// On as many racks as before, if the copy of one storage were on that rack instead.
bool KeepsRacks(const BlockEvidence& evidence, StorageNumber source, const std::string& target_rack) {
  std::set<std::string> before, after = {target_rack};
  for (const ReplicaEvidence& replica : evidence.replicas) {
    before.insert(replica.standing->rack);
    if (replica.row.storage != source) after.insert(replica.standing->rack);
  }
  return after.size() >= before.size();
}

}  // namespace

absl::Status BlockManager::CheckBalance(const v1::BalanceRequest& request) const {
  if (request.run() == 0 || !(request.threshold() > 0 && request.threshold() <= 100))
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("run {}, threshold {}: a run's number is not 0, its threshold in (0, 100]",
                                                              request.run(), request.threshold()));
  RETURN_IF_ERROR(CheckBalanceRate(request.bytes_per_second()));
  if (safe_mode_) return MakeError(ErrorKind::kSafeMode, "the NameNode is in safe mode: nothing is moved");
  ASSIGN_OR_RETURN(const bool paused, DeletesArePaused(*parts_.space->Snapshot()));
  if (paused) {
    return MakeError(ErrorKind::kBusy,
                     "freeing is paused (dfsadmin -reclaim resume ends that): what is moved would stay where it was as well");
  }
  // Who is named may be still on the way.
  return NodesAreAwaited() ? absl::OkStatus() : CheckNames(request);
}

absl::Status BlockManager::CheckNames(const v1::BalanceRequest& request) const {
  v1::ClusterReportResponse report;
  parts_.registry->FillReport(&report);
  for (const auto* names : {&request.sources(), &request.include()}) {
    for (const std::string& name : *names) {
      const auto named = [&name](const v1::DatanodeReport& node) { return IsNamed(node.info(), name); };
      if (std::none_of(report.datanodes().begin(), report.datanodes().end(), named))
        return MakeError(ErrorKind::kNotFound, fmt::format("no DataNode '{}' is known here", name));
    }
  }
  return absl::OkStatus();
}

// After a start, for those that were there before it and may still come, and for what they have: without them the rest may look balanced,
// and nothing that is not walked may move.
bool BlockManager::NodesAreAwaited() const {
  if (starting_) {
    const auto storages = RegisteredStorages(*parts_.space->Snapshot());
    if (!storages.ok()) return true;
    for (const auto& [number, record] : *storages)
      if (!parts_.registry->HasReported(record.datanode_uuid())) return true;
  }
  return parts_.clock->Now() - started_ < kWalksWithin && parts_.registry->WalkIsDue();
}

bool BlockManager::MayPlan() const {
  if (NodesAreAwaited() || !parts_.registry->RacksAreKnown()) return false;
  // The driver hears of a name that nobody has when it asks again.
  return balance_->iteration() > 0 || CheckNames(balance_->request()).ok();
}

absl::StatusOr<v1::BalanceResponse> BlockManager::Balance(const v1::BalanceRequest& request) {
  const SteadyTime now = parts_.clock->Now();
  if (!balance_ || balance_->id() != request.run()) {
    if (balance_ && balance_->IsActive(now)) {
      Error error;
      error.kind = ErrorKind::kAlreadyExists;
      error.reason = "BALANCER_RUNNING";
      error.message = fmt::format("another balancer is running, of user {}", balance_->request().header().user());
      return MakeError(std::move(error));
    }
    if (request.stop()) return v1::BalanceResponse();  // It has been forgotten already.
    RETURN_IF_ERROR(CheckBalance(request));
    BalanceRun::Limits limits;
    limits.settle = 2 * options_.heartbeat_interval + absl::Seconds(1);
    const uint64_t before = balancer_bandwidth();
    // DataNodes hear by their next heartbeats what they may use; nothing moves before.
    const bool told = request.bytes_per_second() == 0 || request.bytes_per_second() == before;
    balance_.emplace(request, limits, told ? now : now + options_.heartbeat_interval + absl::Seconds(1), now);
    log::Info("balancer: run {:x} of {} begins, threshold {}", request.run(), request.header().user(), request.threshold());
    if (told) FollowBalance();
  } else if (balance_->iteration() == 0 && !request.stop() && !NodesAreAwaited()) {
    if (absl::Status known = CheckNames(request); !known.ok()) {
      balance_.reset();
      PublishBalancerBandwidth();
      return known;
    }
  }
  balance_->Renew(now);
  if (request.stop()) balance_->End(v1::BalanceResponse::STOPPED);
  PublishBalancerBandwidth();
  v1::BalanceResponse response;
  balance_->Fill(&response);
  response.set_epoch(identity_.epoch.value());
  response.set_in_flight(static_cast<uint32_t>(moves_.InFlightOf(request.run())));
  return response;
}

void BlockManager::SetBalancerBandwidth(uint64_t bytes_per_second) {
  set_balancer_bandwidth_ = bytes_per_second;
  PublishBalancerBandwidth();
}

void BlockManager::PublishBalancerBandwidth() {
  const bool runs = balance_ && balance_->IsActive(parts_.clock->Now()) && balance_->request().bytes_per_second() > 0;
  balancer_bandwidth_.store(runs ? balance_->request().bytes_per_second() : set_balancer_bandwidth_, std::memory_order_relaxed);
}

// --- steps

void BlockManager::FollowBalance() {
  const SteadyTime now = parts_.clock->Now();
  OnMovesOver(moves_.Expire(now));
  FollowLanded();
  PublishBalancerBandwidth();
  if (!balance_ || !balance_->IsActive(now) || safe_mode_) return;
  balance_->Follow(moves_.InFlightOf(balance_->id()), now);
  if (!balance_->IsActive(now)) return;
  if (balance_->PlanIsDue(now) && MayPlan()) {
    v1::ClusterReportResponse report;
    parts_.registry->FillReport(&report);
    const std::vector<BalanceNode> nodes = NodesToBalance(report, balance_->request());
    BalancePlan plan = PlanBalance(nodes, balance_->request().threshold() / 100, balance_->limits().most_bytes);
    const auto storages_of = [this](const std::string& uuid) { return parts_.registry->StoragesOf(uuid); };
    balance_->Begin(std::move(plan), nodes, storages_of, now);
  }
  BalanceSoon();
}

void BlockManager::BalanceSoon() {
  if (balancing_ || !balance_ || !balance_->IsActive(parts_.clock->Now())) return;
  balancing_ = true;
  parts_.executor->PostAt(parts_.clock->Now() + kBalancePause, [weak = weak_from_this()] {
    if (const std::shared_ptr<BlockManager> self = weak.lock()) self->BalanceStep();
  });
}

void BlockManager::BalanceStep() {
  balancing_ = false;
  if (safe_mode_ || !balance_ || !balance_->IsActive(parts_.clock->Now())) return;
  if (!parts_.registry->RacksAreKnown()) return;  // A copy could leave the only rack but one; the next tick comes back here.
  const auto has_room = [this](const std::string& uuid) { return HasRoomForMove(uuid); };
  const std::optional<BalanceRun::Look> look = balance_->NextLook(has_room, parts_.clock->Now());
  const absl::StatusOr<bool> paused = DeletesArePaused(*parts_.space->Snapshot());
  if (!look || !paused.ok() || *paused) return;  // The end of a move, or the next tick, comes back here.
  StartMoves(*look);
  BalanceSoon();
}

size_t BlockManager::MostMoves() const {
  const uint32_t asked = balance_->request().max_moves();
  return asked == 0 ? options_.balancer_moves_per_node : std::min<size_t>(asked, api::kMostBalanceMoves);
}

// Repairs come first: a node that has all it may have moves nothing.
bool BlockManager::HasRoomForMove(const std::string& datanode_uuid) const {
  const auto session = sessions_.find(datanode_uuid);
  return session != sessions_.end() && session->second->room() && HasRoom(datanode_uuid) && moves_.LoadOf(datanode_uuid) < MostMoves();
}

void BlockManager::StartMoves(const BalanceRun::Look& look) {
  const size_t room = MostMoves() - std::min(MostMoves(), moves_.LoadOf(look.source));
  const size_t limit = std::clamp(4 * room, kLeastRows, kMostRows);
  const absl::StatusOr<std::vector<ReplicaRow>> rows = parts_.store->ReplicasOn(look.storage, look.from, look.end, limit);
  if (!rows.ok() || rows->empty()) return balance_->Reached(look, std::nullopt);
  const std::optional<uint64_t> next = rows->size() < limit ? std::nullopt : std::optional(rows->back().block.value() + 1);
  std::vector<BlockId> blocks;
  for (const ReplicaRow& row : *rows) blocks.push_back(row.block);
  const absl::StatusOr<std::vector<Judged>> all = Evaluate(blocks);
  if (!all.ok()) return balance_->Reached(look, next);  // A damaged row somewhere: nothing is moved on half of the evidence.
  const std::vector<PlacementNode> nodes = parts_.registry->PlacementNodes();
  for (const Judged& judged : *all) {
    if (!HasRoomForMove(look.source)) return balance_->Reached(look, judged.block.value());
    if (MayMove(judged)) StartMove(judged, look, nodes);
  }
  balance_->Reached(look, next);
}

bool BlockManager::MayMove(const Judged& judged) const {
  const BlockVerdict& verdict = judged.verdict;
  if (verdict.wanted == 0 || verdict.under_replicated || verdict.mis_replicated || verdict.corrupt > 0 || !verdict.go.empty()) return false;
  // In the grace readers may be sent to the storages that acknowledged it, whatever their streams say.
  if (verdict.in_grace || judged.evidence.record->length_bytes() == 0) return false;
  // As many rows as copies that count, and as are wanted: there is nothing else of it anywhere.
  if (verdict.counted != verdict.wanted || judged.evidence.replicas.size() != verdict.wanted) return false;
  return moves_.Find(judged.block) == nullptr && !balance_->HasFailed(judged.block) && !repairs_.IsUnderRepair(judged.block) &&
         !spreads_.IsUnderRepair(judged.block) && invalidations_.ToldOf(judged.block).empty();
}

void BlockManager::StartMove(const Judged& judged, const BalanceRun::Look& look, const std::vector<PlacementNode>& nodes) {
  const v1::BlockRecord& record = *judged.evidence.record;
  const auto session = sessions_.find(look.source);
  const std::optional<StorageStanding> standing = parts_.registry->StandingOf(look.storage);
  if (session == sessions_.end() || !standing || session->second->incarnation() != standing->incarnation) return;
  for (const std::string& uuid : balance_->TargetsFor(look.source, record.length_bytes())) {
    if (!HasRoomForMove(uuid)) continue;
    const std::vector<std::string>& holders = judged.verdict.holders;
    if (std::find(holders.begin(), holders.end(), uuid) != holders.end()) continue;
    const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const PlacementNode& each) { return each.datanode_uuid == uuid; });
    if (node == nodes.end() || node->state != v1::LIVE || node->admin != v1::NODE_NORMAL) continue;
    if (!KeepsRacks(judged.evidence, look.storage, node->rack)) continue;
    const std::optional<StorageNumber> volume = RoomiestVolume(*node, record.length_bytes(), moves_);
    std::optional<v1::StorageLocation> to = volume ? parts_.registry->LocationOf(*volume) : std::nullopt;
    if (!to) continue;

    const uint64_t pace = balancer_bandwidth() > 0 ? balancer_bandwidth() : options_.balancer_bytes_per_second;
    const double copying = static_cast<double>(record.length_bytes()) * static_cast<double>(MostMoves()) / static_cast<double>(pace);
    const absl::Duration patience = options_.repair_timeout + absl::Seconds(2 * copying);
    BalanceMove move;
    move.run = balance_->id();
    move.command_id = next_command_id_++;
    move.block = judged.block;
    move.stamp = GenerationStamp(record.generation_stamp());
    move.length_bytes = record.length_bytes();
    move.source = look.source;
    move.target = uuid;
    move.source_storage = look.storage;
    move.target_storage = *volume;
    move.deadline = parts_.clock->Now() + patience;

    v1::CommandDown command = CopyOrder(move.command_id, judged, look.storage, v1::BALANCING, patience);
    *command.mutable_transfer()->add_targets() = *std::move(to);
    balance_->Scheduled(move);
    moves_.Started(std::move(move));
    session->second->Queue(std::move(command));
    return;
  }
}

// --- what becomes of moves

void BlockManager::FollowMove(const Judged& judged) {
  const BalanceMove* const move = moves_.Find(judged.block);
  if (move == nullptr) return;
  const std::optional<v1::BlockRecord>& record = judged.evidence.record;
  bool at_source = false, at_target = false;
  for (const ReplicaEvidence& replica : judged.evidence.replicas) {
    at_source |= replica.row.storage == move->source_storage;
    at_target |= record && replica.standing && replica.standing->datanode_uuid == move->target && IsWhole(replica.row, *record);
  }
  const bool changed = !record || record->state() != v1::COMMITTED || record->generation_stamp() != move->stamp.value();
  if (changed || (!at_source && !at_target)) return OnMovesOver({moves_.Abandoned(judged.block)});
  if (!at_target) return;
  if (at_source) return moves_.Landed(judged.block, parts_.clock->Now());
  const BalanceMove finished = moves_.Finished(judged.block);
  if (balance_ && balance_->id() == finished.run) balance_->Moved(finished);
  BalanceSoon();
}

// A source's replica may wait long for its turn, behind a mass of others that go: that is no failure, as long as it is to go.
void BlockManager::FollowLanded() {
  const SteadyTime now = parts_.clock->Now();
  const std::vector<BlockId> blocks = moves_.LandedLongAgo(now);
  if (blocks.empty()) return;
  const absl::StatusOr<bool> paused = DeletesArePaused(*parts_.space->Snapshot());
  const absl::StatusOr<std::vector<Judged>> all = Evaluate(blocks);
  if (safe_mode_ || !paused.ok() || *paused || !all.ok()) {
    for (const BlockId block : blocks) moves_.Extend(block, now);
    return;
  }
  for (const Judged& judged : *all) {
    Act(judged, false);
    const BalanceMove* const move = moves_.Find(judged.block);
    if (move == nullptr) continue;
    const StorageNumber source = move->source_storage;
    const auto is_source = [source](const BlockVerdict::Go& go) { return go.storage == source; };
    const std::vector<StorageNumber> told = invalidations_.ToldOf(judged.block);
    const bool goes = std::find(told.begin(), told.end(), source) != told.end() ||
                      std::any_of(judged.verdict.go.begin(), judged.verdict.go.end(), is_source);
    if (goes) {
      moves_.Extend(judged.block, now);
    } else {
      OnMovesOver({moves_.Abandoned(judged.block)});
    }
  }
}

void BlockManager::OnMovesOver(const std::vector<BalanceMove>& moves) {
  if (moves.empty()) return;
  for (const BalanceMove& move : moves)
    if (balance_ && balance_->id() == move.run) balance_->Failed(move);
  BalanceSoon();
}

void BlockManager::OnNodeDied(const std::string& datanode_uuid) {
  repairs_.SourceLost(datanode_uuid, parts_.clock->Now());
  spreads_.SourceLost(datanode_uuid, parts_.clock->Now());
  OnMovesOver(moves_.NodeLost(datanode_uuid));
  if (balance_) balance_->LeaveOut(datanode_uuid);
}

}  // namespace cairn::namenode
