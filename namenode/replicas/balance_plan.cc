#include "namenode/replicas/balance_plan.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "common/api/balance.h"
#include "common/error.h"
#include "namenode/replicas/datanode_registry.h"

namespace cairn::namenode {
namespace {

struct Quota {
  const BalanceNode* node;
  uint64_t left;
};

// The fullest first for givers, the emptiest first for takers; uuids decide among equals, so that a plan repeats.
void Sort(std::vector<Quota>* quotas, bool fullest_first) {
  std::sort(quotas->begin(), quotas->end(), [fullest_first](const Quota& a, const Quota& b) {
    if (a.node->share() != b.node->share()) return (a.node->share() > b.node->share()) == fullest_first;
    return a.node->datanode_uuid < b.node->datanode_uuid;
  });
}

void Pair(std::vector<Quota>* givers, std::vector<Quota>* takers, bool same_rack, std::vector<BalancePair>* pairs) {
  for (Quota& giver : *givers) {
    for (Quota& taker : *takers) {
      if (giver.left == 0) break;
      if (taker.left == 0 || (same_rack && giver.node->rack != taker.node->rack)) continue;
      const uint64_t bytes = std::min(giver.left, taker.left);
      giver.left -= bytes;
      taker.left -= bytes;
      pairs->push_back({giver.node->datanode_uuid, taker.node->datanode_uuid, bytes});
    }
  }
}

bool AnyNames(const google::protobuf::RepeatedPtrField<std::string>& names, const v1::DatanodeInfo& node) {
  return std::any_of(names.begin(), names.end(), [&node](const std::string& name) { return IsNamed(node, name); });
}

}  // namespace

uint64_t BalancePlan::bytes() const {
  uint64_t sum = 0;
  for (const BalancePair& pair : pairs) sum += pair.bytes;
  return sum;
}

absl::Status CheckBalanceRate(uint64_t bytes_per_second) {
  if (api::IsBalanceRate(bytes_per_second)) return absl::OkStatus();
  return MakeError(ErrorKind::kInvalidArgument, fmt::format("{} bytes per second: at least {} are needed, or 0 for what is configured",
                                                            bytes_per_second, api::kLeastBalanceBytesPerSecond));
}

bool IsNamed(const v1::DatanodeInfo& node, const std::string& name) {
  return name == node.uuid() || name == node.transfer().host() || name == AddressOf(node);
}

std::vector<BalanceNode> NodesToBalance(const v1::ClusterReportResponse& report, const v1::BalanceRequest& request) {
  std::vector<BalanceNode> nodes;
  for (const v1::DatanodeReport& entry : report.datanodes()) {
    if (entry.state() != v1::LIVE || entry.admin_state() != v1::NODE_NORMAL || entry.not_allowed()) continue;
    if (request.include_size() > 0 && !AnyNames(request.include(), entry.info())) continue;
    if (AnyNames(request.exclude(), entry.info())) continue;
    BalanceNode node;
    node.datanode_uuid = entry.info().uuid();
    node.rack = entry.info().rack();
    node.may_give = request.sources_size() == 0 || AnyNames(request.sources(), entry.info());
    for (const v1::StorageStatistics& storage : entry.storages()) {
      if (storage.state() != v1::HEALTHY) continue;
      node.capacity_bytes += storage.capacity_bytes();
      // What waits to be unlinked is as good as gone: else a node whose deleter has work would be taken for full.
      node.used_bytes += storage.used_bytes() - std::min(storage.used_bytes(), storage.pending_deletion_bytes());
      if (!storage.read_only()) node.remaining_bytes += storage.remaining_bytes();
    }
    if (node.capacity_bytes > 0) nodes.push_back(std::move(node));
  }
  return nodes;
}

BalancePlan PlanBalance(std::vector<BalanceNode> nodes, double threshold, uint64_t most_bytes) {
  BalancePlan plan;
  double used = 0, capacity = 0;
  for (const BalanceNode& node : nodes) {
    used += static_cast<double>(node.used_bytes);
    capacity += static_cast<double>(node.capacity_bytes);
  }
  if (capacity == 0) return plan;
  plan.mean = used / capacity;
  std::vector<Quota> over, above, below, under;
  uint64_t over_bytes = 0, under_bytes = 0;
  for (const BalanceNode& node : nodes) {
    const double difference = node.share() - plan.mean;
    const auto bytes_of = [&node](double share) {
      return static_cast<uint64_t>(std::llround(share * static_cast<double>(node.capacity_bytes)));
    };
    const uint64_t beyond = bytes_of(std::max(0.0, std::abs(difference) - threshold));
    uint64_t quota = std::min(bytes_of(std::abs(difference)), most_bytes);
    if (difference > 0) {
      if (!node.may_give) continue;
      over_bytes += beyond;
      (beyond > 0 ? over : above).push_back({&node, quota});
    } else {
      quota = std::min(quota, node.remaining_bytes);
      under_bytes += beyond;
      (beyond > 0 ? under : below).push_back({&node, quota});
    }
  }
  plan.left_bytes = std::max(over_bytes, under_bytes);
  if (plan.left_bytes == 0) return plan;
  Sort(&over, true);
  Sort(&above, true);
  Sort(&below, false);
  Sort(&under, false);
  for (const bool same_rack : {true, false}) {
    Pair(&over, &under, same_rack, &plan.pairs);
    Pair(&over, &below, same_rack, &plan.pairs);
    Pair(&above, &under, same_rack, &plan.pairs);
  }
  return plan;
}

}  // namespace cairn::namenode
