#include "namenode/frontdoor/caller_resolver.h"

#include <algorithm>
#include <utility>

namespace cairn::namenode {

void ResolvedCaller::Fill(v1::Mutation* mutation) const {
  mutation->set_user(user);
  mutation->set_superuser(superuser);
  if (groups != nullptr) *mutation->mutable_groups() = *groups;
}

bool CallerResolver::Begin(const Options& options, const std::string& user, ResolvedCaller* caller) const {
  caller->user = user;
  caller->enforced = options.permissions_enabled;
  caller->superuser = !user.empty() && user == options.superuser;
  // A superuser's groups decide nothing, so nobody is asked for them.
  return !caller->superuser && groups_ != nullptr;
}

void CallerResolver::SetGroups(const Options& options, std::shared_ptr<const Caller::Groups> groups, ResolvedCaller* caller) {
  caller->groups = std::move(groups);
  const Caller::Groups& names = *caller->groups;
  caller->superuser = !options.supergroup.empty() && std::find(names.begin(), names.end(), options.supergroup) != names.end();
}

ResolvedCaller CallerResolver::Resolve(const std::string& user) const {
  const std::shared_ptr<const Options> options = options_.Get();
  ResolvedCaller caller;
  if (Begin(*options, user, &caller)) SetGroups(*options, groups_->GroupsOf(user), &caller);
  return caller;
}

std::optional<ResolvedCaller> CallerResolver::ResolveKnown(const std::string& user) const {
  const std::shared_ptr<const Options> options = options_.Get();
  std::optional<ResolvedCaller> caller(std::in_place);
  if (!Begin(*options, user, &*caller)) return caller;
  std::shared_ptr<const Caller::Groups> groups = groups_->KnownGroupsOf(user);
  if (groups == nullptr) return std::nullopt;
  SetGroups(*options, std::move(groups), &*caller);
  return caller;
}

}  // namespace cairn::namenode
