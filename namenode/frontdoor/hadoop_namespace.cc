// HadoopDoor: what changes names and attributes.

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "namenode/frontdoor/hadoop_conversions.h"
#include "namenode/frontdoor/hadoop_native_calls.h"

namespace cairn::namenode {
namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kAsItIs = std::numeric_limits<int64_t>::max();  // Of quotas; of times it is kNone.
constexpr uint32_t kModes = 01777;
constexpr uint32_t kCreateXAttr = 1;
constexpr uint32_t kReplaceXAttr = 2;

bool IsRoot(std::string_view path) { return WithoutSlash(path) == "/"; }

// A rename that can never be, because of where its ends are.
bool IsOfRootOrBelowItself(std::string_view source, std::string_view destination) {
  source = WithoutSlash(source);
  return source == "/" || IsRoot(destination) || (destination.starts_with(source) && destination.substr(source.size()).starts_with('/'));
}

// Nothing after an answer: there is no such name space.
bool ToXattr(const HadoopCallPtr& call, const hdfs::XAttrProto& from, v1::Xattr* to) {
  const int name_space = static_cast<int>(from.namespace_()) + 1;  // The numbers are one apart.
  if (from.namespace_() == hdfs::XAttrProto::RAW || !v1::XattrNamespace_IsValid(name_space)) {
    call->Fail({"org.apache.hadoop.HadoopIllegalArgumentException",
                fmt::format("{}: an XAttr of this name space cannot be set or read", from.name())});
    return false;
  }
  to->set_name_space(static_cast<v1::XattrNamespace>(name_space));
  to->set_name(from.name());
  to->set_value(from.value());
  return true;
}

}  // namespace

void HadoopDoor::Mkdirs(const CallPtr& call, const hdfs::MkdirsRequestProto& request) {
  v1::MkdirsRequest asked;
  asked.set_path(request.src());
  asked.set_create_parent(request.createparent());
  const uint32_t mode = request.masked().perm() & kModes;
  asked.set_mode(mode == 0 ? 0777 : mode);
  asked.set_umask(mode == 0 ? 0777 : 0);
  Ask(call, parts_.clients, &api::ClientNamenode::Mkdirs, std::move(asked), [call](const absl::StatusOr<v1::MkdirsResponse>& answer) {
    if (!answer.ok()) return call->Fail(answer.status());
    call->AnswerBool(true);
  });
}

// HDFS's older rename: into a directory that stands at the destination, and false instead of most errors.
void HadoopDoor::Rename(const CallPtr& call, const hdfs::RenameRequestProto& request) {
  RenameTo(call, request.src(), request.dst(), /*may_go_into=*/true);
}

// First as if nothing stood there. Then a repetition of one that went into a directory is found out before it does anything: under its
// number another request has acted, and that can only have been this one, with the name below the directory.
void HadoopDoor::RenameTo(const CallPtr& call, const std::string& source, const std::string& destination, bool may_go_into) {
  v1::RenameRequest asked;
  asked.set_source(source);
  asked.set_destination(destination);
  AskOnce(call, &api::ClientNamenode::Rename, std::move(asked),
          [this, call, source, destination, may_go_into](const absl::StatusOr<v1::RenameResponse>& answer) {
            if (answer.ok()) return call->AnswerBool(true);
            if (call->is_resent() && ReasonOf(answer.status()) == "REQUEST_MISMATCH") return call->AnswerBool(true);
            const ErrorKind kind = KindOf(answer.status());
            // Who may not write where the destination is may yet write in it.
            const bool may_be_directory = kind == ErrorKind::kAlreadyExists || kind == ErrorKind::kPermission || IsRoot(destination);
            if (may_go_into && may_be_directory) return RenameInto(call, source, destination, answer.status());
            const bool is_no = kind == ErrorKind::kNotFound || kind == ErrorKind::kAlreadyExists ||
                               (kind == ErrorKind::kInvalidPath && IsOfRootOrBelowItself(source, destination));
            if (!is_no) return call->Fail(answer.status());
            call->AnswerBool(false);
          });
}

void HadoopDoor::RenameInto(const CallPtr& call, const std::string& source, const std::string& destination, const absl::Status& refused) {
  AskStatus(call, destination, [this, call, source, destination, refused](const absl::StatusOr<v1::GetFileInfoResponse>& answer) {
    const bool is_directory = answer.ok() && answer->status().is_directory();
    if (!is_directory && KindOf(refused) == ErrorKind::kPermission) return call->Fail(refused);
    if (!answer.ok() && KindOf(answer.status()) != ErrorKind::kNotFound) return call->Fail(answer.status());
    const bool is_same = WithoutSlash(source) == WithoutSlash(destination);
    if (!is_directory) return call->AnswerBool(answer.ok() && is_same);
    RenameTo(call, source, Join(WithoutSlash(destination), LastComponent(source)), /*may_go_into=*/false);
  });
}

