#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "common/api/datanode_namenode.h"
#include "common/env/random.h"
#include "common/env/watchdog.h"
#include "datanode/lanes/backoff.h"
#include "datanode/lanes/seams.h"
#include "datanode/storage/block_store.h"
#include "datanode/storage/node_identity.h"

namespace cairn::datanode {

// Registers with the NameNode, and again whenever it or another lane asks for it; adopts the cluster, the epoch and the block token keys.
//
// The only lane that touches a disk: VERSION, when the cluster or a higher epoch is met. A higher epoch is on disk before it counts; then
// commands of lower ones are void, every shard's lock is taken once, and the mark is numbered: once per epoch in each process. A NameNode
// of a lower epoch than we have met is an old one: it is not obeyed. Calls from any thread; everything else on its executor, which must be
// gone (after Close) before this is.
class RegistrationLane : public RegistrationRequests {
 public:
  struct Options {
    v1::DatanodeInfo info;  // Advertised addresses.
    std::string software_version;
    absl::Duration answer_deadline = absl::Seconds(10);
    absl::Duration first_retry = absl::Seconds(1);
    absl::Duration last_retry = absl::Seconds(30);
    absl::Duration least_between = absl::Seconds(1);  // For keys, which many ask for at once.
    // Failures before this are no news: daemons of a cluster start in any order.
    absl::Duration patience = absl::Seconds(10);
  };
  struct Callbacks {  // On the lane's executor; must not block.
    absl::AnyInvocable<void(const v1::RegisterResponse&)> on_registered;
    absl::AnyInvocable<void(std::vector<v1::BlockTokenKey>)> on_keys;
    absl::AnyInvocable<void()> on_epoch;                // The fence was raised and the mark numbered.
    absl::AnyInvocable<void(absl::Status)> on_refused;  // This uuid twice, or another cluster's NameNode later on: for the operator.
    // The NameNode is of another cluster than this node's disks, at the first registration: it is not asked again.
    absl::AnyInvocable<void(absl::Status)> on_other_cluster;
  };

  RegistrationLane(Options options, LaneIdentity identity, Executor* executor, api::DatanodeNamenode* namenode, BlockStore* store,
                   NodeIdentity* node, EpochFence* fence, Random random, Callbacks callbacks, Watchdog* watchdog);

  void Start();
  void Close() { mailbox_->Close(); }

  void RegisterAgain(std::string why) override;
  void MeetEpoch(Epoch epoch) override;
  void HearIds(BlockId next_block, GenerationStamp next_stamp) override;
  void NeedKey(uint32_t key_id) override;

  bool registered() const { return registered_.load(std::memory_order_acquire); }
  uint64_t registrations() const { return registrations_.load(std::memory_order_relaxed); }

 private:
  void Register();
  void OnAnswer(absl::StatusOr<v1::RegisterResponse> answer);
  absl::Status Adopt(const v1::RegisterResponse& answer);
  absl::Status AdoptEpoch(Epoch epoch);
  void OnFailure(const absl::Status& why);
  void RetryAfter(absl::Duration delay);

  const Options options_;
  const LaneIdentity identity_;
  Executor* const executor_;
  api::DatanodeNamenode* const namenode_;
  BlockStore* const store_;
  NodeIdentity* const node_;
  EpochFence* const fence_;
  const std::shared_ptr<LaneMailbox> mailbox_;
  Watchdog* const watchdog_;
  std::atomic<bool> registered_{false};
  std::atomic<uint64_t> registrations_{0};
  // Of the executor.
  Callbacks callbacks_;
  Backoff backoff_;
  bool under_way_ = false;
  std::vector<std::string> named_;  // The storages of the request under way.
  bool again_ = false;              // Asked for while one was under way.
  Executor::TimerId retry_ = 0;
  Epoch marked_;  // In this process.
  uint32_t newest_key_ = 0;
  SteadyTime last_attempt_;
  std::optional<SteadyTime> failing_since_;
};

}  // namespace cairn::datanode
