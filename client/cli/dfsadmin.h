#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/shell.h"

namespace cairn::cli {

// Asks the NameNode for its report; blocks.
using AskReport = std::function<absl::StatusOr<v1::ClusterReportResponse>()>;

// The verbs of dfsadmin. `wall_now`: the time that "ago" is taken from.
std::vector<Verb> AdminVerbs(AskReport ask, std::function<absl::Time()> wall_now);

}  // namespace cairn::cli
