#include "tests/client/fake_namenode.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/ids.h"
#include "common/status.h"

namespace cairn::client {
namespace {

const std::set<std::string> kMutations = {
    "Create", "AddBlock",   "AbandonBlock", "UpdateBlockForPipeline", "UpdatePipeline", "Fsync", "Complete", "Mkdirs", "Rename",
    "Delete", "DeleteMany", "SetQuota",     "SetReplication",         "Concat",
    "Append", "Truncate",   "RecoverLease", "ReleaseLease"};

absl::Status Wrong(std::string what) { return MakeError(ErrorKind::kInvalidArgument, std::move(what)); }

}  // namespace

template <class Request, class Response>
void FakeNamenode::Serve(const char* name, bool mutation, Request request, api::Done<Response> done,
                         absl::StatusOr<Response> (FakeNamenode::*act)(const Request&)) {
  ++calls[name];
  if (int& times = swallow[name]; times > 0) {
    --times;
    return swallowed_.push_back([done = std::move(done)] {});
  }
  const v1::RequestHeader& header = request.header();
  if (header.client_id().size() != 16 || header.client_name().empty()) return done(Wrong("bad header"));
  if (auto& answers = refuse[name]; !answers.empty()) {
    const absl::Status answer = answers.front();
    answers.erase(answers.begin());
    return done(answer);
  }
  const std::pair<std::string, uint32_t> key(header.client_id(), header.slot());
  if (mutation) {
    headers.push_back(header);
    if (header.sequence() == 0 || header.slot() > 1023 || header.slot_opened_ms() == 0) return done(Wrong("bad retry id"));
    if (forget_rows) rows_.clear();
    const auto row = rows_.find(key);
    if (row != rows_.end() && row->second.sequence > header.sequence()) return done(Wrong("an old sequence"));
    if (row != rows_.end() && row->second.sequence == header.sequence()) {
      if (int& lose = lose_answers[name]; lose > 0) {
        --lose;
        return done(absl::UnavailableError("the kept answer was lost"));
      }
      Response kept;
      kept.ParseFromString(row->second.answer);
      return done(kept);
    }
    if (row == rows_.end() && NowMs() - header.slot_opened_ms() > 9 * 60 * 1000)
      return done(MakeError(ErrorKind::kSlotExpired, "the slot is too old"));
  }
  absl::StatusOr<Response> answer = (this->*act)(request);
  if (answer.ok()) {
    ++acted[name];
    answer->mutable_header()->set_namenode_time_ms(NowMs());
    if (mutation) {
      Row& row = rows_[key];
      row.sequence = header.sequence();
      row.answer = answer->SerializeAsString();
    }
  }
  if (int& lose = lose_answers[name]; lose > 0) {
    --lose;
    return done(absl::UnavailableError("the answer was lost"));
  }
  done(std::move(answer));
}

#define CAIRN_DEFINE_CALL(Name)                                                                                          \
  void FakeNamenode::Name(api::CallContext, v1::Name##Request request, api::Done<v1::Name##Response> done) {             \
    Serve<v1::Name##Request, v1::Name##Response>(#Name, kMutations.contains(#Name), std::move(request), std::move(done), \
                                                 &FakeNamenode::Do##Name);                                               \
  }
CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_DEFINE_CALL)
#undef CAIRN_DEFINE_CALL

v1::FileStatus FakeNamenode::StatusOf(const std::string& path, const File& file) const {
  v1::FileStatus status;
  status.set_path(path);
  status.set_inode_id(file.inode_id);
  status.set_length_bytes(file.length());
  status.set_block_size_bytes(file.block_size);
  status.set_replication(replication);
  status.set_under_construction(file.open);
  return status;
}

absl::StatusOr<v1::LocatedBlock> FakeNamenode::Allocate(File* file, const google::protobuf::RepeatedPtrField<v1::ExcludedNode>& excluded) {
  last_excluded.assign(excluded.begin(), excluded.end());
  BlockState state;
  state.block.set_id(next_block_);
  state.block.set_generation_stamp(next_stamp_);
  for (const v1::StorageLocation& node : nodes) {
    const bool out = std::any_of(excluded.begin(), excluded.end(),
                                 [&](const v1::ExcludedNode& e) { return e.datanode_uuid() == node.datanode().uuid(); });
    if (!out && state.expected.size() < replication) state.expected.push_back(node);
  }
  if (state.expected.empty()) {
    Error error;
    error.kind = ErrorKind::kNoTargets;
    error.reason = nodes.empty() ? "NO_LIVE_DATANODES" : "ALL_EXCLUDED";
    error.message = "no DataNode for the block";
    return MakeError(std::move(error));
  }
  next_block_ += kBlockIdStep;
  ++next_stamp_;
  v1::LocatedBlock located;
  *located.mutable_block() = state.block;
  located.set_offset_bytes(file->length());
  if (tokens) located.set_token(fmt::format("token of {}", state.block.id()));
  for (const v1::StorageLocation& node : state.expected) *located.add_locations() = node;
  file->blocks.push_back(std::move(state));
  return located;
}

