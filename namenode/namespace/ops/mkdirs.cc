#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {

absl::Status ApplyMkdirs(const v1::Mutation::Mkdirs& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkPath(ctx.view(), op.path(), ctx.caller()));
  ctx.result().set_path(walk.path());
  if (walk.complete()) {
    if (walk.last().is_directory()) {
      ctx.result().set_existed(true);
      *ctx.result().mutable_inode() = *walk.last().record;
      return absl::OkStatus();
    }
    return PathError(ErrorKind::kAlreadyExists, "", walk.path(), fmt::format("Path is not a directory: {}", walk.path()));
  }
  RETURN_IF_ERROR(ctx.caller().CheckAncestor(walk, kWriteRight));
  if (!walk.has_parent() && !op.create_parent()) return ParentNotFound(walk);
  RETURN_IF_ERROR(CheckMissing(ctx, walk));
  UsageDelta added;
  added.directories = static_cast<int64_t>(walk.missing());
  RETURN_IF_ERROR(ctx.CheckQuota(walk.ancestors(), added));
  ASSIGN_OR_RETURN(const MadeDirectories made, MakeDirectories(ctx, walk, walk.components.size(), op.mode(), op.parent_mode()));
  ASSIGN_OR_RETURN(std::optional<InodeAt> inode, FindInodeAnywhere(ctx.view(), made.parent));
  if (inode) *ctx.result().mutable_inode() = std::move(inode->record);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
