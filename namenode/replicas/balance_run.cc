#include "namenode/replicas/balance_run.h"

#include <algorithm>
#include <utility>

#include "namenode/store/replica_store.h"

namespace cairn::namenode {
namespace {

constexpr int kIdleIterations = 5;  // As HDFS.
constexpr uint64_t kEndOfIds = kNothingWalked;

}  // namespace

BalanceRun::BalanceRun(v1::BalanceRequest request, Limits limits, SteadyTime begin_at, SteadyTime now)
    : request_(std::move(request)), limits_(limits), renewed_(now), next_plan_(begin_at) {}

void BalanceRun::Begin(BalancePlan plan, const std::vector<BalanceNode>& nodes,
                       const std::function<std::vector<StorageNumber>(const std::string& datanode_uuid)>& storages_of, SteadyTime now) {
  ++iteration_;
  mean_ = plan.mean;
  left_bytes_ = plan.left_bytes;
  planned_bytes_ = plan.bytes();
  moved_in_iteration_ = 0;
  pairs_ = std::move(plan.pairs);
  failed_blocks_.clear();
  failures_.clear();
  kept_apart_.clear();
  proven_.clear();
  projected_.clear();
  slices_.clear();
  if (left_bytes_ == 0) return End(v1::BalanceResponse::BALANCED);
  if (pairs_.empty()) return End(v1::BalanceResponse::NO_MOVE_BLOCK);
  for (const BalanceNode& node : nodes)
    projected_[node.datanode_uuid] = {static_cast<double>(node.used_bytes), static_cast<double>(node.capacity_bytes)};
  for (const BalancePair& pair : pairs_) {
    const auto [slices, is_new] = slices_.try_emplace(pair.source);
    if (!is_new) continue;
    // Each volume from where the last look at it ended, all of them before what was looked at before.
    const std::vector<StorageNumber> storages = storages_of(pair.source);
    for (const StorageNumber storage : storages) slices->second.push_back({storage, resume_[storage], kEndOfIds});
    for (const StorageNumber storage : storages)
      if (resume_[storage] > 0) slices->second.push_back({storage, 0, resume_[storage]});
  }
  moving_ = true;
  until_ = now + limits_.iteration;
}

bool BalanceRun::IsThrough(const std::string& source) const {
  const auto slices = slices_.find(source);
  return slices == slices_.end() || slices->second.empty();
}

std::optional<BalanceRun::Look> BalanceRun::NextLook(const HasRoom& has_room, SteadyTime now) {
  if (!moving_ || now >= until_) return std::nullopt;
  absl::btree_set<std::string> sources;
  for (const BalancePair& pair : pairs_)
    if (pair.bytes > 0 && !IsThrough(pair.source) && has_room(pair.source) && has_room(pair.target)) sources.insert(pair.source);
  if (sources.empty()) return std::nullopt;
  auto next = sources.upper_bound(last_source_);  // In turn, so that all sources send at once.
  if (next == sources.end()) next = sources.begin();
  last_source_ = *next;
  const Slice& slice = slices_.at(*next).front();
  return Look{*next, slice.storage, slice.from, slice.end};
}

void BalanceRun::Reached(const Look& look, std::optional<uint64_t> next) {
  const auto found = slices_.find(look.source);
  if (found == slices_.end() || found->second.empty() || found->second.front().storage != look.storage) return;
  Slice slice = found->second.front();
  found->second.pop_front();
  if (!next) {
    resume_[look.storage] = look.end == kEndOfIds ? 0 : look.end;
    return;
  }
  resume_[look.storage] = *next;
  slice.from = *next;
  found->second.push_back(slice);  // The other volumes' turn.
}

double BalanceRun::ShareAfter(const std::string& node, double bytes) const {
  const auto found = projected_.find(node);
  return found == projected_.end() ? 0 : (found->second.used + bytes) / found->second.capacity;
}

std::vector<std::string> BalanceRun::TargetsFor(const std::string& source, uint64_t length_bytes) const {
  std::vector<std::string> targets;
  const auto bytes = static_cast<double>(length_bytes);
  for (const BalancePair& pair : pairs_) {
    if (pair.source != source || pair.bytes == 0) continue;
    if (ShareAfter(source, -bytes) >= ShareAfter(pair.target, bytes)) targets.push_back(pair.target);
  }
  return targets;
}

void BalanceRun::Scheduled(const BalanceMove& move) {
  projected_[move.source].used -= static_cast<double>(move.length_bytes);
  projected_[move.target].used += static_cast<double>(move.length_bytes);
  for (BalancePair& pair : pairs_) {
    if (pair.source != move.source || pair.target != move.target || pair.bytes == 0) continue;
    pair.bytes -= std::min(pair.bytes, move.length_bytes);
    return;
  }
}

void BalanceRun::Moved(const BalanceMove& move) {
  moved_in_iteration_ += move.length_bytes;
  moved_bytes_ += move.length_bytes;
  ++moved_blocks_;
  proven_.insert(move.source);
  proven_.insert(move.target);
}

void BalanceRun::Failed(const BalanceMove& move) {
  ++failed_moves_;
  if (failed_blocks_.size() < kRemembered) failed_blocks_.insert(move.block);
  projected_[move.source].used += static_cast<double>(move.length_bytes);
  projected_[move.target].used -= static_cast<double>(move.length_bytes);
  const auto is_theirs = [&move](const BalancePair& pair) { return pair.source == move.source && pair.target == move.target; };
  const auto pair = std::find_if(pairs_.begin(), pairs_.end(), is_theirs);
  if (pair != pairs_.end()) pair->bytes += move.length_bytes;
  if (++failures_[std::pair(move.source, move.target)] < limits_.failures_of_pair) return;
  std::erase_if(pairs_, is_theirs);
  kept_apart_[move.source].insert(move.target);
  kept_apart_[move.target].insert(move.source);
  for (const std::string* node : {&move.source, &move.target})
    if (kept_apart_[*node].size() > 1 && !proven_.contains(*node)) LeaveOut(*node);
}

void BalanceRun::LeaveOut(const std::string& datanode_uuid) {
  std::erase_if(pairs_, [&](const BalancePair& pair) { return pair.source == datanode_uuid || pair.target == datanode_uuid; });
}

void BalanceRun::Follow(size_t in_flight, SteadyTime now) {
  if (!moving_ || in_flight > 0) return;
  const bool more =
      now < until_ &&
      std::any_of(pairs_.begin(), pairs_.end(), [this](const BalancePair& pair) { return pair.bytes > 0 && !IsThrough(pair.source); });
  if (more) return;
  moving_ = false;
  next_plan_ = now + limits_.settle;
  idle_ = moved_in_iteration_ > 0 ? 0 : idle_ + 1;
  const int most_idle = request_.idle_iterations() == 0 ? kIdleIterations : request_.idle_iterations();
  if (most_idle > 0 && idle_ >= most_idle) End(v1::BalanceResponse::NO_MOVE_PROGRESS);
}

void BalanceRun::Fill(v1::BalanceResponse* response) const {
  response->set_outcome(outcome_);
  response->set_iteration(iteration_);
  response->set_moved_bytes(moved_bytes_);
  response->set_moved_blocks(moved_blocks_);
  response->set_failed_moves(failed_moves_);
  response->set_left_bytes(left_bytes_);
  response->set_being_moved_bytes(planned_bytes_);
  response->set_mean_percent(100 * mean_);
}

}  // namespace cairn::namenode
