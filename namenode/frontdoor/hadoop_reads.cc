// HadoopDoor: what readers ask.

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/frontdoor/hadoop_conversions.h"
#include "namenode/frontdoor/hadoop_native_calls.h"
#include "namenode/namespace/namespace_queries.h"

namespace cairn::namenode {
namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kPacketBytes = 64 << 10;
constexpr uint32_t kFileBufferBytes = 4096;

// HDFS answers as little to a path below a file as to one that is not there, at least to its superuser.
bool IsMissing(const absl::Status& status) {
  const ErrorKind kind = KindOf(status);
  return kind == ErrorKind::kNotFound || kind == ErrorKind::kNotDirectory;
}

// `blocks` are those of the range; `last`, if the file has blocks, its last one.
hdfs::LocatedBlocksProto ToLocatedBlocks(const v1::FileStatus& status, const google::protobuf::RepeatedPtrField<v1::LocatedBlock>& blocks,
                                         const v1::LocatedBlock* last, const std::string& pool_name) {
  hdfs::LocatedBlocksProto out;
  const bool last_is_open = last != nullptr && last->under_construction();
  out.set_filelength(status.length_bytes() - (last_is_open ? std::min(status.length_bytes(), last->block().length_bytes()) : 0));
  out.set_underconstruction(status.under_construction());
  out.set_islastblockcomplete(last != nullptr && !last_is_open);
  for (const v1::LocatedBlock& block : blocks) *out.add_blocks() = ToHadoopLocated(block, pool_name);
  if (last != nullptr) *out.mutable_lastblock() = ToHadoopLocated(*last, pool_name);
  return out;
}

absl::Status WasReplaced(const std::string& path) {
  return MakeError(ErrorKind::kRetriable, fmt::format("{}: another file came to be there while this one was looked up", path));
}

// Gives the entries of `page` that stand at `places` their locations. An entry that there was no room for all blocks of ends it, and begins
// the next one. True if that is the first entry: then it is a page of its own, and has no locations yet.
bool FillLocations(const v1::GetLocationsManyResponse& located, const std::vector<int>& places, const std::string& pool_name,
                   hdfs::DirectoryListingProto* page) {
  for (size_t i = 0; i < places.size() && i < static_cast<size_t>(located.entries_size()); ++i) {
    const v1::GetLocationsManyResponse::Entry& entry = located.entries(static_cast<int>(i));
    if (entry.has_error()) continue;  // It has gone meanwhile, or the caller may not read it.
    if (entry.has_more()) {
      const int kept = std::max(places[i], 1);
      if (kept < page->partiallisting_size()) {
        page->mutable_partiallisting()->DeleteSubrange(kept, page->partiallisting_size() - kept);
        page->set_remainingentries(1);
      }
      return places[i] == 0;
    }
    const v1::LocatedBlock* const last = entry.blocks().empty() ? nullptr : &*entry.blocks().rbegin();
    *page->mutable_partiallisting(places[i])->mutable_locations() = ToLocatedBlocks(entry.status(), entry.blocks(), last, pool_name);
  }
  return false;
}

// What HDFS's summary and its usage both have.
template <class Quotas>
void FillQuotas(const v1::ContentSummary& summary, Quotas* out) {
  out->set_quota(summary.has_namespace_quota() ? static_cast<uint64_t>(summary.namespace_quota()) : kNone);
  out->set_spaceconsumed(summary.charged_bytes());
  out->set_spacequota(summary.has_space_quota_bytes() ? static_cast<uint64_t>(summary.space_quota_bytes()) : kNone);
}

}  // namespace

void HadoopDoor::AskStatus(const CallPtr& call, const std::string& path, api::Done<v1::GetFileInfoResponse> then) {
  v1::GetFileInfoRequest asked;
  asked.set_path(path);
  Ask(call, parts_.clients, &api::ClientNamenode::GetFileInfo, std::move(asked), std::move(then));
}

void HadoopDoor::GetFileInfo(const CallPtr& call, const hdfs::PathRequestProto& request) {
  AskStatus(call, request.src(), [call](const absl::StatusOr<v1::GetFileInfoResponse>& answer) {
    if (!answer.ok() && !IsMissing(answer.status())) return call->Fail(answer.status());
    hdfs::FileStatusResponseProto response;
    if (answer.ok()) *response.mutable_fs() = ToHadoopStatus(answer->status(), "");
    call->Answer(response);
  });
}

