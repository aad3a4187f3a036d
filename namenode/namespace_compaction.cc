#include "namenode/namespace_compaction.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace_copy.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {
namespace {

constexpr std::string_view kOptionsPrefix = "OPTIONS-";

// The newest of the database's files of options: that with the highest number.
absl::StatusOr<std::string> NewestOptions(const std::string& directory, LocalFileSystem& files) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  std::pair<uint64_t, std::string> newest;
  for (const std::string& name : names) {
    if (!name.starts_with(kOptionsPrefix)) continue;
    uint64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [parsed, error] = std::from_chars(name.data() + kOptionsPrefix.size(), end, number);
    if (error == std::errc() && parsed == end && number > newest.first) newest = {number, name};
  }
  return newest.second;
}

absl::StatusOr<std::string> TextOf(const std::string& directory, const std::string& name, LocalFileSystem& files) {
  if (name.empty()) return std::string();
  return files.ReadWhole(directory + "/" + name);
}

absl::StatusOr<uint64_t> BytesOf(const std::string& directory, LocalFileSystem& files) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  uint64_t sum = 0;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.Open(directory + "/" + name, LocalFileSystem::OpenMode::kRead));
    ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
    sum += bytes;
  }
  return sum;
}

std::vector<std::string_view> SortedLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

std::vector<std::string> DifferentLines(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> old_lines = SortedLines(before);
  const std::vector<std::string_view> new_lines = SortedLines(after);
  std::vector<std::string_view> gone, come;
  std::set_difference(old_lines.begin(), old_lines.end(), new_lines.begin(), new_lines.end(), std::back_inserter(gone));
  std::set_difference(new_lines.begin(), new_lines.end(), old_lines.begin(), old_lines.end(), std::back_inserter(come));
  std::vector<std::string> different;
  for (const std::string_view line : gone) different.push_back(fmt::format("- {}", line));
  for (const std::string_view line : come) different.push_back(fmt::format("+ {}", line));
  return different;
}

absl::StatusOr<NamespaceCompaction> CompactNamespace(const std::string& directory, Env* env, std::function<void(Family)> done) {
  LocalFileSystem& files = env->files();
  ASSIGN_OR_RETURN(const NamespaceFiles found, FindNamespace(directory, files));
  const absl::StatusOr<std::unique_ptr<DirectoryLock>> lock = files.Lock(found.locked);
  if (KindOf(lock.status()) == ErrorKind::kBusy)
    return MakeError(ErrorKind::kBusy, fmt::format("{} is in use: stop its NameNode first", found.locked));
  RETURN_IF_ERROR(lock.status());

  NamespaceCompaction result;
  ASSIGN_OR_RETURN(result.bytes_before, BytesOf(found.database, files));
  ASSIGN_OR_RETURN(result.options_before, NewestOptions(found.database, files));
  // It may be gone when the database has been opened: that keeps the newest few.
  ASSIGN_OR_RETURN(const std::string before, TextOf(found.database, result.options_before, files));
  MetaStore::Options options;
  options.directory = found.database;
  RETURN_IF_ERROR(MetaStore::Compact(options, env, done));
  ASSIGN_OR_RETURN(result.bytes_after, BytesOf(found.database, files));
  ASSIGN_OR_RETURN(result.options_after, NewestOptions(found.database, files));
  ASSIGN_OR_RETURN(const std::string after, TextOf(found.database, result.options_after, files));
  result.changed_options = DifferentLines(before, after);
  return result;
}

}  // namespace cairn::namenode
