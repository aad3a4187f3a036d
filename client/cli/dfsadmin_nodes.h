#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/dfsadmin.h"
#include "client/cli/shell.h"

namespace cairn::cli {

// Each asks the NameNode; blocks. Headers are filled by it.
struct AskNodes {
  std::function<absl::StatusOr<v1::SetNodeAdminResponse>(v1::SetNodeAdminRequest)> set;
  std::function<absl::StatusOr<v1::RefreshNodesResponse>()> refresh;
  std::function<absl::StatusOr<v1::ListNodeBlockersResponse>(v1::ListNodeBlockersRequest)> blockers;
  std::function<absl::StatusOr<v1::ListBadBlocksResponse>(v1::ListBadBlocksRequest)> bad;
  AskReport report;
};

// dfsadmin -refreshNodes, which HDFS has, and -decommission, -recommission, -maintenance, -nodes and -badBlocks, which it has not: there
// every step is an edit of a file. `wall_now`: the time that "for" and "ago" are taken from.
std::vector<Verb> NodeVerbs(AskNodes ask, std::function<absl::Time()> wall_now);

// "Normal", "Decommission in progress", ...: HDFS's words.
const char* AdminStateText(v1::NodeAdminState state);

}  // namespace cairn::cli
