// Values of configuration keys: text to numbers and back to complaints. See common/config.h.

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "common/config.h"
#include "common/env/network.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string LowerCase(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += Lower(c);
  return lower;
}

absl::Status Bad(std::string message) { return MakeError(ErrorKind::kInvalidArgument, std::move(message)); }

// The number that `text` begins with, and what follows it.
struct Split {
  uint64_t number = 0;
  std::string suffix;
};

absl::StatusOr<Split> SplitNumber(std::string_view text) {
  Split split;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), split.number);
  if (error == std::errc::result_out_of_range) return Bad(fmt::format("'{}' is too large", text));
  if (error != std::errc()) return Bad(fmt::format("'{}' does not begin with a number", text));
  std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  split.suffix = LowerCase(rest);
  return split;
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  ASSIGN_OR_RETURN(Split split, SplitNumber(text));
  std::string_view suffix = split.suffix;
  if (suffix.size() > 1 && suffix.ends_with("ib")) {
    suffix.remove_suffix(2);
  } else if (suffix.size() > 1 && suffix.ends_with('b')) {
    suffix.remove_suffix(1);
  }
  constexpr std::string_view kPowers = "kmgtpe";
  if (suffix.empty() && split.suffix.size() < 2) suffix = split.suffix;  // "", "b".
  if (suffix.empty() || suffix == "b") return split.number;
  const size_t power = suffix.size() == 1 ? kPowers.find(suffix[0]) : std::string_view::npos;
  if (power == std::string_view::npos)
    return Bad(fmt::format("'{}' is no size: a number and one of k, m, g, t, p, e, or none for bytes", text));
  const auto shift = static_cast<unsigned>(10 * (power + 1));
  if (split.number > (std::numeric_limits<uint64_t>::max() >> shift)) return Bad(fmt::format("'{}' is too large", text));
  return split.number << shift;
}

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text, std::string_view bare_unit) {
  ASSIGN_OR_RETURN(const Split split, SplitNumber(text));
  const std::string_view unit = split.suffix.empty() ? bare_unit : std::string_view(split.suffix);
  if (split.number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 2)) return Bad(fmt::format("'{}' is too large", text));
  const auto number = static_cast<int64_t>(split.number);
  if (unit == "ns") return absl::Nanoseconds(number);
  if (unit == "us") return absl::Microseconds(number);
  if (unit == "ms") return absl::Milliseconds(number);
  if (unit == "s") return absl::Seconds(number);
  if (unit == "m") return absl::Minutes(number);
  if (unit == "h") return absl::Hours(number);
  if (unit == "d") return absl::Hours(24) * number;
  return Bad(fmt::format("'{}' is no duration: a number and one of ns, us, ms, s, m, h, d{}", text,
                         bare_unit.empty() ? "" : fmt::format("; none means {}", bare_unit)));
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return Bad(fmt::format("'{}' is no address: host:port, or [address]:port", text));
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Bad(fmt::format("'{}' is no address: an IPv6 address goes into brackets", text));
  }
  HostPort address;
  address.host = std::string(host);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (host.empty() || digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return Bad(fmt::format("'{}' is no address: the port has to be 0 to 65535", text));
  return address;
}

}  // namespace cairn
