#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// One page of a walk below a path that looks for files which no writer has closed: those under construction, and those that the NameNode
// closed and no writer ever did (INodeRecord.never_closed). What a cancelled task, a crash, or a create that was answered too late leaves
// behind is among them; which of them somebody still wants, only the writers' own records say.
struct OrphanQuery {
  std::string path;         // A directory, or one file.
  int64_t before_ms = 0;    // Only those that are so since this time at the latest.
  std::string start_after;  // OrphanPage::next of the page before.
  size_t max_seen = 20'000;
  size_t max_found = 1000;
};
struct OrphanPage {
  // Of those under construction the state is WRITING, or SILENT while their last block is recovered: how long their writers have been
  // silent is not in the view.
  std::vector<v1::OrphanFile> files;
  std::string next;  // Empty: there are no more.
  uint64_t seen = 0;
};

// Reads as many rows as it sees inodes; its memory is one page. A page may go on in a newer view than the one before: entries that came
// or went meanwhile may be missed or named, all others are named once. Errors as WalkExisting's, and kInvalidPath for a cursor of
// another walk.
absl::StatusOr<OrphanPage> FindOrphans(const ReadView& view, const OrphanQuery& query);

}  // namespace cairn::namenode
