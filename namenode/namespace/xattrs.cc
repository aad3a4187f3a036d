#include "namenode/namespace/xattrs.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/utf8.h"
#include "namenode/namespace/op_context.h"

namespace cairn::namenode {
namespace {

std::string_view Prefix(v1::XattrNamespace name_space) {
  switch (name_space) {
    case v1::XATTR_USER: return "user";
    case v1::XATTR_TRUSTED: return "trusted";
    case v1::XATTR_SECURITY: return "security";
    case v1::XATTR_SYSTEM: return "system";
    default: return "unknown";  // An open enum: also numbers of newer clients.
  }
}

bool MayUse(v1::XattrNamespace name_space, const Caller& caller) {
  return name_space == v1::XATTR_USER || (name_space == v1::XATTR_TRUSTED && caller.is_superuser());
}

}  // namespace

std::string XattrName(const v1::Xattr& xattr) { return fmt::format("{}.{}", Prefix(xattr.name_space()), xattr.name()); }

absl::Status CheckXattr(const v1::Xattr& xattr, const v1::Mutation::Limits& limits) {
  if (Prefix(xattr.name_space()) == "unknown")
    return MakeError(ErrorKind::kInvalidArgument, "An XAttr name must be prefixed with user/trusted/security/system, followed by a '.'");
  if (xattr.name().empty()) return MakeError(ErrorKind::kInvalidArgument, "XAttr name cannot be empty.");
  if (!IsUtf8(xattr.name())) return MakeError(ErrorKind::kInvalidArgument, "XAttr name is not UTF-8.");
  const uint64_t bytes = xattr.name().size() + xattr.value().size();
  if (limits.max_xattr_bytes() != 0 && bytes > limits.max_xattr_bytes())
    return LimitExceeded("XATTR_TOO_BIG", fmt::format("The XAttr is too big: {} bytes of name and value", bytes), "",
                         limits.max_xattr_bytes(), "dfs.namenode.fs-limits.max-xattr-size");
  return absl::OkStatus();
}

absl::Status CheckXattrNamespace(const v1::Xattr& xattr, const Caller& caller) {
  if (MayUse(xattr.name_space(), caller)) return absl::OkStatus();
  Error error;
  error.kind = ErrorKind::kPermission;
  error.reason = "XATTR_NAMESPACE";
  error.message = fmt::format("User doesn't have permission for xattr: {}", XattrName(xattr));
  return MakeError(std::move(error));
}

absl::StatusOr<std::vector<v1::Xattr>> XattrsOfPath(const ReadView& view, std::string_view path,
                                                    const google::protobuf::RepeatedPtrField<v1::Xattr>& wanted, bool names_only,
                                                    const Caller& caller) {
  for (const v1::Xattr& xattr : wanted) {
    RETURN_IF_ERROR(CheckXattr(xattr, v1::Mutation::Limits()));
    RETURN_IF_ERROR(CheckXattrNamespace(xattr, caller));
  }
  ASSIGN_OR_RETURN(const PathWalk walk, WalkExisting(view, path, caller));
  if (!names_only) RETURN_IF_ERROR(caller.CheckTarget(walk, kReadRight));
  const v1::INodeRecord& record = *walk.last().record;
  std::vector<v1::Xattr> found;
  if (wanted.empty()) {
    for (const v1::Xattr& xattr : record.xattrs())
      if (MayUse(xattr.name_space(), caller)) found.push_back(xattr);
  }
  for (const v1::Xattr& xattr : wanted) {
    const int place = PlaceOfXattr(record, xattr);
    if (!HasXattrAt(record, place, xattr))
      return PathError(ErrorKind::kInvalidArgument, "XATTR_NOT_FOUND", walk.path(),
                       "At least one of the attributes provided was not found.");
    found.push_back(record.xattrs(place));
  }
  if (names_only)
    for (v1::Xattr& xattr : found) xattr.clear_value();
  return found;
}

int PlaceOfXattr(const v1::INodeRecord& record, const v1::Xattr& xattr) {
  const auto key = [](const v1::Xattr& x) { return std::tuple<int, std::string_view>(x.name_space(), x.name()); };
  const auto place = std::lower_bound(record.xattrs().begin(), record.xattrs().end(), xattr,
                                      [&key](const v1::Xattr& a, const v1::Xattr& b) { return key(a) < key(b); });
  return static_cast<int>(place - record.xattrs().begin());
}

bool HasXattrAt(const v1::INodeRecord& record, int place, const v1::Xattr& xattr) {
  return place < record.xattrs_size() && record.xattrs(place).name_space() == xattr.name_space() &&
         record.xattrs(place).name() == xattr.name();
}

}  // namespace cairn::namenode