absl::StatusOr<FakeNamenode::File*> FakeNamenode::Writing(const std::string& path, uint64_t inode_id, const v1::RequestHeader& header) {
  const auto it = files.find(path);
  if (it == files.end() || it->second.inode_id != inode_id || !it->second.open || it->second.holder != header.client_name())
    return MakeError(ErrorKind::kLeaseExpired, fmt::format("{} is not written by {}", path, header.client_name()));
  return &it->second;
}

absl::Status FakeNamenode::Commit(File* file, const v1::CommittedBlock& committed) {
  if (file->blocks.empty()) return Wrong("there is no block to commit");
  BlockState& last = file->blocks.back();
  if (last.block.id() != committed.block().id() || last.block.generation_stamp() != committed.block().generation_stamp())
    return Wrong(fmt::format("commit of {} at {}, the last block is {} at {}", committed.block().id(), committed.block().generation_stamp(),
                             last.block.id(), last.block.generation_stamp()));
  if (committed.acknowledged_storages().empty()) return MakeError(ErrorKind::kNotReplicatedYet, "nobody acknowledged");
  for (const std::string& storage : committed.acknowledged_storages()) {
    const bool expected =
        std::any_of(last.expected.begin(), last.expected.end(), [&](const v1::StorageLocation& e) { return e.storage_uuid() == storage; });
    if (!expected) return Wrong(storage + " is not expected");
    last.acknowledged.insert(storage);
  }
  last.block.set_length_bytes(committed.block().length_bytes());
  last.committed = true;
  return absl::OkStatus();
}

absl::StatusOr<v1::CreateResponse> FakeNamenode::DoCreate(const v1::CreateRequest& request) {
  if (files.contains(request.path()) && !request.overwrite()) return MakeError(ErrorKind::kAlreadyExists, request.path() + " exists");
  File file;
  file.inode_id = next_inode_++;
  file.holder = request.header().client_name();
  file.deleted_if_abandoned = request.delete_if_abandoned();
  file.block_size = request.block_size_bytes() != 0 ? request.block_size_bytes() : block_size;
  v1::CreateResponse response;
  if (request.with_first_block()) {
    ASSIGN_OR_RETURN(*response.mutable_first_block(), Allocate(&file, request.excluded()));
  }
  *response.mutable_status() = StatusOf(request.path(), file);
  files[request.path()] = std::move(file);
  return response;
}

absl::StatusOr<v1::AddBlockResponse> FakeNamenode::DoAddBlock(const v1::AddBlockRequest& request) {
  ASSIGN_OR_RETURN(File * file, Writing(request.path(), request.inode_id(), request.header()));
  if (request.has_previous() != (!file->blocks.empty() && !file->blocks.back().committed)) return Wrong("AddBlock: previous does not fit");
  if (request.has_previous()) RETURN_IF_ERROR(Commit(file, request.previous()));
  v1::AddBlockResponse response;
  ASSIGN_OR_RETURN(*response.mutable_block(), Allocate(file, request.excluded()));
  return response;
}

absl::StatusOr<v1::AbandonBlockResponse> FakeNamenode::DoAbandonBlock(const v1::AbandonBlockRequest& request) {
  ASSIGN_OR_RETURN(File * file, Writing(request.path(), request.inode_id(), request.header()));
  if (file->blocks.empty() || file->blocks.back().block.id() != request.block().id() || file->blocks.back().committed)
    return MakeError(ErrorKind::kLeaseExpired, "not the last block");
  abandoned.push_back(std::to_string(request.block().id()));
  file->blocks.pop_back();
  return v1::AbandonBlockResponse();
}

