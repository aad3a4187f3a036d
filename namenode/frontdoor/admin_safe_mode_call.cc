// AdminService: the safe mode that operators enter by hand.

#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"
#include "common/mutex.h"
#include "namenode/frontdoor/admin_service.h"

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
    static Mutex order;  // Both planes hear of calls in one order.
    const MutexLock lock(order);
    if (enter) {
      safe_mode_->Enter(user, clock_->WallNow());
    } else {
      safe_mode_->Leave();
    }
    plane_->SetSafeMode(enter);
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
            response.set_missing_blocks(report.missing_blocks());
            if (names_paths) *response.mutable_missing() = std::move(*listed->mutable_blocks());
            for (const v1::DatanodeReport& node : report.datanodes()) {
              v1::SafeModeResponse::Node& added = *response.add_nodes();
              added.set_address(fmt::format("{}:{}", node.info().transfer().host(), node.info().transfer().port()));
              added.set_state(node.state());
              added.set_walk_is_due(node.walk_is_due());
              for (const v1::StorageStatistics& storage : node.storages()) added.set_replicas(added.replicas() + storage.replicas());
            }
            done(std::move(response));
          });
}

}  // namespace cairn::namenode
