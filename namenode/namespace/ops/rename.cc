#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/ops/detach.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

// HDFS's words (FSDirRenameOp).
absl::Status Refuse(ErrorKind kind, const PathWalk& about, std::string message) {
  return PathError(kind, "", about.path(), std::move(message));
}

// What may stand at the destination.
absl::Status CheckReplaced(const PathWalk& source, const PathWalk& destination, bool overwrite, const OpContext& ctx) {
  const std::string to = destination.path();
  if (!overwrite) return Refuse(ErrorKind::kAlreadyExists, destination, fmt::format("rename destination {} already exists", to));
  const bool is_directory = destination.last().is_directory();
  if (source.last().is_directory() != is_directory)
    return Refuse(is_directory ? ErrorKind::kIsDirectory : ErrorKind::kNotDirectory, destination,
                  fmt::format("Source {} and destination {} must both be directories", source.path(), to));
  if (!is_directory) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::UsageRecord usage, ctx.UsageOf(destination.last().id()));
  if (usage.children() != 0)
    return Refuse(ErrorKind::kNotEmpty, destination,
                  fmt::format("rename destination directory is not empty: {} has {} entries", to, usage.children()));
  return absl::OkStatus();
}

// The directories above `destination` that are not above `source` as well: for those above both, nothing is added.
std::vector<InodeId> OnlyAbove(const PathWalk& destination, const PathWalk& source) {
  const std::vector<InodeId> here = destination.ancestors();
  const std::vector<InodeId> there = source.ancestors();
  const auto [first, unused] = std::mismatch(here.begin(), here.end(), there.begin(), there.end());
  return std::vector<InodeId>(first, here.end());
}

}  // namespace

absl::Status ApplyRename(const v1::Mutation::Rename& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(const PathWalk source, WalkPath(ctx.view(), op.source(), ctx.caller()));
  ASSIGN_OR_RETURN(const PathWalk destination, WalkPath(ctx.view(), op.destination(), ctx.caller()));
  RETURN_IF_ERROR(ctx.caller().CheckParent(source, kWriteRight));
  RETURN_IF_ERROR(ctx.caller().CheckAncestor(destination, kWriteRight));
  // What is replaced goes as by a delete.
  if (op.overwrite()) RETURN_IF_ERROR(ctx.caller().CheckParent(destination, kWriteRight));
  if (!source.complete()) return PathNotFound(source, source.path(), fmt::format("rename source {} is not found.", source.path()));
  if (source.components.empty()) return Refuse(ErrorKind::kInvalidPath, source, "rename source cannot be the root");
  if (destination.components.empty()) return Refuse(ErrorKind::kInvalidPath, destination, "rename destination cannot be the root");
  ctx.result().set_path(destination.path());
  if (source.components == destination.components) {
    if (op.overwrite()) return absl::OkStatus();
    return Refuse(ErrorKind::kAlreadyExists, destination,
                  fmt::format("The source {} and destination {} are the same", source.path(), destination.path()));
  }
  const WalkedInode& moved = source.last();
  const bool below_itself = destination.components.size() > source.components.size() &&
                            std::equal(source.components.begin(), source.components.end(), destination.components.begin());
  if (below_itself)
    return Refuse(ErrorKind::kInvalidPath, destination,
                  fmt::format("Rename destination {} is a directory or file under source {}", destination.path(), source.path()));
  if (!destination.has_parent()) {
    const std::string above = JoinPath(destination.components, destination.components.size() - 1);
    return PathNotFound(destination, above, fmt::format("rename destination parent {} not found.", above));
  }
  const InodeId parent = destination.parent().id();
  const std::string& name = destination.components.back();
  const bool same_directory = moved.parent == parent;
  if (destination.complete()) {
    RETURN_IF_ERROR(CheckReplaced(source, destination, op.overwrite(), ctx));
  } else if (same_directory) {
    // One leaves as one comes: the directory may be full.
    RETURN_IF_ERROR(CheckName(ctx.limits(), name, destination.path(), destination.components.size()));
  } else {
    RETURN_IF_ERROR(CheckNewEntry(ctx, parent, name, destination.path(), destination.components.size()));
  }
  ASSIGN_OR_RETURN(const UsageDelta total, TotalsOf(ctx, moved));
  UsageDelta added = total;
  if (destination.complete()) {  // What is replaced leaves first.
    ASSIGN_OR_RETURN(const UsageDelta replaced, TotalsOf(ctx, destination.last()));
    added += -replaced;
  }
  RETURN_IF_ERROR(ctx.CheckQuota(OnlyAbove(destination, source), added));

  // An ancestor of the source at the destination is not empty, so what is replaced is never above what moves.
  if (destination.complete()) RETURN_IF_ERROR(Detach(ctx, destination.last(), destination.ancestors()));
  Transaction& txn = ctx.Change();
  txn.Delete(Family::kInode, InodeKey(moved.parent, moved.name));
  InodeAt placed{parent, name, *moved.record};
  // Who gives a file that its writer has left a place knows of it. One that is still open may be left yet.
  if (placed.record.lease_holder().empty()) placed.record.clear_never_closed();
  PutInode(txn, placed);
  PutLink(txn, placed.id(), placed.parent, placed.name);
  ctx.AddUsage(source.ancestors(), -total);
  ctx.AddUsage(destination.ancestors(), total);
  ctx.AddChildren(moved.parent, -1);
  ctx.AddChildren(parent, 1);
  ctx.TouchDirectory(moved.parent);
  ctx.TouchDirectory(parent);
  *ctx.result().mutable_inode() = placed.record;
  ctx.result().set_parent_id(parent.value());
  return absl::OkStatus();
}

}  // namespace cairn::namenode
