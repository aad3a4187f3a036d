#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "cairn/types.pb.h"
#include "common/env/clock.h"
#include "common/ids.h"

namespace cairn::namenode {

// How far one node is from being let go, because it is decommissioned or enters maintenance: looks at all it holds, slice by slice, and
// keeps what is in the way.
//
// The first look goes over all of the node's volumes; those after it only over what the last one left, until that is nothing; then one
// more over everything has to find nothing. Between looks there is a pause. What is kept is bounded: beyond that, every look is a whole
// one.
//
// Owned by one executor; memory only.
class NodeDrain {
 public:
  struct Blocker {
    SteadyTime since;  // When it was first found in the way.
    bool open = false;
    uint32_t wanted = 0;
    uint32_t live = 0;
  };
  // What is to be looked at next: some blocks, or the rows of a volume from an id on.
  struct Slice {
    std::vector<BlockId> blocks;
    std::optional<StorageNumber> storage;
    uint64_t from = 0;
  };

  static constexpr size_t kKept = 100'000;

  // `since_ms`: of the record that wants it; another one is another drain.
  NodeDrain(v1::NodeAdminState state, int64_t since_ms) : state_(state), since_ms_(since_ms) {}

  v1::NodeAdminState state() const { return state_; }
  int64_t since_ms() const { return since_ms_; }
  bool looking() const { return looking_; }
  bool Due(SteadyTime now) const { return !looking_ && !finishing_ && now >= next_; }
  void Begin(std::vector<StorageNumber> storages);
  // Nothing: the look is over, and End has to be called.
  std::optional<Slice> Next(size_t limit);
  // Of a slice of a volume: the last row it had, or none if there were no more.
  void Reached(StorageNumber storage, std::optional<BlockId> last);
  void Saw(BlockId block, const std::optional<Blocker>& blocker);
  // True if it was a look at everything and nothing is in the way; the next look begins after `pause`.
  bool End(SteadyTime now, absl::Duration pause);
  // The end of the drain is being written down; false lets it look again.
  void SetFinishing(bool finishing) { finishing_ = finishing; }

  bool looked_once() const { return looked_once_; }
  size_t left() const { return looked_once_ ? left_count_ : fresh_count_; }
  size_t open_left() const { return looked_once_ ? open_count_ : fresh_open_; }
  size_t looked_at() const { return looking_ ? looked_at_ : last_looked_at_; }
  // Of the last look, and of the one that is under way; oldest first.
  std::vector<std::pair<BlockId, Blocker>> Blockers(size_t limit) const;

 private:
  using Kept = absl::btree_map<BlockId, Blocker>;
  const v1::NodeAdminState state_;
  const int64_t since_ms_;
  SteadyTime next_;
  bool looking_ = false;
  bool finishing_ = false;
  bool whole_ = true;  // This look, or the next one.
  bool looked_once_ = false;
  std::vector<std::pair<StorageNumber, uint64_t>> storages_;  // Those to go, the current one last.
  std::vector<BlockId> blocks_;                               // Those to go.
  Kept left_;
  size_t left_count_ = 0, open_count_ = 0;  // More than are kept, perhaps.
  Kept fresh_;
  size_t fresh_count_ = 0, fresh_open_ = 0;
  size_t looked_at_ = 0, last_looked_at_ = 0;
};

}  // namespace cairn::namenode
