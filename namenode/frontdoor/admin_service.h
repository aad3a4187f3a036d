#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/api/admin.h"
#include "common/env/clock.h"
#include "common/reconfiguration.h"
#include "namenode/checkpoints.h"
#include "namenode/lease_monitor.h"
#include "namenode/namespace_access.h"
#include "namenode/reclaimer.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/safe_mode.h"

namespace cairn::namenode {

// What operators ask of the NameNode. Thread-safe; no call blocks.
//
// SetFault is refused with kPermission unless the daemon runs with --fault-points; an empty action disarms. Reclaim answers how far the
// freeing of deleted trees has come; to pause, resume or pace it is for superusers (kPermission).
// Checkpoints, the confirmation of a rollback, taking a changed configuration over, and the list of orphans are for superusers, too.
class AdminService : public api::NamenodeAdmin {
 public:
  // Adds what only the namespace knows: inodes, blocks. Thread-safe.
  using FillNamespace = std::function<void(v1::ClusterReportResponse* report)>;

  // `plane` and `clock` outlive this.
  AdminService(ReplicaPlane* plane, FillNamespace fill_namespace, const Clock* clock, std::string software_version);

  void ClusterReport(api::CallContext context, v1::ClusterReportRequest request, api::Done<v1::ClusterReportResponse> done) override;
  void SetFault(api::CallContext context, v1::SetFaultRequest request, api::Done<v1::SetFaultResponse> done) override;
  void Reclaim(api::CallContext context, v1::ReclaimRequest request, api::Done<v1::ReclaimResponse> done) override;

  // Before the first call; `reclaimer` outlives this.
  void SetReclaimer(Reclaimer* reclaimer) { reclaimer_ = reclaimer; }
  // Before the first call: who may change things; unless it is set, everyone. Thread-safe.
  void SetSuperuserCheck(std::function<bool(const std::string& user)> is_superuser) { is_superuser_ = std::move(is_superuser); }

  void SaveNamespace(api::CallContext context, v1::SaveNamespaceRequest request, api::Done<v1::SaveNamespaceResponse> done) override;
  void GetImage(api::CallContext context, v1::GetImageRequest request, api::Done<v1::GetImageResponse> done) override;
  void ReadImage(api::CallContext context, v1::ReadImageRequest request, api::Done<v1::ReadImageResponse> done) override;
  void ConfirmRollback(api::CallContext context, v1::ConfirmRollbackRequest request, api::Done<v1::ConfirmRollbackResponse> done) override;

  void Reconfigure(api::CallContext context, v1::ReconfigureRequest request, api::Done<v1::ReconfigureResponse> done) override;

  void ListOrphans(api::CallContext context, v1::ListOrphansRequest request, api::Done<v1::ListOrphansResponse> done) override;

  // Node life and blocks in trouble; in admin_node_calls.cc. All for superusers.
  void SetNodeAdmin(api::CallContext context, v1::SetNodeAdminRequest request, api::Done<v1::SetNodeAdminResponse> done) override;
  void RefreshNodes(api::CallContext context, v1::RefreshNodesRequest request, api::Done<v1::RefreshNodesResponse> done) override;
  void ListNodeBlockers(api::CallContext context, v1::ListNodeBlockersRequest request,
                        api::Done<v1::ListNodeBlockersResponse> done) override;
  void ListBadBlocks(api::CallContext context, v1::ListBadBlocksRequest request, api::Done<v1::ListBadBlocksResponse> done) override;
  // To look is for all, to enter and leave it for superusers; fsck is for superusers, too.
  void SafeMode(api::CallContext context, v1::SafeModeRequest request, api::Done<v1::SafeModeResponse> done) override;
  void Fsck(api::CallContext context, v1::FsckRequest request, api::Done<v1::FsckResponse> done) override;
  // The balancer, for superusers; in balance_calls.cc.
  void Balance(api::CallContext context, v1::BalanceRequest request, api::Done<v1::BalanceResponse> done) override;
  void SetBalancerBandwidth(api::CallContext context, v1::SetBalancerBandwidthRequest request,
                            api::Done<v1::SetBalancerBandwidthResponse> done) override;
  // Before the first call: what fsck shows as the default.
  void SetDefaultReplication(uint32_t replication) { default_replication_ = replication; }
  // Before the first call; it outlives this.
  void SetSafeMode(namenode::SafeMode* safe_mode) { safe_mode_ = safe_mode; }

  // Before the first call: reads the files of dfs.hosts, dfs.hosts.exclude and the racks, on the executor of SetLeases.
  using LoadHosts = std::function<absl::StatusOr<std::shared_ptr<const HostList>>()>;
  using LoadRackTable = std::function<absl::StatusOr<std::shared_ptr<const RackTable>>()>;
  void SetHostFiles(LoadHosts hosts, LoadRackTable racks) {
    load_hosts_ = std::move(hosts);
    load_racks_ = std::move(racks);
  }

  // Before the first call; both outlive this. `reader` may block on reads of the namespace.
  void SetLeases(const LeaseMonitor* leases, Executor* reader) {
    leases_ = leases;
    reader_ = reader;
  }
  // Before the first call; both outlive this. It reads files on `executor`.
  void SetReconfiguration(Reconfiguration* reconfiguration, Executor* executor) {
    reconfiguration_ = reconfiguration;
    reconfiguration_executor_ = executor;
  }
  // Before the first call; both outlive this.
  void SetNamespace(NamespaceAccess* space, Checkpoints* checkpoints) {
    space_ = space;
    checkpoints_ = checkpoints;
  }

 private:
  absl::Status CheckSuperuser(const v1::RequestHeader& header) const;
  // ListBadBlocks for whoever asks.
  void ListBad(api::CallContext context, v1::ListBadBlocksRequest request, api::Done<v1::ListBadBlocksResponse> done);

  ReplicaPlane* const plane_;
  const FillNamespace fill_namespace_;
  const Clock* const clock_;
  const std::string software_version_;
  LoadHosts load_hosts_;
  LoadRackTable load_racks_;
  namenode::SafeMode* safe_mode_ = nullptr;
  uint32_t default_replication_ = 3;
  Reclaimer* reclaimer_ = nullptr;
  NamespaceAccess* space_ = nullptr;
  Checkpoints* checkpoints_ = nullptr;
  const LeaseMonitor* leases_ = nullptr;
  Executor* reader_ = nullptr;
  Reconfiguration* reconfiguration_ = nullptr;
  Executor* reconfiguration_executor_ = nullptr;
  std::function<bool(const std::string& user)> is_superuser_;
};

}  // namespace cairn::namenode
