// The calls of ClientService about who may write a file: append, truncate, the recovery and the release of leases.

#include <memory>
#include <vector>

#include "common/block_token.h"
#include "namenode/frontdoor/client_call.h"
#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/records.h"

namespace cairn::namenode {
namespace {

// Files that one ReleaseLease gives up; a client that writes more leaves the rest to the hard limit.
constexpr size_t kMaxReleased = 10'000;

// What has become of one more file.
void Count(const v1::MutationResult& result, v1::ReleaseLeaseResponse* response) {
  if (result.deleted()) {
    response->set_deleted(response->deleted() + 1);
  } else if (result.done()) {
    response->set_closed(response->closed() + 1);
  } else {
    response->set_left(response->left() + 1);
  }
}

// The file at the end of a walk; null if there is none. What is not there, or no file, is refused by Apply, in its words.
const v1::INodeRecord* FileOf(const absl::StatusOr<PathWalk>& walk) {
  return walk.ok() && walk->complete() && !walk->last().is_directory() ? walk->last().record.get() : nullptr;
}

}  // namespace

#define CAIRN_DISPATCH(Name)                                                                                          \
  void ClientService::Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) { \
    Dispatch(#Name, true, std::move(context), std::move(request), std::move(done), &ClientService::On##Name);         \
  }
CAIRN_DISPATCH(Append)
CAIRN_DISPATCH(Truncate)
CAIRN_DISPATCH(RecoverLease)
CAIRN_DISPATCH(ReleaseLease)
#undef CAIRN_DISPATCH

v1::Mutation::RecoverLease ClientService::TakeOverOf(const v1::Mutation& mutation) {
  v1::Mutation::RecoverLease recover;
  const auto fill = [&recover](const auto& operation) {
    recover.set_path(operation.path());
    *recover.mutable_lease_seen() = operation.lease_seen();
  };
  if (mutation.has_create()) {
    fill(mutation.create());
  } else if (mutation.has_append()) {
    fill(mutation.append());
  } else {
    fill(mutation.truncate());
  }
  return recover;
}

void ClientService::SeeLease(const absl::StatusOr<PathWalk>& walk, const std::string& caller, v1::Mutation::LeaseSeen* seen) const {
  const v1::INodeRecord* const file = FileOf(walk);
  if (file == nullptr) return;
  const std::string& holder = file->lease_holder();
  if (holder.empty() || holder == caller || holder == kRecoveryHolder) return;
  seen->set_holder(holder);
  const LeaseMonitor::Silence silence = leases_->SilenceOf(holder);
  seen->set_idle_ms(absl::ToInt64Milliseconds(silence.idle));
  seen->set_limit_ms(absl::ToInt64Milliseconds(silence.soft_limit));
}

absl::StatusOr<int64_t> ClientService::RenewFor(const std::string& client_name) const {
  if (client_name.empty()) return 0;
  ASSIGN_OR_RETURN(const absl::Duration limit, leases_->Renew(client_name));
  return absl::ToInt64Milliseconds(limit);
}

template <class Operation>
absl::Status ClientService::FindHeld(const ReadView& view, const v1::INodeRecord& file, uint64_t end, Operation* operation) {
  if (end == 0 || !file.lease_holder().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<BlockOfFile> blocks, BlocksOfFile(view, file, end - 1, 1, 1));
  if (blocks.empty()) return absl::OkStatus();
  const BlockOfFile& block = blocks.front();
  operation->set_block_id(block.id.value());
  operation->set_generation_stamp(block.record.generation_stamp());
  for (const v1::StorageLocation& location : replicas_->Locate(block.id, block.record, "").locations) {
    ASSIGN_OR_RETURN(const StorageNumber number, storage_numbers_.NumberOf(location.storage_uuid(), view));
    operation->add_holding(static_cast<uint32_t>(number.value()));
  }
  return absl::OkStatus();
}

void ClientService::OnAppend(Call<v1::AppendRequest, v1::AppendResponse> call) {
  const v1::AppendRequest& request = call.request;
  const std::shared_ptr<const ReadView> view = space_->Snapshot();
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::Append& append = *mutation.mutable_append();
  append.set_path(request.path());
  append.set_new_block(request.new_block());
  const absl::StatusOr<PathWalk> walk = WalkPath(*view, request.path(), Caller::Trusted());
  if (const v1::INodeRecord* const file = FileOf(walk)) {
    const absl::Status found = FindHeld(*view, *file, file->length_bytes(), &append);
    if (!found.ok()) return call.done(Annotate(found, fmt::format("append {}", request.path())));
  }
  SeeLease(walk, call.header.client_name(), append.mutable_lease_seen());
  const absl::StatusOr<int64_t> limit_ms = RenewFor(call.header.client_name());
  if (!limit_ms.ok()) return call.done(limit_ms.status());
  SubmitOverLease<v1::AppendRequest, v1::AppendResponse>(
      kAppendFile, std::move(call), std::move(mutation), &ClientService::OnAppend,
      [this, told_ms = *limit_ms](const v1::MutationResult& result, v1::AppendResponse& response) {
        *response.mutable_status() = ToFileStatus(result.inode(), result.path());
        response.set_lease_soft_limit_ms(told_ms);
        if (!result.has_block()) return absl::OkStatus();
        response.set_old_generation_stamp(result.old_generation_stamp());
        absl::StatusOr<v1::LocatedBlock> located = Locate(result);
        RETURN_IF_ERROR(located.status());
        *response.mutable_last_block() = *std::move(located);
        return absl::OkStatus();
      });
}

void ClientService::OnTruncate(Call<v1::TruncateRequest, v1::TruncateResponse> call) {
  const v1::TruncateRequest& request = call.request;
  const std::shared_ptr<const ReadView> view = space_->Snapshot();
  v1::Mutation mutation = NewMutation(call);
  v1::Mutation::Truncate& truncate = *mutation.mutable_truncate();
  truncate.set_path(request.path());
  truncate.set_new_length_bytes(request.new_length_bytes());
  const absl::StatusOr<PathWalk> walk = WalkPath(*view, request.path(), Caller::Trusted());
  if (const v1::INodeRecord* const file = FileOf(walk); file != nullptr && request.new_length_bytes() < file->length_bytes()) {
    const absl::Status found = FindHeld(*view, *file, request.new_length_bytes(), &truncate);
    if (!found.ok()) return call.done(Annotate(found, fmt::format("truncate {}", request.path())));
  }
  SeeLease(walk, call.header.client_name(), truncate.mutable_lease_seen());
  SubmitOverLease<v1::TruncateRequest, v1::TruncateResponse>(kTruncateFile, std::move(call), std::move(mutation),
                                                             &ClientService::OnTruncate,
                                                             [](const v1::MutationResult& result, v1::TruncateResponse& response) {
                                                               response.set_done(result.done());
                                                               return absl::OkStatus();
                                                             });
}

void ClientService::OnRecoverLease(Call<v1::RecoverLeaseRequest, v1::RecoverLeaseResponse> call) {
  v1::Mutation mutation = NewMutation(call);
  mutation.mutable_recover_lease()->set_path(call.request.path());
  mutation.mutable_recover_lease()->set_by_force(true);
  Submit<v1::RecoverLeaseRequest, v1::RecoverLeaseResponse>(std::move(call), std::move(mutation),
                                                            [](const v1::MutationResult& result, v1::RecoverLeaseResponse& response) {
                                                              response.set_closed(result.done());
                                                              return absl::OkStatus();
                                                            });
}

void ClientService::OnReleaseLease(Call<v1::ReleaseLeaseRequest, v1::ReleaseLeaseResponse> call) {
  if (call.header.client_name().empty())
    return call.done(MakeError(ErrorKind::kInvalidArgument, "releaseLease: the client name is missing"));
  if (call.request.inode_id() == 0) return ReleaseAll(std::move(call));
  v1::Mutation mutation = NewMutation(call);
  mutation.mutable_expire_lease()->set_holder(call.header.client_name());
  mutation.mutable_expire_lease()->set_inode_id(call.request.inode_id());
  Submit<v1::ReleaseLeaseRequest, v1::ReleaseLeaseResponse>(std::move(call), std::move(mutation),
                                                            [](const v1::MutationResult& result, v1::ReleaseLeaseResponse& response) {
                                                              // A lease that was not there is none of the two.
                                                              if (!result.existed()) return absl::OkStatus();
                                                              Count(result, &response);
                                                              return absl::OkStatus();
                                                            });
}

// Each file by a mutation of its own. Repeating the call does no harm: what is given up is not there any more.
void ClientService::ReleaseAll(Call<v1::ReleaseLeaseRequest, v1::ReleaseLeaseResponse> call) {
  const std::string holder = call.header.client_name();
  std::vector<uint64_t> files;
  {
    const std::shared_ptr<const ReadView> view = space_->Snapshot();
    const auto cursor = view->Scan(Family::kLease, LeaseKey(holder, InodeId(0)), "");
    for (; cursor->Valid() && files.size() < kMaxReleased; cursor->Next()) {
      const std::optional<LeaseKeyParts> lease = ParseLeaseKey(cursor->key());
      if (!lease || lease->holder != holder) break;
      files.push_back(lease->id.value());
    }
    if (!cursor->status().ok()) return call.done(cursor->status());
  }
  if (files.empty()) return Answer(call, v1::ReleaseLeaseResponse());
  v1::Mutation mutation = NewMutation(call);
  mutation.set_sequence(0);
  mutation.mutable_expire_lease()->set_holder(holder);
  struct Progress {
    Call<v1::ReleaseLeaseRequest, v1::ReleaseLeaseResponse> call;
    v1::ReleaseLeaseResponse response;
    absl::Status failed;
    size_t left;
  };
  auto progress = std::make_shared<Progress>();
  progress->left = files.size();
  Executor* const reader = call.reader;
  progress->call = std::move(call);
  for (const uint64_t file : files) {
    mutation.mutable_expire_lease()->set_inode_id(file);
    space_->Submit(mutation, [this, progress, reader](absl::StatusOr<v1::MutationResult> result) {
      reader->Post([this, progress, result = std::move(result)] {
        if (!result.ok()) {
          progress->failed.Update(result.status());
        } else if (result->existed()) {
          Count(*result, &progress->response);
        }
        if (--progress->left > 0) return;
        if (!progress->failed.ok()) return progress->call.done(progress->failed);
        Answer(progress->call, std::move(progress->response));
      });
    });
  }
}

}  // namespace cairn::namenode
