#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/types.pb.h"
#include "common/task_group.h"
#include "datanode/transfer/transfer_context.h"

namespace cairn::datanode {

// A copy of a replica of ours for other nodes.
struct TransferRequest {
  BlockId block;
  GenerationStamp stamp;                         // At least; the copy gets the replica's own.
  std::string token;                             // For the targets.
  std::string client_name;                       // Empty when no client asked.
  std::vector<hdfs::DatanodeInfoProto> targets;  // In a chain: the first forwards to the second. At least one.
  std::vector<std::string> storage_uuids;        // Of the targets; may be fewer.
  v1::TrafficClass traffic_class = v1::REPAIR;
  SteadyTime deadline = SteadyTime::Infinite();
};

// Copies what is visible of the replica to the targets, as FINALIZED if it is, as RBW if it is being written. OK when all of them have
// it; a target that failed costs only the copies that are behind it in the chain, and its own. Done at request.deadline, whatever
// happens, and soon after `owner` stops. All pointers outlive the call.
Awaitable<absl::Status> TransferBlock(TransferContext* context, TaskGroup* owner, Executor* executor, TransferRequest request);

}  // namespace cairn::datanode
