#pragma once

#include <memory>

#include "cairn/datanode_namenode.pb.h"
#include "common/api/callback.h"
#include "common/api/stream.h"

#define CAIRN_DATANODE_NAMENODE_CALLS(X) X(Register) X(Heartbeat) X(CommitBlockRecovery)

namespace cairn::api {

inline constexpr char kOtherCluster[] = "OTHER_CLUSTER";

// The NameNode as DataNodes see it. Thread-safe; no call blocks. kUnregistered: register (again) first. A DataNode with
// another cluster's id (reason kOtherCluster), or two with one uuid, are refused with kInvalidArgument.
//
// Streams are symmetrical: the caller gives a handler for what comes back and gets a sink for what it sends; a stream that cannot be opened
// closes its handler. The handler is kept until OnClosed has returned. The report stream's messages and rules are in
// docs/formats.md ("Report stream"); the command stream is pulled on credit.
class DatanodeNamenode {
 public:
  virtual ~DatanodeNamenode() = default;
#define CAIRN_DECLARE_CALL(Name) virtual void Name(CallContext context, v1::Name##Request request, Done<v1::Name##Response> done) = 0;
  CAIRN_DATANODE_NAMENODE_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL

  virtual std::shared_ptr<MessageSink<v1::ReportUp>> Reports(CallContext context,
                                                             std::shared_ptr<MessageHandler<v1::ReportDown>> handler) = 0;
  virtual std::shared_ptr<MessageSink<v1::CommandUp>> Commands(CallContext context,
                                                               std::shared_ptr<MessageHandler<v1::CommandDown>> handler) = 0;
};

}  // namespace cairn::api