void HadoopDoor::IsFileClosed(const CallPtr& call, const hdfs::PathRequestProto& request) {
  AskStatus(call, request.src(), [call](const absl::StatusOr<v1::GetFileInfoResponse>& answer) {
    if (!answer.ok()) return call->Fail(answer.status());
    call->AnswerBool(!answer->status().under_construction());
  });
}

void HadoopDoor::GetPreferredBlockSize(const CallPtr& call, const hdfs::PathRequestProto& request) {
  AskStatus(call, request.src(), [call](const absl::StatusOr<v1::GetFileInfoResponse>& answer) {
    if (!answer.ok()) return call->Fail(answer.status());
    hdfs::GetPreferredBlockSizeResponseProto response;
    response.set_bsize(answer->status().block_size_bytes());
    call->Answer(response);
  });
}

// One native answer has a bounded number of blocks, HDFS's has all of the range.
void HadoopDoor::LocateBlocks(const CallPtr& call, const std::string& path, uint64_t offset, uint64_t end,
                              const std::shared_ptr<v1::GetBlockLocationsResponse>& before,
                              std::function<void(absl::StatusOr<v1::GetBlockLocationsResponse>)> then) {
  v1::GetBlockLocationsRequest asked;
  asked.set_path(path);
  asked.set_offset_bytes(offset);
  asked.set_length_bytes(end - offset);
  Ask(call, parts_.clients, &api::ClientNamenode::GetBlockLocations, std::move(asked),
      [this, call, path, end, before, then = std::move(then)](absl::StatusOr<v1::GetBlockLocationsResponse> answer) {
        if (!answer.ok()) return then(answer.status());
        std::shared_ptr<v1::GetBlockLocationsResponse> range = before;
        const bool goes_on = !answer->blocks().empty();
        if (range == nullptr) {
          range = std::make_shared<v1::GetBlockLocationsResponse>(*std::move(answer));
        } else if (range->status().inode_id() != answer->status().inode_id()) {
          return then(WasReplaced(path));
        } else {
          range->mutable_blocks()->MergeFrom(answer->blocks());
        }
        if (!goes_on) return then(std::move(*range));
        const v1::LocatedBlock& last = *range->blocks().rbegin();
        const uint64_t covered = last.offset_bytes() + last.block().length_bytes();
        if (last.under_construction() || covered >= std::min(end, range->status().length_bytes())) return then(std::move(*range));
        LocateBlocks(call, path, covered, end, range, then);
      });
}

void HadoopDoor::LocateRange(const CallPtr& call, const std::string& path, uint64_t offset, uint64_t length,
                             std::function<void(absl::StatusOr<std::pair<v1::FileStatus, hdfs::LocatedBlocksProto>>)> then) {
  const uint64_t end_of_range = offset + std::min(length, kNone - offset);
  LocateBlocks(call, path, offset, end_of_range, nullptr,
               [this, call, path, then = std::move(then)](absl::StatusOr<v1::GetBlockLocationsResponse> range) {
                 if (!range.ok()) return then(range.status());
                 const v1::FileStatus& status = range->status();
                 const auto& blocks = range->blocks();
                 // The last block goes with every answer. It is among those of the range if that goes to the file's end.
                 const bool has_last = !blocks.empty() &&
                                       (blocks.rbegin()->under_construction() ||
                                        blocks.rbegin()->offset_bytes() + blocks.rbegin()->block().length_bytes() >= status.length_bytes());
                 if (has_last && !status.under_construction())
                   return then(std::pair(status, ToLocatedBlocks(status, blocks, &*blocks.rbegin(), pool_name_)));
                 v1::GetBlockLocationsRequest end;
                 end.set_path(path);
                 end.set_offset_bytes(status.length_bytes() == 0 ? 0 : status.length_bytes() - 1);
                 end.set_length_bytes(kNone - end.offset_bytes());
                 Ask(call, parts_.clients, &api::ClientNamenode::GetBlockLocations, std::move(end),
                     [this, path, range = *std::move(range), then](const absl::StatusOr<v1::GetBlockLocationsResponse>& tail) {
                       if (!tail.ok()) return then(tail.status());
                       if (tail->status().inode_id() != range.status().inode_id()) return then(WasReplaced(path));
                       const v1::LocatedBlock* const last = tail->blocks().empty() ? nullptr : &*tail->blocks().rbegin();
                       then(std::pair(range.status(), ToLocatedBlocks(range.status(), range.blocks(), last, pool_name_)));
                     });
               });
}

