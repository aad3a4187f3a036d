#pragma once

// datanode/recovery: bringing the replicas of a block whose writer is gone into step. replica_recovery_service answers for the replicas of
// this node, recovery_plan decides, block_recoveries drives: the primary asks every expected storage, settles on a length, has those that
// can be used brought to it, and tells the NameNode.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "datanode/storage/block_store.h"

namespace cairn::datanode {

// What one expected storage said.
struct ReplicaAnswer {
  absl::Status status = absl::UnavailableError("not asked yet");  // Not OK: it did not answer, whatever it holds.
  bool found = false;
  GenerationStamp stamp;
  uint64_t length = 0;
  ReplicaState state = ReplicaState::kRbw;  // Before the recovery.
  bool sure = false;
  bool corrupt = false;
  std::string storage_uuid;  // Where it is, if it was found.
};

struct RecoveryQuestion {
  uint64_t known_length = 0;                // Clients were told that so many bytes are there.
  uint64_t kept_length = 0;                 // So many are on disks: they were synced, or in a closed file.
  GenerationStamp oldest_stamp = {};        // Of the pipeline whose acknowledgements clients got last. 0: only the highest found counts.
  std::optional<uint64_t> new_length = {};  // A truncate.
  uint32_t unreachable = 0;                 // Expected storages that cannot be asked, beside those that were.
  uint32_t long_dead = 0;                   // Of these: given up after ten minutes.
};

struct RecoveryPlan {
  bool drop = false;  // Nobody ever got a byte.
  uint64_t length = 0;
  std::vector<size_t> update;  // Indexes of the answers whose replicas are brought to `length`.
};

// What to make of the answers. Pure.
//
// Only replicas of oldest_stamp or above are considered, and none that is corrupt. Sure are FINALIZED, RBW, and RWR whose host has not
// rebooted since: they have every byte that was acknowledged. With sure ones, those of the highest stamp among them decide: a finalized
// length, else their minimum, since every acknowledged byte is on all nodes of a pipeline. Replicas without a byte decide nothing while
// others have some: nothing was acknowledged then. A newer pipeline that never came to stand may have left replicas of a higher stamp that
// are not sure; they follow if they reach.
//
// With none sure: when every expected storage has answered, the longest, whatever its stamp; the others may have lost what it has. It may
// be shorter than what clients were told, if every host has lost its power: then nobody has more. Storages that are long dead are passed
// over if it reaches what clients were told. Dropped only when every expected storage has answered that it holds no byte. In all other
// cases a length below what clients were told is never chosen, and never one below kept_length: what is missing of that has rotted, or is
// on a disk that may come back. As HDFS's syncBlock, but for the reboots.
//
// The error says who stands in the way: kRetriable while an answer is missing, kReplicaNotFound when all answers together are not enough.
absl::StatusOr<RecoveryPlan> PlanRecovery(const RecoveryQuestion& question, const std::vector<ReplicaAnswer>& answers);

// "3 of 4 answered: storage DS-1: FINALIZED stamp 1003 length 700, sure; ...", for messages.
std::string DescribeAnswers(const std::vector<ReplicaAnswer>& answers);

}  // namespace cairn::datanode
