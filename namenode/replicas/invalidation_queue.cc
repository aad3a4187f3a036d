#include "namenode/replicas/invalidation_queue.h"

#include <algorithm>
#include <utility>

namespace cairn::namenode {

bool InvalidationQueue::Add(StorageNumber storage, BlockId block, SteadyTime now) {
  Waiting& waiting = waiting_[storage];
  if (waiting.blocks.size() >= limits_.waiting_per_storage && !waiting.blocks.contains(block)) return false;
  if (waiting.blocks.empty()) waiting.oldest = now;
  if (waiting.blocks.emplace(block, now).second) ++waiting_count_;
  return true;
}

std::vector<BlockId> InvalidationQueue::Take(StorageNumber storage, size_t limit) {
  std::vector<BlockId> taken;
  const auto found = waiting_.find(storage);
  if (found == waiting_.end()) return taken;
  Waiting& waiting = found->second;
  while (!waiting.blocks.empty() && taken.size() < limit) {
    const auto first = waiting.blocks.begin();
    taken.push_back(first->first);
    waiting.exact = waiting.exact && first->second != waiting.oldest;
    waiting.blocks.erase(first);
    --waiting_count_;
  }
  if (waiting.blocks.empty()) waiting_.erase(found);
  return taken;
}

void InvalidationQueue::ForgetWaiting(StorageNumber storage) {
  const auto found = waiting_.find(storage);
  if (found == waiting_.end()) return;
  waiting_count_ -= found->second.blocks.size();
  waiting_.erase(found);
}

std::optional<uint64_t> InvalidationQueue::Tell(StorageNumber storage, BlockId block, GenerationStamp stamp, Incarnation incarnation,
                                                SteadyTime now) {
  if (told_.size() >= limits_.told || IsTold(storage, block, stamp)) return std::nullopt;
  const uint64_t id = next_command_id_++;
  told_[{block, storage}] = Told{storage, block, stamp, id, incarnation, now};
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

void InvalidationQueue::Answered(StorageNumber storage, BlockId block, uint64_t command_id) {
  const auto found = told_.find({block, storage});
  if (found != told_.end() && found->second.command_id == command_id) Erase(storage, block);
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
  for (BlockId block : found->second) {
    Told& told = told_.at({block, storage});
    if (told.incarnation != incarnation) continue;
    if (!all && now - told.at < limits_.answer_within) continue;
    told.command_id = next_command_id_++;
    told.at = now;
    again.push_back(told);
  }
  return again;
}

absl::Duration InvalidationQueue::OldestAge(SteadyTime now) {
  absl::Duration oldest = absl::ZeroDuration();
  bool looked = false;
  for (auto& [storage, waiting] : waiting_) {
    if (!waiting.exact && !std::exchange(looked, true)) {
      waiting.oldest = now;
      for (const auto& [block, at] : waiting.blocks) waiting.oldest = std::min(waiting.oldest, at);
      waiting.exact = true;
    }
    oldest = std::max(oldest, now - waiting.oldest);
  }
  return oldest;
}

}  // namespace cairn::namenode
