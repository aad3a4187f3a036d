#include "client/src/path.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "common/utf8.h"

namespace cairn::client {
namespace {

// With bytes that are no printable ASCII as \xNN.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      out += c;
    else
      out += fmt::format("\\x{:02x}", byte);
  }
  return out;
}

absl::Status Invalid(const std::string& typed, std::string message) {
  Error error;
  error.kind = ErrorKind::kInvalidPath;
  if (IsUtf8(typed)) error.path = typed;
  error.message = std::move(message);
  return MakeError(std::move(error));
}

}  // namespace

absl::StatusOr<std::string> CleanPath(const std::string& typed) {
  if (typed.empty()) return Invalid(typed, "Can not create a Path from an empty string");
  if (!IsUtf8(typed)) return Invalid(typed, fmt::format("invalid path \"{}\": names are UTF-8, this is not", Escaped(typed)));
  if (typed.find('\0') != std::string::npos) return Invalid("", fmt::format("invalid path \"{}\": it holds a NUL", Escaped(typed)));
  if (typed.front() != '/') {
    const size_t scheme = typed.find("://");
    if (scheme != std::string::npos && typed.find('/') == scheme + 1)
      return Invalid(typed, fmt::format("No FileSystem for scheme \"{}\"", typed.substr(0, scheme)));
    return Invalid(typed, fmt::format("invalid path \"{}\": it must begin with '/'", typed));
  }
  std::vector<std::string_view> names;
  for (size_t begin = 1; begin < typed.size();) {
    const size_t end = std::min(typed.find('/', begin), typed.size());
    const std::string_view name(typed.data() + begin, end - begin);
    if (name == "..") {
      if (names.empty()) return Invalid(typed, fmt::format("invalid path \"{}\": it goes above the root", typed));
      names.pop_back();
    } else if (!name.empty() && name != ".") {
      names.push_back(name);
    }
    begin = end + 1;
  }
  std::string path;
  for (const std::string_view name : names) {
    path += '/';
    path += name;
  }
  return path.empty() ? "/" : path;
}

}  // namespace cairn::client