absl::StatusOr<v1::UpdateBlockForPipelineResponse> FakeNamenode::DoUpdateBlockForPipeline(
    const v1::UpdateBlockForPipelineRequest& request) {
  ASSIGN_OR_RETURN(File * file, Writing(request.path(), request.inode_id(), request.header()));
  if (file->blocks.empty() || file->blocks.back().block.id() != request.block().id()) return Wrong("not the last block");
  v1::UpdateBlockForPipelineResponse response;
  response.set_new_generation_stamp(next_stamp_++);
  if (tokens) response.set_token("new token");
  return response;
}

absl::StatusOr<v1::UpdatePipelineResponse> FakeNamenode::DoUpdatePipeline(const v1::UpdatePipelineRequest& request) {
  ASSIGN_OR_RETURN(File * file, Writing(request.path(), request.inode_id(), request.header()));
  BlockState& last = file->blocks.back();
  if (last.block.id() != request.old_block().id() || last.block.generation_stamp() != request.old_block().generation_stamp())
    return MakeError(ErrorKind::kStaleGeneration, "another stamp");
  if (request.new_block().generation_stamp() <= last.block.generation_stamp()) return Wrong("the stamp does not rise");
  std::vector<v1::StorageLocation> left;
  for (const std::string& storage : request.storages())
    for (const v1::StorageLocation& e : last.expected)
      if (e.storage_uuid() == storage) left.push_back(e);
  if (left.empty()) return Wrong("no storage left");
  last.expected = std::move(left);
  last.block.set_generation_stamp(request.new_block().generation_stamp());
  return v1::UpdatePipelineResponse();
}

absl::StatusOr<v1::FsyncResponse> FakeNamenode::DoFsync(const v1::FsyncRequest& request) {
  ASSIGN_OR_RETURN(File * file, Writing(request.path(), request.inode_id(), request.header()));
  if (file->blocks.empty()) return Wrong("no block");
  BlockState& last = file->blocks.back();
  if (last.block.id() != request.last_block().id() || last.block.generation_stamp() != request.last_block().generation_stamp())
    return MakeError(ErrorKind::kStaleGeneration, "another block");
  last.block.set_length_bytes(request.last_block().length_bytes());
  return v1::FsyncResponse();
}

absl::StatusOr<v1::CompleteResponse> FakeNamenode::DoComplete(const v1::CompleteRequest& request) {
  ASSIGN_OR_RETURN(File * file, Writing(request.path(), request.inode_id(), request.header()));
  if (request.has_last() != (!file->blocks.empty() && !file->blocks.back().committed)) return Wrong("Complete: last does not fit");
  if (request.has_last()) RETURN_IF_ERROR(Commit(file, request.last()));
  file->open = false;
  v1::CompleteResponse response;
  *response.mutable_status() = StatusOf(request.path(), *file);
  return response;
}

absl::StatusOr<v1::GetFileInfoResponse> FakeNamenode::DoGetFileInfo(const v1::GetFileInfoRequest& request) {
  const auto it = files.find(request.path());
  if (it == files.end()) return MakeError(ErrorKind::kNotFound, request.path() + ": not found");
  v1::GetFileInfoResponse response;
  *response.mutable_status() = StatusOf(it->first, it->second);
  return response;
}

absl::StatusOr<v1::ListResponse> FakeNamenode::DoList(const v1::ListRequest& request) {
  v1::ListResponse response;
  if (const auto file = files.find(request.path()); file != files.end()) {
    *response.add_entries() = StatusOf(file->first.substr(file->first.rfind('/') + 1), file->second);
    return response;
  }
  const size_t limit = request.limit() == 0 ? 1000 : request.limit();
  for (const auto& [path, file] : files) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name <= request.start_after()) continue;
    if (static_cast<size_t>(response.entries_size()) == limit) {
      response.set_has_more(true);
      break;
    }
    *response.add_entries() = StatusOf(name, file);
  }
  return response;
}

absl::StatusOr<v1::MkdirsResponse> FakeNamenode::DoMkdirs(const v1::MkdirsRequest&) { return v1::MkdirsResponse(); }

absl::StatusOr<v1::RenameResponse> FakeNamenode::DoRename(const v1::RenameRequest& request) {
  const auto it = files.find(request.source());
  if (it == files.end()) return MakeError(ErrorKind::kNotFound, request.source() + ": not found");
  if (files.contains(request.destination()) && !request.overwrite()) return MakeError(ErrorKind::kAlreadyExists, request.destination());
  File file = std::move(it->second);
  files.erase(it);
  files[request.destination()] = std::move(file);
  return v1::RenameResponse();
}

absl::StatusOr<v1::DeleteResponse> FakeNamenode::DoDelete(const v1::DeleteRequest& request) {
  v1::DeleteResponse response;
  response.set_existed(files.erase(request.path()) > 0);
  return response;
}

