#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/namespace.pb.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// One page of a walk over all that is below a path, in the order of every directory's entries by name, a directory before what is in it.
struct TreeQuery {
  std::string path;         // A directory, or one file.
  std::string start_after;  // TreePage::next of the page before.
  size_t max_seen = 20'000;
};
struct TreePage {
  std::string next;   // Empty: there is no more.
  uint64_t seen = 0;  // Without the directory at the path itself.
};
// What is done with each inode, the one at the path itself among them; false ends the page behind it.
using TreeVisit = std::function<absl::StatusOr<bool>(const v1::INodeRecord& inode, const std::string& path)>;

// Reads as many rows as it sees inodes; its memory is one page. A page may go on in a newer view than the one before: entries that came
// or went meanwhile may be missed or visited, all others are visited once. Errors as WalkExisting's, kInvalidPath for a cursor of
// another walk, and what a visit says.
absl::StatusOr<TreePage> WalkTreePage(const ReadView& view, const TreeQuery& query, const TreeVisit& visit);

}  // namespace cairn::namenode
