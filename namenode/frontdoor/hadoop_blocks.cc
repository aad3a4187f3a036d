// HadoopDoor: blocks of files that are being written, as HDFS's clients name them.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "namenode/frontdoor/audited_call.h"
#include "namenode/frontdoor/hadoop_conversions.h"
#include "namenode/frontdoor/hadoop_native_calls.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace/records.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

// Reports come within some 20 ms. Who is later than the first is left out, and counts when he reports; if nobody comes, the writer has lost
// its whole pipeline.
constexpr absl::Duration kFirstLook = absl::Milliseconds(5);
constexpr absl::Duration kLastLook = absl::Milliseconds(100);
constexpr absl::Duration kPatienceWithSome = absl::Milliseconds(500);
constexpr absl::Duration kPatience = absl::Seconds(5);

// The storage that a node has in a pipeline: one that the pipeline has had, or, of a node that is new to it, any. Empty: none is known.
std::string StorageOn(const v1::ClusterReportResponse& cluster, const std::string& node_uuid, const std::vector<std::string>& pipeline) {
  std::string storage;
  for (const v1::DatanodeReport& node : cluster.datanodes()) {
    if (node.info().uuid() != node_uuid) continue;
    for (const v1::StorageStatistics& volume : node.storages()) {
      if (std::find(pipeline.begin(), pipeline.end(), volume.storage_uuid()) != pipeline.end()) return volume.storage_uuid();
      if (storage.empty() && volume.state() == v1::HEALTHY) storage = volume.storage_uuid();
    }
  }
  return storage;
}

}  // namespace

absl::StatusOr<HadoopDoor::WrittenBlock> HadoopDoor::FindWritten(const ReadView& view, BlockId id) {
  ASSIGN_OR_RETURN(const std::optional<v1::BlockRecord> record, FindBlock(view, id));
  if (!record) {
    return MakeError(ErrorKind::kLeaseExpired,
                     fmt::format("block {} does not exist, or is not under construction: it was abandoned, or its "
                                 "file deleted",
                                 id.value()));
  }
  WrittenBlock found;
  found.inode_id = record->inode_id();
  found.block.set_id(id.value());
  found.block.set_generation_stamp(record->generation_stamp());
  found.block.set_length_bytes(record->length_bytes());
  if (record->has_truncate_to_bytes()) found.cut_to = record->truncate_to_bytes();
  found.is_written = record->state() == v1::UNDER_CONSTRUCTION;
  for (const uint32_t number : record->expected_storages()) {
    // After a restart of the NameNode a writer may be here before its DataNodes: then their rows say it.
    if (const std::optional<v1::StorageLocation> location = parts_.replicas->LocationOf(StorageNumber(number))) {
      found.storages.push_back(location->storage_uuid());
      continue;
    }
    ASSIGN_OR_RETURN(const std::optional<v1::DatanodeRecord> row,
                     FindRecord<v1::DatanodeRecord>(view, Family::kDatanode, DatanodeKey(StorageNumber(number))));
    if (row) found.storages.push_back(row->storage_uuid());
  }
  absl::StatusOr<std::string> path = PathOf(view, InodeId(found.inode_id));
  if (IsNotInMemory(path.status())) return path.status();
  if (path.ok()) found.path = *std::move(path);  // Of a file that is gone the native calls say so.
  return found;
}

absl::StatusOr<HadoopDoor::WrittenBlock> HadoopDoor::FindLast(const ReadView& view, const std::string& path, uint64_t inode_id) {
  absl::StatusOr<ResolvedInode> file = inode_id != 0 ? ResolveId(view, InodeId(inode_id)) : ResolvePath(view, path);
  RETURN_IF_ERROR(file.status());
  WrittenBlock none;
  none.inode_id = file->record.id();
  none.path = path;
  if (file->record.block_count() == 0) return none;
  ASSIGN_OR_RETURN(const BlockId last, BlockIdAt(view, file->record, file->record.block_count() - 1));
  absl::StatusOr<WrittenBlock> found = FindWritten(view, last);
  if (found.ok() && found->cut_to) *found->cut_to += file->record.length_bytes() - found->block.length_bytes();
  return found;
}

