// AdminService: checkpoints of the namespace, and what follows a restored one.

#include <utility>

#include "common/crc32c.h"
#include "common/error.h"
#include "common/status.h"
#include "common/superuser.h"
#include "namenode/frontdoor/admin_service.h"
#include "namenode/namespace_gateway.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {

absl::Status AdminService::CheckSuperuser(const v1::RequestHeader& header) const {
  if (!is_superuser_ || is_superuser_(header.user())) return absl::OkStatus();
  return SuperuserRequired(header.user());
}

void AdminService::SaveNamespace(api::CallContext, v1::SaveNamespaceRequest request, api::Done<v1::SaveNamespaceResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (checkpoints_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "no checkpoints are made here"));
  checkpoints_->Save([this, done = std::move(done)](absl::StatusOr<Checkpoints::Saved> saved) mutable {
    if (!saved.ok()) return done(saved.status());
    v1::SaveNamespaceResponse response;
    response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
    response.set_name(saved->name);
    response.set_path(saved->path);
    response.set_applied_index(saved->applied_index);
    response.set_took_us(absl::ToInt64Microseconds(saved->took));
    done(std::move(response));
  });
}

void AdminService::GetImage(api::CallContext, v1::GetImageRequest request, api::Done<v1::GetImageResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (checkpoints_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "no checkpoints are made here"));
  checkpoints_->Describe(request.name(), [this, done = std::move(done)](absl::StatusOr<Checkpoints::Image> image) mutable {
    if (!image.ok()) return done(image.status());
    v1::GetImageResponse response;
    response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
    response.set_name(image->name);
    for (const Checkpoints::ImageFile& file : image->files) {
      v1::GetImageResponse::File& added = *response.add_files();
      added.set_name(file.name);
      added.set_size_bytes(file.size_bytes);
    }
    done(std::move(response));
  });
}

void AdminService::ReadImage(api::CallContext, v1::ReadImageRequest request, api::Done<v1::ReadImageResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (checkpoints_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "no checkpoints are made here"));
  checkpoints_->Read(request.name(), request.file(), request.offset(), request.length(),
                     [this, done = std::move(done)](absl::StatusOr<std::string> bytes) mutable {
                       if (!bytes.ok()) return done(bytes.status());
                       v1::ReadImageResponse response;
                       response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
                       response.set_crc32c(Crc32c({bytes->data(), bytes->size()}));
                       response.set_data(*std::move(bytes));
                       done(std::move(response));
                     });
}

void AdminService::ConfirmRollback(api::CallContext, v1::ConfirmRollbackRequest request, api::Done<v1::ConfirmRollbackResponse> done) {
  if (const absl::Status allowed = CheckSuperuser(request.header()); !allowed.ok()) return done(allowed);
  if (space_ == nullptr) return done(MakeError(ErrorKind::kUnsupported, "there is no namespace here"));
  const absl::StatusOr<bool> kept = KeepsUnknownReplicas(*space_->Snapshot());
  if (!kept.ok()) return done(kept.status());
  v1::ConfirmRollbackResponse response;
  response.mutable_header()->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow()));
  response.set_was_kept(*kept);
  if (!*kept) return done(std::move(response));
  response.set_unknown_blocks(plane_->figures().quarantined_blocks);
  v1::Mutation mutation;
  mutation.mutable_set_meta()->set_name(std::string(kMetaKeepUnknownReplicas));
  mutation.mutable_set_meta()->set_value("0");
  space_->Submit(std::move(mutation), [plane = plane_, response = std::move(response),
                                       done = std::move(done)](const absl::StatusOr<v1::MutationResult>& result) mutable {
    if (!result.ok()) return done(result.status());
    plane->DeleteUnknownReplicas();
    done(std::move(response));
  });
}

}  // namespace cairn::namenode
