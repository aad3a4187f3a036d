#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/shell.h"
#include "common/env/network.h"

namespace cairn::cli {

// Asks a DataNode for what it is and does; blocks.
using AskDatanode = std::function<absl::StatusOr<v1::GetDatanodeInfoResponse>(const HostPort& datanode)>;

// "host" or "host:port" of a DataNode's admin port, which is 9868 unless given.
absl::StatusOr<HostPort> ParseDatanode(const std::string& typed);

// Asks the one that was typed as the argument of `verb`, and prints `text` of its answer, or what is wrong; the exit code.
int ShowDatanode(const AskDatanode& ask, const char* verb, const std::string& typed, Shell* shell,
                 absl::FunctionRef<std::string(const v1::GetDatanodeInfoResponse& info)> text);

// The verbs of dfsadmin that go to one DataNode's admin port: -getDatanodeInfo <host[:port]>.
std::vector<Verb> DatanodeVerbs(AskDatanode ask);

// The first line as HDFS's, then what is ours.
std::string DatanodeInfoText(const v1::GetDatanodeInfoResponse& info);

}  // namespace cairn::cli
