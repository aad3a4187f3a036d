#include "namenode/frontdoor/admin_service.h"

#include <utility>

#include <fmt/format.h>

#include "common/error.h"
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
  if (absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(std::move(allowed));
  if (absl::Status armed = ArmFault(request.name(), request.action()); !armed.ok()) return done(std::move(armed));
  v1::SetFaultResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
  done(std::move(response));
}

void AdminService::Reclaim(api::CallContext context, v1::ReclaimRequest request, api::Done<v1::ReclaimResponse> done) {
  static_cast<void>(context);
  if (reclaimer_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "nothing is reclaimed here"));
  auto answer = [this, done = std::move(done)](const absl::Status& status) mutable {
    if (!status.ok()) return done(status);
    const Reclaimer::Stats stats = reclaimer_->stats();
    v1::ReclaimResponse response;
    response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
    response.set_paused(stats.paused);
    response.set_pace(stats.pace);
    response.set_works(stats.works);
    response.set_left_inodes(stats.left_inodes);
    response.set_left_bytes(stats.left_bytes);
    response.set_oldest_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(stats.oldest_age)));
    response.set_entries_per_second(stats.entries_per_second);
    response.set_entries_freed(stats.entries_freed);
    response.set_blocks_freed(stats.blocks_freed);
    done(std::move(response));
  };
  if (request.action() == v1::ReclaimRequest::STATUS) return answer(absl::OkStatus());
  if (absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return answer(allowed);
  switch (request.action()) {
    case v1::ReclaimRequest::PAUSE: return reclaimer_->SetPaused(true, std::move(answer));
    case v1::ReclaimRequest::RESUME: return reclaimer_->SetPaused(false, std::move(answer));
    case v1::ReclaimRequest::PACE: return reclaimer_->SetPace(request.entries_per_second(), std::move(answer));
    default: return answer(MakeError(ErrorKind::kInvalidArgument, fmt::format("reclaim: unknown action {}", int{request.action()})));
  }
}

}  // namespace cairn::namenode
