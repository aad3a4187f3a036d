#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cairn/namespace.pb.h"
#include "namenode/frontdoor/group_mapping.h"
#include "namenode/frontdoor/live_value.h"
#include "namenode/namespace/permission.h"

namespace cairn::namenode {

// A caller with his groups, as a front door resolved him.
struct ResolvedCaller {
  std::string user;
  std::shared_ptr<const Caller::Groups> groups;
  bool superuser = false;
  bool enforced = true;

  Caller caller() const { return Caller(user, groups.get(), superuser, enforced); }  // Points into this.
  // Into a mutation, whose limits say whether permissions are enforced.
  void Fill(v1::Mutation* mutation) const;
};

// Turns a user's name into what permissions are checked with. Thread-safe; may block as GroupMapping::GroupsOf does.
class CallerResolver {
 public:
  struct Options {
    std::string superuser;                  // Who runs the NameNode. Empty: no user is one by his name.
    std::string supergroup = "supergroup";  // dfs.permissions.superusergroup.
    bool permissions_enabled = false;       // dfs.permissions.enabled.
  };
  // `groups` outlives this; null: nobody is in a group.
  CallerResolver(Options options, GroupMapping* groups) : options_(std::make_shared<const Options>(std::move(options))), groups_(groups) {}

  // Of those who are resolved from now on.
  void SetOptions(Options options) { options_.Set(std::make_shared<const Options>(std::move(options))); }

  ResolvedCaller Resolve(const std::string& user) const;
  // Nothing if the system would have to be asked for his groups: never blocks.
  std::optional<ResolvedCaller> ResolveKnown(const std::string& user) const;

 private:
  // False if he needs no groups.
  bool Begin(const Options& options, const std::string& user, ResolvedCaller* caller) const;
  static void SetGroups(const Options& options, std::shared_ptr<const Caller::Groups> groups, ResolvedCaller* caller);

  LiveValue<Options> options_;
  GroupMapping* const groups_;
};

}  // namespace cairn::namenode
