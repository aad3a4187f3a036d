#include "namenode/replicas/repair_queue.h"

#include <algorithm>

namespace cairn::namenode {

const char* NameOf(ParkReason reason) {
  switch (reason) {
    case ParkReason::kNoSource: return "NO_SOURCE";
    case ParkReason::kNoTarget: return "NO_TARGET";
  }
  return "UNKNOWN";
}

bool RepairQueue::Need(BlockId block, uint32_t left, SteadyTime now) {
  const uint32_t urgency = UrgencyOf(left);
  auto found = needs_.find(block);
  if (found == needs_.end()) {
    if (needs_.size() >= limits_.blocks) return false;
    NeedEntry need;
    need.urgency = urgency;
    need.since = need.not_before = now;
    found = needs_.emplace(block, need).first;
    by_age_.insert({now, block});
  } else if (found->second.urgency != urgency) {
    NeedEntry& changed = found->second;
    StepOut(block, changed);
    --by_urgency_[changed.urgency];
    changed.urgency = urgency;
    if (changed.parked) changed.not_before = now;  // What was in the way may not be any more.
    SetParked(&changed, std::nullopt);
  } else {
    return true;
  }
  ++by_urgency_[urgency];
  if (running_.contains(block)) return true;
  if (left == 0) {
    Park(block, ParkReason::kNoSource, now);
  } else {
    LineUp(block, found->second, now);
  }
  return true;
}

void RepairQueue::Settled(BlockId block) {
  const auto found = needs_.find(block);
  if (found == needs_.end()) return;
  NeedEntry& need = found->second;
  End(block, false, need.not_before);
  StepOut(block, need);
  SetTimedOut(&need, false);
  SetParked(&need, std::nullopt);
  --by_urgency_[need.urgency];
  by_age_.erase({need.since, block});
  needs_.erase(found);
}

void RepairQueue::LineUp(BlockId block, const NeedEntry& need, SteadyTime now) {
  if (need.not_before <= now) {
    order_.insert({need.urgency, block});
  } else {
    later_.insert({need.not_before, block});
  }
}

void RepairQueue::StepOut(BlockId block, const NeedEntry& need) {
  order_.erase({need.urgency, block});
  later_.erase({need.not_before, block});
  sleepers_.erase({need.wakes_before, block});
}

void RepairQueue::SetTimedOut(NeedEntry* need, bool timed_out) {
  if (need->timed_out == timed_out) return;
  need->timed_out = timed_out;
  timed_out ? ++timed_out_ : --timed_out_;
}

void RepairQueue::SetParked(NeedEntry* need, std::optional<ParkReason> reason) {
  if (need->parked) --parked_[static_cast<size_t>(*need->parked)];
  need->parked = reason;
  if (reason) ++parked_[static_cast<size_t>(*reason)];
}

void RepairQueue::LookAgain(BlockId block, NeedEntry* need, SteadyTime now) {
  StepOut(block, *need);
  need->not_before = now;
  need->times_parked = 0;
  LineUp(block, *need, now);
}

void RepairQueue::LineUpWhatIsDue(SteadyTime now) {
  for (size_t moved = 0; moved < kLinedUpAtOnce && !later_.empty() && later_.begin()->first <= now; ++moved) {
    const BlockId block = later_.begin()->second;
    const NeedEntry& need = needs_.at(block);
    StepOut(block, need);
    order_.insert({need.urgency, block});
  }
  for (size_t moved = 0; moved < kLinedUpAtOnce && !sleepers_.empty() && sleepers_.begin()->first < wakes_; ++moved) {
    const BlockId block = sleepers_.begin()->second;
    LookAgain(block, &needs_.at(block), now);
  }
}

std::vector<BlockId> RepairQueue::Ready(size_t limit, SteadyTime now) {
  LineUpWhatIsDue(now);
  std::vector<BlockId> ready;
  for (const auto& [urgency, block] : order_) {
    if (ready.size() >= limit) break;
    ready.push_back(block);
  }
  return ready;
}

void RepairQueue::Started(Repair repair, SteadyTime now) {
  const BlockId block = repair.block;
  ++load_[repair.source];
  for (const std::string& target : repair.targets) ++load_[target];
  by_command_[repair.command_id] = block;
  if (const auto need = needs_.find(block); need != needs_.end()) {
    StepOut(block, need->second);
    SetTimedOut(&need->second, false);
    SetParked(&need->second, std::nullopt);
    need->second.times_parked = 0;
  }
  running_[block] = RunningEntry{std::move(repair), now + limits_.timeout};
}

void RepairQueue::Postpone(BlockId block, absl::Duration pause, SteadyTime now) {
  const auto found = needs_.find(block);
  if (found == needs_.end() || running_.contains(block)) return;
  StepOut(block, found->second);
  SetParked(&found->second, std::nullopt);
  found->second.not_before = now + pause;
  LineUp(block, found->second, now);
}

void RepairQueue::Park(BlockId block, ParkReason reason, SteadyTime now) {
  const auto found = needs_.find(block);
  if (found == needs_.end() || running_.contains(block)) return;
  NeedEntry& need = found->second;
  StepOut(block, need);
  SetTimedOut(&need, false);
  SetParked(&need, reason);
  absl::Duration pause = limits_.first_pause;
  for (uint32_t i = 0; i < need.times_parked && pause < limits_.longest_pause; ++i) pause *= 2;
  ++need.times_parked;
  need.not_before = now + std::min(pause, limits_.longest_pause);
  need.wakes_before = wakes_;
  sleepers_.insert({need.wakes_before, block});
  LineUp(block, need, now);
}

void RepairQueue::Reconsider(BlockId block, SteadyTime now) {
  const auto found = needs_.find(block);
  if (found == needs_.end() || !found->second.parked) return;
  LookAgain(block, &found->second, now);
}

void RepairQueue::End(BlockId block, bool failed, SteadyTime not_before) {
  const auto found = running_.find(block);
  if (found == running_.end()) return;
  const Repair& repair = found->second.repair;
  const auto release = [this](const std::string& node) {
    const auto load = load_.find(node);
    if (load != load_.end() && --load->second == 0) load_.erase(load);
  };
  release(repair.source);
  for (const std::string& target : repair.targets) release(target);
  by_command_.erase(repair.command_id);
  running_.erase(found);
  const auto need = needs_.find(block);
  if (need == needs_.end()) return;
  SetTimedOut(&need->second, failed);
  need->second.not_before = not_before;
  later_.insert({not_before, block});
}

void RepairQueue::Outcome(uint64_t command_id, bool ok, SteadyTime now) {
  const auto found = by_command_.find(command_id);
  if (found == by_command_.end()) return;
  if (ok) {
    SteadyTime& deadline = running_.at(found->second).deadline;
    deadline = std::min(deadline, now + limits_.landed_within);
  } else {
    End(found->second, true, now + limits_.retry_after);
  }
}

void RepairQueue::SourceLost(const std::string& datanode_uuid, SteadyTime now) {
  std::vector<BlockId> lost;
  for (const auto& [block, entry] : running_)
    if (entry.repair.source == datanode_uuid) lost.push_back(block);
  for (BlockId block : lost) End(block, true, now + limits_.retry_after);
}

void RepairQueue::Expire(SteadyTime now) {
  std::vector<BlockId> over;
  for (const auto& [block, entry] : running_)
    if (entry.deadline <= now) over.push_back(block);
  for (BlockId block : over) End(block, true, now);
}

size_t RepairQueue::LoadOf(const std::string& datanode_uuid) const {
  const auto found = load_.find(datanode_uuid);
  return found == load_.end() ? 0 : found->second;
}

size_t RepairQueue::WithCopies(uint32_t left) const {
  const auto found = by_urgency_.find(UrgencyOf(left));
  return found == by_urgency_.end() ? 0 : found->second;
}

absl::Duration RepairQueue::OldestAge(SteadyTime now) const {
  return by_age_.empty() ? absl::ZeroDuration() : now - by_age_.begin()->first;
}

std::string RepairQueue::StateOf(BlockId block) const {
  const auto found = needs_.find(block);
  if (found == needs_.end()) return "";
  if (running_.contains(block)) return "IN_FLIGHT";
  if (found->second.parked) return NameOf(*found->second.parked);
  return found->second.timed_out ? "TIMED_OUT" : "WAITING";
}

std::vector<RepairQueue::Parked> RepairQueue::ParkedFrom(BlockId first, size_t limit, SteadyTime now) const {
  std::vector<Parked> found;
  for (auto need = needs_.lower_bound(first); need != needs_.end() && found.size() < limit; ++need)
    if (need->second.parked) found.push_back({need->first, *need->second.parked, now - need->second.since});
  return found;
}

}  // namespace cairn::namenode
