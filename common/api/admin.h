#pragma once

#include "cairn/admin.pb.h"
#include "common/api/callback.h"

#define CAIRN_NAMENODE_ADMIN_CALLS(X)                                                                                                   \
  X(ClusterReport)                                                                                                                      \
  X(SetFault)                                                                                                                           \
  X(Reclaim) X(SaveNamespace) X(GetImage) X(ReadImage) X(ConfirmRollback) X(Reconfigure) X(ListOrphans) X(SetNodeAdmin) X(RefreshNodes) \
      X(ListNodeBlockers) X(ListBadBlocks) X(SafeMode) X(Fsck) X(Balance) X(SetBalancerBandwidth)
#define CAIRN_DATANODE_ADMIN_CALLS(X) X(GetDatanodeInfo) X(SetFault) X(Reconfigure)

namespace cairn::api {

// What operators ask of the NameNode. Thread-safe; no call blocks.
class NamenodeAdmin {
 public:
  virtual ~NamenodeAdmin() = default;
#define CAIRN_DECLARE_CALL(Name) virtual void Name(CallContext context, v1::Name##Request request, Done<v1::Name##Response> done) = 0;
  CAIRN_NAMENODE_ADMIN_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL
};

// What operators ask of one DataNode. Thread-safe; no call blocks.
class DatanodeAdmin {
 public:
  virtual ~DatanodeAdmin() = default;
#define CAIRN_DECLARE_CALL(Name) virtual void Name(CallContext context, v1::Name##Request request, Done<v1::Name##Response> done) = 0;
  CAIRN_DATANODE_ADMIN_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL
};

}  // namespace cairn::api
