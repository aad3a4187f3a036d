#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/api/datanode_namenode.h"
#include "common/env/env.h"
#include "common/env/watchdog.h"
#include "datanode/lanes/command_lane.h"
#include "datanode/lanes/heartbeat_lane.h"
#include "datanode/lanes/registration_lane.h"
#include "datanode/lanes/report_lane.h"
#include "datanode/lanes/seams.h"
#include "datanode/storage/open_block_store.h"

namespace cairn::datanode {

// The four lanes to one NameNode, their executors and their watchdog: what stands where, and in which order it starts and stops.
// Registration starts first; each success starts (or wakes) the other three.
class NamenodeLanes {
 public:
  struct Options {
    LaneIdentity identity;
    RegistrationLane::Options registration;
    HeartbeatLane::Options heartbeat;
    ReportLane::Options report;
    CommandLane::Options command;
    absl::Duration watchdog_limit = absl::Seconds(10);
  };
  // One channel a lane, so that none queues behind another's bytes. All outlive this.
  struct Channels {
    api::DatanodeNamenode* registration = nullptr;
    api::DatanodeNamenode* heartbeat = nullptr;
    api::DatanodeNamenode* report = nullptr;
    api::DatanodeNamenode* command = nullptr;
  };
  struct Callbacks {  // On lane executors; must not block.
    absl::AnyInvocable<uint32_t()> active_streams;
    absl::AnyInvocable<void(v1::CommandDown::Transfer, CommandLane::TransferDone)> transfer;
    absl::AnyInvocable<void(v1::CommandDown::Recover, CommandLane::RecoverDone)> recover;
    std::function<void(std::vector<v1::BlockTokenKey>)> keys;  // From two lanes: thread-safe.
    absl::AnyInvocable<void(std::string reason)> shutdown;
    absl::AnyInvocable<void(absl::Status)> refused;
    absl::AnyInvocable<void(absl::Status)> other_cluster;  // This node can only end.
    absl::AnyInvocable<void(uint64_t)> balance_bandwidth;  // Bytes per second; 0: as configured. With each heartbeat's answer.
    absl::AnyInvocable<std::vector<v1::SlowPeer>()> slow_peers;
    absl::AnyInvocable<void(bool)> slow;                 // Whether this node is, by each heartbeat's answer.
    std::function<void(absl::Duration)> report_applied;  // May be empty; see ReportLane::SetLatencyObserver.
  };

  NamenodeLanes(Options options, Env* env, Channels channels, BlockStore* store, NodeIdentity* node, EventLog* events, Callbacks callbacks);
  // Waits for the steps under way; streams are closed. The store must outlive this, and its disk executors' tasks may still come: they find
  // no one.
  ~NamenodeLanes();

  void Start();
  // For the transfer server, when a token is sealed with a key that it does not know.
  void NeedKey(uint32_t key_id) { registration_->NeedKey(key_id); }

  bool registered() const { return registration_->registered(); }
  const RegistrationLane& registration() const { return *registration_; }
  const HeartbeatLane& heartbeat() const { return *heartbeat_; }
  const ReportLane& report() const { return *report_; }
  const CommandLane& command() const { return *command_; }
  const Watchdog& watchdog() const { return *watchdog_; }
  Epoch epoch() const { return fence_.current(); }

 private:
  BlockStore* const store_;
  EpochFence fence_;
  // Executors are declared apart from the lanes, since they end first.
  std::unique_ptr<Executor> registration_executor_;
  std::unique_ptr<Executor> heartbeat_executor_;
  std::unique_ptr<Executor> report_executor_;
  std::unique_ptr<Executor> command_executor_;
  std::unique_ptr<Executor> watchdog_executor_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<RegistrationLane> registration_;
  std::unique_ptr<HeartbeatLane> heartbeat_;
  std::unique_ptr<ReportLane> report_;
  std::unique_ptr<CommandLane> command_;
};

}  // namespace cairn::datanode
