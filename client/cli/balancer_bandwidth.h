#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/datanode_verbs.h"
#include "client/cli/shell.h"

namespace cairn::cli {

// Tells the NameNode; blocks.
using SetBandwidth = std::function<absl::Status(uint64_t bytes_per_second)>;

// dfsadmin -setBalancerBandwidth <bytes per second>, -getBalancerBandwidth <datanode_host:admin_port>, in HDFS's words.
std::vector<Verb> BandwidthVerbs(SetBandwidth set, AskDatanode ask);

}  // namespace cairn::cli
