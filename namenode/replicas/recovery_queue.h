#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/time/time.h"
#include "common/env/clock.h"
#include "common/ids.h"

namespace cairn::namenode {

// Blocks under recovery, and the round of each: who is the primary, under which recovery id, and until when it may take.
//
// A round ends when its block is settled, when its primary says that it failed, when the primary's command stream ends, or when its time
// is over; then the next begins after a pause, with the primary that comes next in turn, a new recovery id, and twice the time. A block is
// never given up: its file stays under construction until somebody who has the bytes answers.
//
// Bounded: beyond `blocks` new ones are turned away, and come again with a scan. Owned by one executor; memory only.
class RecoveryQueue {
 public:
  struct Limits {
    size_t blocks = 100'000;
    size_t running = 1000;
    size_t per_node = 16;                            // Rounds of one primary at a time.
    absl::Duration first_round = absl::Seconds(10);  // Doubles with each round.
    absl::Duration longest_round = absl::Minutes(5);
    absl::Duration first_pause = absl::Milliseconds(500);  // Doubles as well.
    absl::Duration longest_pause = absl::Seconds(30);
    absl::Duration answer_within = absl::Seconds(2);  // Beyond the round's time: for the answer to travel.
  };
  explicit RecoveryQueue(Limits limits) : limits_(limits) {}

  // True if the block is new here. One that is not is left as it is.
  bool Need(BlockId block, SteadyTime now);
  // False if it was not known.
  bool Settled(BlockId block);
  // Longest waiting first; none whose round is under way or whose pause lasts. As many as may run beside those that do.
  std::vector<BlockId> Due(size_t limit, SteadyTime now) const;

  // A round is being prepared: it is not due until it started, or until Failed.
  void Preparing(BlockId block, SteadyTime now);
  void Started(BlockId block, GenerationStamp recovery_id, uint64_t command_id, const std::string& primary, SteadyTime now);
  // A round could not begin, for want of a primary: it comes again after a pause, and counts for nothing.
  void Postpone(BlockId block, SteadyTime now);
  // The round of this id has failed. An id of an earlier one is ignored.
  void Failed(BlockId block, GenerationStamp recovery_id, SteadyTime now);
  void Outcome(uint64_t command_id, bool ok, SteadyTime now);
  void PrimaryLost(const std::string& datanode_uuid, SteadyTime now);
  // A DataNode came (back): what waits for want of a primary need not wait longer.
  void PrimaryFound(SteadyTime now);
  void Expire(SteadyTime now);

  // Rounds that began, of this block.
  uint32_t Rounds(BlockId block) const;
  // Of the newest round; 0 if there was none.
  GenerationStamp RecoveryIdOf(BlockId block) const;
  absl::Duration RoundTime(BlockId block) const;
  bool HasRoom(const std::string& datanode_uuid) const;
  size_t size() const { return entries_.size(); }
  size_t running() const { return running_; }
  absl::Duration OldestAge(SteadyTime now) const;

 private:
  enum class State : uint8_t { kWaiting, kPreparing, kRunning };
  struct Entry {
    SteadyTime since;
    SteadyTime not_before;
    SteadyTime deadline;
    State state = State::kWaiting;
    uint32_t rounds = 0;
    uint32_t postponed = 0;
    GenerationStamp recovery_id;
    uint64_t command_id = 0;
    std::string primary;
  };
  void EndRound(Entry* entry);
  void Wait(BlockId block, Entry* entry, absl::Duration pause, SteadyTime now);
  void FailRound(BlockId block, Entry* entry, SteadyTime now);
  static absl::Duration Doubled(absl::Duration first, uint32_t times, absl::Duration most);

  const Limits limits_;
  absl::btree_map<BlockId, Entry> entries_;
  absl::btree_set<std::pair<SteadyTime, BlockId>> waiting_;    // By not_before.
  absl::btree_set<std::pair<SteadyTime, BlockId>> under_way_;  // By deadline: preparing and running.
  absl::btree_map<uint64_t, BlockId> by_command_;
  absl::btree_map<std::string, size_t> load_;
  size_t running_ = 0;
};

}  // namespace cairn::namenode