void HadoopDoor::Rename2(const CallPtr& call, const hdfs::Rename2RequestProto& request) {
  v1::RenameRequest asked;
  asked.set_source(request.src());
  asked.set_destination(request.dst());
  asked.set_overwrite(request.overwritedest());
  AskOnce(call, &api::ClientNamenode::Rename, std::move(asked), [call, request](const absl::StatusOr<v1::RenameResponse>& answer) {
    if (answer.ok()) return call->Answer(hdfs::EmptyProto());
    const ErrorKind kind = KindOf(answer.status());
    const bool is_plain = kind == ErrorKind::kIsDirectory || kind == ErrorKind::kNotEmpty ||
                          (kind == ErrorKind::kInvalidPath && IsOfRootOrBelowItself(request.src(), request.dst()));
    if (is_plain) return call->Fail({ipc::kIoException, std::string(answer.status().message())});
    call->Fail(answer.status());
  });
}

void HadoopDoor::Delete(const CallPtr& call, const hdfs::DeleteRequestProto& request) {
  if (IsRoot(request.src())) return call->AnswerBool(false);
  v1::DeleteRequest asked;
  asked.set_path(request.src());
  asked.set_recursive(request.recursive());
  AskOnce(call, &api::ClientNamenode::Delete, std::move(asked), [call](const absl::StatusOr<v1::DeleteResponse>& answer) {
    if (!answer.ok()) return call->Fail(answer.status());
    call->AnswerBool(answer->existed());
  });
}

void HadoopDoor::Concat(const CallPtr& call, const hdfs::ConcatRequestProto& request) {
  v1::ConcatRequest asked;
  asked.set_target(request.trg());
  *asked.mutable_sources() = request.srcs();
  AskOnce(call, &api::ClientNamenode::Concat, std::move(asked), AnswerNothing(call));
}

void HadoopDoor::SetReplication(const CallPtr& call, const hdfs::SetReplicationRequestProto& request) {
  v1::SetReplicationRequest asked;
  asked.set_path(request.src());
  asked.set_replication(request.replication());
  Ask(call, parts_.clients, &api::ClientNamenode::SetReplication, std::move(asked),
      [call](const absl::StatusOr<v1::SetReplicationResponse>& answer) {
        const bool missing = KindOf(answer.status()) == ErrorKind::kNotFound;
        if (!answer.ok() && !missing) return call->FailAsIo(answer.status());
        call->AnswerBool(!missing && answer->is_file());
      });
}

void HadoopDoor::SetPermission(const CallPtr& call, const hdfs::SetPermissionRequestProto& request) {
  v1::SetPermissionRequest asked;
  asked.set_path(request.src());
  asked.set_mode(request.permission().perm() & kModes);
  AskForNothing(call, &api::ClientNamenode::SetPermission, std::move(asked));
}

void HadoopDoor::SetOwner(const CallPtr& call, const hdfs::SetOwnerRequestProto& request) {
  v1::SetOwnerRequest asked;
  asked.set_path(request.src());
  asked.set_owner(request.username());
  asked.set_group(request.groupname());
  AskForNothing(call, &api::ClientNamenode::SetOwner, std::move(asked));
}

void HadoopDoor::SetTimes(const CallPtr& call, const hdfs::SetTimesRequestProto& request) {
  v1::SetTimesRequest asked;
  asked.set_path(request.src());
  if (request.mtime() != kNone) asked.set_modification_time_ms(static_cast<int64_t>(request.mtime()));
  if (request.atime() != kNone) asked.set_access_time_ms(static_cast<int64_t>(request.atime()));
  AskForNothing(call, &api::ClientNamenode::SetTimes, std::move(asked));
}

void HadoopDoor::SetQuota(const CallPtr& call, const hdfs::SetQuotaRequestProto& request) {
  if (request.has_storagetype()) return call->Fail({kUnsupportedException, "setQuota: quotas of storage types are not supported"});
  v1::SetQuotaRequest asked;
  asked.set_path(request.path());
  if (request.namespacequota() != kAsItIs) asked.set_namespace_quota(static_cast<int64_t>(request.namespacequota()));
  if (request.storagespacequota() != kAsItIs) asked.set_space_quota_bytes(static_cast<int64_t>(request.storagespacequota()));
  AskForNothing(call, &api::ClientNamenode::SetQuota, std::move(asked));
}

void HadoopDoor::CheckAccess(const CallPtr& call, const hdfs::CheckAccessRequestProto& request) {
  v1::CheckAccessRequest asked;
  asked.set_path(request.path());
  asked.set_rights(request.mode());  // The bits are the same.
  AskForNothing(call, &api::ClientNamenode::CheckAccess, std::move(asked));
}

