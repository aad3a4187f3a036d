// The calls of ClientService about modes, owners, times and extended attributes, and about who may do what.

#include "namenode/frontdoor/client_call.h"
#include "namenode/namespace/xattrs.h"

namespace cairn::namenode {

#define CAIRN_DISPATCH(Name, is_mutation)                                                                             \
  void ClientService::Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) { \
    Dispatch(#Name, is_mutation, std::move(context), std::move(request), std::move(done), &ClientService::On##Name);  \
  }
CAIRN_DISPATCH(SetPermission, true)
CAIRN_DISPATCH(SetOwner, true)
CAIRN_DISPATCH(SetTimes, true)
CAIRN_DISPATCH(SetXattr, true)
CAIRN_DISPATCH(RemoveXattr, true)
CAIRN_DISPATCH(GetXattrs, false)
CAIRN_DISPATCH(CheckAccess, false)
#undef CAIRN_DISPATCH

void ClientService::OnSetPermission(Call<v1::SetPermissionRequest, v1::SetPermissionResponse> call) {
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::SetPermission& op = *mutation.mutable_set_permission();
  op.set_path(call.request.path());
  op.set_mode(call.request.mode());
  Submit<v1::SetPermissionRequest, v1::SetPermissionResponse>(
      std::move(call), std::move(mutation), [](const v1::MutationResult&, v1::SetPermissionResponse&) { return absl::OkStatus(); });
}

void ClientService::OnSetOwner(Call<v1::SetOwnerRequest, v1::SetOwnerResponse> call) {
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::SetOwner& op = *mutation.mutable_set_owner();
  op.set_path(call.request.path());
  op.set_owner(call.request.owner());
  op.set_group(call.request.group());
  Submit<v1::SetOwnerRequest, v1::SetOwnerResponse>(std::move(call), std::move(mutation),
                                                    [](const v1::MutationResult&, v1::SetOwnerResponse&) { return absl::OkStatus(); });
}

void ClientService::OnSetTimes(Call<v1::SetTimesRequest, v1::SetTimesResponse> call) {
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::SetTimes& op = *mutation.mutable_set_times();
  op.set_path(call.request.path());
  if (call.request.has_modification_time_ms()) op.set_modification_time_ms(call.request.modification_time_ms());
  if (call.request.has_access_time_ms()) op.set_access_time_ms(call.request.access_time_ms());
  Submit<v1::SetTimesRequest, v1::SetTimesResponse>(std::move(call), std::move(mutation),
                                                    [](const v1::MutationResult&, v1::SetTimesResponse&) { return absl::OkStatus(); });
}

void ClientService::OnSetXattr(Call<v1::SetXattrRequest, v1::SetXattrResponse> call) {
  // Before it travels any further; Apply asks again.
  if (const absl::Status status = CheckXattr(call.request.xattr(), tunables()->mutation_limits); !status.ok()) return call.done(status);
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::SetXattr& op = *mutation.mutable_set_xattr();
  op.set_path(call.request.path());
  *op.mutable_xattr() = call.request.xattr();
  op.set_create(call.request.create());
  op.set_replace(call.request.replace());
  Submit<v1::SetXattrRequest, v1::SetXattrResponse>(std::move(call), std::move(mutation),
                                                    [](const v1::MutationResult&, v1::SetXattrResponse&) { return absl::OkStatus(); });
}

void ClientService::OnRemoveXattr(Call<v1::RemoveXattrRequest, v1::RemoveXattrResponse> call) {
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::RemoveXattr& op = *mutation.mutable_remove_xattr();
  op.set_path(call.request.path());
  op.mutable_xattr()->set_name_space(call.request.xattr().name_space());
  op.mutable_xattr()->set_name(call.request.xattr().name());
  Submit<v1::RemoveXattrRequest, v1::RemoveXattrResponse>(
      std::move(call), std::move(mutation), [](const v1::MutationResult&, v1::RemoveXattrResponse&) { return absl::OkStatus(); });
}

void ClientService::OnGetXattrs(Call<v1::GetXattrsRequest, v1::GetXattrsResponse> call) {
  absl::StatusOr<std::vector<v1::Xattr>> xattrs =
      XattrsOfPath(*space_->Snapshot(), call.request.path(), call.request.wanted(), call.request.names_only(), call.who->caller());
  if (!xattrs.ok()) return call.done(xattrs.status());
  v1::GetXattrsResponse response;
  for (v1::Xattr& xattr : *xattrs) *response.add_xattrs() = std::move(xattr);
  Answer(call, std::move(response));
}

void ClientService::OnCheckAccess(Call<v1::CheckAccessRequest, v1::CheckAccessResponse> call) {
  if (call.request.rights() > kAllRights)
    return call.done(MakeError(ErrorKind::kInvalidArgument, fmt::format("checkAccess: {} is no set of rights", call.request.rights())));
  const absl::StatusOr<ResolvedInode> inode =
      ResolvePath(*space_->Snapshot(), call.request.path(), call.who->caller(), call.request.rights());
  if (!inode.ok()) return call.done(inode.status());
  Answer(call, v1::CheckAccessResponse());
}

}  // namespace cairn::namenode
