#include "namenode/namespace/permission.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "common/superuser.h"
#include "namenode/namespace/path_walk.h"

namespace cairn::namenode {
namespace {

constexpr uint32_t kSticky = 01000;

// As HDFS names its FsActions.
constexpr std::string_view kRightNames[] = {"NONE", "EXECUTE", "WRITE", "WRITE_EXECUTE", "READ", "READ_EXECUTE", "READ_WRITE", "ALL"};

// "/dir":bob:staff:drwxr-xr-x
std::string Described(const std::string& path, const v1::INodeRecord& record) {
  return fmt::format("\"{}\":{}:{}:{}", path, record.owner(), record.group(), ModeText(record));
}

absl::Status Refusal(std::string_view reason, const std::string& path, std::string message) {
  Error error;
  error.kind = ErrorKind::kPermission;
  error.reason = std::string(reason);
  error.path = path;
  error.message = std::move(message);
  return MakeError(std::move(error));
}

}  // namespace

std::string ModeText(const v1::INodeRecord& record) {
  std::string text = record.type() == v1::DIRECTORY ? "d---------" : "----------";
  for (size_t i = 0; i < 9; ++i)
    if ((record.mode() & (0400u >> i)) != 0) text[i + 1] = "rwx"[i % 3];
  if ((record.mode() & kSticky) != 0) text[9] = text[9] == 'x' ? 't' : 'T';
  return text;
}

const Caller& Caller::Trusted() {
  static const Caller trusted("", nullptr, /*superuser=*/true, /*enforced=*/false);
  return trusted;
}

Caller::Caller(const v1::Mutation& mutation)
    : Caller(mutation.user(), &mutation.groups(), mutation.superuser(), mutation.limits().permissions_enabled()) {}

bool Caller::IsInGroup(std::string_view group) const {
  return groups_ != nullptr && std::find(groups_->begin(), groups_->end(), group) != groups_->end();
}

uint32_t Caller::RightsOn(const v1::INodeRecord& record) const {
  // The first class that fits decides, even if a later one would give more. Nobody's name is no owner.
  if (!user_.empty() && record.owner() == user_) return record.mode() >> 6 & 7;
  if (IsInGroup(record.group())) return record.mode() >> 3 & 7;
  return record.mode() & 7;
}

absl::Status Caller::Denied(const v1::INodeRecord& record, const std::string& path, uint32_t rights) const {
  return Refusal("MISSING_RIGHT", path,
                 fmt::format("Permission denied: user={}, access={}, inode={}", user_, kRightNames[rights & 7], Described(path, record)));
}

absl::Status Caller::CheckTarget(const PathWalk& walk, uint32_t rights) const {
  if (!walk.complete() || MayAccess(*walk.last().record, rights)) return absl::OkStatus();
  return Denied(*walk.last().record, walk.path(), rights);
}

absl::Status Caller::CheckParent(const PathWalk& walk, uint32_t rights) const {
  if (!enforced_ || !walk.has_parent()) return absl::OkStatus();
  const v1::INodeRecord& parent = *walk.parent().record;
  const auto parent_path = [&walk] { return JoinPath(walk.components, walk.components.size() - 1); };
  if (!MayAccess(parent, rights)) return Denied(parent, parent_path(), rights);
  if (!walk.complete() || (rights & kWriteRight) == 0 || (parent.mode() & kSticky) == 0) return absl::OkStatus();
  const v1::INodeRecord& record = *walk.last().record;
  if (!user_.empty() && (parent.owner() == user_ || record.owner() == user_)) return absl::OkStatus();
  return Refusal("STICKY_BIT", walk.path(),
                 fmt::format("Permission denied by sticky bit: user={}, path={}, parent={}", user_, Described(walk.path(), record),
                             Described(parent_path(), parent)));
}

absl::Status Caller::CheckAncestor(const PathWalk& walk, uint32_t rights) const {
  if (walk.components.empty()) return absl::OkStatus();
  const size_t nearest = std::min(walk.inodes.size(), walk.components.size()) - 1;
  const v1::INodeRecord& record = *walk.inodes[nearest].record;
  if (MayAccess(record, rights)) return absl::OkStatus();
  return Denied(record, JoinPath(walk.components, nearest), rights);
}

absl::Status Caller::CheckOwner(const PathWalk& walk) const {
  if (superuser_ || (!user_.empty() && walk.last().record->owner() == user_)) return absl::OkStatus();
  return Refusal("NOT_OWNER", walk.path(), fmt::format("Permission denied. user={} is not the owner of inode={}", user_, walk.path()));
}

absl::Status Caller::CheckSuperuser() const {
  if (!enforced_) return absl::OkStatus();
  return SuperuserRequired(user_);
}

}  // namespace cairn::namenode
