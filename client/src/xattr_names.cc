#include "client/src/xattr_names.h"

#include <algorithm>
#include <utility>

#include "common/error.h"

namespace cairn::client {
namespace {

constexpr std::pair<std::string_view, v1::XattrNamespace> kPrefixes[] = {
    {"user", v1::XATTR_USER}, {"trusted", v1::XATTR_TRUSTED}, {"security", v1::XATTR_SECURITY}, {"system", v1::XATTR_SYSTEM}};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

absl::StatusOr<v1::Xattr> ParseXattrName(std::string_view text) {
  const size_t dot = text.find('.');
  std::string prefix(text.substr(0, dot == std::string_view::npos ? 0 : dot));
  std::transform(prefix.begin(), prefix.end(), prefix.begin(), Lower);
  for (const auto& [name, name_space] : kPrefixes) {
    if (prefix != name) continue;
    if (dot + 1 == text.size()) return MakeError(ErrorKind::kInvalidArgument, "XAttr name cannot be empty.");
    v1::Xattr xattr;
    xattr.set_name_space(name_space);
    xattr.set_name(std::string(text.substr(dot + 1)));
    return xattr;
  }
  return MakeError(ErrorKind::kInvalidArgument, "An XAttr name must be prefixed with user/trusted/security/system, followed by a '.'");
}

std::string XattrName(const v1::Xattr& xattr) {
  for (const auto& [name, name_space] : kPrefixes)
    if (xattr.name_space() == name_space) return std::string(name) + "." + xattr.name();
  return xattr.name();
}

}  // namespace cairn::client
