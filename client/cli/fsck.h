#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/shell.h"

namespace cairn::cli {

// Asks the NameNode for one page; blocks. The header is filled by it.
using AskFsck = std::function<absl::StatusOr<v1::FsckResponse>(v1::FsckRequest request)>;
using AskBadBlocks = std::function<absl::StatusOr<v1::ListBadBlocksResponse>(v1::ListBadBlocksRequest request)>;

struct FsckTarget {
  AskFsck ask;
  AskBadBlocks bad;
  std::function<absl::Time()> wall_now;
  std::string namenode;  // For the line on standard error.
};

// cairn fsck <path> [-files [-blocks [-locations | -racks | -replicaDetails]]] [-openforwrite] [-list-corruptfileblocks]
// [-blockId <id> ...], with HDFS's words, summary and exit codes: 0 healthy, or there is no such path; 1 corrupt, or the check
// failed; -1, which is 255 to the shell, if access is denied; for -blockId, if a replica's node is to leave: 2 decommissioned, 3 being
// decommissioned, 4 in maintenance, 5 entering it, 6 stale. The one verb of its group.
Verb FsckVerb(FsckTarget target);

}  // namespace cairn::cli
