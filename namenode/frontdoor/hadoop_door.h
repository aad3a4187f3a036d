#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/api/admin.h"
#include "common/api/client_namenode.h"
#include "common/env/clock.h"
#include "common/env/executor.h"
#include "common/hadoop_ipc/call.h"
#include "common/ids.h"
#include "hdfs/client_protocol.pb.h"
#include "namenode/frontdoor/hadoop_call.h"
#include "namenode/namespace_access.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// The front door of stock HDFS clients: every call of HDFS's ClientProtocol, put to the native calls and answered in HDFS's words. It
// decides nothing itself. What it asks the namespace directly is what the native calls take from their client and HDFS's do not carry:
// which file a block belongs to, and which storages its pipeline has. Their client has no word for who acknowledged a block's last packet,
// and says that a block is finished even after all of its pipeline has failed: what counts as acknowledged is what DataNodes report.
//
// HDFS's clients repeat a call under its own id only when it may have acted: then it acts once, as the native calls do (HadoopCall). If the
// NameNode cannot tell, because the client has made many calls since, a first try is made without an id, and a repetition is refused.
//
// Thread-safe; a call begins on the connection's thread and does not block it.
class HadoopDoor : public ipc::Handler {
 public:
  struct Parts {  // The pointers outlive the last call.
    api::ClientNamenode* clients = nullptr;
    api::NamenodeAdmin* admin = nullptr;
    NamespaceAccess* space = nullptr;
    ReplicaPlane* replicas = nullptr;
    Executor* reader = nullptr;  // May block on a disk read.
    const Clock* clock = nullptr;
    std::string pool_id;
    uint32_t min_replication = 1;
  };
  explicit HadoopDoor(Parts parts);

  void Handle(const ipc::Caller& caller, ipc::Call call, api::CallContext context, ipc::Done done) override;

 private:
  using CallPtr = HadoopCallPtr;
  // One method: parses the request's bytes and answers, now or later.
  using Method = std::function<void(HadoopDoor* door, const CallPtr& call)>;
  using Methods = std::map<std::string_view, Method>;
  template <class Request>
  static Method By(void (HadoopDoor::*handle)(const CallPtr&, const Request&));
  // On the reader: for what reads the disk, or asks whether the caller is a superuser, which may wait for a directory service.
  static Method OnReader(Method method);
  static Method Constant(const google::protobuf::MessageLite& answer);
  static Method Unsupported(std::string_view what);  // "Cairn has no <what>."
  static Methods AllMethods();

  // --- how the native calls are made; in hadoop_native_calls.h ---
  // Its answer, or why not, goes to `then`.
  template <class Api, class Request, class Response>
  void Ask(const CallPtr& call, Api* api, void (Api::*method)(api::CallContext, Request, api::Done<Response>),
           std::type_identity_t<Request> request, std::type_identity_t<api::Done<Response>> then, const std::string& client_name = "");
  // A change that acts once however often the client sends it.
  template <class Request, class Response>
  void AskOnce(const CallPtr& call, void (api::ClientNamenode::*method)(api::CallContext, Request, api::Done<Response>),
               std::type_identity_t<Request> request, std::type_identity_t<api::Done<Response>> then, const std::string& client_name = "");
  // Ask, and the client is answered that it was done.
  template <class Request, class Response>
  void AskForNothing(const CallPtr& call, void (api::ClientNamenode::*method)(api::CallContext, Request, api::Done<Response>),
                     std::type_identity_t<Request> request);
  // The native call that many of HDFS's are put to.
  void AskStatus(const CallPtr& call, const std::string& path, api::Done<v1::GetFileInfoResponse> then);
  // `then` is called unless it fails.
  void AskReport(const CallPtr& call, std::function<void(const v1::ClusterReportResponse&)> then);

