#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/admin.pb.h"
#include "cairn/datanode_namenode.pb.h"
#include "cairn/namespace.pb.h"
#include "common/env/clock.h"
#include "common/ids.h"
#include "common/mutex.h"
#include "namenode/replicas/host_list.h"
#include "namenode/replicas/placement_policy.h"
#include "namenode/replicas/rack_table.h"
#include "namenode/replicas/slow_nodes.h"
#include "namenode/store/replica_store.h"

namespace cairn::namenode {

// All that decides whether a storage's rows count, and where it can be reached; a copy.
struct StorageStanding {
  StorageNumber storage;
  std::string datanode_uuid;
  std::string host;
  std::string rack;
  Incarnation incarnation;
  v1::NodeState node = v1::NODE_STATE_UNSPECIFIED;
  v1::StorageState state = v1::STORAGE_STATE_UNSPECIFIED;
  bool marked = false;              // The mark of this epoch was sent in this incarnation.
  uint64_t floor = kNothingWalked;  // This incarnation's walk has passed all ids from here on.
  uint64_t remaining_bytes = 0;
  absl::Duration silent;  // Since its node was last heard of.
  v1::NodeAdminState admin = v1::NODE_NORMAL;
};

// The little of it that a reader's locations need.
struct StorageHealth {
  v1::NodeState node = v1::NODE_STATE_UNSPECIFIED;
  v1::StorageState state = v1::STORAGE_STATE_UNSPECIFIED;
  uint64_t floor = kNothingWalked;
  bool is_on_host = false;  // Of the client.
  bool is_on_rack = false;
  bool leaves = false;  // It is drained or in maintenance.
  bool slow = false;    // And to be avoided for it.
};

// host:port of its data transfer: what operators and refusals call a DataNode.
std::string AddressOf(const v1::DatanodeInfo& info);

// The DataNodes that have registered with this NameNode, and when each was last heard on any lane.
//
// A node is live; after stale_after without a word stale (chosen last, no longer counted for deletion); after
// dead_after dead (its replicas are repaired elsewhere). A DataNode is a uuid, its process an incarnation: a
// new incarnation supersedes the old one, and one that was superseded does not come back while the other is
// live, since a process that was replaced is gone; if it does, two processes share a uuid, and it is refused. So
// is a newcomer at another address while the old one is live and its report stream still open. A new uuid at an
// address takes the place of the node that had it: that one lost its volumes, or moved.
//
// What operators want of a node is kept by the namespace, and given to this at the start and with every change. A node that they said
// something of is here, dead, before it has registered: one in maintenance may be away when the NameNode starts.
//
// All else is soft state: rebuilt as nodes register again. Thread-safe; no call blocks.
class DatanodeRegistry {
 public:
  struct Options {
    std::string cluster_id;
    std::string pool_id;
    Epoch epoch;
    absl::Duration stale_after = absl::Seconds(15);
    absl::Duration dead_after = absl::Seconds(60);
    SlowNodes::Options slow_nodes;
  };
  DatanodeRegistry(Options options, const Clock* clock);  // `clock` outlives this.

  // kInvalidArgument if another cluster's, a second process with one uuid, or a storage that another live
  // DataNode has.
  absl::Status CheckRegistration(const v1::RegisterRequest& request) const ABSL_LOCKS_EXCLUDED(mu_);
  struct Registered {
    bool new_incarnation = false;
    // Of nodes that this one took the address of, and what was wanted of them, which is now wanted of it. Nothing more comes from them.
    std::vector<std::string> replaced_nodes;
    std::vector<StorageNumber> replaced;
    std::vector<StorageNumber> new_storages;  // Not known of this incarnation before: they have to be walked.
  };
  // After CheckRegistration and with the storages' numbers, in the request's order; checks again.
  absl::StatusOr<Registered> Register(const v1::RegisterRequest& request, const std::vector<StorageNumber>& numbers)
      ABSL_LOCKS_EXCLUDED(mu_);
  // kUnregistered if unknown or superseded. `new_storages` is set if it names storages that are not registered.
  absl::Status Heartbeat(const v1::HeartbeatRequest& request, bool* new_storages) ABSL_LOCKS_EXCLUDED(mu_);
  // A word on another lane. kUnregistered as above.
  absl::Status Heard(const std::string& uuid, Incarnation incarnation) ABSL_LOCKS_EXCLUDED(mu_);