void HadoopDoor::SetXAttr(const CallPtr& call, const hdfs::SetXAttrRequestProto& request) {
  v1::SetXattrRequest asked;
  asked.set_path(request.src());
  if (!ToXattr(call, request.xattr(), asked.mutable_xattr())) return;
  asked.set_create((request.flag() & kCreateXAttr) != 0);
  asked.set_replace((request.flag() & kReplaceXAttr) != 0);
  AskOnce(call, &api::ClientNamenode::SetXattr, std::move(asked), AnswerNothing(call));
}

void HadoopDoor::RemoveXAttr(const CallPtr& call, const hdfs::RemoveXAttrRequestProto& request) {
  v1::RemoveXattrRequest asked;
  asked.set_path(request.src());
  if (!ToXattr(call, request.xattr(), asked.mutable_xattr())) return;
  AskOnce(call, &api::ClientNamenode::RemoveXattr, std::move(asked), AnswerNothing(call));
}

void HadoopDoor::GetXAttrs(const CallPtr& call, const hdfs::GetXAttrsRequestProto& request) {
  v1::GetXattrsRequest asked;
  asked.set_path(request.src());
  for (const hdfs::XAttrProto& wanted : request.xattrs())
    if (!ToXattr(call, wanted, asked.add_wanted())) return;
  AnswerXAttrs(call, std::move(asked));
}

void HadoopDoor::ListXAttrs(const CallPtr& call, const hdfs::PathRequestProto& request) {
  v1::GetXattrsRequest asked;
  asked.set_path(request.src());
  asked.set_names_only(true);
  AnswerXAttrs(call, std::move(asked));
}

void HadoopDoor::AnswerXAttrs(const CallPtr& call, v1::GetXattrsRequest asked) {
  const bool names_only = asked.names_only();
  Ask(call, parts_.clients, &api::ClientNamenode::GetXattrs, std::move(asked),
      [call, names_only](const absl::StatusOr<v1::GetXattrsResponse>& answer) {
        if (!answer.ok()) return call->Fail(answer.status());
        hdfs::XAttrsResponseProto response;
        for (const v1::Xattr& xattr : answer->xattrs()) {
          hdfs::XAttrProto& added = *response.add_xattrs();
          added.set_namespace_(static_cast<hdfs::XAttrProto::XAttrNamespaceProto>(xattr.name_space() - 1));
          added.set_name(xattr.name());
          if (!names_only) added.set_value(xattr.value());
        }
        call->Answer(response);
      });
}

void HadoopDoor::GetAclStatus(const CallPtr& call, const hdfs::PathRequestProto& request) {
  AskStatus(call, request.src(), [call](const absl::StatusOr<v1::GetFileInfoResponse>& answer) {
    if (!answer.ok()) return call->Fail(answer.status());
    hdfs::GetAclStatusResponseProto response;
    hdfs::AclStatusProto& acl = *response.mutable_result();
    acl.set_owner(answer->status().owner());
    acl.set_group(answer->status().group());
    acl.set_sticky((answer->status().mode() & 01000) != 0);
    acl.mutable_permission()->set_perm(answer->status().mode());
    call->Answer(response);
  });
}

void HadoopDoor::RefuseAcl(const CallPtr& call, const hdfs::EmptyProto& request) {
  static_cast<void>(request);
  call->Fail({"org.apache.hadoop.hdfs.protocol.AclException", "The ACL operation has been rejected: Cairn has no ACLs."});
}

void HadoopDoor::AnswerIfThere(const CallPtr& call, const hdfs::PathRequestProto& request) {
  AskStatus(call, request.src(), AnswerNothing(call));
}

void HadoopDoor::GetStoragePolicy(const CallPtr& call, const hdfs::PathRequestProto& request) {
  AskStatus(call, request.src(), [call](const absl::StatusOr<v1::GetFileInfoResponse>& answer) {
    if (!answer.ok()) return call->Fail(answer.status());
    hdfs::GetStoragePolicyResponseProto response;
    *response.mutable_storagepolicy() = HotPolicy();
    call->Answer(response);
  });
}

void HadoopDoor::SetStoragePolicy(const CallPtr& call, const hdfs::SetStoragePolicyRequestProto& request) {
  if (request.policyname() != HotPolicy().name()) {
    return call->Fail({"org.apache.hadoop.HadoopIllegalArgumentException",
                       fmt::format("Cannot find a block policy with the name {}: there is only HOT", request.policyname())});
  }
  hdfs::PathRequestProto path;
  path.set_src(request.src());
  AnswerIfThere(call, path);
}

}  // namespace cairn::namenode