void HadoopDoor::GetBlockLocations(const CallPtr& call, const hdfs::GetBlockLocationsRequestProto& request) {
  LocateRange(call, request.src(), request.offset(), request.length(),
              [call](absl::StatusOr<std::pair<v1::FileStatus, hdfs::LocatedBlocksProto>> located) {
                if (!located.ok()) return call->Fail(located.status());
                hdfs::GetBlockLocationsResponseProto response;
                *response.mutable_locations() = std::move(located->second);
                call->Answer(response);
              });
}

void HadoopDoor::GetLocatedFileInfo(const CallPtr& call, const hdfs::GetLocatedFileInfoRequestProto& request) {
  LocateRange(call, request.src(), 0, kNone,
              [this, call, path = request.src()](absl::StatusOr<std::pair<v1::FileStatus, hdfs::LocatedBlocksProto>> located) {
                hdfs::PathRequestProto directory;
                directory.set_src(path);
                if (KindOf(located.status()) == ErrorKind::kIsDirectory) return GetFileInfo(call, directory);
                if (!located.ok() && !IsMissing(located.status())) return call->Fail(located.status());
                hdfs::FileStatusResponseProto response;
                if (located.ok()) {
                  *response.mutable_fs() = ToHadoopStatus(located->first, "");
                  *response.mutable_fs()->mutable_locations() = std::move(located->second);
                }
                call->Answer(response);
              });
}

void HadoopDoor::GetListing(const CallPtr& call, const hdfs::GetListingRequestProto& request) {
  v1::ListRequest asked;
  asked.set_path(request.src());
  asked.set_start_after(request.startafter());
  Ask(call, parts_.clients, &api::ClientNamenode::List, std::move(asked), [this, call, request](absl::StatusOr<v1::ListResponse> listed) {
    if (!listed.ok() && !IsMissing(listed.status())) return call->Fail(listed.status());
    if (!listed.ok()) return call->Answer(hdfs::GetListingResponseProto());
    // A file is listed as itself, and a directory may hold one file of its own name.
    const bool may_be_file = listed->entries_size() == 1 && !listed->entries(0).is_directory() && !listed->has_more() &&
                             listed->entries(0).path() == LastComponent(request.src());
    if (!may_be_file) return AnswerListing(call, request, *listed, /*is_file=*/false);
    AskStatus(call, request.src(),
              [this, call, request, listed = *std::move(listed)](const absl::StatusOr<v1::GetFileInfoResponse>& answer) {
                if (!answer.ok() && !IsMissing(answer.status())) return call->Fail(answer.status());
                if (!answer.ok()) return call->Answer(hdfs::GetListingResponseProto());
                AnswerListing(call, request, listed, !answer->status().is_directory());
              });
  });
}

void HadoopDoor::AnswerListing(const CallPtr& call, const hdfs::GetListingRequestProto& request, const v1::ListResponse& listed,
                               bool is_file) {
  hdfs::GetListingResponseProto response;
  hdfs::DirectoryListingProto& listing = *response.mutable_dirlist();
  // How many more there are is not known without counting; clients only look whether it is none.
  listing.set_remainingentries(listed.has_more() ? 1 : 0);
  v1::GetLocationsManyRequest located;
  std::vector<int> places;
  for (const v1::FileStatus& entry : listed.entries()) {
    if (request.needlocation() && !entry.is_directory()) {
      located.add_paths(is_file ? request.src() : Join(request.src(), entry.path()));
      places.push_back(listing.partiallisting_size());
    }
    *listing.add_partiallisting() = ToHadoopStatus(entry, is_file ? std::string_view() : std::string_view(entry.path()));
  }
  if (places.empty()) return call->Answer(response);
  const std::string first = located.paths(0);
  Ask(call, parts_.clients, &api::ClientNamenode::GetLocationsMany, std::move(located),
      [this, call, first, response = std::move(response),
       places = std::move(places)](const absl::StatusOr<v1::GetLocationsManyResponse>& answer) mutable {
        if (!answer.ok()) return call->Fail(answer.status());
        if (!FillLocations(*answer, places, pool_name_, response.mutable_dirlist())) return call->Answer(response);
        LocateRange(
            call, first, 0, kNone,
            [call, response = std::move(response)](absl::StatusOr<std::pair<v1::FileStatus, hdfs::LocatedBlocksProto>> all) mutable {
              if (!all.ok() && !IsMissing(all.status())) return call->Fail(all.status());
              if (all.ok()) *response.mutable_dirlist()->mutable_partiallisting(0)->mutable_locations() = std::move(all->second);
              call->Answer(response);
            });
      });
}

