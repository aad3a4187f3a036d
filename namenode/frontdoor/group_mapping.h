#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/env/clock.h"
#include "common/mutex.h"
#include "common/status.h"
#include "namenode/namespace/permission.h"

namespace cairn::namenode {

// Which groups a user is in: by configuration, else by the system's word, which is kept for a while.
//
// A user that is not kept is asked for on the calling thread, which may block as long as a directory service does. When what is kept
// grows old, one caller asks again and the others go on with it meanwhile. If asking fails, the old groups hold; of a user that was
// never known they are none, and that is kept for a shorter while. At most max_users are kept, least used go first.
//
// Thread-safe.
class GroupMapping {
 public:
  using Groups = Caller::Groups;
  using Overrides = std::map<std::string, std::vector<std::string>, std::less<>>;
  // As Env::GroupsOf.
  using Lookup = std::function<absl::StatusOr<std::vector<std::string>>(const std::string& user)>;
  struct Options {
    Overrides overrides;                           // hadoop.user.group.static.mapping.overrides.
    absl::Duration keep = absl::Seconds(300);      // hadoop.security.groups.cache.secs.
    absl::Duration keep_none = absl::Seconds(30);  // hadoop.security.groups.negative-cache.secs.
    size_t max_users = 10'000;
  };

  GroupMapping(Options options, Lookup lookup, const Clock* clock);  // `clock` outlives this.

  // Never null. Nobody ("") is in no group.
  std::shared_ptr<const Groups> GroupsOf(const std::string& user) ABSL_LOCKS_EXCLUDED(mu_);
  // The same, but null if the system would have to be asked: never blocks.
  std::shared_ptr<const Groups> KnownGroupsOf(const std::string& user) ABSL_LOCKS_EXCLUDED(mu_);
  // Asks the system again from now on (refreshUserToGroupsMappings).
  void Forget() ABSL_LOCKS_EXCLUDED(mu_);
  size_t kept() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    std::string user;
    std::shared_ptr<const Groups> groups;
    SteadyTime ask_again;
  };
  using Entries = std::list<Entry>;  // Used last comes first.

  void Keep(const std::string& user, std::shared_ptr<const Groups> groups, absl::Duration keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Lookup lookup_;
  const Clock* const clock_;
  const std::shared_ptr<const Groups> none_ = std::make_shared<const Groups>();
  std::map<std::string, std::shared_ptr<const Groups>, std::less<>> overrides_;  // Made by the constructor.
  mutable Mutex mu_;
  Entries entries_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Entries::iterator, std::less<>> by_user_ ABSL_GUARDED_BY(mu_);
};

// "user1=group1,group2;user2=": kInvalidArgument naming what is wrong. Blanks around names do not count.
absl::StatusOr<GroupMapping::Overrides> ParseGroupOverrides(std::string_view text);

}  // namespace cairn::namenode
