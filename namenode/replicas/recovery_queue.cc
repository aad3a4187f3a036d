#include "namenode/replicas/recovery_queue.h"

#include <algorithm>
#include <utility>

namespace cairn::namenode {

absl::Duration RecoveryQueue::Doubled(absl::Duration first, uint32_t times, absl::Duration most) {
  constexpr uint32_t kEnough = 20;  // Twice so often is beyond every limit.
  return std::min(first * (int64_t{1} << std::min(times, kEnough)), most);
}

bool RecoveryQueue::Need(BlockId block, SteadyTime now) {
  if (entries_.contains(block)) return false;
  if (entries_.size() >= limits_.blocks) return false;
  Entry& entry = entries_[block];
  entry.since = now;
  entry.not_before = now;
  waiting_.insert({now, block});
  return true;
}

void RecoveryQueue::EndRound(Entry* entry) {
  if (entry->state != State::kRunning) return;
  --running_;
  by_command_.erase(entry->command_id);
  const auto load = load_.find(entry->primary);
  if (load != load_.end() && --load->second == 0) load_.erase(load);
}

bool RecoveryQueue::Settled(BlockId block) {
  const auto found = entries_.find(block);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  EndRound(&entry);
  waiting_.erase({entry.not_before, block});
  under_way_.erase({entry.deadline, block});
  entries_.erase(found);
  return true;
}

std::vector<BlockId> RecoveryQueue::Due(size_t limit, SteadyTime now) const {
  std::vector<BlockId> due;
  const size_t most = std::min(limit, limits_.running - std::min(limits_.running, under_way_.size()));
  for (const auto& [when, block] : waiting_) {
    if (when > now || due.size() == most) break;
    due.push_back(block);
  }
  return due;
}

void RecoveryQueue::Wait(BlockId block, Entry* entry, absl::Duration pause, SteadyTime now) {
  EndRound(entry);
  under_way_.erase({entry->deadline, block});
  waiting_.erase({entry->not_before, block});
  entry->state = State::kWaiting;
  entry->not_before = now + pause;
  waiting_.insert({entry->not_before, block});
}

void RecoveryQueue::FailRound(BlockId block, Entry* entry, SteadyTime now) {
  Wait(block, entry, Doubled(limits_.first_pause, entry->rounds == 0 ? 0 : entry->rounds - 1, limits_.longest_pause), now);
}

void RecoveryQueue::Preparing(BlockId block, SteadyTime now) {
  const auto found = entries_.find(block);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  waiting_.erase({entry.not_before, block});
  entry.state = State::kPreparing;
  entry.deadline = now + limits_.longest_round;
  under_way_.insert({entry.deadline, block});
}

void RecoveryQueue::Started(BlockId block, GenerationStamp recovery_id, uint64_t command_id, const std::string& primary, SteadyTime now) {
  const auto found = entries_.find(block);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  EndRound(&entry);
  waiting_.erase({entry.not_before, block});
  under_way_.erase({entry.deadline, block});
  entry.state = State::kRunning;
  entry.deadline = now + RoundTime(block) + limits_.answer_within;
  entry.recovery_id = recovery_id;
  entry.command_id = command_id;
  entry.primary = primary;
  ++entry.rounds;
  entry.postponed = 0;
  under_way_.insert({entry.deadline, block});
  by_command_[command_id] = block;
  ++load_[primary];
  ++running_;
}

void RecoveryQueue::Postpone(BlockId block, SteadyTime now) {
  const auto found = entries_.find(block);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  Wait(block, &entry, Doubled(limits_.first_pause, entry.postponed++, limits_.longest_pause), now);
}

void RecoveryQueue::Failed(BlockId block, GenerationStamp recovery_id, SteadyTime now) {
  const auto found = entries_.find(block);
  if (found == entries_.end() || found->second.recovery_id != recovery_id || found->second.state != State::kRunning) return;
  FailRound(block, &found->second, now);
}

void RecoveryQueue::Outcome(uint64_t command_id, bool ok, SteadyTime now) {
  const auto found = by_command_.find(command_id);
  if (found == by_command_.end() || ok) return;  // Of a round that went well the namespace tells.
  const BlockId block = found->second;
  FailRound(block, &entries_.at(block), now);
}

void RecoveryQueue::PrimaryLost(const std::string& datanode_uuid, SteadyTime now) {
  if (!load_.contains(datanode_uuid)) return;
  std::vector<BlockId> lost;
  for (const auto& [deadline, block] : under_way_) {
    const Entry& entry = entries_.at(block);
    if (entry.state == State::kRunning && entry.primary == datanode_uuid) lost.push_back(block);
  }
  for (const BlockId block : lost) FailRound(block, &entries_.at(block), now);
}

void RecoveryQueue::PrimaryFound(SteadyTime now) {
  std::vector<BlockId> postponed;
  for (const auto& [when, block] : waiting_)
    if (when > now && entries_.at(block).postponed > 0) postponed.push_back(block);
  for (const BlockId block : postponed) {
    Entry& entry = entries_.at(block);
    entry.postponed = 0;
    Wait(block, &entry, absl::ZeroDuration(), now);
  }
}

void RecoveryQueue::Expire(SteadyTime now) {
  while (!under_way_.empty() && under_way_.begin()->first <= now) {
    const BlockId block = under_way_.begin()->second;
    FailRound(block, &entries_.at(block), now);
  }
}

uint32_t RecoveryQueue::Rounds(BlockId block) const {
  const auto found = entries_.find(block);
  return found == entries_.end() ? 0 : found->second.rounds;
}

GenerationStamp RecoveryQueue::RecoveryIdOf(BlockId block) const {
  const auto found = entries_.find(block);
  return found == entries_.end() ? GenerationStamp() : found->second.recovery_id;
}

absl::Duration RecoveryQueue::RoundTime(BlockId block) const { return Doubled(limits_.first_round, Rounds(block), limits_.longest_round); }

bool RecoveryQueue::HasRoom(const std::string& datanode_uuid) const {
  const auto found = load_.find(datanode_uuid);
  return found == load_.end() || found->second < limits_.per_node;
}

absl::Duration RecoveryQueue::OldestAge(SteadyTime now) const {
  absl::Duration oldest = absl::ZeroDuration();
  for (const auto& [block, entry] : entries_) oldest = std::max(oldest, now - entry.since);
  return oldest;
}

}  // namespace cairn::namenode
