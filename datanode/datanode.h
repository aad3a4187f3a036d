#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/api/admin.h"
#include "common/api/datanode_namenode.h"
#include "common/api/inter_datanode.h"
#include "common/env/env.h"
#include "common/metrics.h"
#include "datanode/admin_service.h"
#include "datanode/datanode_metrics.h"
#include "datanode/lanes/namenode_lanes.h"
#include "datanode/reconfigure_call.h"
#include "datanode/recovery/block_recoveries.h"
#include "datanode/recovery/replica_recovery_service.h"
#include "datanode/storage/event_log.h"
#include "datanode/storage/open_block_store.h"
#include "datanode/transfer/token_verifier.h"
#include "datanode/transfer/transfer_server.h"

namespace cairn {
class Config;
class Reconfiguration;
}  // namespace cairn

namespace cairn::datanode {

// How other DataNodes and operators reach this one, and how it reaches them: the admin port. All may be empty: then nobody does.
struct DatanodePeers {
  // Serves the two objects until `withdraw` has returned; the bound address. Called once, before the node registers.
  std::function<absl::StatusOr<HostPort>(api::DatanodeAdmin*, api::InterDatanode*)> serve;
  std::function<void()> withdraw;
  api::InterDatanodeResolver resolve;
};

// Everything a DataNode can be told, typed. Identity and addresses inside the parts' options are set by Datanode.
struct DatanodeOptions {
  BlockStoreOptions storage;
  TransferOptions transfer;
  NamenodeLanes::Options lanes;
  BlockRecoveries::Options recoveries;
  size_t max_events = 1 << 20;        // cairn.datanode.events.max.
  size_t max_event_bytes = 64 << 20;  // cairn.datanode.events.max-bytes.
  bool accept_empty_tokens = true;
  HostPort transfer_bind{"0.0.0.0", 9866};
  // What others are told; an empty host stands for this machine's name, port 0 for the bound one.
  HostPort transfer_advertised;
  HostPort http_advertised;
  HostPort admin_advertised;
  std::string rack = "/default-rack";
  // Who may change things beside who runs this process: members of that group; or, if rights are not checked, everyone.
  std::string supergroup = "supergroup";
  bool permissions_enabled = true;
  DatanodePeers peers;
  // Its files may be read anew while it runs; null: not. Outlives the DataNode.
  Reconfiguration* reconfiguration = nullptr;
  // Ready means that the NameNode has answered a heartbeat within this time.
  absl::Duration stale_after = absl::Seconds(15);
  // On a lane's thread: must not block, nor stop the DataNode itself.
  std::function<void()> on_shutdown;                   // The NameNode shuts this node down.
  std::function<void(absl::Status)> on_other_cluster;  // The disks are of another cluster than the NameNode: this node can only end.
};

// From the configuration's keys; see deploy/config/cairn.yaml.
DatanodeOptions DatanodeOptionsFrom(const Config& config);

// The NameNode as each lane sees it: a channel of its own, so that none queues behind another's bytes.
struct NamenodeChannels {
  std::unique_ptr<api::DatanodeNamenode> registration;
  std::unique_ptr<api::DatanodeNamenode> heartbeat;
  std::unique_ptr<api::DatanodeNamenode> report;
  std::unique_ptr<api::DatanodeNamenode> command;
};

// A DataNode: owns storage, transfer port and lanes, and is the one place that says in which order they start and stop. Data is served
// from the first registration on, which tells a new node its pool; until then transfers wait in the port's backlog.
class Datanode {
 public:
  // Opens the volumes (and scans them, if they were not stopped cleanly), binds the transfer port, starts the lanes. Blocks; does not wait
  // for the NameNode. The error names the directory or port. `env` and `registry` outlive this.
  static absl::StatusOr<std::unique_ptr<Datanode>> Start(DatanodeOptions options, NamenodeChannels channels, Env* env,
                                                         metrics::Registry* registry);
  ~Datanode();  // Stops.
  Datanode(const Datanode&) = delete;
  Datanode& operator=(const Datanode&) = delete;

  // OK once registered and serving, while the NameNode answers and not too many volumes have failed.
  absl::Status Ready() const;
  HostPort transfer_address() const { return transfer_->local(); }
  const HostPort& admin_address() const { return admin_address_; }  // Where the admin port is bound; empty if it is not.
  BlockStore& store() { return *storage_.store; }
  ChangeableVolumes& volumes() { return *storage_.volumes; }
  const NamenodeLanes& lanes() const { return *lanes_; }
  const EventLog& events() const { return *events_; }
  const BlockRecoveries& recoveries() const { return *recoveries_; }
  // Reads the configuration anew, as `dfsadmin -reconfig` does; what came of it is in the log, and in its status. At once; any thread, not
  // beside Stop. Nothing without `reconfiguration`.
  void Reconfigure();
  // Ends transfers and lanes, closes the volumes cleanly. Blocks; idempotent.
  void Stop();

 private:
  Datanode(DatanodeOptions options, NamenodeChannels channels, Env* env);
  absl::Status Open();
  absl::Status ServePeers();
  void StartLanes();
  void Describe(v1::GetDatanodeInfoResponse* info) const;
  void TakeKeys(std::vector<v1::BlockTokenKey> keys);
  void TakeSlow(bool slow);
  void Transfer(v1::CommandDown::Transfer command, CommandLane::TransferDone done);

  DatanodeOptions options_;
  NamenodeChannels channels_;
  Env* const env_;
  std::unique_ptr<EventLog> events_;
  OpenedBlockStore storage_;
  std::unique_ptr<KeyringTokenVerifier> tokens_;
  std::unique_ptr<TransferServer> transfer_;
  SteadyTime started_;
  LaneIdentity identity_;
  std::unique_ptr<ReplicaRecoveryService> replica_recovery_;
  std::unique_ptr<Executor> recovery_executor_;
  std::unique_ptr<BlockRecoveries> recoveries_;
  std::unique_ptr<AdminService> admin_;
  std::unique_ptr<ReconfigureCall> reconfigure_;
  HostPort admin_address_;
  bool admin_served_ = false;
  std::unique_ptr<NamenodeLanes> lanes_;
  std::atomic<bool> lanes_made_{false};
  std::unique_ptr<DatanodeMetrics> metrics_;
  metrics::Histogram report_latency_;
  std::atomic<bool> serving_{false};
  bool stopped_ = false;  // The owner's.
};

}  // namespace cairn::datanode
