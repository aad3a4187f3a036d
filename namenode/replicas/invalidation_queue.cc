#include "namenode/replicas/invalidation_queue.h"

namespace cairn::namenode {

bool InvalidationQueue::Add(StorageNumber storage, BlockId block, SteadyTime now) {
  absl::btree_map<BlockId, SteadyTime>& waiting = waiting_[storage];
  if (waiting.size() >= limits_.waiting_per_storage && !waiting.contains(block)) return false;
  if (waiting.emplace(block, now).second) ++waiting_count_;
  return true;
}

std::vector<BlockId> InvalidationQueue::Take(StorageNumber storage, size_t limit) {
  std::vector<BlockId> taken;
  const auto found = waiting_.find(storage);
  if (found == waiting_.end()) return taken;
  while (!found->second.empty() && taken.size() < limit) {
    taken.push_back(found->second.begin()->first);
    found->second.erase(found->second.begin());
    --waiting_count_;
  }
  if (found->second.empty()) waiting_.erase(found);
  return taken;
}

void InvalidationQueue::ForgetWaiting(StorageNumber storage) {
  const auto found = waiting_.find(storage);
  if (found == waiting_.end()) return;
  waiting_count_ -= found->second.size();
  waiting_.erase(found);
}

std::optional<uint64_t> InvalidationQueue::Tell(StorageNumber storage, BlockId block, GenerationStamp stamp, Incarnation incarnation,
                                                SteadyTime now) {
  if (told_.size() >= limits_.told || IsTold(storage, block, stamp)) return std::nullopt;
  const uint64_t id = next_command_id_++;
  told_[{block, storage}] = Told{storage, block, stamp, id, incarnation, now, false, false};
  told_by_storage_[storage].insert(block);
  return id;
}

std::vector<StorageNumber> InvalidationQueue::ToldOf(BlockId block) const {
  std::vector<StorageNumber> storages;
  for (auto told = told_.lower_bound({block, StorageNumber(0)}); told != told_.end() && told->first.first == block; ++told)
    storages.push_back(told->first.second);
  return storages;
}

void InvalidationQueue::Erase(StorageNumber storage, BlockId block) {
  told_.erase({block, storage});
  const auto found = told_by_storage_.find(storage);
  if (found == told_by_storage_.end()) return;
  found->second.erase(block);
  if (found->second.empty()) told_by_storage_.erase(found);
}

void InvalidationQueue::Dropped(StorageNumber storage, BlockId block, SteadyTime now) {
  const auto found = told_.find({block, storage});
  if (found == told_.end()) return;
  if (found->second.resent && !found->second.ghost) {
    found->second.ghost = true;
    found->second.at = now;
  } else {
    Erase(storage, block);
  }
}

void InvalidationQueue::Kept(StorageNumber storage, BlockId block, uint64_t command_id, SteadyTime now) {
  const auto found = told_.find({block, storage});
  if (found != told_.end() && found->second.command_id == command_id) Dropped(storage, block, now);
}

void InvalidationQueue::Passed(StorageNumber storage, uint64_t first, uint64_t end, Incarnation incarnation) {
  const auto found = told_by_storage_.find(storage);
  if (found == told_by_storage_.end()) return;
  std::vector<BlockId> over;
  for (auto block = found->second.lower_bound(BlockId(first)); block != found->second.end() && block->value() < end; ++block)
    if (told_.at({*block, storage}).incarnation != incarnation) over.push_back(*block);
  for (BlockId block : over) Erase(storage, block);
}

std::vector<InvalidationQueue::Told> InvalidationQueue::Resend(StorageNumber storage, Incarnation incarnation, bool all, SteadyTime now) {
  std::vector<Told> again;
  const auto found = told_by_storage_.find(storage);
  if (found == told_by_storage_.end()) return again;
  std::vector<BlockId> over;
  for (BlockId block : found->second) {
    Told& told = told_.at({block, storage});
    if (told.incarnation != incarnation) continue;
    if (told.ghost) {
      if (now - told.at >= limits_.ghost_life) over.push_back(block);
      continue;
    }
    if (!all && now - told.at < limits_.answer_within) continue;
    told.resent = true;
    told.at = now;
    again.push_back(told);
  }
  for (BlockId block : over) Erase(storage, block);
  return again;
}

absl::Duration InvalidationQueue::OldestAge(SteadyTime now) const {
  absl::Duration oldest = absl::ZeroDuration();
  for (const auto& [storage, blocks] : waiting_)
    for (const auto& [block, at] : blocks) oldest = std::max(oldest, now - at);
  return oldest;
}

}  // namespace cairn::namenode