absl::StatusOr<v1::DeleteManyResponse> FakeNamenode::DoDeleteMany(const v1::DeleteManyRequest& request) {
  if (request.paths_size() > 4096 || request.ByteSizeLong() > (1 << 20) + 4096) return Wrong("too many paths in one call");
  v1::DeleteManyResponse response;
  for (const std::string& path : request.paths())
    response.mutable_codes()->push_back(static_cast<char>(files.erase(path) > 0 ? ErrorKind::kNone : ErrorKind::kNotFound));
  return response;
}

absl::StatusOr<v1::GetBlockLocationsResponse> FakeNamenode::DoGetBlockLocations(const v1::GetBlockLocationsRequest& request) {
  const auto it = files.find(request.path());
  if (it == files.end()) return MakeError(ErrorKind::kNotFound, request.path() + ": not found");
  v1::GetBlockLocationsResponse response;
  *response.mutable_status() = StatusOf(it->first, it->second);
  uint64_t offset = 0;
  for (const BlockState& state : it->second.blocks) {
    const uint64_t end = offset + state.block.length_bytes();
    if (end > request.offset_bytes() && offset < request.offset_bytes() + request.length_bytes()) {
      v1::LocatedBlock* located = response.add_blocks();
      *located->mutable_block() = state.block;
      located->set_offset_bytes(offset);
      located->set_under_construction(!state.committed);
      for (const v1::StorageLocation& e : state.expected)
        if (!state.committed || state.acknowledged.contains(e.storage_uuid())) *located->add_locations() = e;
    }
    offset = end;
  }
  return response;
}

absl::StatusOr<v1::RenewLeaseResponse> FakeNamenode::DoRenewLease(const v1::RenewLeaseRequest&) { return v1::RenewLeaseResponse(); }

absl::StatusOr<v1::GetContentSummaryResponse> FakeNamenode::DoGetContentSummary(const v1::GetContentSummaryRequest&) {
  v1::GetContentSummaryResponse response;
  response.mutable_summary()->set_directories(1);
  response.mutable_summary()->set_files(files.size());
  return response;
}

absl::StatusOr<v1::GetServerDefaultsResponse> FakeNamenode::DoGetServerDefaults(const v1::GetServerDefaultsRequest&) {
  v1::GetServerDefaultsResponse response;
  response.set_block_size_bytes(block_size);
  response.set_replication(replication);
  response.set_bytes_per_checksum(512);
  response.set_pool_id("0123456789abcdef");
  return response;
}

absl::StatusOr<v1::ReportBadReplicasResponse> FakeNamenode::DoReportBadReplicas(const v1::ReportBadReplicasRequest& request) {
  bad_replicas.insert(bad_replicas.end(), request.replicas().begin(), request.replicas().end());
  return v1::ReportBadReplicasResponse();
}

absl::StatusOr<v1::SetQuotaResponse> FakeNamenode::DoSetQuota(const v1::SetQuotaRequest&) { return v1::SetQuotaResponse(); }

absl::StatusOr<v1::SetReplicationResponse> FakeNamenode::DoSetReplication(const v1::SetReplicationRequest& request) {
  if (!files.contains(request.path())) return MakeError(ErrorKind::kNotFound, request.path() + ": not found");
  v1::SetReplicationResponse response;
  response.set_is_file(true);
  return response;
}

absl::StatusOr<v1::ConcatResponse> FakeNamenode::DoConcat(const v1::ConcatRequest& request) {
  const auto target = files.find(request.target());
  if (target == files.end()) return MakeError(ErrorKind::kNotFound, request.target() + ": not found");
  for (const std::string& path : request.sources()) {
    const auto source = files.find(path);
    if (source == files.end()) return MakeError(ErrorKind::kNotFound, path + ": not found");
    std::move(source->second.blocks.begin(), source->second.blocks.end(), std::back_inserter(target->second.blocks));
    files.erase(source);
  }
  return v1::ConcatResponse();
}

