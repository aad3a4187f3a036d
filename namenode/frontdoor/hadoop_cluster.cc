// HadoopDoor: what operators' tools ask of the cluster.

#include <utility>

#include "namenode/frontdoor/hadoop_conversions.h"
#include "namenode/frontdoor/hadoop_native_calls.h"

namespace cairn::namenode {
namespace {

bool IsOf(const v1::DatanodeReport& node, hdfs::DatanodeReportTypeProto type) {
  const bool is_dead = node.state() == v1::DEAD;
  switch (type) {
    case hdfs::ALL_NODES: return true;
    case hdfs::LIVE_NODES: return !is_dead;
    case hdfs::DEAD_NODES: return is_dead;
    case hdfs::DECOMMISSIONING_NODES: return !is_dead && node.admin_state() == v1::DECOMMISSIONING;
    case hdfs::ENTERING_MAINTENANCE_NODES: return !is_dead && node.admin_state() == v1::ENTERING_MAINTENANCE;
    case hdfs::IN_MAINTENANCE_NODES: return node.admin_state() == v1::IN_MAINTENANCE;
  }
  return false;
}

// What HDFS's statistics of the cluster and of its blocks both have.
template <class Statistics>
void FillBlocks(const v1::ClusterReportResponse& report, Statistics* out) {
  out->set_corrupt_blocks(report.corrupt_blocks());
  out->set_missing_blocks(report.missing_blocks());
  out->set_missing_repl_one_blocks(report.missing_blocks_replication_one());
  out->set_blocks_in_future(0);
  out->set_pending_deletion_blocks(report.pending_deletion_blocks());
}

}  // namespace

void HadoopDoor::AskReport(const CallPtr& call, std::function<void(const v1::ClusterReportResponse&)> then) {
  Ask(call, parts_.admin, &api::NamenodeAdmin::ClusterReport, v1::ClusterReportRequest(),
      [call, then = std::move(then)](const absl::StatusOr<v1::ClusterReportResponse>& report) {
        if (!report.ok()) return call->Fail(report.status());
        then(*report);
      });
}

void HadoopDoor::GetFsStats(const CallPtr& call, const hdfs::EmptyProto& request) {
  static_cast<void>(request);
  AskReport(call, [call](const v1::ClusterReportResponse& report) {
    StorageTotals totals;
    for (const v1::DatanodeReport& node : report.datanodes())
      if (IsOf(node, hdfs::LIVE_NODES)) AddStorages(node, &totals);
    hdfs::GetFsStatsResponseProto response;
    response.set_capacity(totals.capacity);
    response.set_used(totals.used);
    response.set_remaining(totals.remaining);
    response.set_under_replicated(report.under_replicated_blocks());
    FillBlocks(report, &response);
    call->Answer(response);
  });
}

void HadoopDoor::GetFsReplicatedBlockStats(const CallPtr& call, const hdfs::EmptyProto& request) {
  static_cast<void>(request);
  AskReport(call, [call](const v1::ClusterReportResponse& report) {
    hdfs::GetFsReplicatedBlockStatsResponseProto response;
    response.set_low_redundancy(report.under_replicated_blocks());
    FillBlocks(report, &response);
    response.set_highest_prio_low_redundancy_blocks(report.at_risk_blocks());
    response.set_badly_distributed_blocks(report.mis_replicated_blocks());
    call->Answer(response);
  });
}

void HadoopDoor::GetDatanodeReport(const CallPtr& call, const hdfs::GetDatanodeReportRequestProto& request) {
  AskReport(call, [this, call, type = request.type()](const v1::ClusterReportResponse& report) {
    hdfs::GetDatanodeReportResponseProto response;
    const int64_t now_ms = absl::ToUnixMillis(parts_.clock->WallNow());
    for (const v1::DatanodeReport& node : report.datanodes())
      if (IsOf(node, type)) *response.add_di() = ToHadoopReport(node, now_ms);
    call->Answer(response);
  });
}

void HadoopDoor::GetDatanodeStorageReport(const CallPtr& call, const hdfs::GetDatanodeReportRequestProto& request) {
  AskReport(call, [this, call, type = request.type()](const v1::ClusterReportResponse& report) {
    hdfs::GetDatanodeStorageReportResponseProto response;
    const int64_t now_ms = absl::ToUnixMillis(parts_.clock->WallNow());
    for (const v1::DatanodeReport& node : report.datanodes())
      if (IsOf(node, type)) *response.add_datanodestoragereports() = ToHadoopStorageReport(node, now_ms);
    call->Answer(response);
  });
}

void HadoopDoor::SetSafeMode(const CallPtr& call, const hdfs::SetSafeModeRequestProto& request) {
  v1::SafeModeRequest asked;
  switch (request.action()) {
    case hdfs::SAFEMODE_GET: asked.set_action(v1::SafeModeRequest::GET); break;
    case hdfs::SAFEMODE_ENTER: asked.set_action(v1::SafeModeRequest::ENTER); break;
    case hdfs::SAFEMODE_LEAVE:
    case hdfs::SAFEMODE_FORCE_EXIT: asked.set_action(v1::SafeModeRequest::LEAVE); break;
  }
  Ask(call, parts_.admin, &api::NamenodeAdmin::SafeMode, std::move(asked), [call](const absl::StatusOr<v1::SafeModeResponse>& answer) {
    if (!answer.ok()) return call->Fail(answer.status());
    call->AnswerBool(answer->on());
  });
}

void HadoopDoor::SaveNamespace(const CallPtr& call, const hdfs::EmptyProto& request) {
  static_cast<void>(request);
  Ask(call, parts_.admin, &api::NamenodeAdmin::SaveNamespace, v1::SaveNamespaceRequest(),
      [call](const absl::StatusOr<v1::SaveNamespaceResponse>& answer) {
        if (!answer.ok()) return call->Fail(answer.status());
        hdfs::SaveNamespaceResponseProto response;
        response.set_saved(true);
        call->Answer(response);
      });
}

void HadoopDoor::RefreshNodes(const CallPtr& call, const hdfs::EmptyProto& request) {
  static_cast<void>(request);
  Ask(call, parts_.admin, &api::NamenodeAdmin::RefreshNodes, v1::RefreshNodesRequest(), AnswerNothing(call));
}

void HadoopDoor::SetBalancerBandwidth(const CallPtr& call, const hdfs::SetBalancerBandwidthRequestProto& request) {
  if (request.bandwidth() < 0) return call->Fail({"java.lang.IllegalArgumentException", "Bandwidth should be a non-negative integer"});
  v1::SetBalancerBandwidthRequest asked;
  asked.set_bytes_per_second(static_cast<uint64_t>(request.bandwidth()));
  Ask(call, parts_.admin, &api::NamenodeAdmin::SetBalancerBandwidth, std::move(asked), AnswerNothing(call));
}

}  // namespace cairn::namenode
