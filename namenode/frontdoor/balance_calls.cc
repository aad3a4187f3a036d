// AdminService: the balancer.

#include <utility>

#include "namenode/frontdoor/admin_service.h"
#include "namenode/replicas/balance_plan.h"

namespace cairn::namenode {

void AdminService::Balance(api::CallContext, v1::BalanceRequest request, api::Done<v1::BalanceResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  plane_->Balance(std::move(request), [this, done = std::move(done)](absl::StatusOr<v1::BalanceResponse> response) mutable {
    if (response.ok()) response->mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
    done(std::move(response));
  });
}

void AdminService::SetBalancerBandwidth(api::CallContext, v1::SetBalancerBandwidthRequest request,
                                        api::Done<v1::SetBalancerBandwidthResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (const absl::Status sane = CheckBalanceRate(request.bytes_per_second()); !sane.ok()) return done(sane);
  plane_->SetBalancerBandwidth(request.bytes_per_second());
  v1::SetBalancerBandwidthResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
  done(std::move(response));
}

}  // namespace cairn::namenode