void HadoopDoor::LookUp(Find find, std::function<void(absl::StatusOr<WrittenBlock>)> then) {
  absl::StatusOr<WrittenBlock> found = find(*parts_.space->MemorySnapshot());
  if (!IsNotInMemory(found.status())) return then(std::move(found));
  parts_.reader->Post([this, find = std::move(find), then = std::move(then)] { then(find(*parts_.space->Snapshot())); });
}

void HadoopDoor::LookUpWritten(const CallPtr& call, BlockId id, std::function<void(const WrittenBlock&)> then) {
  LookUp([this, id](const ReadView& view) { return FindWritten(view, id); },
         [call, then = std::move(then)](const absl::StatusOr<WrittenBlock>& found) {
           if (!found.ok()) return call->FailAsIo(found.status());
           then(*found);
         });
}

void HadoopDoor::ToCommitted(const CallPtr& call, const hdfs::ExtendedBlockProto& named, std::function<void(v1::CommittedBlock)> then) {
  const v1::Block block = FromHadoopBlock(named);
  LookUpWritten(call, BlockId(block.id()), [this, block, then = std::move(then)](const WrittenBlock& found) {
    const auto commit = [block, then](const std::vector<std::string>& storages) {
      v1::CommittedBlock committed;
      *committed.mutable_block() = block;
      for (const std::string& storage : storages) committed.add_acknowledged_storages(storage);
      then(std::move(committed));
    };
    // What has been committed, or is misnamed, is answered whoever has acknowledged it.
    if (!found.is_written || found.block.generation_stamp() != block.generation_stamp()) return commit(found.storages);
    AwaitReports(found, block, Reach::kMemory, parts_.clock->Now(), commit);
  });
}

absl::StatusOr<std::vector<std::string>> HadoopDoor::ReportedOn(const WrittenBlock& written, const v1::Block& named, Reach reach) {
  // Where it could be read if it were committed so, and nobody were believed beforehand to have it.
  v1::BlockRecord record;
  record.set_state(v1::COMMITTED);
  record.set_generation_stamp(named.generation_stamp());
  record.set_length_bytes(named.length_bytes());
  const ReplicaPlane::Locations found = parts_.replicas->Locate(BlockId(named.id()), record, "", reach);
  if (found.needs_disk) return NotInMemory();
  std::vector<std::string> reported;
  for (const std::string& storage : written.storages) {
    const bool has_it = std::any_of(found.locations.begin(), found.locations.end(),
                                    [&storage](const v1::StorageLocation& location) { return location.storage_uuid() == storage; });
    if (has_it) reported.push_back(storage);
  }
  return reported;
}

void HadoopDoor::AwaitReports(const WrittenBlock& written, const v1::Block& named, Reach reach, SteadyTime since,
                              std::function<void(std::vector<std::string>)> then) {
  const SteadyTime now = parts_.clock->Now();
  const absl::StatusOr<std::vector<std::string>> reported = ReportedOn(written, named, reach);
  SteadyTime next = now;
  if (reported.ok()) {
    const absl::Duration waited = now - since;
    const bool enough = reported->size() >= std::max<size_t>(parts_.min_replication, 1);
    if (reported->size() == written.storages.size() || waited >= (enough ? kPatienceWithSome : kPatience)) return then(*reported);
    next = now + std::clamp(waited, kFirstLook, kLastLook);
  }
  parts_.reader->PostAt(next, [this, written, named, since, then = std::move(then)]() mutable {
    AwaitReports(written, named, Reach::kDisk, since, std::move(then));
  });
}