  // --- blocks that are being written; in hadoop_blocks.cc ---
  struct WrittenBlock {
    uint64_t inode_id = 0;
    std::string path;
    v1::Block block;
    std::vector<std::string> storages;  // Uuids of its pipeline.
    bool is_written = false;            // By its writer: neither committed nor under recovery.
    std::optional<uint64_t> cut_to;     // A truncate is under way, that leaves it so long; of FindLast: its file.
  };
  absl::StatusOr<WrittenBlock> FindWritten(const ReadView& view, BlockId id);
  // The last block of a file, by id if there is one; id 0 if it has none.
  absl::StatusOr<WrittenBlock> FindLast(const ReadView& view, const std::string& path, uint64_t inode_id);
  using Find = std::function<absl::StatusOr<WrittenBlock>(const ReadView&)>;
  // Looks in memory, and if that does not do, on the reader.
  void LookUp(Find find, std::function<void(absl::StatusOr<WrittenBlock>)> then);
  // FindWritten, for a writer's call: `then` is called unless it fails.
  void LookUpWritten(const CallPtr& call, BlockId id, std::function<void(const WrittenBlock&)> then);
  // The storages of its pipeline that have reported it finished, just as it is named. Says NotInMemory if the disk has to be read.
  absl::StatusOr<std::vector<std::string>> ReportedOn(const WrittenBlock& written, const v1::Block& named, Reach reach);
  // Waits until its storages have reported it; who has not after a while is left out.
  void AwaitReports(const WrittenBlock& written, const v1::Block& named, Reach reach, SteadyTime since,
                    std::function<void(std::vector<std::string>)> then);
  // The words of a commit: `named` and who has acknowledged it: too few, if too few have it. Waits for their reports.
  void ToCommitted(const CallPtr& call, const hdfs::ExtendedBlockProto& named, std::function<void(v1::CommittedBlock)> then);

  // --- the calls ---
  void GetFileInfo(const CallPtr& call, const hdfs::PathRequestProto& request);
  void GetLocatedFileInfo(const CallPtr& call, const hdfs::GetLocatedFileInfoRequestProto& request);
  void IsFileClosed(const CallPtr& call, const hdfs::PathRequestProto& request);
  void GetListing(const CallPtr& call, const hdfs::GetListingRequestProto& request);
  void GetBlockLocations(const CallPtr& call, const hdfs::GetBlockLocationsRequestProto& request);
  void GetServerDefaults(const CallPtr& call, const hdfs::EmptyProto& request);
  void GetContentSummary(const CallPtr& call, const hdfs::PathRequestProto& request);
  void GetQuotaUsage(const CallPtr& call, const hdfs::PathRequestProto& request);
  void GetPreferredBlockSize(const CallPtr& call, const hdfs::PathRequestProto& request);
  void ReportBadBlocks(const CallPtr& call, const hdfs::ReportBadBlocksRequestProto& request);
  // All blocks from `offset` to `end` or the file's end, after those of `before`, which may be null.
  void LocateBlocks(const CallPtr& call, const std::string& path, uint64_t offset, uint64_t end,
                    const std::shared_ptr<v1::GetBlockLocationsResponse>& before,
                    std::function<void(absl::StatusOr<v1::GetBlockLocationsResponse>)> then);
  void LocateRange(const CallPtr& call, const std::string& path, uint64_t offset, uint64_t length,
                   std::function<void(absl::StatusOr<std::pair<v1::FileStatus, hdfs::LocatedBlocksProto>>)> then);
  // `is_file`: what was listed is a file, and its one entry is itself.
  void AnswerListing(const CallPtr& call, const hdfs::GetListingRequestProto& request, const v1::ListResponse& listed, bool is_file);

