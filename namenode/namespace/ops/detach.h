#pragma once

#include <vector>

#include "namenode/namespace/op_context.h"

namespace cairn::namenode {

// Takes an inode, with all below it, out of the namespace: the O(1) half of every delete. A file of few blocks is freed in place. Anything
// else moves under parent 0 and leaves a work row for the reclaimer; a single file loses its lease at once. The totals leave the usage
// of `ancestors` (every directory above it). After all checks only.
absl::Status Detach(OpContext& ctx, const WalkedInode& inode, const std::vector<InodeId>& ancestors);

// A file lets a block go: an owner less, and with the last one it is freed.
struct ReleasedBlock {
  uint64_t length_bytes = 0;  // That it had in the file.
  bool is_freed = false;
};
absl::StatusOr<ReleasedBlock> ReleaseBlock(OpContext& ctx, BlockId id);

// What a subtree adds to the directories above it, itself included.
absl::StatusOr<UsageDelta> TotalsOf(const OpContext& ctx, const WalkedInode& inode);

}  // namespace cairn::namenode
