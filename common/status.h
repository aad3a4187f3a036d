#pragma once

// Status plumbing. Functions that can fail return absl::Status or absl::StatusOr<T>; errors that somebody reacts to carry an
// ErrorKind (common/error.h).

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define CAIRN_CONCAT_INNER(a, b) a##b
#define CAIRN_CONCAT(a, b) CAIRN_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                                                          \
  do {                                                                                 \
    if (::absl::Status cairn_status = (expr); !cairn_status.ok()) return cairn_status; \
  } while (false)

// ASSIGN_OR_RETURN(auto x, F()); a type with a comma needs `using`.
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_IMPL(CAIRN_CONCAT(cairn_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(temp, lhs, expr) \
  auto temp = (expr);                          \
  if (!temp.ok()) return temp.status();        \
  lhs = std::move(*temp)

// The same in a coroutine. `expr` must not hold a co_await: await on a line of its own (g++ 12; docs/decisions).
#define CO_RETURN_IF_ERROR(expr)                                                          \
  do {                                                                                    \
    if (::absl::Status cairn_status = (expr); !cairn_status.ok()) co_return cairn_status; \
  } while (false)

#define CO_ASSIGN_OR_RETURN(lhs, expr) CO_ASSIGN_OR_RETURN_IMPL(CAIRN_CONCAT(cairn_or_, __LINE__), lhs, expr)
#define CO_ASSIGN_OR_RETURN_IMPL(temp, lhs, expr) \
  auto temp = (expr);                             \
  if (!temp.ok()) co_return temp.status();        \
  lhs = std::move(*temp)

namespace cairn {

// `status` with "context: " before its message; code and payloads stay. OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

// Says on purpose that `status` does not matter, and why.
inline void IgnoreError(const absl::Status& status, const char* why) {
  static_cast<void>(status);
  static_cast<void>(why);
}

}  // namespace cairn