  void SetReportStreamOpen(const std::string& uuid, Incarnation incarnation, bool open) ABSL_LOCKS_EXCLUDED(mu_);
  void SetMarked(const std::string& uuid, Incarnation incarnation) ABSL_LOCKS_EXCLUDED(mu_);
  void SetFloor(StorageNumber storage, Incarnation incarnation, uint64_t floor) ABSL_LOCKS_EXCLUDED(mu_);
  void SetStorageState(StorageNumber storage, v1::StorageState state) ABSL_LOCKS_EXCLUDED(mu_);

  // --- What operators want; see namenode/replicas/node_life.h. In registry_admin.cc.
  struct KnownStorage {
    StorageNumber number;
    std::string uuid;
  };
  // At the start, before any node registers.
  void Restore(const std::string& uuid, const v1::NodeAdminRecord& record, const std::vector<KnownStorage>& storages)
      ABSL_LOCKS_EXCLUDED(mu_);
  void SetAdmin(const std::string& uuid, const v1::NodeAdminRecord& record) ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<v1::NodeAdminRecord> AdminOf(const std::string& uuid) const ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<v1::DatanodeInfo> InfoOf(const std::string& uuid) const ABSL_LOCKS_EXCLUDED(mu_);
  // Nodes that are not NODE_NORMAL, by uuid.
  std::vector<std::pair<std::string, v1::NodeAdminRecord>> Administered() const ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<std::string> AllNodes() const ABSL_LOCKS_EXCLUDED(mu_);
  // The uuid of the node with this uuid, host:port of transfer, or host. kNotFound; kInvalidArgument if a host has several.
  absl::StatusOr<std::string> Find(const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);
  // Nodes that it does not let in are dead from now on, until it does.
  void SetHosts(std::shared_ptr<const HostList> hosts) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a node may hold what no row knows: it has not registered with this NameNode yet, or it is heard and has not walked all of its
  // healthy volumes, or has said something that has not come, or cannot say it. One that is dead has said what it will say.
  bool MayHoldMore(const std::string& uuid) const ABSL_LOCKS_EXCLUDED(mu_);
  // It is here, and all that its healthy volumes have has been heard of; or nobody waits for it: it is let go, or its place is taken.
  bool HasReported(const std::string& uuid) const ABSL_LOCKS_EXCLUDED(mu_);

  // --- Which nodes are slow, as of the last Sweep; see slow_nodes.h. In registry_speed.cc.
  void SetSlowNodes(const SlowNodes::Options& options) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsSlow(const std::string& uuid) const ABSL_LOCKS_EXCLUDED(mu_);

  // Nodes that died or came back since the last call.
  struct Changes {
    std::vector<std::string> died;
    std::vector<std::string> returned;
  };
  Changes Sweep() ABSL_LOCKS_EXCLUDED(mu_);

