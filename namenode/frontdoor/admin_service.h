#pragma once

#include <functional>
#include <string>
#include <utility>

#include "common/api/admin.h"
#include "common/env/clock.h"
#include "namenode/reclaimer.h"
#include "namenode/replicas/replica_plane.h"

namespace cairn::namenode {

// What operators ask of the NameNode. Thread-safe; no call blocks.
//
// SetFault is refused with kPermission unless the daemon runs with --fault-points; an empty action disarms. Reclaim answers how far the
// freeing of deleted trees has come; to pause, resume or pace it is for superusers (kPermission).
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

 private:
  ReplicaPlane* const plane_;
  const FillNamespace fill_namespace_;
  const Clock* const clock_;
  const std::string software_version_;
  Reclaimer* reclaimer_ = nullptr;
  std::function<bool(const std::string& user)> is_superuser_;
};

}  // namespace cairn::namenode
