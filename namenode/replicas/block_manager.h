#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/functional/any_invocable.h"
#include "cairn/namespace.pb.h"
#include "common/env/env.h"
#include "common/mutex.h"
#include "namenode/replicas/balance_moves.h"
#include "namenode/replicas/balance_run.h"
#include "namenode/replicas/block_states.h"
#include "namenode/replicas/command_session.h"
#include "namenode/replicas/datanode_registry.h"
#include "namenode/replicas/invalidation_queue.h"
#include "namenode/replicas/node_drain.h"
#include "namenode/replicas/node_life.h"
#include "namenode/replicas/recovery_queue.h"
#include "namenode/replicas/repair_queue.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/replicas/report_applier.h"
#include "namenode/store/replica_store.h"

namespace cairn::namenode {

// Judges blocks and acts: repairs what has too few copies, tells what is too much, stale, corrupt or garbage to go.
//
// A block is judged when the namespace or a report stream changed it, when its turn comes in a queue, when its
// grace ends, and by scans: over a storage that died or failed, and over all blocks when DataNodes registered,
// marked or finished a walk, and from time to time. Whether a replica may go is decided in the same step that
// notes it as told: the one place where deleting is decided, on one executor.
//
// All calls belong to one executor, except figures(). Reads the replica store and the namespace's snapshots;
// writes neither.
class BlockManager : public CommandSource, public std::enable_shared_from_this<BlockManager> {
 public:
  struct Parts {  // All outlive this.
    ReplicaStore* store = nullptr;
    DatanodeRegistry* registry = nullptr;
    NamespaceForReplicas* space = nullptr;
    Executor* executor = nullptr;
    const Clock* clock = nullptr;
    NodeLife* life = nullptr;
  };
  // Asks a storage, through its DataNode's report stream, what it has of a block.
  using AskStorage = std::function<void(std::string datanode_uuid, std::string storage_uuid, BlockId block)>;

  // `next_stamp`: the namespace's, before anything was changed by this NameNode.
  BlockManager(const ReplicaPlane::Options& options, const ReplicaPlane::Identity& identity, Parts parts, GenerationStamp next_stamp,
               Random random, AskStorage ask);

  void Judge(std::vector<BlockId> blocks);
  void OnFreed(const std::vector<BlockId>& blocks);
  void OnReportEffects(Incarnation incarnation, const ReportEffects& effects);
  void OnReportsLost(const std::string& datanode_uuid);
  void OnBadReplica(const v1::Block& block, const std::string& storage_uuid);
  // A round of a block's recovery came to nothing.
  void OnRecoveryFailed(BlockId block, GenerationStamp recovery_id, const std::string& why);
  // Operators want something else of it than before.
  void OnNodeAdminChanged(const std::string& datanode_uuid);
  // A node came, came back, or may take blocks again: what could not be done may be possible now.
  void OnNodeCame() {
    repairs_.Wake();
    spreads_.Wake();
  }
  v1::ListNodeBlockersResponse NodeBlockers(const std::string& datanode_uuid, size_t limit) const;
  v1::ListBadBlocksResponse BadBlocks(v1::ListBadBlocksRequest::Kind kind, BlockId start_after, size_t limit) const;
  void SetSafeMode(bool on) { safe_mode_ = on; }
  void RequestScan() { scan_wanted_ = true; }
  void KeepUnknown() { keep_unknown_ = true; }
  void DeleteUnknown() {
    keep_unknown_ = false;
    RequestScan();
  }
  // The balancer; in balance_blocks.cc. kAlreadyExists, BALANCER_RUNNING: another run's driver is there.
  absl::StatusOr<v1::BalanceResponse> Balance(const v1::BalanceRequest& request);
  void SetBalancerBandwidth(uint64_t bytes_per_second);
  // What heartbeats tell; 0: as DataNodes are configured. Thread-safe.
  uint64_t balancer_bandwidth() const { return balancer_bandwidth_.load(std::memory_order_relaxed); }
  // Once every repair_interval: dead nodes, scans, repairs, commands.
  void Tick();

