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

// Why a block cannot be repaired now. Shown as it is spelled in NameOf.
enum class ParkReason : uint8_t { kNoSource, kNoTarget };
const char* NameOf(ParkReason reason);

// Blocks with too few copies, the most urgent first (one copy left before two), and the transfers that are under way for them.
//
// A repair ends when the block is judged to have enough, when its time is over, when its source says it
// failed, or when the source's command stream ends; then the block waits retry_after and comes again. A node
// takes part in at most `per_node` repairs, as source or target.
//
// A block that nothing can be done for steps out of the way of those behind it: it is *parked*, and comes again after a pause that doubles
// each time, when its number of copies changes, or when Wake says that a node came. One without any copy is parked from the start.
//
// Every block is in exactly one of four states, so their numbers add up to size(): in flight; parked; timed out, from the failure of its
// last repair to the start of the next; waiting.
//
// Bounded: beyond `blocks` new ones are turned away and a scan has to find them again. No call goes over all blocks: what becomes due, or
// is woken, gets into the line some at a time, as Ready is called. Owned by one executor; memory only.
class RepairQueue {
 public:
  struct Limits {
    size_t blocks = 500'000;
    size_t per_node = 4;
    absl::Duration timeout = absl::Minutes(5);
    absl::Duration retry_after = absl::Seconds(5);
    absl::Duration landed_within = absl::Seconds(10);  // From a source's "done" to the target's own report.
    absl::Duration first_pause = absl::Seconds(5);     // Of a parked block; doubles.
    absl::Duration longest_pause = absl::Minutes(5);
  };
  explicit RepairQueue(Limits limits) : limits_(limits) {}

  // Has `left` copies, too few. False if the queue is full.
  bool Need(BlockId block, uint32_t left, SteadyTime now);
  void Settled(BlockId block);
  // Most urgent first; none that is under repair, parked, or waits after a failure. Of a mass that has just become due, only so many are
  // in the line as calls have brought there, at most kLinedUpAtOnce each.
  std::vector<BlockId> Ready(size_t limit, SteadyTime now);

  void Started(Repair repair, SteadyTime now);
  // All nodes that could do it have their hands full: not before `pause` is over.
  void Postpone(BlockId block, absl::Duration pause, SteadyTime now);
  void Park(BlockId block, ParkReason reason, SteadyTime now);
  // Something was heard of the block's replicas: if it is parked, it is looked at again.
  void Reconsider(BlockId block, SteadyTime now);
  // A node came (back): what is parked is looked at again, bit by bit.
  void Wake() { ++wakes_; }
  bool IsUnderRepair(BlockId block) const { return running_.contains(block); }
  void Outcome(uint64_t command_id, bool ok, SteadyTime now);
  void SourceLost(const std::string& datanode_uuid, SteadyTime now);
  void Expire(SteadyTime now);
  // How many repairs a node takes part in.
  size_t LoadOf(const std::string& datanode_uuid) const;
  bool HasRoom(const std::string& datanode_uuid) const { return LoadOf(datanode_uuid) < limits_.per_node; }

  size_t size() const { return needs_.size(); }
  size_t running() const { return running_.size(); }
  size_t timed_out() const { return timed_out_; }
  size_t parked() const { return parked(ParkReason::kNoSource) + parked(ParkReason::kNoTarget); }
  size_t parked(ParkReason reason) const { return parked_[static_cast<size_t>(reason)]; }
  size_t waiting() const { return size() - running() - timed_out() - parked(); }
  size_t WithCopies(uint32_t left) const;  // Blocks that have exactly so many.
  absl::Duration OldestAge(SteadyTime now) const;

  // What is said of one block: WAITING, IN_FLIGHT, TIMED_OUT, NO_SOURCE, NO_TARGET; empty if it is not here.
  std::string StateOf(BlockId block) const;
  struct Parked {
    BlockId block;
    ParkReason reason;
    absl::Duration age;  // Since it was found to have too few copies.
  };
  // By id, from `first` on.
  std::vector<Parked> ParkedFrom(BlockId first, size_t limit, SteadyTime now) const;

 private:
  static constexpr size_t kLinedUpAtOnce = 1000;
  struct NeedEntry {
    uint32_t urgency = 0;
    SteadyTime since;
    SteadyTime not_before;
    bool timed_out = false;
    std::optional<ParkReason> parked;
    uint32_t times_parked = 0;
    uint64_t wakes_before = 0;  // When it was parked.
  };
  struct RunningEntry {
    Repair repair;
    SteadyTime deadline;
  };
  static uint32_t UrgencyOf(uint32_t left) { return left == 0 ? UINT32_MAX : left; }
  void End(BlockId block, bool failed, SteadyTime not_before);
  // In or out of the line: `order_`, or `later_` until its time comes.
  void LineUp(BlockId block, const NeedEntry& need, SteadyTime now);
  void StepOut(BlockId block, const NeedEntry& need);
  void SetTimedOut(NeedEntry* need, bool timed_out);
  void SetParked(NeedEntry* need, std::optional<ParkReason> reason);
  void LookAgain(BlockId block, NeedEntry* need, SteadyTime now);
  void LineUpWhatIsDue(SteadyTime now);

  const Limits limits_;
  absl::btree_map<BlockId, NeedEntry> needs_;
  absl::btree_set<std::pair<uint32_t, BlockId>> order_;
  absl::btree_set<std::pair<SteadyTime, BlockId>> later_;
  absl::btree_set<std::pair<uint64_t, BlockId>> sleepers_;  // The parked ones of later_, by the wakes before; woken if there were more.
  uint64_t wakes_ = 0;
  absl::btree_map<BlockId, RunningEntry> running_;
  absl::btree_map<uint64_t, BlockId> by_command_;
  absl::btree_map<std::string, size_t> load_;
  absl::btree_map<uint32_t, size_t> by_urgency_;
  absl::btree_set<std::pair<SteadyTime, BlockId>> by_age_;
  size_t timed_out_ = 0;
  size_t parked_[2] = {0, 0};
};

}  // namespace cairn::namenode
