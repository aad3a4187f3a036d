// Who may do what, and attributes, as TreeModel has them.

#include <algorithm>

#include "tests/namenode/tree_model.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kExecute = 1;
constexpr uint32_t kWrite = 2;
constexpr uint32_t kSticky = 01000;

bool IsEnforced(const v1::Mutation& m) { return m.limits().permissions_enabled() && !m.superuser(); }

bool IsInGroup(const v1::Mutation& m, const std::string& group) {
  return std::find(m.groups().begin(), m.groups().end(), group) != m.groups().end();
}

bool Owns(const v1::Mutation& m, const ModelNode& node) { return m.superuser() || (!m.user().empty() && node.owner == m.user()); }

ErrorKind Denied(bool allowed) { return allowed ? ErrorKind::kNone : ErrorKind::kPermission; }

}  // namespace

bool TreeModel::May(const v1::Mutation& m, const ModelNode& node, uint32_t rights) {
  if (!IsEnforced(m)) return true;
  uint32_t granted = node.mode;
  if (!m.user().empty() && node.owner == m.user())
    granted >>= 6;
  else if (IsInGroup(m, node.group))
    granted >>= 3;
  return (granted & rights) == rights;
}

ErrorKind TreeModel::MayEnter(const v1::Mutation& m, const ModelNode& directory) { return Denied(May(m, directory, kExecute)); }

ErrorKind TreeModel::MayChange(const v1::Mutation& m, const Walk& walk, uint32_t rights) const {
  return Denied(!walk.complete() || May(m, nodes_.at(walk.path()), rights));
}

ErrorKind TreeModel::MayMake(const v1::Mutation& m, const Walk& walk) const {
  if (walk.components.empty()) return ErrorKind::kNone;
  return Denied(May(m, nodes_.at(walk.Prefix(std::min(walk.existing, walk.components.size() - 1))), kWrite));
}

ErrorKind TreeModel::MayRemove(const v1::Mutation& m, const Walk& walk) const {
  if (!IsEnforced(m) || !walk.has_parent()) return ErrorKind::kNone;
  const ModelNode& parent = nodes_.at(walk.Prefix(walk.components.size() - 1));
  if (!May(m, parent, kWrite)) return ErrorKind::kPermission;
  if (!walk.complete() || (parent.mode & kSticky) == 0) return ErrorKind::kNone;
  return Denied(Owns(m, parent) || Owns(m, nodes_.at(walk.path())));
}

Expected TreeModel::SetAttributes(const v1::Mutation& m) {
  const std::string& asked = m.has_set_permission() ? m.set_permission().path()
                             : m.has_set_owner()    ? m.set_owner().path()
                                                    : m.set_times().path();
  const Walk walk = WalkTo(asked, &m);
  if (walk.error != ErrorKind::kNone) return Refused(walk.error);
  if (!walk.complete()) return Refused(ErrorKind::kNotFound);
  ModelNode& node = nodes_[walk.path()];
  ModelNode after = node;
  if (m.has_set_times()) {
    if (const ErrorKind kind = MayChange(m, walk, kWrite); kind != ErrorKind::kNone) return Refused(kind);
    const v1::Mutation::SetTimes& op = m.set_times();
    if (op.modification_time_ms() < 0 || op.access_time_ms() < 0) return Refused(ErrorKind::kInvalidArgument);
    if (op.has_modification_time_ms()) after.modified_ms = op.modification_time_ms();
    if (op.has_access_time_ms()) after.accessed_ms = op.access_time_ms();
  } else {
    if (!Owns(m, node)) return Refused(ErrorKind::kPermission);
    if (m.has_set_permission()) {
      if (m.set_permission().mode() > 01777) return Refused(ErrorKind::kInvalidArgument);
      after.mode = m.set_permission().mode();
    } else {
      const v1::Mutation::SetOwner& op = m.set_owner();
      const bool may_give = op.owner().empty() || op.owner() == m.user();
      const bool may_group = op.group().empty() || IsInGroup(m, op.group());
      if (!m.superuser() && (!may_give || !may_group)) return Refused(ErrorKind::kPermission);
      if (!op.owner().empty()) after.owner = op.owner();
      if (!op.group().empty()) after.group = op.group();
    }
  }
  Expected expected;
  expected.path = walk.path();
  expected.acted = after.mode != node.mode || after.owner != node.owner || after.group != node.group ||
                   after.modified_ms != node.modified_ms || after.accessed_ms != node.accessed_ms;
  node = after;
  return expected;
}

Expected TreeModel::ChangeXattr(const v1::Mutation& m) {
  const bool removes = m.has_remove_xattr();
  const v1::Xattr& xattr = removes ? m.remove_xattr().xattr() : m.set_xattr().xattr();
  if (xattr.name_space() < v1::XATTR_USER || xattr.name_space() > v1::XATTR_SYSTEM || xattr.name().empty())
    return Refused(ErrorKind::kInvalidArgument);
  if (!removes && xattr.name().size() + xattr.value().size() > m.limits().max_xattr_bytes()) return Refused(ErrorKind::kQuota);
  const bool is_user = xattr.name_space() == v1::XATTR_USER;
  if (!is_user && !(xattr.name_space() == v1::XATTR_TRUSTED && m.superuser())) return Refused(ErrorKind::kPermission);
  const Walk walk = WalkTo(removes ? m.remove_xattr().path() : m.set_xattr().path(), &m);
  if (walk.error != ErrorKind::kNone) return Refused(walk.error);
  if (!walk.complete()) return Refused(ErrorKind::kNotFound);
  ModelNode& node = nodes_[walk.path()];
  if (is_user && IsEnforced(m)) {
    const bool sticky = node.is_directory && (node.mode & kSticky) != 0;
    if (sticky ? !Owns(m, node) : !May(m, node, kWrite)) return Refused(ErrorKind::kPermission);
  }
  Expected expected;
  expected.path = walk.path();
  const std::pair<int, std::string> key(xattr.name_space(), xattr.name());
  const auto found = node.xattrs.find(key);
  if (removes) {
    if (found == node.xattrs.end()) return Refused(ErrorKind::kInvalidArgument);
    node.xattrs.erase(found);
    expected.acted = true;
    return expected;
  }
  const bool create = m.set_xattr().create();
  const bool replace = m.set_xattr().replace();
  if (found != node.xattrs.end()) {
    if (create && !replace) return Refused(ErrorKind::kInvalidArgument);
    expected.acted = found->second != xattr.value();
    found->second = xattr.value();
    return expected;
  }
  if (replace && !create) return Refused(ErrorKind::kInvalidArgument);
  if (node.xattrs.size() >= m.limits().max_xattrs()) return Refused(ErrorKind::kQuota);  // Those of users and trusted: no others are made.
  node.xattrs[key] = xattr.value();
  expected.acted = true;
  return expected;
}

}  // namespace cairn::testing
