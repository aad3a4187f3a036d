#include "namenode/limit_watch.h"

#include <memory>
#include <optional>

#include <spdlog/spdlog.h>

#include "common/status.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace/op_context.h"
#include "namenode/namespace/records.h"

namespace cairn::namenode {
namespace {

// Entries of a directory or blocks of a file; nothing if it is gone.
std::optional<uint64_t> CountNow(const ReadView& view, InodeId id) {
  const absl::StatusOr<ResolvedInode> inode = ResolveId(view, id);
  if (!inode.ok()) return std::nullopt;
  if (inode->record.type() == v1::FILE) return inode->record.block_count();
  const auto usage = FindRecord<v1::UsageRecord>(view, Family::kUsage, UsageKey(id));
  if (!usage.ok() || !*usage) return std::nullopt;
  return (*usage)->children();
}

}  // namespace

void LimitWatch::OnCommit(const std::vector<NamespaceWriter::Applied>& batch) {
  for (const NamespaceWriter::Applied& applied : batch) {
    for (const v1::NearLimit& near : applied.result->near_limits()) {
      const MutexLock lock(mu_);
      const std::pair<std::string, InodeId> name(near.key(), InodeId(near.inode_id()));
      if (kept_.contains(name)) continue;
      if (kept_.size() >= kMaxKept) {
        if (!std::exchange(full_, true))
          spdlog::warn("more than {} directories and files are near a limit; further ones are not named", kMaxKept);
        continue;
      }
      kept_[name] = Kept{near.path(), near.limit()};
      spdlog::warn("{} has come to {} of {}, the limit set by {}", near.path(), near.count(), near.limit(), near.key());
    }
  }
}

size_t LimitWatch::Near(std::string_view key) {
  std::vector<std::pair<InodeId, uint64_t>> known;
  {
    const MutexLock lock(mu_);
    for (const auto& [name, kept] : kept_)
      if (name.first == key) known.emplace_back(name.second, kept.limit);
  }
  if (known.empty()) return 0;
  std::vector<InodeId> away;
  {
    const std::shared_ptr<const ReadView> view = space_->Snapshot();
    for (const auto& [id, limit] : known)
      if (!IsNearLimit(CountNow(*view, id).value_or(0), limit)) away.push_back(id);
  }
  const MutexLock lock(mu_);
  for (const InodeId id : away) kept_.erase({std::string(key), id});
  if (!away.empty()) full_ = false;
  return known.size() - away.size();
}

}  // namespace cairn::namenode
