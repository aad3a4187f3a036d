#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "common/api/datanode_namenode.h"
#include "common/env/watchdog.h"
#include "datanode/lanes/backoff.h"
#include "datanode/lanes/seams.h"
#include "datanode/storage/block_store.h"

namespace cairn::datanode {

// Pulls commands on credit and carries them out: control before repair before reclaim, from three queues that credit bounds.
//
// An invalidation takes the replica out of the map and hands its file to the volume's deleter, so even a million of them cost this lane
// memory operations only; its outcome (DROPPED, KEPT) goes by the report stream. While a long backlog of files waits to be unlinked on
// every volume, no more credit is given for invalidations: the rest waits with the NameNode, which counts it. One volume alone, which may
// hang, does not hold up the others. Reclaim runs in small parts, so that a control command waits for none of it. A command of a lower
// epoch than we have met, or for another incarnation, is void and answered so; one of a higher epoch waits until the registration lane has
// adopted that epoch. Queued commands outlive a broken stream: the NameNode waits for their outcomes. Calls from any thread; everything
// else on its executor, which must be gone (after Close) before this is.
class CommandLane {
 public:
  struct Options {
    uint32_t invalidations = 8192;  // Credit, and so the bound of the reclaim queue.
    uint32_t commands = 64;         // Of the other two together.
    size_t max_transfers = 2;       // At a time. dfs.namenode.replication.max-streams is the NameNode's side of it.
    size_t max_moves = 4;           // For the balancer, at a time, beside these. dfs.datanode.balance.max.concurrent.moves.
    size_t max_recoveries = 4;      // At a time.
    size_t invalidations_per_step = 64;
    uint64_t max_backlog = 200'000;  // cairn.datanode.delete.backlog: files that wait to be unlinked, beyond which no more are taken.
    absl::Duration backlog_check = absl::Milliseconds(500);
    absl::Duration first_retry = absl::Seconds(1);
    absl::Duration last_retry = absl::Seconds(10);
  };
  using TransferDone = absl::AnyInvocable<void(absl::Status)>;  // Once, any thread.
  using RecoverDone = absl::AnyInvocable<void(absl::Status)>;   // Once, any thread.
  struct Callbacks {                                            // On the lane's executor; must not block.
    absl::AnyInvocable<void(v1::CommandDown::Transfer, TransferDone)> transfer;
    absl::AnyInvocable<void(v1::CommandDown::Recover, RecoverDone)> recover;  // May be empty: refused then.
    absl::AnyInvocable<void(std::vector<v1::BlockTokenKey>)> keys;
    absl::AnyInvocable<void(std::string reason)> shutdown;
  };

  CommandLane(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode, BlockStore* store,
              const EpochFence* fence, Random random, RegistrationRequests* registration, Callbacks callbacks, Watchdog* watchdog);
  ~CommandLane();

  void Start();        // Once registered. Later calls: opens a waiting stream at once.
  void EpochRaised();  // Commands may have been waiting for it, or be void now.
  void Close() { mailbox_->Close(); }

  uint64_t queued() const { return queued_.load(std::memory_order_relaxed); }
  absl::Duration oldest_age() const;  // Of the queued; zero when there is none.
  uint64_t invalidations_done() const { return invalidations_done_.load(std::memory_order_relaxed); }

 private:
  class Handler;
  struct Waiting {
    v1::CommandDown command;
    SteadyTime since;
  };
  struct Invalidation {
    v1::InvalidateReplica replica;
    SteadyTime since;
    Epoch epoch;
    bool for_us = true;
  };

  void Open();
  void Reopen();
  void OnDown(uint64_t stream, v1::CommandDown command);
  void OnClosed(uint64_t stream, const absl::Status& status);
  void GrantCredit(bool all);
  void StepSoon();
  void Step();
  bool StepControl();
  bool StepRepair();
  bool StepReclaim();
  // Whether the command may run now; of a voided one, `voided` is set.
  bool Ready(Epoch epoch, bool* voided);
  void Execute(v1::CommandDown command);
  void StartVerify(const v1::CommandDown::Verify& verify);
  void Outcome(uint64_t command_id, const absl::Status& status);
  void FinishTransfer(uint64_t command_id, bool move, const absl::Status& status);
  void StartRecovery(v1::CommandDown::Recover recover);
  static uint64_t IdOf(const v1::CommandDown& command);
  bool ForUs(const v1::CommandDown& command) const { return command.incarnation() == identity_.incarnation.value(); }
  void CountQueued();
  static constexpr int64_t kNothingQueued = -1;

  const Options options_;
  const LaneIdentity identity_;
  Executor* const executor_;
  api::DatanodeNamenode* const namenode_;
  BlockStore* const store_;
  const EpochFence* const fence_;
  const std::shared_ptr<LaneMailbox> mailbox_;
  RegistrationRequests* const registration_;
  Watchdog* const watchdog_;
  std::atomic<uint64_t> queued_{0};
  std::atomic<int64_t> oldest_since_ns_{kNothingQueued};
  std::atomic<uint64_t> invalidations_done_{0};
  // Of the executor (and of the destructor, after it).
  Callbacks callbacks_;
  Backoff backoff_;
  bool started_ = false;
  uint64_t stream_ = 0;
  std::shared_ptr<api::MessageSink<v1::CommandUp>> sink_;
  Executor::TimerId reopen_ = 0;
  Executor::TimerId backlog_timer_ = 0;
  uint64_t granted_invalidations_ = 0;  // Of this stream, and not yet used.
  uint64_t granted_commands_ = 0;
  std::deque<Waiting> control_;
  std::deque<Waiting> repair_;
  std::deque<Invalidation> reclaim_;
  size_t transfers_ = 0;
  size_t moves_ = 0;
  size_t verifications_ = 0;
  size_t recoveries_ = 0;
  bool step_posted_ = false;
};

}  // namespace cairn::datanode
