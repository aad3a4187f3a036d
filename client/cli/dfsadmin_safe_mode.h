#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/shell.h"

namespace cairn::cli {

// Asks the NameNode; blocks. The header is filled by it.
using AskSafeMode = std::function<absl::StatusOr<v1::SafeModeResponse>(v1::SafeModeRequest request)>;

// dfsadmin -safemode enter | leave | get | wait | forceExit, with HDFS's words.
Verb SafeModeVerb(AskSafeMode ask);

}  // namespace cairn::cli
