// The calls of ClientService that change something.

#include <algorithm>

#include "common/block_token.h"
#include "namenode/frontdoor/client_call.h"
#include "namenode/frontdoor/new_names.h"
#include "namenode/namespace/apply.h"
#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/records.h"

namespace cairn::namenode {
namespace {

constexpr uint8_t kWriterModes =
    static_cast<uint8_t>(TokenMode::kRead) | static_cast<uint8_t>(TokenMode::kWrite) | static_cast<uint8_t>(TokenMode::kTransfer);

// Reads a path's records into memory, so that the one writer finds them there: NotInMemory if this view cannot. Nothing else that the walk
// says matters, only the mutation itself decides.
absl::Status Warm(const ReadView& view, const std::string& path) {
  absl::Status walked = WalkPath(view, path, Caller::Trusted()).status();
  return IsNotInMemory(walked) ? walked : absl::OkStatus();
}

// Parents that are made on the way can be entered and filled by their owner, as in HDFS.
uint32_t ParentMode(uint32_t mode) { return mode | 0300; }

}  // namespace

#define CAIRN_DISPATCH(Name)                                                                                           \
  void ClientService::Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) {  \
    DispatchInMemory(#Name, true, std::move(context), std::move(request), std::move(done), &ClientService::Try##Name); \
  }
CAIRN_DISPATCH(Create)
CAIRN_DISPATCH(AddBlock)
CAIRN_DISPATCH(AbandonBlock)
CAIRN_DISPATCH(UpdateBlockForPipeline)
CAIRN_DISPATCH(UpdatePipeline)
CAIRN_DISPATCH(Fsync)
CAIRN_DISPATCH(Complete)
CAIRN_DISPATCH(Mkdirs)
CAIRN_DISPATCH(Rename)
CAIRN_DISPATCH(Delete)
#undef CAIRN_DISPATCH

void ClientService::DeleteMany(api::CallContext context, v1::DeleteManyRequest request, api::Done<v1::DeleteManyResponse> done) {
  Dispatch("DeleteMany", true, std::move(context), std::move(request), std::move(done), &ClientService::OnDeleteMany);
}

absl::StatusOr<v1::Mutation::Commit> ClientService::ToCommit(const v1::CommittedBlock& block, const ReadView& view) {
  v1::Mutation::Commit commit;
  *commit.mutable_block() = block.block();
  for (const std::string& uuid : block.acknowledged_storages()) {
    ASSIGN_OR_RETURN(const StorageNumber number, storage_numbers_.NumberOf(uuid, view));
    commit.add_acknowledged(static_cast<uint32_t>(number.value()));
  }
  return commit;
}

absl::StatusOr<v1::LocatedBlock> ClientService::Locate(const v1::MutationResult& result) {
  v1::LocatedBlock located;
  *located.mutable_block() = result.block();
  located.set_offset_bytes(result.offset_bytes());
  located.set_under_construction(true);
  for (const uint32_t number : result.storages()) {
    if (std::optional<v1::StorageLocation> location = replicas_->LocationOf(StorageNumber(number)))
      *located.add_locations() = *std::move(location);
  }
  if (located.locations().empty()) {
    // A kept answer after a restart of the NameNode: the DataNodes come back in a moment.
    Error error;
    error.kind = ErrorKind::kRetriable;
    error.reason = "NOT_REGISTERED_YET";
    error.path = result.path();
    error.block_id = result.block().id();
    error.message = fmt::format("{}: none of the {} DataNodes of block {} has registered with this NameNode yet", result.path(),
                                result.storages_size(), result.block().id());
    return MakeError(std::move(error));
  }
  located.set_token(Token(located.block(), kWriterModes));
  return located;
}

absl::Status ClientService::TryCreate(Call<v1::CreateRequest, v1::CreateResponse>& call) {
  const v1::CreateRequest& request = call.request;
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::Create& create = *mutation.mutable_create();
  create.set_path(request.path());
  create.set_overwrite(request.overwrite());
  create.set_create_parent(request.create_parent());
  create.set_delete_if_abandoned(request.delete_if_abandoned());
  const std::shared_ptr<const Tunables> now = tunables();
  create.set_replication(request.replication() == 0 ? now->default_replication : request.replication());
  create.set_block_size_bytes(request.block_size_bytes() == 0 ? now->default_block_size_bytes : request.block_size_bytes());
  create.set_mode((request.mode() == 0 ? 0666 : request.mode()) & ~request.umask());
  create.set_parent_mode(ParentMode(0777 & ~request.umask()));
  create.set_with_first_block(request.with_first_block());

  const absl::StatusOr<PathWalk> walk = WalkPath(*call.view, request.path(), Caller::Trusted());
  RETURN_IF_ERROR(CheckNewPath(walk, mutation.limits(), request.path()));
  ASSIGN_OR_RETURN(const bool has_acted, HasActed(*call.view, call.header));
  if (request.with_first_block() && !has_acted) {
    ReplicaPlane::TargetRequest wanted;
    // A number out of range is refused by Apply, with the key that sets it.
    wanted.replication = std::clamp(create.replication(), 1u, std::max(now->limits.max_replication, 1u));
    wanted.block_size_bytes = create.block_size_bytes();
    wanted.client_host = HostOfCaller(request.client_host(), call.context.peer);
    wanted.excluded.assign(request.excluded().begin(), request.excluded().end());
    const absl::StatusOr<std::vector<StorageNumber>> targets = replicas_->ChooseTargets(wanted);
    if (!targets.ok()) return Annotate(targets.status(), fmt::format("create {}", request.path()));
    for (const StorageNumber target : *targets) create.add_targets(static_cast<uint32_t>(target.value()));
  }
  ASSIGN_OR_RETURN(const int64_t limit_ms, RenewFor(call.header.client_name()));
  if (!request.overwrite()) SeeLease(walk, call.header.client_name(), create.mutable_lease_seen());
  const bool with_first_block = request.with_first_block();
  SubmitOverLease<v1::CreateRequest, v1::CreateResponse>(
      kCreateFile, std::move(call), std::move(mutation), &ClientService::OnCreate,
      [this, with_first_block, limit_ms](const v1::MutationResult& result, v1::CreateResponse& response) {
        *response.mutable_status() = ToFileStatus(result.inode(), result.path());
        response.set_lease_soft_limit_ms(limit_ms);
        if (!with_first_block) return absl::OkStatus();
        absl::StatusOr<v1::LocatedBlock> located = Locate(result);
        RETURN_IF_ERROR(located.status());
        *response.mutable_first_block() = *std::move(located);
        return absl::OkStatus();
      });
  return absl::OkStatus();
}

// Once more, after a lease was taken over.
void ClientService::OnCreate(Call<v1::CreateRequest, v1::CreateResponse> call) {
  BeginOnReader(call);
  if (const absl::Status status = TryCreate(call); !status.ok()) call.done(status);
}

absl::Status ClientService::TryAddBlock(Call<v1::AddBlockRequest, v1::AddBlockResponse>& call) {
  const v1::AddBlockRequest& request = call.request;
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::AddBlock& add = *mutation.mutable_add_block();
  add.set_path(request.path());
  add.set_inode_id(request.inode_id());
  add.set_reserve(request.reserve());
  add.set_use_reserved_id(request.use_reserved_id());
  if (request.has_previous()) {
    absl::StatusOr<v1::Mutation::Commit> previous = ToCommit(request.previous(), *call.view);
    if (!previous.ok()) return Annotate(previous.status(), fmt::format("addBlock {}", request.path()));
    *add.mutable_previous() = *std::move(previous);
  }
  ASSIGN_OR_RETURN(const bool has_acted, HasActed(*call.view, call.header));
  if (request.use_reserved_id() == 0 && !has_acted) {
    const absl::StatusOr<ResolvedInode> file =
        request.inode_id() != 0 ? ResolveId(*call.view, InodeId(request.inode_id())) : ResolvePath(*call.view, request.path());
    if (IsNotInMemory(file.status())) return file.status();
    // A file that is gone is refused by Apply, in its words.
    if (file.ok() && file->record.type() == v1::FILE) {
      ReplicaPlane::TargetRequest wanted;
      wanted.replication = file->record.replication();
      wanted.block_size_bytes = file->record.block_size_bytes();
      wanted.client_host = HostOfCaller(request.client_host(), call.context.peer);
      wanted.excluded.assign(request.excluded().begin(), request.excluded().end());
      const absl::StatusOr<std::vector<StorageNumber>> targets = replicas_->ChooseTargets(wanted);
      if (!targets.ok()) return Annotate(targets.status(), fmt::format("addBlock {}", request.path()));
      for (const StorageNumber target : *targets) add.add_targets(static_cast<uint32_t>(target.value()));
    }
  }
  Submit<v1::AddBlockRequest, v1::AddBlockResponse>(std::move(call), std::move(mutation),
                                                    [this](const v1::MutationResult& result, v1::AddBlockResponse& response) {
                                                      absl::StatusOr<v1::LocatedBlock> located = Locate(result);
                                                      RETURN_IF_ERROR(located.status());
                                                      *response.mutable_block() = *std::move(located);
                                                      return absl::OkStatus();
                                                    });
  return absl::OkStatus();
}

absl::Status ClientService::TryAbandonBlock(Call<v1::AbandonBlockRequest, v1::AbandonBlockResponse>& call) {
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::AbandonBlock& op = *mutation.mutable_abandon_block();
  op.set_path(call.request.path());
  op.set_inode_id(call.request.inode_id());
  *op.mutable_block() = call.request.block();
  Submit<v1::AbandonBlockRequest, v1::AbandonBlockResponse>(
      std::move(call), std::move(mutation), [](const v1::MutationResult&, v1::AbandonBlockResponse&) { return absl::OkStatus(); });
  return absl::OkStatus();
}

absl::Status ClientService::TryUpdateBlockForPipeline(Call<v1::UpdateBlockForPipelineRequest, v1::UpdateBlockForPipelineResponse>& call) {
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::UpdateBlockForPipeline& op = *mutation.mutable_update_block_for_pipeline();
  op.set_path(call.request.path());
  op.set_inode_id(call.request.inode_id());
  *op.mutable_block() = call.request.block();
  Submit<v1::UpdateBlockForPipelineRequest, v1::UpdateBlockForPipelineResponse>(
      std::move(call), std::move(mutation), [this](const v1::MutationResult& result, v1::UpdateBlockForPipelineResponse& response) {
        response.set_new_generation_stamp(result.block().generation_stamp());
        response.set_token(Token(result.block(), kWriterModes));
        return absl::OkStatus();
      });
  return absl::OkStatus();
}

absl::Status ClientService::TryUpdatePipeline(Call<v1::UpdatePipelineRequest, v1::UpdatePipelineResponse>& call) {
  const v1::UpdatePipelineRequest& request = call.request;
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::UpdatePipeline& op = *mutation.mutable_update_pipeline();
  op.set_path(request.path());
  op.set_inode_id(request.inode_id());
  *op.mutable_old_block() = request.old_block();
  *op.mutable_new_block() = request.new_block();
  for (const std::string& uuid : request.storages()) {
    const absl::StatusOr<StorageNumber> number = storage_numbers_.NumberOf(uuid, *call.view);
    if (!number.ok()) return Annotate(number.status(), fmt::format("updatePipeline {}", request.path()));
    op.add_storages(static_cast<uint32_t>(number->value()));
  }
  Submit<v1::UpdatePipelineRequest, v1::UpdatePipelineResponse>(
      std::move(call), std::move(mutation), [](const v1::MutationResult&, v1::UpdatePipelineResponse&) { return absl::OkStatus(); });
  return absl::OkStatus();
}

absl::Status ClientService::TryFsync(Call<v1::FsyncRequest, v1::FsyncResponse>& call) {
  const v1::FsyncRequest& request = call.request;
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::Fsync& op = *mutation.mutable_fsync();
  op.set_path(request.path());
  op.set_inode_id(request.inode_id());
  op.set_use_reserved_id(request.use_reserved_id());
  op.set_synced(request.synced());
  if (request.has_last_block()) *op.mutable_last_block() = request.last_block();
  if (request.has_previous()) {
    absl::StatusOr<v1::Mutation::Commit> previous = ToCommit(request.previous(), *call.view);
    if (!previous.ok()) return Annotate(previous.status(), fmt::format("fsync {}", request.path()));
    *op.mutable_previous() = *std::move(previous);
  }
  Submit<v1::FsyncRequest, v1::FsyncResponse>(std::move(call), std::move(mutation),
                                              [](const v1::MutationResult&, v1::FsyncResponse&) { return absl::OkStatus(); });
  return absl::OkStatus();
}

absl::Status ClientService::TryComplete(Call<v1::CompleteRequest, v1::CompleteResponse>& call) {
  const v1::CompleteRequest& request = call.request;
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::Complete& op = *mutation.mutable_complete();
  op.set_path(request.path());
  op.set_inode_id(request.inode_id());
  op.set_use_reserved_id(request.use_reserved_id());
  if (request.has_last()) {
    absl::StatusOr<v1::Mutation::Commit> last = ToCommit(request.last(), *call.view);
    if (!last.ok()) return Annotate(last.status(), fmt::format("complete {}", request.path()));
    *op.mutable_last() = *std::move(last);
  }
  if (request.has_previous()) {
    absl::StatusOr<v1::Mutation::Commit> previous = ToCommit(request.previous(), *call.view);
    if (!previous.ok()) return Annotate(previous.status(), fmt::format("complete {}", request.path()));
    *op.mutable_previous() = *std::move(previous);
  }
  Submit<v1::CompleteRequest, v1::CompleteResponse>(std::move(call), std::move(mutation),
                                                    [](const v1::MutationResult& result, v1::CompleteResponse& response) {
                                                      *response.mutable_status() = ToFileStatus(result.inode(), result.path());
                                                      return absl::OkStatus();
                                                    });
  return absl::OkStatus();
}

absl::Status ClientService::TryMkdirs(Call<v1::MkdirsRequest, v1::MkdirsResponse>& call) {
  const std::string& path = call.request.path();
  RETURN_IF_ERROR(CheckNewPath(WalkPath(*call.view, path, Caller::Trusted()), tunables()->mutation_limits, path));
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::Mkdirs& op = *mutation.mutable_mkdirs();
  op.set_path(call.request.path());
  op.set_create_parent(call.request.create_parent());
  op.set_mode((call.request.mode() == 0 ? 0777 : call.request.mode()) & ~call.request.umask());
  op.set_parent_mode(ParentMode(op.mode()));
  Submit<v1::MkdirsRequest, v1::MkdirsResponse>(std::move(call), std::move(mutation),
                                                [](const v1::MutationResult&, v1::MkdirsResponse&) { return absl::OkStatus(); });
  return absl::OkStatus();
}

absl::Status ClientService::TryRename(Call<v1::RenameRequest, v1::RenameResponse>& call) {
  RETURN_IF_ERROR(Warm(*call.view, call.request.source()));
  const std::string& destination = call.request.destination();
  RETURN_IF_ERROR(CheckNewPath(WalkPath(*call.view, destination, Caller::Trusted()), tunables()->mutation_limits, destination));
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::Rename& op = *mutation.mutable_rename();
  op.set_source(call.request.source());
  op.set_destination(call.request.destination());
  op.set_overwrite(call.request.overwrite());
  Submit<v1::RenameRequest, v1::RenameResponse>(std::move(call), std::move(mutation),
                                                [](const v1::MutationResult&, v1::RenameResponse&) { return absl::OkStatus(); });
  return absl::OkStatus();
}

absl::Status ClientService::TryDelete(Call<v1::DeleteRequest, v1::DeleteResponse>& call) {
  RETURN_IF_ERROR(Warm(*call.view, call.request.path()));
  v1::Mutation mutation = NewMutation(call);
  mutation.mutable_delete_()->set_path(call.request.path());
  mutation.mutable_delete_()->set_recursive(call.request.recursive());
  Submit<v1::DeleteRequest, v1::DeleteResponse>(std::move(call), std::move(mutation),
                                                [](const v1::MutationResult& result, v1::DeleteResponse& response) {
                                                  response.set_existed(result.existed());
                                                  return absl::OkStatus();
                                                });
  return absl::OkStatus();
}

// A call of thousands of paths, a mutation of 256 at a time. All have the call's retry id and hash: the row says how far it has come.
struct ClientService::DeleteProgress {
  Call<v1::DeleteManyRequest, v1::DeleteManyResponse> call;
  v1::Mutation base;
  std::string codes;
  uint32_t next = 0;
};

void ClientService::OnDeleteMany(Call<v1::DeleteManyRequest, v1::DeleteManyResponse> call) {
  if (const absl::Status status = CheckDeleteMany(call.request); !status.ok()) return call.done(status);
  auto progress = std::make_shared<DeleteProgress>();
  progress->base = NewMutation(call);
  progress->base.mutable_delete_many()->set_recursive(call.request.recursive());
  progress->call = std::move(call);
  DeleteNext(std::move(progress));
}

void ClientService::DeleteNext(std::shared_ptr<DeleteProgress> progress) {
  const auto& paths = progress->call.request.paths();
  const auto total = static_cast<uint32_t>(paths.size());
  if (progress->next >= total) {
    v1::DeleteManyResponse response;
    response.set_codes(std::move(progress->codes));
    return Answer(progress->call, std::move(response));
  }
  v1::Mutation mutation = progress->base;
  v1::Mutation::DeleteMany& op = *mutation.mutable_delete_many();
  op.set_from(progress->next);
  {
    const std::shared_ptr<const ReadView> view = space_->Snapshot();
    const uint32_t end = std::min(total, progress->next + kMaxPathsOfDeleteMany);
    for (uint32_t i = progress->next; i < end; ++i) {
      op.add_paths(paths.Get(static_cast<int>(i)));
      IgnoreError(Warm(*view, paths.Get(static_cast<int>(i))), "this view may read the disk");
    }
  }
  space_->Submit(std::move(mutation), [this, progress](absl::StatusOr<v1::MutationResult> result) {
    Executor* const reader = progress->call.reader;
    reader->Post([this, progress, result = std::move(result)] {
      if (!result.ok()) return progress->call.done(result.status());
      if (result->next() <= progress->next || result->next() > static_cast<uint32_t>(progress->call.request.paths_size()))
        return progress->call.done(absl::InternalError("deleteMany: the kept row does not fit the request"));
      // With a retry id the row holds the codes of all parts so far; without one, this answer has its own only.
      progress->codes = progress->call.header.sequence() != 0 ? result->codes() : progress->codes + result->codes();
      progress->next = result->next();
      DeleteNext(progress);
    });
  });
}

}  // namespace cairn::namenode
