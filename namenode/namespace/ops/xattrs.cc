#include "namenode/namespace/xattrs.h"

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

constexpr uint32_t kSticky = 01000;

absl::Status Refuse(std::string_view reason, const PathWalk& walk, std::string message) {
  return PathError(ErrorKind::kInvalidArgument, reason, walk.path(), std::move(message));
}

// The walk to an inode whose attribute the caller may change.
absl::StatusOr<PathWalk> WalkToChange(const std::string& path, const v1::Xattr& xattr, OpContext& ctx) {
  RETURN_IF_ERROR(CheckXattrNamespace(xattr, ctx.caller()));
  ASSIGN_OR_RETURN(PathWalk walk, WalkExisting(ctx.view(), path, ctx.caller()));
  ctx.result().set_path(walk.path());
  if (xattr.name_space() != v1::XATTR_USER) return walk;
  // Everybody may write into a directory like /tmp; that does not make its attributes everybody's.
  const bool sticky = walk.last().is_directory() && (walk.last().record->mode() & kSticky) != 0;
  if (sticky && ctx.caller().is_enforced()) RETURN_IF_ERROR(ctx.caller().CheckOwner(walk));
  if (!sticky) RETURN_IF_ERROR(ctx.caller().CheckTarget(walk, kWriteRight));
  return walk;
}

// Those that users see count against the limit.
uint64_t VisibleXattrs(const v1::INodeRecord& record) {
  uint64_t visible = 0;
  for (const v1::Xattr& xattr : record.xattrs())
    if (xattr.name_space() == v1::XATTR_USER || xattr.name_space() == v1::XATTR_TRUSTED) ++visible;
  return visible;
}

}  // namespace

absl::Status ApplySetXattr(const v1::Mutation::SetXattr& op, OpContext& ctx) {
  const v1::Xattr& xattr = op.xattr();
  RETURN_IF_ERROR(CheckXattr(xattr, ctx.limits()));
  ASSIGN_OR_RETURN(const PathWalk walk, WalkToChange(op.path(), xattr, ctx));
  InodeAt inode = walk.last().Copy();
  const int place = PlaceOfXattr(inode.record, xattr);
  if (HasXattrAt(inode.record, place, xattr)) {
    if (op.create() && !op.replace())
      return Refuse("XATTR_EXISTS", walk, fmt::format("XAttr: {} already exists. The REPLACE flag must be specified.", XattrName(xattr)));
    if (inode.record.xattrs(place).value() == xattr.value()) return absl::OkStatus();
    inode.record.mutable_xattrs(place)->set_value(xattr.value());
  } else {
    if (op.replace() && !op.create())
      return Refuse("XATTR_NOT_FOUND", walk, fmt::format("XAttr: {} does not exist. The CREATE flag must be specified.", XattrName(xattr)));
    if (ctx.limits().max_xattrs() != 0 && VisibleXattrs(inode.record) >= ctx.limits().max_xattrs())
      return LimitExceeded("TOO_MANY_XATTRS", fmt::format("{}: cannot add another XAttr to the inode", walk.path()), walk.path(),
                           ctx.limits().max_xattrs(), "dfs.namenode.fs-limits.max-xattrs-per-inode");
    *inode.record.add_xattrs() = xattr;
    for (int i = inode.record.xattrs_size() - 1; i > place; --i) inode.record.mutable_xattrs()->SwapElements(i, i - 1);
  }
  PutInode(ctx.Change(), inode);
  return absl::OkStatus();
}

absl::Status ApplyRemoveXattr(const v1::Mutation::RemoveXattr& op, OpContext& ctx) {
  v1::Xattr xattr = op.xattr();
  xattr.clear_value();
  RETURN_IF_ERROR(CheckXattr(xattr, v1::Mutation::Limits()));
  ASSIGN_OR_RETURN(const PathWalk walk, WalkToChange(op.path(), xattr, ctx));
  InodeAt inode = walk.last().Copy();
  const int place = PlaceOfXattr(inode.record, xattr);
  if (!HasXattrAt(inode.record, place, xattr)) return Refuse("XATTR_NOT_FOUND", walk, "No matching attributes found for remove operation");
  inode.record.mutable_xattrs()->DeleteSubrange(place, 1);
  PutInode(ctx.Change(), inode);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
