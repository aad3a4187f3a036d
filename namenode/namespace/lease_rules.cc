#include "namenode/namespace/lease_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"

namespace cairn::namenode {
namespace {

struct Refusal {
  std::string_view reason;
  std::string why;
};

// True if a truncate is what the file waits for.
absl::StatusOr<bool> IsBeingTruncated(const ReadView& view, const v1::INodeRecord& file) {
  if (file.block_count() == 0) return false;
  ASSIGN_OR_RETURN(const BlockId last, BlockIdAt(view, file, file.block_count() - 1));
  ASSIGN_OR_RETURN(const v1::BlockRecord block, GetBlock(view, last));
  return block.has_truncate_to_bytes();
}

absl::StatusOr<Refusal> WhyNot(const OpContext& ctx, const v1::INodeRecord& file, const v1::Mutation::LeaseSeen& seen) {
  const std::string& holder = file.lease_holder();
  if (holder == ctx.mutation().client_name())
    return Refusal{kAlreadyOpenByYou, fmt::format("{} is already the current lease holder", holder)};
  if (holder == kRecoveryHolder) {
    ASSIGN_OR_RETURN(const bool truncating, IsBeingTruncated(ctx.view(), file));
    if (truncating) return Refusal{kTruncating, "it is being truncated, and block recovery is in progress. Try again later"};
    return Refusal{kRecovering, "lease recovery is in progress. Try again later"};
  }
  if (seen.holder() != holder) return Refusal{kHeldByOther, fmt::format("this file lease is currently owned by {}", holder)};
  const double idle_s = static_cast<double>(seen.idle_ms()) / 1000;
  const int64_t limit_ms = std::max(ctx.limits().lease_soft_limit_ms(), seen.limit_ms());
  if (seen.idle_ms() < limit_ms) {
    const double limit_s = static_cast<double>(limit_ms) / 1000;
    return Refusal{kHeldByOther, fmt::format("this file lease is currently owned by {}, last heard of {:.1f} s ago; it may be taken over "
                                             "after {:.0f} s (cairn.namenode.lease-soft-limit)",
                                             holder, idle_s, limit_s)};
  }
  return Refusal{kMayBeTakenOver, fmt::format("this file lease is owned by {}, which was last heard of {:.1f} s ago", holder, idle_s)};
}

}  // namespace

absl::Status CheckNotBeingWritten(const OpContext& ctx, std::string_view operation, const std::string& path, const v1::INodeRecord& file,
                                  const v1::Mutation::LeaseSeen& seen) {
  if (file.lease_holder().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Refusal refusal, WhyNot(ctx, file, seen));
  return PathError(ErrorKind::kBeingWritten, refusal.reason, path,
                   fmt::format("Failed to {} {} for {} because {}", operation, path, ctx.mutation().client_name(), refusal.why));
}

absl::Status CheckHolder(std::string_view operation, const std::string& path, std::string_view holder) {
  if (!holder.empty() && holder.size() <= kMaxHolderBytes && holder != kRecoveryHolder) return absl::OkStatus();
  return PathError(ErrorKind::kInvalidArgument, "", path,
                   holder == kRecoveryHolder
                       ? fmt::format("{}: {} is the NameNode's own name, not a client's", path, holder)
                       : fmt::format("{}: {} needs a client name of 1 to {} bytes", path, operation, kMaxHolderBytes));
}

absl::StatusOr<bool> TakeFromWriter(FileEdit& edit) {
  const std::optional<BlockAt>& last = edit.last();
  if (last && last->record.state() != v1::COMMITTED) {
    const v1::BlockRecord& block = last->record;
    if (block.state() == v1::UNDER_RECOVERY) return false;
    const bool never_set_up = block.length_bytes() == 0 && block.expected_storages().empty();
    if (!never_set_up) {
      RETURN_IF_ERROR(edit.RecoverLast());
      RETURN_IF_ERROR(edit.Write());
      return false;
    }
    edit.DropLast();
  }
  edit.Close(FileEdit::ClosedBy::kNamenode);
  RETURN_IF_ERROR(edit.Write());
  return true;
}

}  // namespace cairn::namenode
