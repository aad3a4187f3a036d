#include "namenode/replicas/node_drain.h"

#include <algorithm>

namespace cairn::namenode {

void NodeDrain::Begin(std::vector<StorageNumber> storages) {
  looking_ = true;
  looked_at_ = 0;
  fresh_.clear();
  fresh_count_ = fresh_open_ = 0;
  storages_.clear();
  blocks_.clear();
  if (whole_) {
    for (StorageNumber storage : storages) storages_.emplace_back(storage, 0);
  } else {
    for (const auto& [block, blocker] : left_) blocks_.push_back(block);
  }
}

std::optional<NodeDrain::Slice> NodeDrain::Next(size_t limit) {
  Slice slice;
  if (!blocks_.empty()) {
    const size_t count = std::min(limit, blocks_.size());
    slice.blocks.assign(blocks_.end() - static_cast<std::ptrdiff_t>(count), blocks_.end());
    blocks_.erase(blocks_.end() - static_cast<std::ptrdiff_t>(count), blocks_.end());
    return slice;
  }
  if (storages_.empty()) return std::nullopt;
  slice.storage = storages_.back().first;
  slice.from = storages_.back().second;
  return slice;
}

void NodeDrain::Reached(StorageNumber storage, std::optional<BlockId> last) {
  if (storages_.empty() || storages_.back().first != storage) return;
  if (last) {
    storages_.back().second = last->value() + 1;
  } else {
    storages_.pop_back();
  }
}

void NodeDrain::Saw(BlockId block, const std::optional<Blocker>& blocker) {
  ++looked_at_;
  if (!blocker || fresh_.contains(block)) return;  // On two volumes of the node.
  ++fresh_count_;
  fresh_open_ += blocker->open;
  if (fresh_.size() >= kKept) return;
  Blocker kept = *blocker;
  if (const auto known = left_.find(block); known != left_.end()) kept.since = known->second.since;
  fresh_.emplace(block, kept);
}

bool NodeDrain::End(SteadyTime now, absl::Duration pause) {
  looking_ = false;
  looked_once_ = true;
  last_looked_at_ = looked_at_;
  left_ = std::move(fresh_);
  fresh_.clear();
  left_count_ = fresh_count_;
  open_count_ = fresh_open_;
  const bool free = whole_ && left_count_ == 0;
  // Nothing is left of the last look: at once another one, at everything.
  next_ = !whole_ && left_count_ == 0 ? now : now + pause;
  whole_ = left_count_ == 0 || left_count_ > left_.size();
  return free;
}

std::vector<std::pair<BlockId, NodeDrain::Blocker>> NodeDrain::Blockers(size_t limit) const {
  std::vector<std::pair<BlockId, Blocker>> all(left_.begin(), left_.end());
  for (const auto& [block, blocker] : fresh_)
    if (!left_.contains(block)) all.emplace_back(block, blocker);
  const auto older = [](const auto& a, const auto& b) {
    return a.second.since != b.second.since ? a.second.since < b.second.since : a.first < b.first;
  };
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(limit, all.size()));
  std::partial_sort(all.begin(), end, all.end(), older);
  all.erase(end, all.end());
  return all;
}

}  // namespace cairn::namenode
