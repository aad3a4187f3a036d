#pragma once

#include <string>

#include "absl/time/time.h"
#include "cairn/admin.pb.h"

namespace cairn::cli {

// dfsadmin -report, in the order and with the words that scripts look for in HDFS's; ours come
// after the old fields of each node.
std::string ReportText(const v1::ClusterReportResponse& report, absl::Time now, bool live, bool dead);

}  // namespace cairn::cli
