#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/ops/ops.h"
#include "namenode/namespace/quota.h"

namespace cairn::namenode {
namespace {

// What a quota is after the call: absent stays, -1 goes.
std::optional<int64_t> After(bool has_before, int64_t before, bool has_wanted, int64_t wanted) {
  if (has_wanted) return wanted < 0 ? std::nullopt : std::optional<int64_t>(wanted);
  return has_before ? std::optional<int64_t>(before) : std::nullopt;
}

}  // namespace

absl::Status ApplySetQuota(const v1::Mutation::SetQuota& op, OpContext& ctx) {
  RETURN_IF_ERROR(ctx.caller().CheckSuperuser());
  if (op.namespace_quota() < kNoQuota || op.space_quota_bytes() < kNoQuota)
    return PathError(ErrorKind::kInvalidArgument, "", op.path(),
                     fmt::format("Illegal value for nsQuota or ssQuota: {} and {}; a quota is at least 0, or -1 for none",
                                 op.namespace_quota(), op.space_quota_bytes()));
  ASSIGN_OR_RETURN(const PathWalk walk, WalkPath(ctx.view(), op.path(), ctx.caller()));
  if (!walk.complete())
    return PathError(ErrorKind::kNotFound, "", walk.missing_path(), fmt::format("Directory does not exist: {}", walk.path()));
  if (!walk.last().is_directory())
    return PathError(ErrorKind::kNotDirectory, "", walk.path(), fmt::format("{}: Is not a directory", walk.path()));
  const InodeId directory = walk.last().id();
  ASSIGN_OR_RETURN(const v1::UsageRecord usage, ctx.UsageOf(directory));
  const std::optional<int64_t> names =
      After(usage.has_namespace_quota(), usage.namespace_quota(), op.has_namespace_quota(), op.namespace_quota());
  const std::optional<int64_t> space =
      After(usage.has_space_quota_bytes(), usage.space_quota_bytes(), op.has_space_quota_bytes(), op.space_quota_bytes());
  ctx.result().set_path(walk.path());
  const bool same = names.has_value() == usage.has_namespace_quota() && names.value_or(0) == usage.namespace_quota() &&
                    space.has_value() == usage.has_space_quota_bytes() && space.value_or(0) == usage.space_quota_bytes();
  if (!same) ctx.SetQuota(directory, names, space);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
