#include <fmt/format.h>

#include "common/error.h"
#include "common/utf8.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

constexpr size_t kMaxNameBytes = 255;  // Of an owner or a group.

absl::Status Bad(const PathWalk& walk, const std::string& message) {
  return PathError(ErrorKind::kInvalidArgument, "", walk.path(), fmt::format("{}: {}", walk.path(), message));
}

absl::StatusOr<PathWalk> WalkToAttributes(const std::string& path, OpContext& ctx) {
  ASSIGN_OR_RETURN(PathWalk walk, WalkExisting(ctx.view(), path, ctx.caller()));
  ctx.result().set_path(walk.path());
  return walk;
}

// Writes the record if it is not as it was. Attributes do not change modification times, as in HDFS.
void PutChanged(OpContext& ctx, const WalkedInode& before, const v1::INodeRecord& record) {
  const v1::INodeRecord& old = *before.record;
  const bool same = old.mode() == record.mode() && old.owner() == record.owner() && old.group() == record.group() &&
                    old.modification_time_ms() == record.modification_time_ms() && old.access_time_ms() == record.access_time_ms();
  if (!same) PutInode(ctx.Change(), InodeAt{before.parent, before.name, record});
}

}  // namespace

absl::Status ApplySetPermission(const v1::Mutation::SetPermission& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkToAttributes(op.path(), ctx));
  RETURN_IF_ERROR(ctx.caller().CheckOwner(walk));
  if (op.mode() > 01777) return Bad(walk, fmt::format("mode {:o} is not within 0 to 1777", op.mode()));
  v1::INodeRecord record = *walk.last().record;
  record.set_mode(op.mode());
  PutChanged(ctx, walk.last(), record);
  return absl::OkStatus();
}

absl::Status ApplySetOwner(const v1::Mutation::SetOwner& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkToAttributes(op.path(), ctx));
  const Caller& caller = ctx.caller();
  RETURN_IF_ERROR(caller.CheckOwner(walk));
  if (!caller.is_superuser()) {
    Error error;
    error.kind = ErrorKind::kPermission;
    error.path = walk.path();
    if (!op.owner().empty() && op.owner() != caller.user()) {
      error.reason = "NOT_SUPERUSER";
      error.message = fmt::format("User {} is not a super user (non-super user cannot change owner).", caller.user());
      return MakeError(std::move(error));
    }
    if (!op.group().empty() && !caller.IsInGroup(op.group())) {
      error.reason = "NOT_IN_GROUP";
      error.message = fmt::format("User {} does not belong to {}", caller.user(), op.group());
      return MakeError(std::move(error));
    }
  }
  for (const std::string& name : {op.owner(), op.group()}) {
    if (name.size() > kMaxNameBytes)
      return Bad(walk, fmt::format("an owner or group of {} bytes is too long (at most {})", name.size(), kMaxNameBytes));
    if (!IsUtf8(name)) return Bad(walk, "an owner or group that is not UTF-8");
  }
  v1::INodeRecord record = *walk.last().record;
  if (!op.owner().empty()) record.set_owner(op.owner());
  if (!op.group().empty()) record.set_group(op.group());
  PutChanged(ctx, walk.last(), record);
  return absl::OkStatus();
}

absl::Status ApplySetTimes(const v1::Mutation::SetTimes& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkToAttributes(op.path(), ctx));
  RETURN_IF_ERROR(ctx.caller().CheckTarget(walk, kWriteRight));
  for (const int64_t time : {op.modification_time_ms(), op.access_time_ms()})
    if (time < 0) return Bad(walk, fmt::format("a time of {} ms is before 1970", time));
  v1::INodeRecord record = *walk.last().record;
  if (op.has_modification_time_ms()) record.set_modification_time_ms(op.modification_time_ms());
  if (op.has_access_time_ms()) record.set_access_time_ms(op.access_time_ms());
  PutChanged(ctx, walk.last(), record);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
