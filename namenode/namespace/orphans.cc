#include "namenode/namespace/orphans.h"

#include <optional>
#include <utility>

#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/records.h"
#include "namenode/namespace/tree_page.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

absl::Status Look(const ReadView& view, const OrphanQuery& query, const v1::INodeRecord& file, const std::string& path, OrphanPage* page) {
  const std::string& holder = file.lease_holder();
  if (holder.empty() && !file.never_closed()) return absl::OkStatus();
  int64_t since_ms = file.modification_time_ms();
  if (!holder.empty()) {
    ASSIGN_OR_RETURN(const std::optional<v1::LeaseRecord> lease,
                     FindRecord<v1::LeaseRecord>(view, Family::kLease, LeaseKey(holder, InodeId(file.id()))));
    since_ms = lease ? lease->since_ms() : file.created_ms();
  }
  if (since_ms > query.before_ms) return absl::OkStatus();
  v1::OrphanFile& found = page->files.emplace_back();
  found.set_path(path);
  found.set_inode_id(file.id());
  found.set_since_ms(since_ms);
  found.set_length_bytes(file.length_bytes());
  found.set_holder(holder);
  found.set_state(holder.empty()              ? v1::OrphanFile::ABANDONED
                  : holder == kRecoveryHolder ? v1::OrphanFile::SILENT
                                              : v1::OrphanFile::WRITING);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OrphanPage> FindOrphans(const ReadView& view, const OrphanQuery& query) {
  OrphanPage found;
  const TreeVisit visit = [&](const v1::INodeRecord& inode, const std::string& path) -> absl::StatusOr<bool> {
    if (inode.type() == v1::DIRECTORY) return true;
    RETURN_IF_ERROR(Look(view, query, inode, path, &found));
    return found.files.size() < query.max_found;
  };
  ASSIGN_OR_RETURN(TreePage page, WalkTreePage(view, {query.path, query.start_after, query.max_seen}, visit));
  found.next = std::move(page.next);
  found.seen = page.seen;
  return found;
}

}  // namespace cairn::namenode
