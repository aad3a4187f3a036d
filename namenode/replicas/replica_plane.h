#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/admin.pb.h"
#include "cairn/client_namenode.pb.h"
#include "cairn/datanode_namenode.pb.h"
#include "cairn/namespace.pb.h"
#include "common/api/datanode_namenode.h"
#include "common/env/env.h"
#include "common/ids.h"
#include "namenode/replicas/host_list.h"
#include "namenode/replicas/placement_policy.h"
#include "namenode/replicas/rack_table.h"
#include "namenode/replicas/slow_nodes.h"
#include "namenode/store/replica_store.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// What the replica plane needs of the namespace. Implemented by the NameNode over MetaStore and
// NamespaceWriter; by a fake in tests. Thread-safe.
class NamespaceForReplicas {
 public:
  virtual ~NamespaceForReplicas() = default;
  virtual std::shared_ptr<const ReadView> Snapshot() const = 0;
  // Gives numbers to storages that have none (one mutation); answers all, in order.
  virtual void RegisterStorages(std::string datanode_uuid, std::vector<std::string> storage_uuids,
                                absl::AnyInvocable<void(absl::StatusOr<std::vector<StorageNumber>>)> done) = 0;
  // Takes another recovery id for a block under recovery, and answers its row; kStaleGeneration if it is not under recovery any more.
  virtual void StartBlockRecovery(InodeId inode, BlockId block, absl::AnyInvocable<void(absl::StatusOr<v1::BlockRecord>)> done) = 0;
  // What a round of recovery has found; refused if it is not the newest one.
  virtual void CommitBlockRecovery(v1::Mutation::CommitBlockRecovery found, absl::AnyInvocable<void(absl::Status)> done) = 0;
  // What is wanted of a DataNode from now on; of NODE_NORMAL no row is kept.
  struct NodeAdminChange {
    std::string datanode_uuid;
    v1::NodeAdminRecord record;
    std::string before;                 // The row that this was decided on; empty: there was none.
    std::vector<std::string> replaced;  // DataNodes whose rows go in the same batch.
  };
  // kStaleGeneration, and nothing is changed, if the row is another one by now.
  virtual void SetNodeAdmin(NodeAdminChange change, absl::AnyInvocable<void(absl::Status)> done) {
    static_cast<void>(change);
    done(absl::OkStatus());
  }
  // A DataNode has heard of a next block id or stamp above ours: this namespace was rolled back (a restored
  // backup). The counters are to jump to at least these, and Options::keep_unknown_replicas is to be set at
  // every later start until an operator confirms.
  virtual void OnRolledBack(uint64_t at_least_block_id, uint64_t at_least_generation_stamp) {
    static_cast<void>(at_least_block_id);
    static_cast<void>(at_least_generation_stamp);
  }
};

// Where the copies are: everything that is soft state about DataNodes, storages and replicas, behind one face.
// Rebuilt by asking; kept across restarts in a RocksDB of its own that is private, unsynced and disposable.
//
// Thread-safe; no call blocks on I/O of the namespace plane. Locks of the replica plane are held for microseconds.
class ReplicaPlane : public api::DatanodeNamenode {
 public:
  struct Options {
    std::string directory;  // "<namenode dir>/replicas".
    size_t block_cache_bytes = 64 << 20;
    bool simulated = false;
    absl::Duration heartbeat_interval = absl::Seconds(3);
    absl::Duration stale_after = absl::Seconds(15);
    absl::Duration dead_after = absl::Seconds(60);
    absl::Duration acknowledged_grace = absl::Seconds(60);  // How long a committed block's acknowledged storages hold off repair.
    absl::Duration repair_interval = absl::Seconds(1);
    absl::Duration repair_timeout = absl::Minutes(5);
    size_t max_repairs_per_node = 4;
    uint32_t min_replication = 1;
    absl::Duration recovery_round = absl::Seconds(10);  // What a block's recovery may take at first; doubles with each round.
    absl::Duration walk_period = absl::Hours(6);
    uint32_t maintenance_minimum = 1;                  // Live copies that a block needs while others are in maintenance.
    absl::Duration drain_interval = absl::Seconds(5);  // Between looks at what a node that drains still holds.
    std::shared_ptr<const HostList> hosts;             // Null: everyone may come.
    std::shared_ptr<const RackTable> racks;            // Null: as DataNodes say.
    uint64_t balancer_bytes_per_second = 100 << 20;    // What DataNodes are taken to use for the balancer, unless told otherwise.
    size_t balancer_moves_per_node = 4;                // At once, unless a run says otherwise.
    // Hears the host of each DataNode that registers. May be null; must be quick.
    std::function<void(const std::string& host)> on_host;
    SlowNodes::Options slow_nodes;
    bool keep_unknown_replicas = false;  // Replicas of unknown blocks are not garbage: see OnRolledBack.
  };

