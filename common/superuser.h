#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace cairn {

// The refusal of what only superusers may do: kPermission, NOT_SUPERUSER, in the words of HDFS's FSPermissionChecker.
absl::Status SuperuserRequired(std::string_view user);

}  // namespace cairn
