// AdminService: files that no writer has closed.

#include <utility>

#include "common/error.h"
#include "namenode/frontdoor/admin_service.h"
#include "namenode/namespace/orphans.h"

namespace cairn::namenode {

void AdminService::ListOrphans(api::CallContext, v1::ListOrphansRequest request, api::Done<v1::ListOrphansResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (space_ == nullptr || leases_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "there is no namespace here"));
  if (request.older_than_ms() < 0) return done(MakeError(ErrorKind::kInvalidArgument, "an age cannot be negative"));
  reader_->Post([this, request = std::move(request), done = std::move(done)]() mutable {
    const int64_t now_ms = absl::ToUnixMillis(clock_->WallNow());
    OrphanQuery query;
    query.path = request.path();
    query.before_ms = now_ms - request.older_than_ms();
    query.start_after = request.start_after();
    absl::StatusOr<OrphanPage> page = FindOrphans(*space_->Snapshot(), query);
    if (!page.ok()) return done(page.status());
    v1::ListOrphansResponse response;
    response.mutable_header()->set_namenode_time_ms(now_ms);
    response.set_next(std::move(page->next));
    response.set_inodes_seen(page->seen);
    for (v1::OrphanFile& file : page->files) {
      const LeaseMonitor::Silence silence = leases_->SilenceOf(file.holder());
      if (file.state() == v1::OrphanFile::WRITING && silence.idle >= silence.soft_limit) file.set_state(v1::OrphanFile::SILENT);
      *response.add_files() = std::move(file);
    }
    done(std::move(response));
  });
}

}  // namespace cairn::namenode
