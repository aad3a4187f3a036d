#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/apply.h"
#include "namenode/namespace/ops/detach.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {
namespace {

constexpr size_t kMostBytesOfDeleteMany = 512 << 10;  // Of effects; a mutation may have 1 MiB, and one path more may bring much.

// True if there was something to delete.
absl::StatusOr<bool> DeleteOne(const std::string& path, bool recursive, OpContext& ctx) {
  ASSIGN_OR_RETURN(const PathWalk walk, WalkPath(ctx.view(), path, ctx.caller()));
  Error error;
  error.path = walk.path();
  if (walk.components.empty()) {
    error.kind = ErrorKind::kInvalidPath;
    error.message = "the root cannot be deleted";
    return MakeError(std::move(error));
  }
  RETURN_IF_ERROR(ctx.caller().CheckParent(walk, kWriteRight));
  if (!walk.complete()) return false;
  if (walk.last().is_directory()) {
    ASSIGN_OR_RETURN(const v1::UsageRecord usage, ctx.UsageOf(walk.last().id()));
    // Of all that it holds only this directory is asked: the work must not grow with the subtree.
    if (usage.children() != 0) RETURN_IF_ERROR(ctx.caller().CheckTarget(walk, kAllRights));
    if (usage.children() != 0 && !recursive) {
      error.kind = ErrorKind::kNotEmpty;
      error.message = fmt::format("{} is non empty: it has {} entries; delete it recursively", walk.path(), usage.children());
      return MakeError(std::move(error));
    }
  }
  RETURN_IF_ERROR(Detach(ctx, walk.last(), walk.ancestors()));
  return true;
}

}  // namespace

absl::Status ApplyDelete(const v1::Mutation::Delete& op, OpContext& ctx) {
  ASSIGN_OR_RETURN(const bool existed, DeleteOne(op.path(), op.recursive(), ctx));
  ctx.result().set_existed(existed);
  return absl::OkStatus();
}

absl::Status ApplyDeleteMany(const v1::Mutation::DeleteMany& op, const std::string& codes_before, OpContext& ctx) {
  if (op.paths_size() > static_cast<int>(kMaxPathsOfDeleteMany))
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("deleteMany: {} paths in one mutation, at most {} may be", op.paths_size(), kMaxPathsOfDeleteMany));
  std::string codes = codes_before;
  const size_t bytes_before = ctx.Change().ApproximateBytes();
  uint32_t done = 0;
  for (const std::string& path : op.paths()) {
    // Records that move away may be large: then the rest comes with the next part.
    if (done > 0 && ctx.Change().ApproximateBytes() > bytes_before + kMostBytesOfDeleteMany) break;
    ++done;
    const absl::StatusOr<bool> existed = DeleteOne(path, op.recursive(), ctx);
    ErrorKind code = ErrorKind::kNone;
    if (existed.ok()) {
      code = *existed ? ErrorKind::kNone : ErrorKind::kNotFound;
    } else {
      code = KindOf(existed.status());
      if (code == ErrorKind::kNone || code == ErrorKind::kCorruptMetadata) return existed.status();
    }
    codes.push_back(static_cast<char>(code));
  }
  // Also a call that found nothing has acted, as the transaction was asked for above: its codes must not change when it is repeated.
  ctx.result().set_codes(std::move(codes));
  ctx.result().set_next(op.from() + done);
  return absl::OkStatus();
}

}  // namespace cairn::namenode
