#include "namenode/replicas/cluster_report.h"

#include <cmath>
#include <utility>
#include <vector>

#include "namenode/replicas/repair_queue.h"

namespace cairn::namenode {
namespace {

// Over the live nodes that have any capacity.
double UsedRatioDeviation(const v1::ClusterReportResponse& report) {
  std::vector<double> ratios;
  for (const v1::DatanodeReport& node : report.datanodes()) {
    uint64_t used = 0, capacity = 0;
    for (const v1::StorageStatistics& storage : node.storages()) {
      used += storage.used_bytes();
      capacity += storage.capacity_bytes();
    }
    if (node.state() == v1::LIVE && capacity > 0) ratios.push_back(static_cast<double>(used) / static_cast<double>(capacity));
  }
  if (ratios.empty()) return 0;
  double mean = 0, squares = 0;
  for (const double ratio : ratios) mean += ratio / static_cast<double>(ratios.size());
  for (const double ratio : ratios) squares += (ratio - mean) * (ratio - mean);
  return std::sqrt(squares / static_cast<double>(ratios.size()));
}

}  // namespace

void AddFigures(const ReplicaPlane::Figures& figures, v1::ClusterReportResponse* report) {
  report->set_repairs_waiting(figures.repairs_waiting);
  report->set_repairs_in_flight(figures.repairs_running);
  report->set_repairs_timed_out(figures.repairs_timed_out);
  report->set_repairs_parked(figures.repairs_parked_no_source + figures.repairs_parked_no_target);
  const auto add_parked = [report](ParkReason reason, uint64_t blocks) {
    v1::ClusterReportResponse::Parked& parked = *report->add_parked();
    parked.set_reason(NameOf(reason));
    parked.set_blocks(blocks);
  };
  add_parked(ParkReason::kNoSource, figures.repairs_parked_no_source);
  add_parked(ParkReason::kNoTarget, figures.repairs_parked_no_target);
  report->set_used_ratio_deviation(UsedRatioDeviation(*report));
  report->set_under_replicated_blocks(figures.under_replicated_blocks);
  report->set_corrupt_replicas(figures.corrupt_replicas);
  report->set_corrupt_blocks(figures.corrupt_blocks);
  report->set_mis_replicated_blocks(figures.mis_replicated_blocks);
  report->set_missing_blocks(figures.missing_blocks);
  report->set_missing_blocks_replication_one(figures.missing_blocks_replication_one);
  report->set_at_risk_blocks(figures.at_risk_blocks);
  uint64_t pending = figures.invalidations_waiting + figures.invalidations_told;
  for (const v1::DatanodeReport& node : report->datanodes()) pending += node.pending_deletion_blocks();
  report->set_pending_deletion_blocks(pending);
}

}  // namespace cairn::namenode
