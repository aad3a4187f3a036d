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
  uint64_t known_length = 0;                // Clients were told that so many bytes are safe.
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
// Only replicas of the highest stamp that was found are considered, and none that is corrupt. With any sure one (FINALIZED, RBW, or RWR
// whose host has not rebooted since) the finalized length, else the minimum of the sure ones: every acknowledged byte is on all nodes of
// a pipeline, so the minimum loses none. Replicas without a byte decide nothing while others have some: nothing was acknowledged then.
// With none sure: when every expected storage has answered, the longest that verifies (the others may have lost what it has);
// storages that are long dead are passed over if it reaches what clients were told is safe. Dropped only when every expected storage
// has answered that it holds no byte. A length below what clients were told is never chosen. As HDFS's syncBlock, but for the reboots.
//
// The error says who stands in the way: kRetriable while an answer is missing, kReplicaNotFound when all answers together are not enough.
absl::StatusOr<RecoveryPlan> PlanRecovery(const RecoveryQuestion& question, const std::vector<ReplicaAnswer>& answers);

// "3 of 4 answered: storage DS-1: FINALIZED stamp 1003 length 700, sure; ...", for messages.
std::string DescribeAnswers(const std::vector<ReplicaAnswer>& answers);

}  // namespace cairn::datanode
