#include "common/env/real_users.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"

namespace cairn {
namespace {

constexpr size_t kFirstBuffer = 4096;
constexpr size_t kLargestBuffer = 1 << 20;  // A group lists all its members.
constexpr int kMostGroups = 1 << 16;        // As Linux: NGROUPS_MAX.

// Calls `get(buffer)` with a buffer that grows while it answers ERANGE.
template <class Get>
int WithBuffer(Get get, std::vector<char>* buffer) {
  for (buffer->resize(kFirstBuffer);; buffer->resize(buffer->size() * 4)) {
    const int error = get(buffer);
    if (error == EINTR) continue;
    if (error != ERANGE || buffer->size() >= kLargestBuffer) return error;
  }
}

std::optional<std::string> NameOfGroup(gid_t id) {
  struct group entry = {};
  struct group* found = nullptr;
  std::vector<char> memory;
  WithBuffer([&](std::vector<char>* buffer) { return ::getgrgid_r(id, &entry, buffer->data(), buffer->size(), &found); }, &memory);
  if (found == nullptr) return std::nullopt;
  return std::string(found->gr_name);
}

}  // namespace

std::string RealUserName() {
  AssertMayBlock("RealUserName");
  const uid_t id = ::geteuid();
  struct passwd entry = {};
  struct passwd* found = nullptr;
  std::vector<char> memory;
  WithBuffer([&](std::vector<char>* buffer) { return ::getpwuid_r(id, &entry, buffer->data(), buffer->size(), &found); }, &memory);
  return found == nullptr ? std::to_string(id) : std::string(found->pw_name);
}

absl::StatusOr<std::vector<std::string>> RealGroupsOf(const std::string& user) {
  AssertMayBlock("RealGroupsOf");
  struct passwd entry = {};
  struct passwd* found = nullptr;
  std::vector<char> memory;
  const int error = WithBuffer(
      [&](std::vector<char>* buffer) { return ::getpwnam_r(user.c_str(), &entry, buffer->data(), buffer->size(), &found); }, &memory);
  if (found == nullptr && (error == 0 || error == ENOENT || error == ESRCH))
    return MakeError(ErrorKind::kNotFound, fmt::format("user {}: not known to this system", user));
  if (found == nullptr) return absl::UnavailableError(fmt::format("user {}: {}", user, std::generic_category().message(error)));

  int count = 64;
  std::vector<gid_t> ids(static_cast<size_t>(count));
  while (::getgrouplist(user.c_str(), found->pw_gid, ids.data(), &count) < 0) {
    if (ids.size() >= kMostGroups) return absl::UnavailableError(fmt::format("user {}: in more than {} groups", user, kMostGroups));
    count = std::max(count, static_cast<int>(ids.size()) * 2);
    ids.resize(static_cast<size_t>(count));
  }
  ids.resize(static_cast<size_t>(count));
  std::vector<std::string> groups;
  for (const gid_t id : ids)
    if (std::optional<std::string> name = NameOfGroup(id)) groups.push_back(*std::move(name));
  return groups;
}

}  // namespace cairn