  absl::Status OnCommandsOpened(const std::shared_ptr<CommandSession>& session) override;
  std::vector<v1::InvalidateReplica> TakeInvalidations(const CommandSession& session, size_t limit) override;
  void OnOutcome(const CommandSession& session, const v1::CommandUp::Outcome& outcome) override;
  void OnCommandsClosed(const CommandSession& session) override;
  void EndSessions(const absl::Status& status);

  ReplicaPlane::Figures figures() const { return board_.Get(); }
  // How far each node is that drains or enters maintenance, into its part of the report. Thread-safe, as figures().
  void FillReport(v1::ClusterReportResponse* report) const;

 private:
  struct Judged {
    BlockId block;
    BlockEvidence evidence;
    BlockVerdict verdict;
  };
  static constexpr size_t kStep = 500;             // Blocks of one step of a scan.
  static constexpr size_t kRepairsAtOnce = 200;    // Repairs started in one round of looks.
  static constexpr size_t kLooksAtOnce = 2000;     // Blocks looked at for that.
  static constexpr size_t kBlocksOfALook = 100;    // Of these, in one step, at most;
  static constexpr size_t kNodesOfALook = 10'000;  // and nodes that are considered for them.
  static constexpr size_t kRemembered = 500'000;   // Bound of each set of blocks below.

  // The block's rows first, then the namespace's snapshot: a block is there before any DataNode hears of it.
  absl::StatusOr<std::vector<Judged>> Evaluate(const std::vector<BlockId>& blocks);
  void Act(const Judged& judged, bool asking);
  void JudgeNow(const std::vector<BlockId>& blocks, bool asking);
  void AskExpected(const Judged& judged);
  // An operator who pauses the freeing of what was deleted wants no bytes to go. Bad replicas go all the same: their places are needed.
  static absl::StatusOr<bool> DeletesArePaused(const ReadView& view);
  absl::Status CheckBalance(const v1::BalanceRequest& request) const;
  absl::Status CheckNames(const v1::BalanceRequest& request) const;
  bool NodesAreAwaited() const;
  bool MayPlan() const;
  void FollowBalance();
  void FollowLanded();
  void BalanceSoon();
  void BalanceStep();
  bool HasRoomForMove(const std::string& datanode_uuid) const;
  size_t MostMoves() const;
  void StartMoves(const BalanceRun::Look& look);
  bool MayMove(const Judged& judged) const;
  void StartMove(const Judged& judged, const BalanceRun::Look& look, const std::vector<PlacementNode>& nodes);
  void FollowMove(const Judged& judged);
  void OnMovesOver(const std::vector<BalanceMove>& moves);
  void OnNodeDied(const std::string& datanode_uuid);
  void PublishBalancerBandwidth();
  // A round of looks at what is to be copied, in steps that are short whatever there is of blocks and nodes.
  void BeginRepairs();
  void RepairStep();
  // How many were started.
  size_t LookAt(RepairQueue* queue, const std::vector<BlockId>& blocks);
  // To copy the replica there, within that time; its targets are still to be added.
  v1::CommandDown CopyOrder(uint64_t command_id, const Judged& judged, StorageNumber source, v1::TrafficClass traffic_class,
                            absl::Duration patience) const;
  bool StartRepair(const Judged& judged, RepairQueue* queue);  // Else it has left the line.
  bool HasRoom(const std::string& datanode_uuid) const;
  void FollowDrains();
  void DrainStep();
  void DrainSlice(const std::string& datanode_uuid, NodeDrain* drain, const NodeDrain::Slice& slice);
  void FinishDrain(const std::string& datanode_uuid, v1::NodeAdminState from, int64_t since_ms, v1::NodeAdminState to);
  void NeedRecovery(BlockId block);
  void StartRecoveriesSoon();
  void StartRecoveries();
  void StartRecovery(BlockId block, const v1::BlockRecord& record);
  void OnRoundBegun(BlockId block, const absl::StatusOr<v1::BlockRecord>& record);
  // The DataNode whose turn it is, of those that hold a replica and can be told; none if there is none now, or only crowded ones.
  struct Primary {
    std::string datanode_uuid;
    bool crowded = false;
  };
  Primary PrimaryFor(BlockId block, const v1::BlockRecord& record) const;
  void SendRecover(BlockId block, const v1::BlockRecord& record);
  // Lets its bearer do all with the block at that stamp.
  std::string WriterToken(BlockId block, GenerationStamp stamp, absl::Duration life) const;
  void ScanStep();
  bool ScanStorageStep();
  bool ScanAllStep();
  void PumpSoon(StorageNumber storage);
  void PumpAll();
  void PublishFigures();

