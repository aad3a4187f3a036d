#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "common/env/clock.h"
#include "common/ids.h"

namespace cairn::namenode {

// A replica on its way from one DataNode to another.
struct BalanceMove {
  uint64_t run = 0;
  uint64_t command_id = 0;  // Of the order to copy it.
  BlockId block;
  GenerationStamp stamp;
  uint64_t length_bytes = 0;
  std::string source;  // Uuids.
  std::string target;
  StorageNumber source_storage;
  StorageNumber target_storage;
  bool landed = false;  // The target has it; what is left is that the source drops its own.
  SteadyTime deadline;
};

// The replicas that the balancer moves now. A move is a copy and, once the new replica is reported, the ordinary handling of a block that
// has one copy too many, with the word that the source's is the one to go; so whatever ends a move early (time, a lost node, a NameNode
// that restarts and knows of none) leaves at most that one copy, for the ordinary handling.
//
// At most one move of a block. Moves outlive the run that began them. Owned by one executor; memory only.
class BalanceMoves {
 public:
  explicit BalanceMoves(absl::Duration drop_within) : drop_within_(drop_within) {}

  void Started(BalanceMove move);
  const BalanceMove* Find(BlockId block) const;
  // The order was carried out, and the target's report is due; or it failed: then the move is over. True if it was one of these.
  bool Outcome(uint64_t command_id, bool ok, SteadyTime report_by, std::vector<BalanceMove>* failed);
  void Landed(BlockId block, SteadyTime now);
  // The source's replica is gone, and the target's is there.
  BalanceMove Finished(BlockId block);
  BalanceMove Abandoned(BlockId block);
  // Those that are not landed and whose time is over; those that are still being copied from this node, which will say nothing of them;
  // from or to it. They are over.
  std::vector<BalanceMove> Expire(SteadyTime now);
  std::vector<BalanceMove> SourceLost(const std::string& datanode_uuid);
  std::vector<BalanceMove> NodeLost(const std::string& datanode_uuid);

  // Those that are landed and whose time is over: a source may have much to drop before. They wait on if Extend is called, as long again.
  std::vector<BlockId> LandedLongAgo(SteadyTime now) const;
  void Extend(BlockId block, SteadyTime now);

  size_t LoadOf(const std::string& datanode_uuid) const;
  uint64_t BytesOnTheWayTo(StorageNumber storage) const;
  size_t InFlightOf(uint64_t run) const;
  size_t size() const { return moves_.size(); }
  // Since the start.
  uint64_t moved_blocks() const { return moved_blocks_; }
  uint64_t moved_bytes() const { return moved_bytes_; }
  uint64_t failed() const { return failed_; }

 private:
  BalanceMove Take(BlockId block);
  template <class IsOver>
  std::vector<BalanceMove> AbandonAll(IsOver is_over);

  const absl::Duration drop_within_;
  absl::btree_map<BlockId, BalanceMove> moves_;
  absl::btree_map<uint64_t, BlockId> by_command_;
  absl::btree_map<std::string, size_t> load_;
  uint64_t moved_blocks_ = 0;
  uint64_t moved_bytes_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace cairn::namenode