void HadoopDoor::UpdateBlockForPipeline(const CallPtr& call, const hdfs::UpdateBlockForPipelineRequestProto& request) {
  LookUpWritten(call, BlockId(request.block().blockid()), [this, call, request](const WrittenBlock& found) {
    v1::UpdateBlockForPipelineRequest asked;
    asked.set_path(found.path);
    asked.set_inode_id(found.inode_id);
    *asked.mutable_block() = FromHadoopBlock(request.block());
    Ask(
        call, parts_.clients, &api::ClientNamenode::UpdateBlockForPipeline, std::move(asked),
        [call, block = request.block()](const absl::StatusOr<v1::UpdateBlockForPipelineResponse>& answer) {
          if (!answer.ok()) return call->FailAsIo(answer.status());
          hdfs::LocatedBlockResponseProto response;
          hdfs::LocatedBlockProto& located = *response.mutable_block();
          *located.mutable_b() = block;
          located.mutable_b()->set_generationstamp(answer->new_generation_stamp());
          located.set_offset(0);
          FillRest(&located);
          call->Answer(response);
        },
        request.clientname());
  });
}

void HadoopDoor::UpdatePipeline(const CallPtr& call, const hdfs::UpdatePipelineRequestProto& request) {
  LookUpWritten(call, BlockId(request.oldblock().blockid()), [this, call, request](const WrittenBlock& found) {
    v1::UpdatePipelineRequest asked;
    asked.set_path(found.path);
    asked.set_inode_id(found.inode_id);
    *asked.mutable_old_block() = FromHadoopBlock(request.oldblock());
    *asked.mutable_new_block() = FromHadoopBlock(request.newblock());
    for (const std::string& storage : request.storageids()) asked.add_storages(storage);
    if (request.storageids().empty()) {
      // From clients that do not name storages.
      v1::ClusterReportResponse cluster;
      parts_.replicas->FillReport(&cluster);
      for (const hdfs::DatanodeIDProto& node : request.newnodes()) {
        const std::string storage = StorageOn(cluster, node.datanodeuuid(), found.storages);
        if (!storage.empty()) asked.add_storages(storage);
      }
    }
    AskOnce(call, &api::ClientNamenode::UpdatePipeline, std::move(asked), AnswerNothingAsIo(call), request.clientname());
  });
}

void HadoopDoor::GetAdditionalDatanode(const CallPtr& call, const hdfs::GetAdditionalDatanodeRequestProto& request) {
  ReplicaPlane::TargetRequest wanted;
  wanted.replication = request.numadditionalnodes();
  wanted.client_host = HostOfCaller("", call->context().peer);
  for (const std::string& storage : request.existingstorageuuids()) {
    if (const std::optional<StorageNumber> number = parts_.replicas->NumberOf(storage)) wanted.existing.push_back(*number);
  }
  const auto exclude = [&wanted](const hdfs::DatanodeInfoProto& node, const char* reason) {
    v1::ExcludedNode excluded;
    excluded.set_datanode_uuid(node.id().datanodeuuid());
    excluded.set_reason(reason);
    wanted.excluded.push_back(std::move(excluded));
  };
  for (const hdfs::DatanodeInfoProto& node : request.excludes()) exclude(node, "EXCLUDED_BY_CLIENT");
  for (const hdfs::DatanodeInfoProto& node : request.existings()) exclude(node, "IN_PIPELINE");
  wanted.block_size_bytes = request.blk().numbytes();

  hdfs::LocatedBlockResponseProto response;
  hdfs::LocatedBlockProto& located = *response.mutable_block();
  *located.mutable_b() = request.blk();
  located.set_offset(0);
  for (int i = 0; i < request.existings_size(); ++i) {
    *located.add_locs() = request.existings(i);
    located.add_storagetypes(hdfs::DISK);
    located.add_storageids(i < request.existingstorageuuids_size() ? request.existingstorageuuids(i) : std::string());
  }
  FillRest(&located);
  const absl::StatusOr<std::vector<StorageNumber>> chosen = parts_.replicas->ChooseTargets(wanted);
  if (!chosen.ok()) return call->FailAsIo(Annotate(chosen.status(), fmt::format("getAdditionalDatanode {}", request.src())));
  for (const StorageNumber number : *chosen)
    if (const std::optional<v1::StorageLocation> location = parts_.replicas->LocationOf(number)) AddLocation(*location, &located);
  call->Answer(response);
}

}  // namespace cairn::namenode