  // What the queues hold, as of the last repair_interval; for metrics.
  struct Figures {
    uint64_t under_replicated_blocks = 0;
    uint64_t repairs_running = 0;
    uint64_t repairs_waiting = 0;  // With those that run, timed out and are parked: under_replicated_blocks.
    uint64_t repairs_timed_out = 0;
    uint64_t repairs_parked_no_source = 0;
    uint64_t repairs_parked_no_target = 0;
    uint64_t at_risk_blocks = 0;         // One copy left, more wanted.
    uint64_t mis_replicated_blocks = 0;  // Enough copies, all on one rack of several; not among the above.
    uint64_t missing_blocks = 0;
    uint64_t missing_blocks_replication_one = 0;
    uint64_t corrupt_blocks = 0;  // With corrupt replicas.
    uint64_t corrupt_replicas = 0;
    uint64_t quarantined_blocks = 0;  // Reported, but beyond the next id, or unknown to a rolled-back namespace.
    uint64_t invalidations_waiting = 0;
    uint64_t invalidations_told = 0;  // Sent and unanswered.
    uint64_t command_sessions = 0;
    uint64_t recovering_blocks = 0;
    absl::Duration oldest_recovery = absl::ZeroDuration();
    bool unknown_replicas_kept = false;
    uint64_t moves_in_flight = 0;  // The balancer's.
    uint64_t moved_replicas = 0;   // Since the start, as the next two.
    uint64_t moved_bytes = 0;
    uint64_t failed_moves = 0;
    absl::Duration oldest_repair = absl::ZeroDuration();
    absl::Duration oldest_invalidation = absl::ZeroDuration();
  };

  // Of this NameNode start; handed to DataNodes.
  struct Identity {
    std::string cluster_id;
    std::string pool_id;
    Epoch epoch;
    std::vector<v1::BlockTokenKey> keys;
  };

  // `executor` runs timers and background scans; `store_executor` the replica database's writes and syncs. All
  // outlive this.
  static absl::StatusOr<std::unique_ptr<ReplicaPlane>> Open(Options options, Identity identity, NamespaceForReplicas* space, Env* env,
                                                            Executor* executor, Executor* store_executor);

  struct TargetRequest {
    uint32_t replication = 3;
    uint64_t block_size_bytes = 0;
    std::string client_host;
    std::vector<v1::ExcludedNode> excluded;
    std::vector<StorageNumber> existing;  // Already hold the block: not chosen again.
  };
  // At least one target, or kNoTargets with a reason and per-node causes in `nodes`. Fewer than asked for is
  // success: the block is repaired later.
  virtual absl::StatusOr<std::vector<StorageNumber>> ChooseTargets(const TargetRequest& request) = 0;

