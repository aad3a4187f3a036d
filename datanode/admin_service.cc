#include "datanode/admin_service.h"

#include <utility>

#include "common/error.h"
#include "common/fault_points.h"
#include "common/superuser.h"

namespace cairn::datanode {

absl::Status AdminService::CheckSuperuser(const v1::RequestHeader& header) const {
  if (!is_superuser_ || is_superuser_(header.user())) return absl::OkStatus();
  return SuperuserRequired(header.user());
}

void AdminService::GetDatanodeInfo(api::CallContext context, v1::GetDatanodeInfoRequest request,
                                   api::Done<v1::GetDatanodeInfoResponse> done) {
  static_cast<void>(context);
  static_cast<void>(request);
  v1::GetDatanodeInfoResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
  describe_(&response);
  done(std::move(response));
}

void AdminService::SetFault(api::CallContext context, v1::SetFaultRequest request, api::Done<v1::SetFaultResponse> done) {
  static_cast<void>(context);
  if (absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(std::move(allowed));
  if (absl::Status armed = ArmFault(request.name(), request.action()); !armed.ok()) return done(std::move(armed));
  v1::SetFaultResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
  done(std::move(response));
}

void AdminService::Reconfigure(api::CallContext context, v1::ReconfigureRequest request, api::Done<v1::ReconfigureResponse> done) {
  static_cast<void>(context);
  if (absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(std::move(allowed));
  if (!reconfigure_) return done(MakeError(ErrorKind::kUnsupported, "this DataNode has no configuration files"));
  reconfigure_(std::move(request), std::move(done));
}

}  // namespace cairn::datanode
