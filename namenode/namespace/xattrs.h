#pragma once

// Extended attributes as clients see them. They live in their inode's record, sorted by (name space, name). Rules and words as HDFS's
// XAttrPermissionFilter and FSDirXAttrOp:
//
//   user      set and removed with w, seen with r; on a directory with the sticky bit only its owner changes them
//   trusted   superusers only; nobody else learns that they are there
//   security, system   the NameNode's own: no client sets or sees them
//
// What is missing, or there already, is kInvalidArgument with reason XATTR_NOT_FOUND or XATTR_EXISTS; a name space that the caller may not
// use is kPermission with reason XATTR_NAMESPACE.

#include <string>
#include <string_view>
#include <vector>

#include "cairn/namespace.pb.h"
#include "common/status.h"
#include "namenode/namespace/permission.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// "user.name".
std::string XattrName(const v1::Xattr& xattr);

// A name space and a name; and, for one that is set, its length. Needs no namespace: the front door may ask, too.
absl::Status CheckXattr(const v1::Xattr& xattr, const v1::Mutation::Limits& limits);
// Whether this caller may name it at all.
absl::Status CheckXattrNamespace(const v1::Xattr& xattr, const Caller& caller);

// What GetXattrs answers: those `wanted`, each of which must be there, or all that the caller may see. With names_only the values stay
// behind, and r on the inode is not needed.
absl::StatusOr<std::vector<v1::Xattr>> XattrsOfPath(const ReadView& view, std::string_view path,
                                                    const google::protobuf::RepeatedPtrField<v1::Xattr>& wanted, bool names_only,
                                                    const Caller& caller);

// Where it stands in the record, or where it would: the sorted place.
int PlaceOfXattr(const v1::INodeRecord& record, const v1::Xattr& xattr);
bool HasXattrAt(const v1::INodeRecord& record, int place, const v1::Xattr& xattr);

}  // namespace cairn::namenode
