#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/admin.pb.h"

namespace cairn::namenode {

// A DataNode as the balancer sees it.
struct BalanceNode {
  std::string datanode_uuid;
  std::string rack;
  uint64_t capacity_bytes = 0;   // Of its healthy volumes.
  uint64_t used_bytes = 0;       // By replicas, less those that are being deleted.
  uint64_t remaining_bytes = 0;  // For new replicas.
  bool may_give = true;
  double share() const { return capacity_bytes == 0 ? 0 : static_cast<double>(used_bytes) / static_cast<double>(capacity_bytes); }
};

struct BalancePair {
  std::string source;  // Uuids.
  std::string target;
  uint64_t bytes = 0;
};

struct BalancePlan {
  double mean = 0;          // Used share of all nodes together.
  uint64_t left_bytes = 0;  // That have to move until every node is within the threshold of it.
  std::vector<BalancePair> pairs;
  uint64_t bytes() const;
};

// kInvalidArgument unless it is one that DataNodes can keep to, or 0.
absl::Status CheckBalanceRate(uint64_t bytes_per_second);

// Whether `node` goes by this name: its uuid, host:port of its transfer port, or its host.
bool IsNamed(const v1::DatanodeInfo& node, const std::string& name);

// The nodes of a report that take part in a run: live, wanted by nobody elsewhere, and as the request includes and excludes them.
std::vector<BalanceNode> NodesToBalance(const v1::ClusterReportResponse& report, const v1::BalanceRequest& request);

// Who gives what to whom in one iteration, in HDFS's order (Balancer): within a rack before across racks; from those above the threshold
// to those below it first, then to others below the mean, then from others above the mean to those below the threshold; of each the
// fullest gives first and the emptiest takes first. No node gives below the mean or takes above it, takes more than it has room for, or
// moves more than `most_bytes`. `threshold` is a share: 0.1 for ten percent.
//
// Pure. Without pairs although bytes are left: nobody can give, or take.
BalancePlan PlanBalance(std::vector<BalanceNode> nodes, double threshold, uint64_t most_bytes);

}  // namespace cairn::namenode