  // What other threads may see, behind a lock of its own.
  class Board {
   public:
    struct Drain {
      size_t left = 0;
      size_t open_left = 0;
      size_t looked_at = 0;
      bool looked_once = false;
    };
    using Drains = absl::btree_map<std::string, Drain>;
    void Set(const ReplicaPlane::Figures& figures, Drains drains) ABSL_LOCKS_EXCLUDED(mu_) {
      MutexLock lock(mu_);
      figures_ = figures;
      drains_ = std::move(drains);
    }
    Drains drains() const ABSL_LOCKS_EXCLUDED(mu_) {
      MutexLock lock(mu_);
      return drains_;
    }
    ReplicaPlane::Figures Get() const ABSL_LOCKS_EXCLUDED(mu_) {
      MutexLock lock(mu_);
      return figures_;
    }

   private:
    mutable Mutex mu_;
    ReplicaPlane::Figures figures_ ABSL_GUARDED_BY(mu_);
    Drains drains_ ABSL_GUARDED_BY(mu_);
  };

  const ReplicaPlane::Options options_;
  const ReplicaPlane::Identity identity_;
  const Parts parts_;
  Random random_;
  const AskStorage ask_;
  const SteadyTime started_;
  InvalidationQueue invalidations_;
  RepairQueue repairs_;
  RepairQueue spreads_;  // Blocks with enough copies, all on one rack: another one is made, and then one is too many. After all repairs.
  RecoveryQueue recoveries_;
  bool recoveries_posted_ = false;
  GenerationStamp first_own_stamp_;  // Stamps from here on were given out by this NameNode.
  uint64_t next_command_id_;
  bool keep_unknown_ = false;
  bool held_back_ = false;  // Deletes are paused, and a scan has to find what was to go when they are not any more.
  bool starting_ = true;
  bool safe_mode_ = false;

  absl::btree_map<std::string, std::shared_ptr<CommandSession>> sessions_;
  absl::btree_map<std::string, std::deque<InvalidationQueue::Told>> resend_;  // By DataNode.
  absl::btree_set<std::pair<SteadyTime, BlockId>> recheck_;                   // When graces end.
  absl::btree_map<BlockId, SteadyTime> asked_;                                // Expected storages were asked.
  absl::btree_map<BlockId, bool> missing_;                                    // Whether its replication is one.
  size_t missing_of_one_ = 0;                                                 // Of these.
  absl::btree_map<BlockId, uint32_t> corrupt_;
  uint64_t corrupt_replicas_ = 0;  // In these.
  absl::btree_set<BlockId> quarantined_;
  absl::btree_set<std::string> to_pump_;
  bool pump_posted_ = false;

  // A round of looks: what nodes were there when it began, and how far it is.
  std::vector<PlacementNode> repair_nodes_;
  absl::btree_map<std::string, size_t> repair_node_at_;  // By uuid.
  size_t looked_ = 0, started_repairs_ = 0;
  bool repairing_ = false;  // A step is posted.
  BalanceMoves moves_;
  std::optional<BalanceRun> balance_;  // The last one, until the next: its driver may still ask what became of it.
  bool balancing_ = false;             // A step is posted.
  uint64_t set_balancer_bandwidth_ = 0;
  std::atomic<uint64_t> balancer_bandwidth_ = 0;

  absl::btree_map<std::string, NodeDrain> drains_;                // By uuid.
  absl::btree_set<std::string> ending_;                           // Whose end of a drain or maintenance is being written.
  std::string last_drained_;                                      // Whose slice was looked at last.
  bool draining_ = false;                                         // A step is posted.
  std::deque<std::pair<StorageNumber, uint64_t>> storage_scans_;  // Where each goes on.
  bool scanning_ = false;                                         // A step is posted.
  bool scan_wanted_ = true;
  std::optional<BlockId> scan_at_;  // Of the scan over all blocks.
  SteadyTime next_scan_;
  SteadyTime next_resend_;

  Board board_;
};

}  // namespace cairn::namenode