  std::optional<StorageStanding> StandingOf(StorageNumber storage) const ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<StorageHealth> HealthOf(StorageNumber storage, std::string_view client_host, std::string_view client_rack) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // On how many racks DataNodes are that live and stay: whether one rack is too few for a block. At most a second old.
  // At most 1 while somebody is still asked where one of them stands: copies that seem to be on one rack may not be.
  size_t RackCount() const ABSL_LOCKS_EXCLUDED(mu_);
  // False while that is so, of any that is not dead.
  bool RacksAreKnown() const ABSL_LOCKS_EXCLUDED(mu_);
  // Where a host stands, of a DataNode, dead or not, or by the table; empty if that is not known.
  std::string RackOfHost(const std::string& host) const ABSL_LOCKS_EXCLUDED(mu_);
  // Goes before what DataNodes say of their racks; null: nothing does.
  void SetRacks(std::shared_ptr<const RackTable> racks) ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<v1::StorageLocation> LocationOf(StorageNumber storage) const ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<StorageNumber> NumberOf(const std::string& storage_uuid) const ABSL_LOCKS_EXCLUDED(mu_);
  // A storage of this DataNode by its uuid.
  std::optional<StorageNumber> NumberOf(const std::string& datanode_uuid, const std::string& storage_uuid) const ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<StorageNumber> StoragesOf(const std::string& datanode_uuid) const ABSL_LOCKS_EXCLUDED(mu_);
  // True while a node that answers has not walked all it has to.
  bool WalkIsDue() const ABSL_LOCKS_EXCLUDED(mu_);
  // The same, of these.
  bool WalkIsDue(const std::vector<std::string>& uuids) const ABSL_LOCKS_EXCLUDED(mu_);

  // A copy of all: not to be made for each block of many.
  std::vector<PlacementNode> PlacementNodes() const ABSL_LOCKS_EXCLUDED(mu_);
  // A stream to this storage was handed out; forgotten at the node's next heartbeat, which counts it itself.
  void NoteChosen(StorageNumber storage) ABSL_LOCKS_EXCLUDED(mu_);
  void FillReport(v1::ClusterReportResponse* report) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Storage {
    StorageNumber number;
    v1::StorageStatistics statistics;
    v1::StorageState reported = v1::HEALTHY;  // By the stream.
    uint64_t floor = kNothingWalked;
  };
  struct Node {
    Incarnation incarnation;
    std::vector<Incarnation> superseded;  // The newest few.
    v1::DatanodeInfo info;
    SteadyTime heard;
    v1::NodeState swept = v1::LIVE;
    bool stream_open = false;
    bool marked = false;
    uint32_t chosen = 0;
    SteadyTime walked;
    bool ever_walked = false;
    v1::HeartbeatRequest last;
    std::map<std::string, Storage> storages;
    v1::NodeAdminRecord admin;
    bool allowed = true;
    bool slow = false;
  };

  v1::NodeState StateOf(const Node& node) const;
  static bool HasToWalk(const Node& node);
  void CountRacksLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckLocked(const v1::RegisterRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Node* CurrentNode(const std::string& uuid, Incarnation incarnation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Uuids of other nodes with this address.
  std::vector<std::string> OthersAt(const std::string& uuid, const v1::DatanodeInfo& info) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Erase(const std::string& uuid, std::vector<StorageNumber>* storages) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void JudgeSpeed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Avoided(const Node& node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return node.slow && slow_nodes_.avoid(); }
  void FillSpeed(const std::string& uuid, const Node& node, v1::DatanodeReport* report) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Clock* const clock_;
  mutable Mutex mu_;
  std::map<std::string, Node> nodes_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const HostList> hosts_ ABSL_GUARDED_BY(mu_);  // May be null: everyone may come.
  std::shared_ptr<const RackTable> racks_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::string> rack_of_host_ ABSL_GUARDED_BY(mu_);  // Of those that ever registered.
  // Whose a storage is. Both stay where they are in their maps; a storage that leaves its node's has a new owner by then.
  struct Owner {
    Node* node;
    Storage* storage;
  };
  absl::btree_map<StorageNumber, Owner> owners_ ABSL_GUARDED_BY(mu_);
  absl::btree_map<std::string, StorageNumber> numbers_ ABSL_GUARDED_BY(mu_);  // By storage uuid.
  std::set<std::string> replaced_ ABSL_GUARDED_BY(mu_);                       // Uuids whose place others have taken.
  SlowNodes slow_nodes_ ABSL_GUARDED_BY(mu_);
  mutable size_t rack_count_ ABSL_GUARDED_BY(mu_) = 0;
  mutable bool racks_are_known_ ABSL_GUARDED_BY(mu_) = true;
  mutable SteadyTime rack_count_holds_until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::namenode
