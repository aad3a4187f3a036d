// AdminService: what operators want of DataNodes, what holds these back, and blocks in trouble.

#include <optional>
#include <utility>

#include "common/error.h"
#include "namenode/frontdoor/admin_service.h"
#include "namenode/namespace/namespace_queries.h"

namespace cairn::namenode {
namespace {

// Stamp, length and path of a block; those of one that is gone stay empty.
std::optional<v1::BlockRecord> Describe(const ReadView& view, v1::Block* block, std::string* path) {
  absl::StatusOr<std::optional<v1::BlockRecord>> record = FindBlock(view, BlockId(block->id()));
  if (!record.ok() || !record->has_value()) return std::nullopt;
  block->set_generation_stamp((*record)->generation_stamp());
  block->set_length_bytes((*record)->length_bytes());
  if (absl::StatusOr<std::string> found = PathOf(view, InodeId((*record)->inode_id())); found.ok()) *path = *std::move(found);
  return *std::move(record);
}

}  // namespace

void AdminService::SetNodeAdmin(api::CallContext, v1::SetNodeAdminRequest request, api::Done<v1::SetNodeAdminResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  plane_->SetNodeAdmin(std::move(request), [this, done = std::move(done)](absl::StatusOr<v1::SetNodeAdminResponse> response) mutable {
    if (response.ok()) response->mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
    done(std::move(response));
  });
}

void AdminService::RefreshNodes(api::CallContext, v1::RefreshNodesRequest request, api::Done<v1::RefreshNodesResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (!load_hosts_ || reader_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "this NameNode has no files of hosts"));
  reader_->Post([this, done = std::move(done)]() mutable {
    absl::StatusOr<std::shared_ptr<const HostList>> hosts = load_hosts_();
    if (!hosts.ok()) return done(hosts.status());  // What was read last still holds.
    absl::StatusOr<std::shared_ptr<const RackTable>> racks = load_racks_();
    if (!racks.ok()) return done(racks.status());
    if (*racks != nullptr) plane_->SetRacks(*std::move(racks));
    v1::RefreshNodesResponse response;
    response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
    if (*hosts != nullptr) {
      response.set_included(static_cast<uint32_t>((*hosts)->included()));
      response.set_excluded(static_cast<uint32_t>((*hosts)->excluded()));
      response.set_nodes_changed(plane_->SetHosts(*std::move(hosts)));
    }
    done(std::move(response));
  });
}

void AdminService::ListNodeBlockers(api::CallContext, v1::ListNodeBlockersRequest request, api::Done<v1::ListNodeBlockersResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (space_ == nullptr || reader_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "there is no namespace here"));
  plane_->ListNodeBlockers(
      std::move(request), [this, done = std::move(done)](absl::StatusOr<v1::ListNodeBlockersResponse> response) mutable {
        if (!response.ok()) return done(response.status());
        reader_->Post([this, response = *std::move(response), done = std::move(done)]() mutable {
          const std::shared_ptr<const ReadView> view = space_->Snapshot();
          for (v1::NodeBlocker& blocker : *response.mutable_blockers()) {
            const std::optional<v1::BlockRecord> record = Describe(*view, blocker.mutable_block(), blocker.mutable_path());
            if (record && record->state() == v1::UNDER_RECOVERY) blocker.set_reason("UNDER_RECOVERY");
          }
          response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
          done(std::move(response));
        });
      });
}

void AdminService::ListBadBlocks(api::CallContext context, v1::ListBadBlocksRequest request, api::Done<v1::ListBadBlocksResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  ListBad(std::move(context), std::move(request), std::move(done));
}

void AdminService::ListBad(api::CallContext, v1::ListBadBlocksRequest request, api::Done<v1::ListBadBlocksResponse> done) {
  if (space_ == nullptr || reader_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "there is no namespace here"));
  if (request.kind() == v1::ListBadBlocksRequest::KIND_UNSPECIFIED)
    return done(MakeError(ErrorKind::kInvalidArgument, "which blocks are to be listed is not said"));
  plane_->ListBadBlocks(std::move(request), [this, done = std::move(done)](absl::StatusOr<v1::ListBadBlocksResponse> response) mutable {
    if (!response.ok()) return done(response.status());
    reader_->Post([this, response = *std::move(response), done = std::move(done)]() mutable {
      const std::shared_ptr<const ReadView> view = space_->Snapshot();
      for (v1::BadBlock& block : *response.mutable_blocks()) Describe(*view, block.mutable_block(), block.mutable_path());
      response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
      done(std::move(response));
    });
  });
}

}  // namespace cairn::namenode
