#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cairn {

// Users as the system's name service has them (files, LDAP, ...). Both may block as long as that does. Thread-safe.

// The effective user of this process; its number if it has no name.
std::string RealUserName();
// All groups of a user, its own first; groups without a name are left out. kNotFound if there is no such user.
absl::StatusOr<std::vector<std::string>> RealGroupsOf(const std::string& user);

}  // namespace cairn
