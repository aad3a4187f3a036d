#include "client/src/user_name.h"

#include <vector>

namespace cairn::client {
namespace {

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find_first_of(separators, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

// Files of /proc have no size, so they are read until they end.
std::string ReadText(LocalFileSystem* files, const std::string& path) {
  auto file = files->Open(path, LocalFileSystem::OpenMode::kRead);
  std::string text;
  if (!file.ok()) return text;
  for (;;) {
    char part[4096];
    const auto count = (*file)->ReadAt(text.size(), part);
    if (!count.ok() || *count == 0) return text;
    text.append(part, *count);
  }
}

}  // namespace

std::string EffectiveUid(std::string_view status) {
  for (const std::string_view line : Split(status, "\n")) {
    const auto fields = Split(line, "\t ");
    if (fields.size() >= 3 && fields[0] == "Uid:") return std::string(fields[2]);  // Real, effective, saved, file system.
  }
  return "";
}

std::string NameOfUid(std::string_view passwd, std::string_view uid) {
  for (const std::string_view line : Split(passwd, "\n")) {
    const auto fields = Split(line, ":");
    if (fields.size() >= 3 && fields[2] == uid) return std::string(fields[0]);
  }
  return "";
}

std::string OsUserName(LocalFileSystem* files) {
  const std::string uid = EffectiveUid(ReadText(files, "/proc/self/status"));
  std::string name = NameOfUid(ReadText(files, "/etc/passwd"), uid);
  if (!name.empty()) return name;
  return uid.empty() ? "unknown" : uid;
}

}  // namespace cairn::client
