// AdminService: a changed configuration.

#include <utility>

#include "common/error.h"
#include "common/status.h"
#include "namenode/frontdoor/admin_service.h"

namespace cairn::namenode {

void AdminService::Reconfigure(api::CallContext, v1::ReconfigureRequest request, api::Done<v1::ReconfigureResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (reconfiguration_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "this NameNode has no configuration files"));
  v1::ReconfigureResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
  switch (request.action()) {
    case v1::ReconfigureRequest::STATUS: Reconfiguration::Fill(reconfiguration_->last(), &response); return done(std::move(response));
    case v1::ReconfigureRequest::PROPERTIES:
      for (std::string& key : reconfiguration_->ReloadableKeys()) response.add_properties(std::move(key));
      return done(std::move(response));
    case v1::ReconfigureRequest::START: break;
    default: return done(MakeError(ErrorKind::kInvalidArgument, "reconfigure: an unknown action"));
  }
  reconfiguration_executor_->Post([this, response = std::move(response), done = std::move(done)]() mutable {
    Reconfiguration::Fill(reconfiguration_->Reload(), &response);
    done(std::move(response));
  });
}

}  // namespace cairn::namenode
