#include "namenode/frontdoor/caller_resolver.h"

#include <algorithm>

namespace cairn::namenode {

void ResolvedCaller::Fill(v1::Mutation* mutation) const {
  mutation->set_user(user);
  mutation->set_superuser(superuser);
  if (groups != nullptr) *mutation->mutable_groups() = *groups;
}

ResolvedCaller CallerResolver::Resolve(const std::string& user) const {
  ResolvedCaller caller;
  caller.user = user;
  caller.enforced = options_.permissions_enabled;
  caller.superuser = !user.empty() && user == options_.superuser;
  // A superuser's groups decide nothing, so nobody is asked for them.
  if (caller.superuser || groups_ == nullptr) return caller;
  caller.groups = groups_->GroupsOf(user);
  const Caller::Groups& names = *caller.groups;
  caller.superuser = !options_.supergroup.empty() && std::find(names.begin(), names.end(), options_.supergroup) != names.end();
  return caller;
}

}  // namespace cairn::namenode
