// The calls of ClientService about the blocks of whole files: how many replicas, joined files, locations of many.

#include <algorithm>

#include "namenode/frontdoor/client_call.h"

namespace cairn::namenode {

#define CAIRN_DISPATCH(Name, is_mutation)                                                                             \
  void ClientService::Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) { \
    Dispatch(#Name, is_mutation, std::move(context), std::move(request), std::move(done), &ClientService::On##Name);  \
  }
CAIRN_DISPATCH(SetReplication, true)
CAIRN_DISPATCH(Concat, true)
CAIRN_DISPATCH(GetLocationsMany, false)
#undef CAIRN_DISPATCH

void ClientService::OnSetReplication(Call<v1::SetReplicationRequest, v1::SetReplicationResponse> call) {
  v1::Mutation mutation = NewMutation(call);
  mutation.mutable_set_replication()->set_path(call.request.path());
  mutation.mutable_set_replication()->set_replication(call.request.replication());
  Submit<v1::SetReplicationRequest, v1::SetReplicationResponse>(std::move(call), std::move(mutation),
                                                                [](const v1::MutationResult& result, v1::SetReplicationResponse& response) {
                                                                  response.set_is_file(result.inode().type() == v1::FILE);
                                                                  return absl::OkStatus();
                                                                });
}

void ClientService::OnConcat(Call<v1::ConcatRequest, v1::ConcatResponse> call) {
  v1::Mutation mutation = NewMutation(call);
  mutation.mutable_concat()->set_target(call.request.target());
  *mutation.mutable_concat()->mutable_sources() = call.request.sources();
  Submit<v1::ConcatRequest, v1::ConcatResponse>(std::move(call), std::move(mutation),
                                                [](const v1::MutationResult&, v1::ConcatResponse&) { return absl::OkStatus(); });
}

void ClientService::OnGetLocationsMany(Call<v1::GetLocationsManyRequest, v1::GetLocationsManyResponse> call) {
  if (const absl::Status status = CheckLocatedPaths(call.request); !status.ok()) return call.done(status);
  const std::shared_ptr<const ReadView> view = space_->Snapshot();
  const std::string host = HostOfCaller(call.request.client_host(), call.context.peer);
  v1::GetLocationsManyResponse response;
  size_t room = kMaxBlocksOfManyFiles;
  for (const std::string& path : call.request.paths()) {
    v1::GetLocationsManyResponse::Entry& entry = *response.add_entries();
    const absl::StatusOr<ResolvedInode> inode = ResolveFile(*view, path, call.who->caller(), kReadRight);
    if (!inode.ok()) {
      *entry.mutable_error() = ToDetail(inode.status());
      continue;
    }
    *entry.mutable_status() = ToFileStatus(inode->record, path);
    const absl::StatusOr<std::vector<BlockOfFile>> blocks =
        BlocksOfFile(*view, inode->record, 0, UINT64_MAX, std::min(room, kMaxLocatedBlocks));
    if (!blocks.ok()) return call.done(blocks.status());
    for (const BlockOfFile& block : *blocks) {
      absl::StatusOr<v1::LocatedBlock> located = LocateForReader(block, host, Reach::kDisk);
      if (!located.ok()) return call.done(located.status());
      *entry.add_blocks() = *std::move(located);
    }
    room -= blocks->size();
    entry.set_has_more(blocks->size() < inode->record.block_count());
  }
  Answer(call, std::move(response));
}

}  // namespace cairn::namenode