  // Where a block can be read (sorted: live first, then slow, then stale; near client_host first), or, for a block under
  // construction, its expected pipeline in order. `retry` is set when there is none now but a walk that could
  // find one is due.
  struct Locations {
    std::vector<v1::StorageLocation> locations;
    bool retry = false;
    bool needs_disk = false;  // No answer: ask again with Reach::kDisk.
  };
  virtual Locations Locate(BlockId id, const v1::BlockRecord& record, const std::string& client_host, Reach reach) = 0;
  Locations Locate(BlockId id, const v1::BlockRecord& record, const std::string& client_host) {
    return Locate(id, record, client_host, Reach::kDisk);
  }
  // Location of a storage by number; nothing if its DataNode never registered with this NameNode.
  virtual std::optional<v1::StorageLocation> LocationOf(StorageNumber storage) = 0;
  virtual std::optional<StorageNumber> NumberOf(const std::string& storage_uuid) = 0;

  // What the namespace did, after its commit, in order: committed, changed and freed blocks. Called on the
  // writer's executor; must be quick.
  virtual void OnBlocksChanged(const std::vector<BlockId>& blocks) = 0;
  virtual void OnBlocksFreed(const std::vector<v1::FreedBlock>& blocks) = 0;
  // A client's word: asks the DataNode to verify.
  virtual void OnBadReplica(const v1::Block& block, const std::string& storage_uuid) = 0;

  // An operator has confirmed that what a rolled-back namespace does not know may be deleted: the end of Options::keep_unknown_replicas.
  virtual void DeleteUnknownReplicas() {}

  // What the report streams have said of a storage's replicas, by block id. May read the disk; nothing for one that never registered.
  virtual absl::StatusOr<std::vector<ReplicaRow>> RowsOn(const std::string& storage_uuid) const {
    static_cast<void>(storage_uuid);
    return std::vector<ReplicaRow>();
  }

  template <class T>
  using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  // --- node life; see node_life.h
  virtual void SetNodeAdmin(v1::SetNodeAdminRequest request, Done<v1::SetNodeAdminResponse> done) = 0;
  virtual void SetRacks(std::shared_ptr<const RackTable> racks) { static_cast<void>(racks); }
  // Nodes that could not be chosen for a block, since the start, by reason.
  virtual RejectionCounts placement_rejections() const { return {}; }
  virtual void SetSlowNodes(const SlowNodes::Options& options) { static_cast<void>(options); }
  // In it nothing is repaired, recovered or told to go. Off at the start.
  virtual void SetSafeMode(bool on) { static_cast<void>(on); }
  // How many of the DataNodes of which replicas were known at the start have said by now all that they have.
  struct Arrival {
    uint32_t expected = 0;
    uint32_t reported = 0;
    bool complete = true;  // Nobody is waited for any more: who has not come within dead_after is lost.
  };
  virtual Arrival arrival() const { return {}; }
  // What the files of dfs.hosts say now; answers how many nodes that changes.
  virtual uint32_t SetHosts(std::shared_ptr<const HostList> hosts) = 0;
  // Paths are not known here.
  virtual void ListNodeBlockers(v1::ListNodeBlockersRequest request, Done<v1::ListNodeBlockersResponse> done) = 0;
  // How a block fares, for fsck; may block on a disk read.
  virtual absl::StatusOr<v1::FsckBlock> Inspect(BlockId id, const v1::BlockRecord& record, bool with_replicas) = 0;
  virtual void ListBadBlocks(v1::ListBadBlocksRequest request, Done<v1::ListBadBlocksResponse> done) = 0;

  // Begins, keeps alive, or stops a run of the balancer; see balance_run.h.
  virtual void Balance(v1::BalanceRequest request, Done<v1::BalanceResponse> done) = 0;
  virtual void SetBalancerBandwidth(uint64_t bytes_per_second) { static_cast<void>(bytes_per_second); }

  virtual Figures figures() const { return {}; }
  virtual void FillReport(v1::ClusterReportResponse* report) = 0;
  // Ends all streams and timers, syncs, then calls `then` on `executor`. Before the executors are stopped.
  virtual void Stop(absl::AnyInvocable<void()> then) = 0;
};

}  // namespace cairn::namenode
