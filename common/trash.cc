#include "common/trash.h"

#include <algorithm>

#include <fmt/format.h>

namespace cairn {
namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int TwoDigits(std::string_view text, size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); }

}  // namespace

std::string HomeOf(std::string_view user) { return fmt::format("{}/{}", kHomes, user); }

std::string TrashOf(std::string_view user) { return fmt::format("{}/{}/{}", kHomes, user, kTrashName); }

std::string TrashCheckpointName(absl::Time time, int attempt) {
  const absl::CivilSecond at = absl::ToCivilSecond(time, absl::UTCTimeZone());
  const std::string name =
      fmt::format("{:02}{:02}{:02}{:02}{:02}{:02}", at.year() % 100, at.month(), at.day(), at.hour(), at.minute(), at.second());
  return attempt == 0 ? name : fmt::format("{}-{}", name, attempt);
}

std::optional<absl::Time> TrashCheckpointTime(std::string_view name) {
  const std::string_view digits = name.substr(0, name.find('-'));
  if (digits.size() < name.size() && !IsDigits(name.substr(digits.size() + 1))) return std::nullopt;
  if (!IsDigits(digits) || (digits.size() != 12 && digits.size() != 10)) return std::nullopt;
  const int second = digits.size() == 12 ? TwoDigits(digits, 10) : 0;
  const absl::CivilSecond at(2000 + TwoDigits(digits, 0), TwoDigits(digits, 2), TwoDigits(digits, 4), TwoDigits(digits, 6),
                             TwoDigits(digits, 8), second);
  const absl::Time time = absl::FromCivil(at, absl::UTCTimeZone());
  // A month of 13 would be taken for one of the next year.
  if (TrashCheckpointName(time).substr(0, digits.size()) != digits) return std::nullopt;
  return time;
}

absl::Duration TrashCheckpointInterval(absl::Duration trash_interval, absl::Duration checkpoint_interval) {
  return checkpoint_interval <= absl::ZeroDuration() ? trash_interval : std::min(checkpoint_interval, trash_interval);
}

}  // namespace cairn
