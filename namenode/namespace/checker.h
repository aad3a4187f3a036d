#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// What a check has found wrong with one row.
struct Violation {
  Family family = Family::kMeta;
  std::string key;
  std::string what;
};

struct CheckSummary {
  uint64_t directories = 0;  // The root too; what was deleted and is not yet freed as well.
  uint64_t files = 0;
  uint64_t blocks = 0;
  uint64_t leases = 0;
  uint64_t works = 0;
  uint64_t retries = 0;
  uint64_t violations = 0;
};

// Verifies every row of a namespace against the rows that it refers to and that refer to it, and every total:
//
//   inode        its link, its parent, its name; ids below the counters; attributes sorted, quotas not negative
//   directories  their `usage`: children, and the totals of the subtree, recomputed from the children's own; they lead to the root, or to
//                parent 0, where a `work` row stands for them
//   files        length and charged bytes are those of their blocks, which are there, in order, in a state that fits the file's
//   large directories that are being freed: what lies behind the work's cursor has lost its link, and is not looked at further
//   the others   every inode_by_id, file_block, block, usage, lease, work and datanode row belongs to something that names it; every row
//                parses
//
// Totals are checked directory by directory against the rows of the children: if all of these fit, then so does every total of a subtree,
// and no directory can stand in a cycle. So nothing is kept for each inode: memory is bounded by a cache of directories (2^16) and by
// the numbers of work rows and of storages. Each row costs some point reads.
//
// An error only if the view cannot be read. Pure.
absl::StatusOr<CheckSummary> CheckNamespace(const ReadView& view, const std::function<void(const Violation&)>& found);

// "inode (16385, \"a\"): ..." in one line.
std::string ToString(const Violation& violation);

}  // namespace cairn::namenode
