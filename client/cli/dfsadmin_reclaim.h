#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/shell.h"

namespace cairn::cli {

// Asks the NameNode; blocks. The header is filled by it.
using AskReclaim = std::function<absl::StatusOr<v1::ReclaimResponse>(v1::ReclaimRequest request)>;

// dfsadmin -reclaim: how the freeing of deleted trees goes on, and its brake. HDFS has no such verb.
Verb ReclaimVerb(AskReclaim ask);

}  // namespace cairn::cli
