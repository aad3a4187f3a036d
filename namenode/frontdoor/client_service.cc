#include "namenode/frontdoor/client_service.h"

#include <xxhash.h>

#include <string_view>
#include <utility>

#include "common/block_token.h"
#include "common/check.h"
#include "namenode/frontdoor/client_call.h"
#include "namenode/namespace/records.h"

namespace cairn::namenode {

namespace {

constexpr uint32_t kMostEntriesInMemory = 64;

const v1::BlockTokenKey& KeyToSealWith(const ReplicaPlane::Identity& identity) {
  CAIRN_CHECK(!identity.keys.empty(), "a client service needs a block-token key");
  return identity.keys.back();  // The newest.
}

}  // namespace

uint64_t HashOfRequest(const std::string& bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string HostOfCaller(const std::string& client_host, const std::string& peer) {
  if (!client_host.empty()) return client_host;
  std::string_view host = peer;
  for (const std::string_view protocol : {"ipv4:", "ipv6:"})
    if (host.starts_with(protocol)) host.remove_prefix(protocol.size());
  // gRPC escapes the brackets of IPv6 addresses in some versions.
  for (const auto& [open, close] : {std::pair<std::string_view, std::string_view>{"[", "]"}, {"%5B", "%5D"}}) {
    const size_t end = host.find(close);
    if (host.starts_with(open) && end != std::string_view::npos) return std::string(host.substr(open.size(), end - open.size()));
  }
  const size_t colon = host.find(':');
  // More than one colon: an IPv6 address without a port.
  if (colon != std::string_view::npos && host.find(':', colon + 1) == std::string_view::npos) host = host.substr(0, colon);
  return std::string(host);
}

ClientService::ClientService(Options options, ReplicaPlane::Identity identity, NamespaceAccess* space, ReplicaPlane* replicas,
                             LeaseMonitor* leases, std::vector<Executor*> readers, const Clock* clock)
    : options_(options),
      identity_(std::move(identity)),
      sealer_(KeyToSealWith(identity_)),
      callers_(CallersOf(options_), options_.groups),
      space_(space),
      replicas_(replicas),
      leases_(leases),
      readers_(std::move(readers)),
      clock_(clock),
      tunables_(std::make_shared<const Tunables>(options_)) {
  CAIRN_CHECK(!readers_.empty(), "a client service needs a reader executor");
}

void ClientService::Reload(const Options& options) {
  tunables_.Set(std::make_shared<const Tunables>(options));
  CallerResolver::Options callers = CallersOf(options);
  callers.superuser = options_.superuser;  // Who runs the NameNode.
  callers_.SetOptions(std::move(callers));
}

void ClientService::StampHeader(v1::ResponseHeader* header) const { header->set_namenode_time_ms(absl::ToUnixMillis(clock_->WallNow())); }

std::string ClientService::Token(const v1::Block& block, uint8_t modes) const {
  BlockTokenClaims claims;
  claims.pool_id = identity_.pool_id;
  claims.block = BlockId(block.id());
  claims.stamp = GenerationStamp(block.generation_stamp());
  claims.modes = modes;
  claims.epoch = identity_.epoch;
  claims.expires_ms = absl::ToUnixMillis(clock_->WallNow() + options_.token_lifetime);
  return sealer_.Seal(claims);
}

absl::StatusOr<bool> ClientService::HasActed(const ReadView& view, const v1::RequestHeader& header) const {
  if (header.sequence() == 0) return false;
  ASSIGN_OR_RETURN(const auto row, FindShared<v1::RetryRecord>(view, Family::kRetry, RetryKey(header.client_id(), header.slot())));
  return row != nullptr && row->sequence() == header.sequence();
}

#define CAIRN_DISPATCH(Name, dispatch, handle)                                                                        \
  void ClientService::Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) { \
    dispatch(#Name, false, std::move(context), std::move(request), std::move(done), &ClientService::handle##Name);    \
  }
CAIRN_DISPATCH(GetFileInfo, DispatchInMemory, Try)
CAIRN_DISPATCH(List, DispatchInMemory, Try)
CAIRN_DISPATCH(GetBlockLocations, DispatchInMemory, Try)
CAIRN_DISPATCH(GetContentSummary, DispatchInMemory, Try)
CAIRN_DISPATCH(ReportBadReplicas, Dispatch, On)
#undef CAIRN_DISPATCH

// These two are answered at once: a renewal never waits behind a slow read.
void ClientService::RenewLease(api::CallContext context, v1::RenewLeaseRequest request, api::Done<v1::RenewLeaseResponse> done) {
  static_cast<void>(context);
  if (absl::Status status = CheckReadHeader(request.header()); !status.ok()) return done(std::move(status));
  const absl::StatusOr<absl::Duration> limit =
      leases_->Renew(request.header().client_name(), absl::Milliseconds(request.renews_within_ms()));
  if (!limit.ok()) return done(limit.status());
  v1::RenewLeaseResponse response;
  StampHeader(response.mutable_header());
  response.set_lease_soft_limit_ms(absl::ToInt64Milliseconds(*limit));
  done(std::move(response));
}

void ClientService::GetServerDefaults(api::CallContext context, v1::GetServerDefaultsRequest request,
                                      api::Done<v1::GetServerDefaultsResponse> done) {
  static_cast<void>(context);
  if (absl::Status status = CheckReadHeader(request.header()); !status.ok()) return done(std::move(status));
  v1::GetServerDefaultsResponse response;
  StampHeader(response.mutable_header());
  const std::shared_ptr<const Tunables> now = tunables();
  response.set_block_size_bytes(now->default_block_size_bytes);
  response.set_replication(now->default_replication);
  response.set_bytes_per_checksum(options_.bytes_per_checksum);
  response.set_max_block_size_bytes(now->limits.max_block_size_bytes);
  response.set_cluster_id(identity_.cluster_id);
  response.set_pool_id(identity_.pool_id);
  response.set_trash_interval_ms(absl::ToInt64Milliseconds(now->trash_interval));
  done(std::move(response));
}

absl::Status ClientService::TryGetFileInfo(Call<v1::GetFileInfoRequest, v1::GetFileInfoResponse>& call) {
  v1::GetFileInfoResponse response;
  ASSIGN_OR_RETURN(*response.mutable_status(), StatusOfPath(*call.view, call.request.path(), call.who->caller()));
  Answer(call, std::move(response));
  return absl::OkStatus();
}

absl::Status ClientService::TryList(Call<v1::ListRequest, v1::ListResponse>& call) {
  const uint32_t most = tunables()->list_limit;
  const uint32_t limit = call.request.limit() == 0 ? most : std::min(call.request.limit(), most);
  // A long listing would keep this thread from its other calls.
  const uint32_t here = call.reach == Reach::kMemory ? std::min(limit, kMostEntriesInMemory) : limit;
  ASSIGN_OR_RETURN(Listing listing, ListDirectory(*call.view, call.request.path(), call.request.start_after(), here, call.who->caller()));
  if (listing.has_more && here < limit) return NotInMemory();
  v1::ListResponse response;
  for (v1::FileStatus& entry : listing.entries) *response.add_entries() = std::move(entry);
  response.set_has_more(listing.has_more);
  Answer(call, std::move(response));
  return absl::OkStatus();
}

absl::Status ClientService::TryGetContentSummary(Call<v1::GetContentSummaryRequest, v1::GetContentSummaryResponse>& call) {
  v1::GetContentSummaryResponse response;
  ASSIGN_OR_RETURN(*response.mutable_summary(), SummaryOfPath(*call.view, call.request.path(), call.who->caller()));
  ASSIGN_OR_RETURN(*response.mutable_status(), StatusOfPath(*call.view, call.request.path(), call.who->caller()));
  Answer(call, std::move(response));
  return absl::OkStatus();
}

absl::StatusOr<v1::LocatedBlock> ClientService::LocateForReader(const BlockOfFile& block, const std::string& host, Reach reach) {
  v1::LocatedBlock located;
  located.mutable_block()->set_id(block.id.value());
  // Until an append's pipeline is known to stand its replicas have the stamp of before, at least.
  const uint64_t from = block.record.append_from_stamp();
  located.mutable_block()->set_generation_stamp(from != 0 ? from : block.record.generation_stamp());
  located.mutable_block()->set_length_bytes(block.record.length_bytes());
  located.set_offset_bytes(block.offset_bytes);
  located.set_under_construction(block.record.state() != v1::COMMITTED);
  ReplicaPlane::Locations found = replicas_->Locate(block.id, block.record, host, reach);
  if (found.needs_disk) return NotInMemory();
  located.set_retry(found.retry);
  for (v1::StorageLocation& location : found.locations) *located.add_locations() = std::move(location);
  located.set_token(Token(located.block(), static_cast<uint8_t>(TokenMode::kRead)));
  return located;
}

absl::Status ClientService::TryGetBlockLocations(Call<v1::GetBlockLocationsRequest, v1::GetBlockLocationsResponse>& call) {
  ASSIGN_OR_RETURN(const ResolvedInode inode, ResolveFile(*call.view, call.request.path(), call.who->caller(), kReadRight));
  ASSIGN_OR_RETURN(const std::vector<BlockOfFile> blocks,
                   BlocksOfFile(*call.view, inode.record, call.request.offset_bytes(), call.request.length_bytes(), kMaxLocatedBlocks));
  v1::GetBlockLocationsResponse response;
  *response.mutable_status() = ToFileStatus(inode.record, call.request.path());
  const std::string host = HostOfCaller(call.request.client_host(), call.context.peer);
  for (const BlockOfFile& block : blocks) {
    ASSIGN_OR_RETURN(*response.add_blocks(), LocateForReader(block, host, call.reach));
  }
  Answer(call, std::move(response));
  return absl::OkStatus();
}

void ClientService::OnReportBadReplicas(Call<v1::ReportBadReplicasRequest, v1::ReportBadReplicasResponse> call) {
  if (call.request.replicas_size() > kMaxBadReplicas)
    return call.done(MakeError(ErrorKind::kInvalidArgument, fmt::format("{} bad replicas in one report are too many (at most {})",
                                                                        call.request.replicas_size(), kMaxBadReplicas)));
  for (const auto& bad : call.request.replicas()) replicas_->OnBadReplica(bad.block(), bad.storage_uuid());
  Answer(call, v1::ReportBadReplicasResponse());
}

}  // namespace cairn::namenode
