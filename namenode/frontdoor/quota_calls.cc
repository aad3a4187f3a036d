// The calls of ClientService about quotas.

#include "namenode/frontdoor/client_call.h"

namespace cairn::namenode {

void ClientService::SetQuota(api::CallContext context, v1::SetQuotaRequest request, api::Done<v1::SetQuotaResponse> done) {
  Dispatch("SetQuota", true, std::move(context), std::move(request), std::move(done), &ClientService::OnSetQuota);
}

void ClientService::OnSetQuota(Call<v1::SetQuotaRequest, v1::SetQuotaResponse> call) {
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::SetQuota& op = *mutation.mutable_set_quota();
  op.set_path(call.request.path());
  if (call.request.has_namespace_quota()) op.set_namespace_quota(call.request.namespace_quota());
  if (call.request.has_space_quota_bytes()) op.set_space_quota_bytes(call.request.space_quota_bytes());
  Submit<v1::SetQuotaRequest, v1::SetQuotaResponse>(std::move(call), std::move(mutation),
                                                    [](const v1::MutationResult&, v1::SetQuotaResponse&) { return absl::OkStatus(); });
}

}  // namespace cairn::namenode
