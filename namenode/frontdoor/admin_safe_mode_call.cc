// AdminService: safe mode.

#include <algorithm>
#include <utility>

#include "common/error.h"
#include "common/log.h"
#include "namenode/frontdoor/admin_service.h"
#include "namenode/replicas/datanode_registry.h"

namespace cairn::namenode {

void AdminService::SafeMode(api::CallContext context, v1::SafeModeRequest request, api::Done<v1::SafeModeResponse> done) {
  if (safe_mode_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "there is no safe mode here"));
  const std::string user = request.header().user();
  if (request.action() != v1::SafeModeRequest::GET) {
    if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
    const bool enter = request.action() == v1::SafeModeRequest::ENTER;
    if (!enter && request.action() != v1::SafeModeRequest::LEAVE)
      return done(MakeError(ErrorKind::kInvalidArgument, "safe mode: an unknown action"));
    log::Info("safe mode: {} by {}", enter ? "entered" : "left", user);
    if (enter) {
      safe_mode_->Enter(user, clock_->WallNow());
    } else {
      safe_mode_->Leave();
    }
  }
  // What is missing, and how far each node's word can be trusted: that is what an operator wants to know before he leaves it.
  v1::ListBadBlocksRequest missing;
  *missing.mutable_header() = request.header();
  missing.set_kind(v1::ListBadBlocksRequest::MISSING);
  const bool names_paths = CheckSuperuser(request.header()).ok();  // Paths are not everyone's to read.
  ListBad(std::move(context), std::move(missing),
          [this, names_paths, done = std::move(done)](absl::StatusOr<v1::ListBadBlocksResponse> listed) mutable {
            if (!listed.ok()) return done(listed.status());
            v1::ClusterReportResponse report;
            plane_->FillReport(&report);
            const namenode::SafeMode::State state = safe_mode_->state();
            v1::SafeModeResponse response;
            *response.mutable_header() = listed->header();
            response.set_on(state.on);
            if (state.on) response.set_since_ms(absl::ToUnixMillis(state.since));
            response.set_user(state.user);
            response.set_automatic(state.automatic);
            response.set_leaves_in_ms(-1);
            if (state.automatic && state.ends != absl::InfiniteFuture())
              response.set_leaves_in_ms(std::max<int64_t>(0, absl::ToInt64Milliseconds(state.ends - clock_->WallNow())));
            const ReplicaPlane::Arrival arrival = plane_->arrival();
            response.set_nodes_expected(arrival.expected);
            response.set_nodes_reported(arrival.reported);
            response.set_missing_blocks(report.missing_blocks());
            if (names_paths) *response.mutable_missing() = std::move(*listed->mutable_blocks());
            for (const v1::DatanodeReport& node : report.datanodes()) {
              v1::SafeModeResponse::Node& added = *response.add_nodes();
              added.set_address(AddressOf(node.info()));
              added.set_state(node.state());
              added.set_uuid(node.info().uuid());
              added.set_walk_is_due(node.walk_is_due());
              added.set_last_walk_ms(node.last_walk_ms());
              for (const v1::StorageStatistics& storage : node.storages()) added.set_replicas(added.replicas() + storage.replicas());
            }
            done(std::move(response));
          });
}

}  // namespace cairn::namenode