void HadoopDoor::GetServerDefaults(const CallPtr& call, const hdfs::EmptyProto& request) {
  static_cast<void>(request);
  Ask(call, parts_.clients, &api::ClientNamenode::GetServerDefaults, v1::GetServerDefaultsRequest(),
      [call](const absl::StatusOr<v1::GetServerDefaultsResponse>& answer) {
        if (!answer.ok()) return call->Fail(answer.status());
        hdfs::GetServerDefaultsResponseProto response;
        hdfs::FsServerDefaultsProto& defaults = *response.mutable_serverdefaults();
        defaults.set_blocksize(answer->block_size_bytes());
        defaults.set_bytesperchecksum(answer->bytes_per_checksum());
        defaults.set_writepacketsize(kPacketBytes);
        defaults.set_replication(answer->replication());
        defaults.set_filebuffersize(kFileBufferBytes);
        defaults.set_encryptdatatransfer(false);
        defaults.set_trashinterval(static_cast<uint64_t>(answer->trash_interval_ms() / 60'000));
        defaults.set_checksumtype(hdfs::CHECKSUM_CRC32C);
        defaults.set_keyprovideruri("");
        defaults.set_policyid(kHotPolicyId);
        call->Answer(response);
      });
}

void HadoopDoor::GetContentSummary(const CallPtr& call, const hdfs::PathRequestProto& request) {
  v1::GetContentSummaryRequest asked;
  asked.set_path(request.src());
  Ask(call, parts_.clients, &api::ClientNamenode::GetContentSummary, std::move(asked),
      [call](const absl::StatusOr<v1::GetContentSummaryResponse>& answer) {
        if (!answer.ok()) return call->Fail(answer.status());
        const v1::ContentSummary& summary = answer->summary();
        hdfs::GetContentSummaryResponseProto response;
        hdfs::ContentSummaryProto& out = *response.mutable_summary();
        out.set_length(summary.length_bytes());
        out.set_filecount(summary.files());
        out.set_directorycount(summary.directories());
        FillQuotas(summary, &out);
        out.set_snapshotlength(0);
        out.set_snapshotfilecount(0);
        out.set_snapshotdirectorycount(0);
        out.set_snapshotspaceconsumed(0);
        call->Answer(response);
      });
}

void HadoopDoor::GetQuotaUsage(const CallPtr& call, const hdfs::PathRequestProto& request) {
  v1::GetContentSummaryRequest asked;
  asked.set_path(request.src());
  Ask(call, parts_.clients, &api::ClientNamenode::GetContentSummary, std::move(asked),
      [call](const absl::StatusOr<v1::GetContentSummaryResponse>& answer) {
        if (!answer.ok()) return call->Fail(answer.status());
        const v1::ContentSummary& summary = answer->summary();
        hdfs::GetQuotaUsageResponseProto response;
        hdfs::QuotaUsageProto& out = *response.mutable_usage();
        out.set_fileanddirectorycount(summary.files() + summary.directories());
        FillQuotas(summary, &out);
        call->Answer(response);
      });
}

void HadoopDoor::ReportBadBlocks(const CallPtr& call, const hdfs::ReportBadBlocksRequestProto& request) {
  // Java's client names the nodes only: which storage of each has the block is looked up, perhaps on disk.
  v1::ReportBadReplicasRequest asked;
  for (const hdfs::LocatedBlockProto& located : request.blocks()) {
    const v1::Block block = FromHadoopBlock(located.b());
    const auto add = [&asked, &block](const std::string& storage) {
      v1::ReportBadReplicasRequest::Bad& bad = *asked.add_replicas();
      *bad.mutable_block() = block;
      bad.set_storage_uuid(storage);
    };
    for (const std::string& storage : located.storageids()) add(storage);
    if (located.storageids_size() >= located.locs_size()) continue;
    const absl::StatusOr<std::optional<v1::BlockRecord>> record = FindBlock(*parts_.space->Snapshot(), BlockId(block.id()));
    if (!record.ok()) return call->Fail(record.status());
    if (!*record) continue;
    const ReplicaPlane::Locations held = parts_.replicas->Locate(BlockId(block.id()), **record, "");
    for (int i = located.storageids_size(); i < located.locs_size(); ++i)
      for (const v1::StorageLocation& location : held.locations)
        if (location.datanode().uuid() == located.locs(i).id().datanodeuuid()) add(location.storage_uuid());
  }
  AskForNothing(call, &api::ClientNamenode::ReportBadReplicas, std::move(asked));
}

}  // namespace cairn::namenode
