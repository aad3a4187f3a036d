#pragma once

#include <functional>
#include <memory>

#include "cairn/inter_datanode.pb.h"
#include "cairn/types.pb.h"
#include "common/api/callback.h"

#define CAIRN_INTER_DATANODE_CALLS(X) X(InitReplicaRecovery) X(UpdateReplicaUnderRecovery)

namespace cairn::api {

// A DataNode as the primary of a block recovery sees it. Thread-safe; no call blocks. Kinds of error:
//   kStaleGeneration: a recovery of the same or a later id has been here, or the replica is newer than this recovery;
//   kReplicaNotFound: the storage is not here or has failed (Init), or the replica is not under this recovery (Update);
//   kInvalidArgument: a length beyond the replica's;
//   kAccessToken: the token is not for this block at this stamp.
class InterDatanode {
 public:
  virtual ~InterDatanode() = default;
#define CAIRN_DECLARE_CALL(Name) \
  virtual void Name(CallContext context, v1::Name##Request request, Done<v1::Name##Response> done) = 0;
  CAIRN_INTER_DATANODE_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL
};

// Finds a DataNode by the admin address that it advertises; never null. Thread-safe. What it gives is kept as long as calls are wanted
// from it, and let go of on a thread that may block, never in one of its callbacks.
using InterDatanodeResolver = std::function<std::shared_ptr<InterDatanode>(const v1::Endpoint& admin)>;

}  // namespace cairn::api
