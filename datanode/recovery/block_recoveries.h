#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/api/datanode_namenode.h"
#include "common/api/inter_datanode.h"
#include "common/env/executor.h"
#include "datanode/lanes/seams.h"
#include "datanode/recovery/recovery_plan.h"

namespace cairn::datanode {

// The primary's part of block recovery: carries out the NameNode's Recover commands.
//
//   ask every expected storage (Init)  ->  plan  ->  bring the usable ones into step (Update)  ->  CommitBlockRecovery
//
// All within the command's budget: a storage that does not answer in its part of it has not answered; once a sure replica has, the
// rest get a short patience only, since its length decides anyway. A commit whose outcome is unknown is repeated while the budget lasts;
// the recovery id makes that harmless. How many run at once is for the caller to bound.
//
// Calls from any thread; everything else on its executor, which must be gone (after Close) before this is.
class BlockRecoveries {
 public:
  struct Options {
    absl::Duration default_budget = absl::Seconds(30);  // Of a command that names none.
    absl::Duration patience = absl::Seconds(2);         // For the others, once a sure replica has answered.
    absl::Duration commit_retry = absl::Milliseconds(500);
  };
  using Done = absl::AnyInvocable<void(absl::Status)>;  // Once, on the executor; never after Close.

  // `self` answers for this node's own replicas; `resolve` finds the others. All pointers outlive this.
  BlockRecoveries(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode, api::InterDatanode* self,
                  api::InterDatanodeResolver resolve);

  void Recover(v1::CommandDown::Recover command, Done done);
  void Close() { mailbox_->Close(); }

  uint32_t running() const { return running_count_.load(std::memory_order_relaxed); }
  uint64_t committed() const { return committed_.load(std::memory_order_relaxed); }
  uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  struct Running {
    v1::CommandDown::Recover command;
    Done done;
    SteadyTime began;
    SteadyTime ask_by;
    SteadyTime update_by;
    SteadyTime end;
    std::vector<std::shared_ptr<api::InterDatanode>> peers;  // Of command.replicas; null: ourselves.
    std::vector<ReplicaAnswer> answers;
    size_t unanswered = 0;
    bool planned = false;
    Executor::TimerId timer = 0;
    RecoveryPlan plan;
    size_t updating = 0;
    std::vector<std::string> updated;  // Storages that are at the new stamp and length.
    v1::CommitBlockRecoveryRequest commit;
    absl::Status outcome;
  };
  using Id = uint64_t;

  void Begin(v1::CommandDown::Recover command, Done done);
  api::InterDatanode* Peer(Running& running, size_t index) { return running.peers[index] ? running.peers[index].get() : self_; }
  void OnAnswer(Id id, size_t index, absl::StatusOr<v1::InitReplicaRecoveryResponse> answer);
  void PlanAt(Id id, SteadyTime when);
  void Plan(Id id);
  void SendUpdates(Id id, bool may_hold);
  void OnUpdated(Id id, size_t index, absl::StatusOr<v1::UpdateReplicaUnderRecoveryResponse> answer);
  void Report(Id id, absl::Status outcome);
  void Commit(Id id);
  void OnCommitted(Id id, absl::StatusOr<v1::CommitBlockRecoveryResponse> answer);
  void End(Id id, absl::Status outcome);
  Running* Find(Id id);
  static std::string NameOf(const Running& running);

  const Options options_;
  const LaneIdentity identity_;
  Executor* const executor_;
  api::DatanodeNamenode* const namenode_;
  api::InterDatanode* const self_;
  const api::InterDatanodeResolver resolve_;
  const std::shared_ptr<LaneMailbox> mailbox_;
  std::atomic<uint32_t> running_count_{0};
  std::atomic<uint64_t> committed_{0};
  std::atomic<uint64_t> failed_{0};
  // Of the executor (and of the destructor, after it).
  std::map<Id, Running> running_;
  Id next_id_ = 1;
};

}  // namespace cairn::datanode
