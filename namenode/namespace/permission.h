#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cairn/namespace.pb.h"

namespace cairn::namenode {

struct PathWalk;

// Rights, as the bits of one class of a mode.
inline constexpr uint32_t kExecuteRight = 1;
inline constexpr uint32_t kWriteRight = 2;
inline constexpr uint32_t kReadRight = 4;
inline constexpr uint32_t kAllRights = 7;

// Who asks, and what he may do: owner, group and others with rwx each, the sticky bit, a superuser for whom nothing is checked. As HDFS's
// FSPermissionChecker; where it differs, so that a delete stays O(1), see docs/decisions/010-permissions-at-constant-cost.md.
//
// Every verb and every query that takes a path asks, right after the walk and before it refuses anything else, so that nobody learns of
// what he may not see:
//
//   ASSIGN_OR_RETURN(const PathWalk walk, WalkPath(ctx.view(), op.path(), ctx.caller()));  // x on every directory above.
//   RETURN_IF_ERROR(ctx.caller().CheckTarget(walk, kWriteRight));    // What is read or changed.
//   RETURN_IF_ERROR(ctx.caller().CheckAncestor(walk, kWriteRight));  // What is made: create, mkdirs, a rename's destination.
//   RETURN_IF_ERROR(ctx.caller().CheckParent(walk, kWriteRight));    // What goes: delete, a rename's source; with the sticky bit.
//   RETURN_IF_ERROR(ctx.caller().CheckOwner(walk));                  // Mode, owner.
//   RETURN_IF_ERROR(ctx.caller().CheckSuperuser());                  // Quotas, administration.
//
// A path that does not exist so far passes the checks of what is missing: the caller then finds that it is not there. Operations by inode
// id under a lease are not checked: the lease is the right.
//
// All refusals are kPermission, with HDFS's words; reasons MISSING_RIGHT, STICKY_BIT, NOT_OWNER, NOT_SUPERUSER. Paths are only
// composed for a refusal. A value type; reading is thread-safe.
class Caller {
 public:
  using Groups = google::protobuf::RepeatedPtrField<std::string>;

  // The NameNode itself: nothing is checked.
  static const Caller& Trusted();
  // As the front door resolved him (user, groups, superuser, limits.permissions_enabled). `mutation` outlives this.
  explicit Caller(const v1::Mutation& mutation);
  // `user` and `groups` (may be null: none) outlive this. `enforced`: dfs.permissions.enabled.
  Caller(std::string_view user, const Groups* groups, bool superuser, bool enforced)
      : user_(user), groups_(groups), superuser_(superuser), enforced_(enforced && !superuser) {}

  std::string_view user() const { return user_; }
  bool is_superuser() const { return superuser_; }
  bool is_enforced() const { return enforced_; }  // False: all checks but CheckOwner pass.
  bool IsInGroup(std::string_view group) const;

  // One inode by itself; `path` is called only for the message.
  bool MayAccess(const v1::INodeRecord& record, uint32_t rights) const { return !enforced_ || (RightsOn(record) & rights) == rights; }
  absl::Status Denied(const v1::INodeRecord& record, const std::string& path, uint32_t rights) const;

  absl::Status CheckTarget(const PathWalk& walk, uint32_t rights) const;
  absl::Status CheckParent(const PathWalk& walk, uint32_t rights) const;
  // Of the nearest directory above the last component that exists.
  absl::Status CheckAncestor(const PathWalk& walk, uint32_t rights) const;

  // Also while dfs.permissions.enabled is false, as in HDFS: who may set a mode or an owner does not depend on it. The walk is complete.
  absl::Status CheckOwner(const PathWalk& walk) const;
  absl::Status CheckSuperuser() const;

 private:
  uint32_t RightsOn(const v1::INodeRecord& record) const;

  std::string_view user_;
  const Groups* groups_ = nullptr;
  bool superuser_ = false;
  bool enforced_ = false;
};

// "drwxr-xr-x"; a sticky bit is t or T in the last place.
std::string ModeText(const v1::INodeRecord& record);

}  // namespace cairn::namenode
