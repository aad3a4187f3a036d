#include "namenode/replicas/repair_queue.h"

#include <algorithm>

namespace cairn::namenode {

bool RepairQueue::Need(BlockId block, uint32_t left, SteadyTime now) {
  const uint32_t urgency = UrgencyOf(left);
  auto found = needs_.find(block);
  if (found == needs_.end()) {
    if (needs_.size() >= limits_.blocks) return false;
    found = needs_.emplace(block, NeedEntry{urgency, now, now}).first;
  } else if (found->second.urgency != urgency) {
    order_.erase({found->second.urgency, block});
    --by_urgency_[found->second.urgency];
    found->second.urgency = urgency;
  } else {
    return true;
  }
  order_.insert({urgency, block});
  ++by_urgency_[urgency];
  return true;
}

void RepairQueue::Settled(BlockId block) {
  const auto found = needs_.find(block);
  if (found == needs_.end()) return;
  End(block, found->second.not_before);
  order_.erase({found->second.urgency, block});
  --by_urgency_[found->second.urgency];
  needs_.erase(found);
}

std::vector<BlockId> RepairQueue::Ready(size_t limit, SteadyTime now) const {
  std::vector<BlockId> ready;
  for (const auto& [urgency, block] : order_) {
    if (ready.size() >= limit || urgency == UINT32_MAX) break;
    if (!running_.contains(block) && needs_.at(block).not_before <= now) ready.push_back(block);
  }
  return ready;
}

void RepairQueue::Started(Repair repair, SteadyTime now) {
  ++load_[repair.source];
  for (const std::string& target : repair.targets) ++load_[target];
  by_command_[repair.command_id] = repair.block;
  const BlockId block = repair.block;
  running_[block] = RunningEntry{std::move(repair), now + limits_.timeout};
}

void RepairQueue::End(BlockId block, SteadyTime not_before) {
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
  if (const auto need = needs_.find(block); need != needs_.end()) need->second.not_before = not_before;
}

void RepairQueue::Outcome(uint64_t command_id, bool ok, SteadyTime now) {
  const auto found = by_command_.find(command_id);
  if (found == by_command_.end()) return;
  if (ok) {
    SteadyTime& deadline = running_.at(found->second).deadline;
    deadline = std::min(deadline, now + limits_.landed_within);
  } else {
    End(found->second, now + limits_.retry_after);
  }
}

void RepairQueue::SourceLost(const std::string& datanode_uuid, SteadyTime now) {
  std::vector<BlockId> lost;
  for (const auto& [block, entry] : running_)
    if (entry.repair.source == datanode_uuid) lost.push_back(block);
  for (BlockId block : lost) End(block, now + limits_.retry_after);
}

void RepairQueue::Expire(SteadyTime now) {
  std::vector<BlockId> over;
  for (const auto& [block, entry] : running_)
    if (entry.deadline <= now) over.push_back(block);
  for (BlockId block : over) End(block, now);
}

bool RepairQueue::HasRoom(const std::string& datanode_uuid) const {
  const auto found = load_.find(datanode_uuid);
  return found == load_.end() || found->second < limits_.per_node;
}

size_t RepairQueue::WithCopies(uint32_t left) const {
  const auto found = by_urgency_.find(UrgencyOf(left));
  return found == by_urgency_.end() ? 0 : found->second;
}

absl::Duration RepairQueue::OldestAge(SteadyTime now) const {
  absl::Duration oldest = absl::ZeroDuration();
  for (const auto& [block, need] : needs_) oldest = std::max(oldest, now - need.since);
  return oldest;
}

}  // namespace cairn::namenode
