#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "common/env/clock.h"
#include "common/ids.h"

namespace cairn::namenode {

// A transfer that was ordered.
struct Repair {
  uint64_t command_id = 0;
  BlockId block;
  std::string source;                // Uuid of the DataNode.
  std::vector<std::string> targets;  // Uuids of DataNodes.
};

// Blocks with too few copies, the most urgent first (one copy left before two; none left last, there is
// nothing to copy from), and the transfers that are under way for them.
//
// A repair ends when the block is judged to have enough, when its time is over, when its source says it
// failed, or when the source's command stream ends; then the block waits retry_after and comes again. A node
// takes part in at most `per_node` repairs, as source or target.
//
// Bounded: beyond `blocks` new ones are turned away and a scan has to find them again. Owned by one executor;
// memory only.
class RepairQueue {
 public:
  struct Limits {
    size_t blocks = 500'000;
    size_t per_node = 4;
    absl::Duration timeout = absl::Minutes(5);
    absl::Duration retry_after = absl::Seconds(5);
    absl::Duration landed_within = absl::Seconds(10);  // From a source's "done" to the target's own report.
  };
  explicit RepairQueue(Limits limits) : limits_(limits) {}

  // Has `left` copies, too few. False if the queue is full.
  bool Need(BlockId block, uint32_t left, SteadyTime now);
  void Settled(BlockId block);
  // Most urgent first; none that is under repair or waits after a failure.
  std::vector<BlockId> Ready(size_t limit, SteadyTime now) const;

  void Started(Repair repair, SteadyTime now);
  bool IsUnderRepair(BlockId block) const { return running_.contains(block); }
  void Outcome(uint64_t command_id, bool ok, SteadyTime now);
  void SourceLost(const std::string& datanode_uuid, SteadyTime now);
  void Expire(SteadyTime now);
  bool HasRoom(const std::string& datanode_uuid) const;

  size_t size() const { return needs_.size(); }
  size_t running() const { return running_.size(); }
  size_t WithCopies(uint32_t left) const;  // Blocks that have exactly so many.
  absl::Duration OldestAge(SteadyTime now) const;

 private:
  struct NeedEntry {
    uint32_t urgency;
    SteadyTime since;
    SteadyTime not_before;
  };
  struct RunningEntry {
    Repair repair;
    SteadyTime deadline;
  };
  static uint32_t UrgencyOf(uint32_t left) { return left == 0 ? UINT32_MAX : left; }
  void End(BlockId block, SteadyTime not_before);

  const Limits limits_;
  absl::btree_map<BlockId, NeedEntry> needs_;
  absl::btree_set<std::pair<uint32_t, BlockId>> order_;
  absl::btree_map<BlockId, RunningEntry> running_;
  absl::btree_map<uint64_t, BlockId> by_command_;
  absl::btree_map<std::string, size_t> load_;
  absl::btree_map<uint32_t, size_t> by_urgency_;
};

}  // namespace cairn::namenode