// At most two blocks of a file: the caller asks for the rest.
absl::StatusOr<v1::GetLocationsManyResponse> FakeNamenode::DoGetLocationsMany(const v1::GetLocationsManyRequest& request) {
  if (request.paths_size() > 1000) return Wrong("too many paths in one call");
  v1::GetLocationsManyResponse response;
  for (const std::string& path : request.paths()) {
    auto& entry = *response.add_entries();
    v1::GetBlockLocationsRequest one;
    one.set_path(path);
    one.set_length_bytes(INT64_MAX);
    auto located = DoGetBlockLocations(one);
    if (!located.ok()) {
      *entry.mutable_error() = ToDetail(located.status());
      continue;
    }
    *entry.mutable_status() = located->status();
    for (int i = 0; i < std::min(located->blocks_size(), 2); ++i) *entry.add_blocks() = located->blocks(i);
    entry.set_has_more(located->blocks_size() > 2);
  }
  return response;
}

// Calls whose logic is the NameNode's alone.
#define CAIRN_UNSUPPORTED_CALL(Name)                                                                  \
  absl::StatusOr<v1::Name##Response> FakeNamenode::Do##Name(const v1::Name##Request&) {               \
    return MakeError(ErrorKind::kUnsupported, std::string(#Name) + " is not known to this NameNode"); \
  }
CAIRN_UNSUPPORTED_CALL(SetPermission)
CAIRN_UNSUPPORTED_CALL(SetOwner)
CAIRN_UNSUPPORTED_CALL(SetTimes)
CAIRN_UNSUPPORTED_CALL(SetXattr)
CAIRN_UNSUPPORTED_CALL(RemoveXattr)
CAIRN_UNSUPPORTED_CALL(GetXattrs)
CAIRN_UNSUPPORTED_CALL(CheckAccess)
#undef CAIRN_UNSUPPORTED_CALL
absl::StatusOr<v1::AppendResponse> FakeNamenode::DoAppend(const v1::AppendRequest& request) {
  const auto it = files.find(request.path());
  if (it == files.end()) return MakeError(ErrorKind::kNotFound, request.path() + ": not found");
  File& file = it->second;
  if (file.open) {
    Error error;
    error.kind = ErrorKind::kBeingWritten;
    error.reason = file.holder == request.header().client_name() ? "ALREADY_OPEN_BY_YOU" : "HELD_BY_OTHER";
    error.message = request.path() + " is being written";
    return MakeError(std::move(error));
  }
  file.open = true;
  file.holder = request.header().client_name();
  v1::AppendResponse response;
  if (!file.blocks.empty() && !request.new_block() && file.blocks.back().block.length_bytes() < file.block_size) {
    BlockState& last = file.blocks.back();
    response.set_old_generation_stamp(last.block.generation_stamp());
    last.block.set_generation_stamp(next_stamp_++);
    last.committed = false;
    std::erase_if(last.expected, [&](const v1::StorageLocation& e) { return !last.acknowledged.contains(e.storage_uuid()); });
    last.acknowledged.clear();
    v1::LocatedBlock& located = *response.mutable_last_block();
    *located.mutable_block() = last.block;
    located.set_offset_bytes(file.length() - last.block.length_bytes());
    located.set_under_construction(true);
    if (tokens) located.set_token(fmt::format("token of {}", last.block.id()));
    for (const v1::StorageLocation& node : last.expected) *located.add_locations() = node;
  }
  *response.mutable_status() = StatusOf(request.path(), file);
  return response;
}

absl::StatusOr<v1::TruncateResponse> FakeNamenode::DoTruncate(const v1::TruncateRequest& request) {
  const auto it = files.find(request.path());
  if (it == files.end()) return MakeError(ErrorKind::kNotFound, request.path() + ": not found");
  std::vector<BlockState>& blocks = it->second.blocks;
  if (request.new_length_bytes() > it->second.length()) return Wrong("longer than the file");
  while (!blocks.empty() && it->second.length() - blocks.back().block.length_bytes() >= request.new_length_bytes()) blocks.pop_back();
  v1::TruncateResponse response;
  response.set_done(it->second.length() == request.new_length_bytes());
  if (!response.done()) it->second.open = true;
  return response;
}

absl::StatusOr<v1::RecoverLeaseResponse> FakeNamenode::DoRecoverLease(const v1::RecoverLeaseRequest& request) {
  const auto it = files.find(request.path());
  if (it == files.end()) return MakeError(ErrorKind::kNotFound, request.path() + ": not found");
  if (recovers_at_once) it->second.open = false;
  v1::RecoverLeaseResponse response;
  response.set_closed(!it->second.open);
  return response;
}

absl::StatusOr<v1::ReleaseLeaseResponse> FakeNamenode::DoReleaseLease(const v1::ReleaseLeaseRequest& request) {
  released.push_back(request.inode_id());
  return v1::ReleaseLeaseResponse();
}

}  // namespace cairn::client
