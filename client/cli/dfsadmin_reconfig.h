#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/shell.h"
#include "common/env/network.h"

namespace cairn::cli {

// Asks the daemon at an address; blocks and fills the header.
using AskReconfigure = std::function<absl::StatusOr<v1::ReconfigureResponse>(const HostPort& node, v1::ReconfigureRequest request)>;

// dfsadmin -reconfig namenode|datanode <host:port> start|status|properties, in HDFS's words.
Verb ReconfigVerb(AskReconfigure ask_namenode, AskReconfigure ask_datanode);

}  // namespace cairn::cli
