#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/admin.pb.h"
#include "common/env/env.h"
#include "common/env/network.h"

namespace cairn::cli {

// One ClusterReport call to the NameNode, within `timeout`. Blocks.
absl::StatusOr<v1::ClusterReportResponse> AskClusterReport(Env* env, const HostPort& namenode, const std::string& user,
                                                           absl::Duration timeout);

}  // namespace cairn::cli
