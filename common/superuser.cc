#include "common/superuser.h"

#include <utility>

#include <fmt/format.h>

#include "common/error.h"

namespace cairn {

absl::Status SuperuserRequired(std::string_view user) {
  Error error;
  error.kind = ErrorKind::kPermission;
  error.reason = "NOT_SUPERUSER";
  error.message = fmt::format("Access denied for user {}. Superuser privilege is required", user);
  return MakeError(std::move(error));
}

}  // namespace cairn
