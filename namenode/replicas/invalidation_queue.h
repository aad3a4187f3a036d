#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "common/env/clock.h"
#include "common/ids.h"

namespace cairn::namenode {

// Which replicas wait to be told to go, and which have been told and have not answered.
//
// Waiting is a bounded set of hints a storage: whether a replica may really go is judged again when its turn
// comes, so a hint can be dropped (a scan finds it again) and may be wrong. Told is the memory on which safety
// stands: what is in it counts as gone until its DataNode's stream said DROPPED or KEPT, or a walk of a newer
// incarnation has passed its id.
//
// A command whose answer does not come is sent again under a new id. A DataNode answers every command that reached it, in the order in
// which they came, and takes none from a stream that it has left: so the answer to the newest id says that all earlier sendings have been
// acted on, or were lost on the way. An answer to an earlier one says nothing: the newest may still act.
//
// Owned by one executor; memory only.
class InvalidationQueue {
 public:
  struct Limits {
    size_t waiting_per_storage = 50'000;
    size_t told = 200'000;
    absl::Duration answer_within = absl::Minutes(10);  // Then it is sent again.
  };
  struct Told {
    StorageNumber storage;
    BlockId block;
    GenerationStamp stamp;
    uint64_t command_id = 0;
    Incarnation incarnation;
    SteadyTime at;
  };

  // Command ids grow from `first_command_id`; no two NameNode starts share any, so that a late answer is never one to a newer command.
  InvalidationQueue(Limits limits, uint64_t first_command_id) : limits_(limits), next_command_id_(first_command_id) {}

  // False when the storage's set is full: a scan has to find it again.
  bool Add(StorageNumber storage, BlockId block, SteadyTime now);
  // Takes the lowest ids out.
  std::vector<BlockId> Take(StorageNumber storage, size_t limit);
  void ForgetWaiting(StorageNumber storage);

  // Notes what is being sent; nothing if it is told already, or too many are. In the place of a command that named an older stamp.
  std::optional<uint64_t> Tell(StorageNumber storage, BlockId block, GenerationStamp stamp, Incarnation incarnation, SteadyTime now);
  // Whether the replica at that stamp was. A command acts only on the stamp that it names: one that has risen since is not under it.
  bool IsTold(StorageNumber storage, BlockId block, GenerationStamp stamp) const {
    const auto told = told_.find({block, storage});
    return told != told_.end() && told->second.stamp >= stamp;
  }
  // Whether this is the newest sending, still unanswered.
  bool IsNewest(const Told& told) const {
    const auto found = told_.find({told.block, told.storage});
    return found != told_.end() && found->second.command_id == told.command_id;
  }
  std::vector<StorageNumber> ToldOf(BlockId block) const;
  // DROPPED or KEPT: nothing but the newest sending's ends it.
  void Answered(StorageNumber storage, BlockId block, uint64_t command_id);
  // A walk of `incarnation` has passed [first, end): commands of older ones can act no more.
  void Passed(StorageNumber storage, uint64_t first, uint64_t end, Incarnation incarnation);
  // Unanswered commands of this incarnation that are to be sent again, under new ids: all, or only those sent too long ago.
  std::vector<Told> Resend(StorageNumber storage, Incarnation incarnation, bool all, SteadyTime now);

  size_t waiting() const { return waiting_count_; }
  size_t told() const { return told_.size(); }
  // Of those that wait. Goes over at most one storage's, so that it may lag by some calls.
  absl::Duration OldestAge(SteadyTime now);

 private:
  struct Waiting {
    absl::btree_map<BlockId, SteadyTime> blocks;
    SteadyTime oldest;  // None of `blocks` is older.
    bool exact = true;  // One of them is that old.
  };
  Limits limits_;
  absl::btree_map<StorageNumber, Waiting> waiting_;
  size_t waiting_count_ = 0;
  absl::btree_map<std::pair<BlockId, StorageNumber>, Told> told_;
  absl::btree_map<StorageNumber, absl::btree_set<BlockId>> told_by_storage_;
  uint64_t next_command_id_;

  void Erase(StorageNumber storage, BlockId block);
};

}  // namespace cairn::namenode