  void Create(const CallPtr& call, const hdfs::CreateRequestProto& request);
  void AddBlock(const CallPtr& call, const hdfs::AddBlockRequestProto& request);
  void AbandonBlock(const CallPtr& call, const hdfs::AbandonBlockRequestProto& request);
  void Complete(const CallPtr& call, const hdfs::CompleteRequestProto& request);
  void Fsync(const CallPtr& call, const hdfs::FsyncRequestProto& request);
  void RenewLease(const CallPtr& call, const hdfs::RenewLeaseRequestProto& request);
  void UpdateBlockForPipeline(const CallPtr& call, const hdfs::UpdateBlockForPipelineRequestProto& request);
  void UpdatePipeline(const CallPtr& call, const hdfs::UpdatePipelineRequestProto& request);
  void GetAdditionalDatanode(const CallPtr& call, const hdfs::GetAdditionalDatanodeRequestProto& request);
  void Append(const CallPtr& call, const hdfs::AppendRequestProto& request);
  void Truncate(const CallPtr& call, const hdfs::TruncateRequestProto& request);
  void RecoverLease(const CallPtr& call, const hdfs::RecoverLeaseRequestProto& request);

  void Mkdirs(const CallPtr& call, const hdfs::MkdirsRequestProto& request);
  void Rename(const CallPtr& call, const hdfs::RenameRequestProto& request);
  void RenameTo(const CallPtr& call, const std::string& source, const std::string& destination, bool may_go_into);
  // `refused`: why the plain rename was not made.
  void RenameInto(const CallPtr& call, const std::string& source, const std::string& destination, const absl::Status& refused);
  void Rename2(const CallPtr& call, const hdfs::Rename2RequestProto& request);
  void Delete(const CallPtr& call, const hdfs::DeleteRequestProto& request);
  void Concat(const CallPtr& call, const hdfs::ConcatRequestProto& request);
  void SetReplication(const CallPtr& call, const hdfs::SetReplicationRequestProto& request);
  void SetPermission(const CallPtr& call, const hdfs::SetPermissionRequestProto& request);
  void SetOwner(const CallPtr& call, const hdfs::SetOwnerRequestProto& request);
  void SetTimes(const CallPtr& call, const hdfs::SetTimesRequestProto& request);
  void SetQuota(const CallPtr& call, const hdfs::SetQuotaRequestProto& request);
  void CheckAccess(const CallPtr& call, const hdfs::CheckAccessRequestProto& request);
  void SetXAttr(const CallPtr& call, const hdfs::SetXAttrRequestProto& request);
  void RemoveXAttr(const CallPtr& call, const hdfs::RemoveXAttrRequestProto& request);
  void GetXAttrs(const CallPtr& call, const hdfs::GetXAttrsRequestProto& request);
  void ListXAttrs(const CallPtr& call, const hdfs::PathRequestProto& request);
  void AnswerXAttrs(const CallPtr& call, v1::GetXattrsRequest asked);
  void GetAclStatus(const CallPtr& call, const hdfs::PathRequestProto& request);
  void RefuseAcl(const CallPtr& call, const hdfs::EmptyProto& request);
  void GetStoragePolicy(const CallPtr& call, const hdfs::PathRequestProto& request);
  void SetStoragePolicy(const CallPtr& call, const hdfs::SetStoragePolicyRequestProto& request);
  // Nothing is known of the path but that it is there.
  void AnswerIfThere(const CallPtr& call, const hdfs::PathRequestProto& request);

  void GetFsStats(const CallPtr& call, const hdfs::EmptyProto& request);
  void GetFsReplicatedBlockStats(const CallPtr& call, const hdfs::EmptyProto& request);
  void GetDatanodeReport(const CallPtr& call, const hdfs::GetDatanodeReportRequestProto& request);
  void GetDatanodeStorageReport(const CallPtr& call, const hdfs::GetDatanodeReportRequestProto& request);
  void SetSafeMode(const CallPtr& call, const hdfs::SetSafeModeRequestProto& request);
  void SaveNamespace(const CallPtr& call, const hdfs::EmptyProto& request);
  void RefreshNodes(const CallPtr& call, const hdfs::EmptyProto& request);
  void SetBalancerBandwidth(const CallPtr& call, const hdfs::SetBalancerBandwidthRequestProto& request);

  const Parts parts_;
  const std::string pool_name_;
  const Methods methods_;
};

}  // namespace cairn::namenode
