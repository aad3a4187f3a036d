#pragma once

#include <vector>

#include "namenode/namespace/op_context.h"

namespace cairn::namenode {

// Moves an inode, with all below it, under parent 0 and leaves a work row for the reclaimer: the O(1) half of every delete. Its
// totals leave the usage of `ancestors` (every directory above it) at once; a single file loses its lease. After all checks only.
absl::Status Detach(OpContext& ctx, const InodeAt& inode, const std::vector<InodeId>& ancestors);

// What a subtree adds to the directories above it, itself included.
absl::StatusOr<UsageDelta> TotalsOf(const OpContext& ctx, const InodeAt& inode);

}  // namespace cairn::namenode
