#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/shell.h"

namespace cairn::cli {

// Asks the NameNode for one page; blocks. The header is filled by it.
using AskOrphans = std::function<absl::StatusOr<v1::ListOrphansResponse>(v1::ListOrphansRequest request)>;

// dfsadmin -orphans: files that no writer has closed. HDFS has no such verb.
Verb OrphansVerb(AskOrphans ask);

}  // namespace cairn::cli
