#include "namenode/frontdoor/admin_service.h"

#include <utility>

#include "common/fault_points.h"

namespace cairn::namenode {

AdminService::AdminService(ReplicaPlane* plane, FillNamespace fill_namespace, const Clock* clock, std::string software_version)
    : plane_(plane), fill_namespace_(std::move(fill_namespace)), clock_(clock), software_version_(std::move(software_version)) {}

void AdminService::ClusterReport(api::CallContext context, v1::ClusterReportRequest request, api::Done<v1::ClusterReportResponse> done) {
  static_cast<void>(context);
  static_cast<void>(request);
  v1::ClusterReportResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
  plane_->FillReport(&response);
  if (fill_namespace_) fill_namespace_(&response);
  response.set_software_version(software_version_);
  done(std::move(response));
}

void AdminService::SetFault(api::CallContext context, v1::SetFaultRequest request, api::Done<v1::SetFaultResponse> done) {
  static_cast<void>(context);
  if (absl::Status armed = ArmFault(request.name(), request.action()); !armed.ok()) return done(std::move(armed));
  v1::SetFaultResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
  done(std::move(response));
}

}  // namespace cairn::namenode
