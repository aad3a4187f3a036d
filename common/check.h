#pragma once

// CAIRN_CHECK(condition, format, args...): our own bug, also in release: better dead than wrong. Prints where and why to
// standard error, and aborts. Never for what a peer, a disk or a user can cause: that is an absl::Status.

#include <string>

namespace cairn::internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace cairn::internal

#define CAIRN_CHECK(condition, message)                                          \
  do {                                                                           \
    if (!(condition)) [[unlikely]]                                               \
      ::cairn::internal::CheckFailed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
