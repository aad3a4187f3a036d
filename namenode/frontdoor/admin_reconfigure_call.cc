// AdminService: a changed configuration.

#include <utility>

#include "common/error.h"
#include "common/status.h"
#include "namenode/frontdoor/admin_service.h"

namespace cairn::namenode {
namespace {

void Fill(const Reconfiguration::Outcome& outcome, v1::ReconfigureResponse* response) {
  if (!outcome.ever) return;
  response->set_started_ms(absl::ToUnixMillis(outcome.started));
  response->set_ended_ms(absl::ToUnixMillis(outcome.ended));
  if (!outcome.status.ok()) response->set_error(std::string(outcome.status.message()));
  for (const Reconfiguration::Change& change : outcome.changes) {
    v1::ReconfigureResponse::Change& added = *response->add_changes();
    added.set_key(change.key);
    added.set_from(change.from);
    added.set_to(change.to);
    added.set_taken(change.taken);
  }
}

}  // namespace

void AdminService::Reconfigure(api::CallContext, v1::ReconfigureRequest request, api::Done<v1::ReconfigureResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (reconfiguration_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "this NameNode has no configuration files"));
  v1::ReconfigureResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
  switch (request.action()) {
    case v1::ReconfigureRequest::STATUS: Fill(reconfiguration_->last(), &response); return done(std::move(response));
    case v1::ReconfigureRequest::PROPERTIES:
      for (std::string& key : Reconfiguration::ReloadableKeys()) response.add_properties(std::move(key));
      return done(std::move(response));
    case v1::ReconfigureRequest::START: break;
    default: return done(MakeError(ErrorKind::kInvalidArgument, "reconfigure: an unknown action"));
  }
  reconfiguration_executor_->Post([this, response = std::move(response), done = std::move(done)]() mutable {
    Fill(reconfiguration_->Reload(), &response);
    done(std::move(response));
  });
}

}  // namespace cairn::namenode
