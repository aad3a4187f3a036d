#pragma once

#include "cairn/client_namenode.pb.h"
#include "common/api/callback.h"

// One line a call: CAIRN_CLIENT_NAMENODE_CALLS(X) expands X(Name) for each; requests are v1::NameRequest, answers
// v1::NameResponse. The transport in common/rpc is made from the same list.
// clang-format off: a line for each area.
#define CAIRN_CLIENT_NAMENODE_CALLS(X) \
  X(Create) X(AddBlock) X(AbandonBlock) X(UpdateBlockForPipeline) X(UpdatePipeline) X(Fsync) X(Complete) X(RenewLease) \
  X(GetFileInfo) X(List) X(Mkdirs) X(Rename) X(Delete) X(DeleteMany) X(GetContentSummary) \
  X(GetBlockLocations) X(GetServerDefaults) X(ReportBadReplicas) \
  X(SetQuota) X(SetReplication) X(Concat) X(GetLocationsMany) \
  X(SetPermission) X(SetOwner) X(SetTimes) X(SetXattr) X(RemoveXattr) X(GetXattrs) X(CheckAccess) \
  X(Append) X(Truncate) X(RecoverLease) X(ReleaseLease)
// clang-format on

namespace cairn::api {

// The NameNode as clients see it. Thread-safe; no call blocks.
//
// Mutations (Create ... DeleteMany, Append ... ReleaseLease) carry a retry id in their header and act once however often they are
// repeated. The kinds of error:
//   kNotFound, kNotDirectory, kInvalidPath, kNotEmpty, kIsDirectory, kAlreadyExists: as HDFS's calls of the same names;
//   kBeingWritten: Create, without overwrite, of a file that is being written (also by the caller itself, as in HDFS); with overwrite
//     Create and Rename replace such a file as a Delete would, and its writer finds it gone;
//   kLeaseExpired: the caller does not hold the file's lease any more, or (reason FILE_GONE) the file is gone;
//   kNoTargets: AddBlock or Create with a first block found no DataNode; the reason and nodes say why each was refused;
//   kNotReplicatedYet: Complete or AddBlock names fewer acknowledged storages than dfs.namenode.replication.min;
//   kPermission: the caller lacks a right, which the message names with the inode and its mode (namenode/namespace/permission.h);
//   kSlotExpired: the retry slot is too old to know whether the call acted;
//   kReadOnly, kSafeMode, kRetriable: later, or elsewhere.
//
// Append and Truncate of a file that is being written, and Create of one without overwrite, are kBeingWritten with a reason:
//   ALREADY_OPEN_BY_YOU; HELD_BY_OTHER, with the holder and how long it has been silent; RECOVERING, also when this very call took the file
//   over from a holder that was silent for longer than the soft limit: ask again in a second; BUSY: the same, because of a truncate.
// RecoverLease takes a file from whoever writes it, ReleaseLease from the caller; both begin the recovery of its last block if that is
// needed and answer without waiting for it. A file that is closed, or was never there for ReleaseLease, is no error.
//
// Delete of what is not there answers OK with existed = false. List of what is not there is kNotFound. Complete repeated after it acted
// (same inode, same length) is OK. SetPermission, SetOwner, SetTimes, SetXattr and RemoveXattr are mutations as well; extended attributes
// that are missing, or there already, are kInvalidArgument with reason XATTR_NOT_FOUND or XATTR_EXISTS.
// AbandonBlock of a block that is not the file's last is kLeaseExpired; of one that is gone, or whose file is gone, OK.
class ClientNamenode {
 public:
  virtual ~ClientNamenode() = default;
#define CAIRN_DECLARE_CALL(Name) virtual void Name(CallContext context, v1::Name##Request request, Done<v1::Name##Response> done) = 0;
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL
};

}  // namespace cairn::api
