#include "namenode/frontdoor/hadoop_door.h"

#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "common/transfer/ops.h"
#include "namenode/frontdoor/hadoop_conversions.h"

namespace cairn::namenode {
namespace {

constexpr std::string_view kClientProtocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
constexpr std::string_view kHaServiceProtocol = "org.apache.hadoop.ha.HAServiceProtocol";
constexpr uint64_t kProtocolVersion = 1;  // Of both.

using Codes = hdfs::RpcResponseHeaderProto;

}  // namespace

HadoopDoor::HadoopDoor(Parts parts) : parts_(std::move(parts)), pool_name_(transfer::PoolName(parts_.pool_id)), methods_(AllMethods()) {}

void HadoopDoor::Handle(const ipc::Caller& caller, ipc::Call call, api::CallContext context, ipc::Done done) {
  const auto shared = std::make_shared<HadoopCall>(caller, std::move(call), std::move(context), std::move(done));
  const ipc::Call& asked = shared->call();
  if (asked.protocol != kClientProtocol && asked.protocol != kHaServiceProtocol) {
    return shared->Fail({"org.apache.hadoop.ipc.RpcNoSuchProtocolException", fmt::format("Unknown protocol: {}", asked.protocol),
                         Codes::ERROR_NO_SUCH_PROTOCOL});
  }
  if (asked.version != kProtocolVersion) {
    return shared->Fail(
        {"org.apache.hadoop.ipc.RPC$VersionMismatch",
         fmt::format("Protocol {} version mismatch. (client = {}, server = {})", asked.protocol, asked.version, kProtocolVersion),
         Codes::ERROR_RPC_VERSION_MISMATCH});
  }
  // The one call of the other protocol bears a name that the first has not.
  const auto method = methods_.find(asked.method);
  if (method == methods_.end() || (asked.protocol == kHaServiceProtocol) != (asked.method == "getServiceStatus")) {
    return shared->Fail({"org.apache.hadoop.ipc.RpcNoSuchMethodException",
                         fmt::format("Unknown method {} called on {} protocol.", asked.method, asked.protocol),
                         Codes::ERROR_NO_SUCH_METHOD});
  }
  method->second(this, shared);
}

template <class Request>
HadoopDoor::Method HadoopDoor::By(void (HadoopDoor::*handle)(const CallPtr&, const Request&)) {
  return [handle](HadoopDoor* door, const CallPtr& call) {
    Request request;
    // Without the library's own line in the log.
    if (!request.ParsePartialFromString(call->call().request) || !request.IsInitialized())
      return call->Fail({ipc::kIoException, fmt::format("{}: the request does not parse", call->call().method)});
    (door->*handle)(call, request);
  };
}

HadoopDoor::Method HadoopDoor::OnReader(Method method) {
  return [method = std::move(method)](HadoopDoor* door, const CallPtr& call) {
    door->parts_.reader->Post([method, door, call] { method(door, call); });
  };
}

HadoopDoor::Method HadoopDoor::Constant(const google::protobuf::MessageLite& answer) {
  const std::shared_ptr<google::protobuf::MessageLite> kept(answer.New());
  kept->CheckTypeAndMergeFrom(answer);
  return [kept](HadoopDoor*, const CallPtr& call) { call->Answer(*kept); };
}

HadoopDoor::Method HadoopDoor::Unsupported(std::string_view what) {
  return
      [message = fmt::format("Cairn has no {}.", what)](HadoopDoor*, const CallPtr& call) { call->Fail({kUnsupportedException, message}); };
}

HadoopDoor::Methods HadoopDoor::AllMethods() {
  const hdfs::EmptyProto empty;
  hdfs::NothingMoreResponseProto nothing_more;
  nothing_more.set_hasmore(false);
  hdfs::BoolResponseProto yes;
  yes.set_result(true);
  hdfs::HAServiceStateResponseProto active;
  active.set_state(hdfs::ACTIVE);
  hdfs::GetServiceStatusResponseProto active_status;
  active_status.set_state(hdfs::ACTIVE);
  active_status.set_readytobecomeactive(true);
  hdfs::GetStoragePoliciesResponseProto policies;
  *policies.add_policies() = HotPolicy();
  hdfs::GetEnclosingRootResponseProto enclosing_root;
  enclosing_root.set_enclosingrootpath("/");
  hdfs::GetFsECBlockGroupStatsResponseProto no_groups;
  no_groups.set_low_redundancy(0);
  no_groups.set_corrupt_blocks(0);
  no_groups.set_missing_blocks(0);
  no_groups.set_blocks_in_future(0);
  no_groups.set_pending_deletion_blocks(0);
  no_groups.set_badly_distributed_blocks(0);

  Methods methods = {
      {"getFileInfo", By(&HadoopDoor::GetFileInfo)},
      {"getFileLinkInfo", By(&HadoopDoor::GetFileInfo)},  // There are no links.
      {"getLocatedFileInfo", By(&HadoopDoor::GetLocatedFileInfo)},
      {"isFileClosed", By(&HadoopDoor::IsFileClosed)},
      {"getListing", By(&HadoopDoor::GetListing)},
      {"getBlockLocations", By(&HadoopDoor::GetBlockLocations)},
      {"getServerDefaults", By(&HadoopDoor::GetServerDefaults)},
      {"getContentSummary", By(&HadoopDoor::GetContentSummary)},
      {"getQuotaUsage", By(&HadoopDoor::GetQuotaUsage)},
      {"getPreferredBlockSize", By(&HadoopDoor::GetPreferredBlockSize)},
      {"reportBadBlocks", OnReader(By(&HadoopDoor::ReportBadBlocks))},

      {"create", By(&HadoopDoor::Create)},
      {"addBlock", By(&HadoopDoor::AddBlock)},
      {"abandonBlock", By(&HadoopDoor::AbandonBlock)},
      {"complete", By(&HadoopDoor::Complete)},
      {"fsync", By(&HadoopDoor::Fsync)},
      {"renewLease", OnReader(By(&HadoopDoor::RenewLease))},
      {"updateBlockForPipeline", By(&HadoopDoor::UpdateBlockForPipeline)},
      {"updatePipeline", By(&HadoopDoor::UpdatePipeline)},
      {"getAdditionalDatanode", By(&HadoopDoor::GetAdditionalDatanode)},
      {"append", By(&HadoopDoor::Append)},
      {"truncate", By(&HadoopDoor::Truncate)},
      {"recoverLease", By(&HadoopDoor::RecoverLease)},

      {"mkdirs", By(&HadoopDoor::Mkdirs)},
      {"rename", By(&HadoopDoor::Rename)},
      {"rename2", By(&HadoopDoor::Rename2)},
      {"delete", By(&HadoopDoor::Delete)},
      {"concat", By(&HadoopDoor::Concat)},
      {"setReplication", By(&HadoopDoor::SetReplication)},
      {"setPermission", By(&HadoopDoor::SetPermission)},
      {"setOwner", By(&HadoopDoor::SetOwner)},
      {"setTimes", By(&HadoopDoor::SetTimes)},
      {"setQuota", By(&HadoopDoor::SetQuota)},
      {"checkAccess", By(&HadoopDoor::CheckAccess)},
      {"setXAttr", By(&HadoopDoor::SetXAttr)},
      {"removeXAttr", By(&HadoopDoor::RemoveXAttr)},
      {"getXAttrs", By(&HadoopDoor::GetXAttrs)},
      {"listXAttrs", By(&HadoopDoor::ListXAttrs)},
      {"getAclStatus", By(&HadoopDoor::GetAclStatus)},
      {"getStoragePolicy", By(&HadoopDoor::GetStoragePolicy)},
      {"setStoragePolicy", By(&HadoopDoor::SetStoragePolicy)},
      {"unsetStoragePolicy", By(&HadoopDoor::AnswerIfThere)},
      {"getErasureCodingPolicy", By(&HadoopDoor::AnswerIfThere)},
      {"getEZForPath", By(&HadoopDoor::AnswerIfThere)},

      {"getFsStats", OnReader(By(&HadoopDoor::GetFsStats))},
      {"getFsReplicatedBlockStats", OnReader(By(&HadoopDoor::GetFsReplicatedBlockStats))},
      {"getDatanodeReport", OnReader(By(&HadoopDoor::GetDatanodeReport))},
      {"getDatanodeStorageReport", OnReader(By(&HadoopDoor::GetDatanodeStorageReport))},
      {"setSafeMode", OnReader(By(&HadoopDoor::SetSafeMode))},
      {"saveNamespace", OnReader(By(&HadoopDoor::SaveNamespace))},
      {"refreshNodes", OnReader(By(&HadoopDoor::RefreshNodes))},
      {"setBalancerBandwidth", OnReader(By(&HadoopDoor::SetBalancerBandwidth))},

      {"getFsECBlockGroupStats", Constant(no_groups)},
      {"getStoragePolicies", Constant(policies)},
      {"getEnclosingRoot", Constant(enclosing_root)},
      {"getHAServiceState", Constant(active)},
      {"getServiceStatus", Constant(active_status)},
      {"upgradeStatus", Constant(yes)},
      // Answers without what they could have: no token, no key, no slow node, no such policy, nothing under way.
      {"msync", Constant(empty)},
      {"getSlowDatanodeReport", Constant(empty)},
      {"getErasureCodingPolicies", Constant(empty)},
      {"getErasureCodingCodecs", Constant(empty)},
      {"getDelegationToken", Constant(empty)},
      {"getDataEncryptionKey", Constant(empty)},
      {"getSnapshottableDirListing", Constant(empty)},
      {"rollingUpgrade", Constant(empty)},
      {"listEncryptionZones", Constant(nothing_more)},
      {"listReencryptionStatus", Constant(nothing_more)},
      {"listCachePools", Constant(nothing_more)},
      {"listCacheDirectives", Constant(nothing_more)},
  };
  for (const char* acl : {"modifyAclEntries", "removeAclEntries", "removeDefaultAcl", "removeAcl", "setAcl"})
    methods.emplace(acl, By(&HadoopDoor::RefuseAcl));
  const auto unsupported = [&methods](const char* what, std::initializer_list<const char*> names) {
    for (const char* name : names) methods.emplace(name, Unsupported(what));
  };
  unsupported("symbolic links", {"createSymlink", "getLinkTarget"});
  unsupported("delegation tokens", {"renewDelegationToken", "cancelDelegationToken"});
  unsupported("snapshots", {"createSnapshot", "deleteSnapshot", "renameSnapshot", "allowSnapshot", "disallowSnapshot", "getSnapshotListing",
                            "getSnapshotDiffReport", "getSnapshotDiffReportListing"});
  unsupported("encryption zones", {"createEncryptionZone", "reencryptEncryptionZone"});
  unsupported("cache directives",
              {"addCacheDirective", "modifyCacheDirective", "removeCacheDirective", "addCachePool", "modifyCachePool", "removeCachePool"});
  unsupported("erasure coding",
              {"setErasureCodingPolicy", "unsetErasureCodingPolicy", "getECTopologyResultForPolicies", "addErasureCodingPolicies",
               "removeErasureCodingPolicy", "enableErasureCodingPolicy", "disableErasureCodingPolicy"});
  unsupported("such call", {"satisfyStoragePolicy", "restoreFailedStorage", "finalizeUpgrade", "getCurrentEditLogTxid", "getEditsFromTxid",
                            "getBatchedListing", "listOpenFiles", "listCorruptFileBlocks", "metaSave", "rollEdits"});
  return methods;
}

}  // namespace cairn::namenode
