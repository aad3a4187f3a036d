#include "client/cli/format.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "cairn/errors.h"
#include "common/error.h"

namespace cairn::cli {
namespace {

constexpr char kPrefixes[] = {'K', 'M', 'G', 'T', 'P', 'E'};

std::string ReplicationText(const FileStatus& status) { return status.is_directory ? "-" : std::to_string(status.replication); }

}  // namespace

std::string PermissionText(uint32_t mode) {
  std::string text = "---------";
  for (size_t i = 0; i < 9; ++i)
    if ((mode & (0400u >> i)) != 0) text[i] = "rwx"[i % 3];
  if ((mode & 01000u) != 0) text[8] = text[8] == 'x' ? 't' : 'T';
  return text;
}

std::string HumanBytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes);
  size_t prefix = 0;
  uint64_t unit = 1024;
  while (prefix + 1 < std::size(kPrefixes) && bytes / unit >= 1024) {
    unit <<= 10;
    ++prefix;
  }
  if (bytes % unit == 0) return fmt::format("{} {}", bytes / unit, kPrefixes[prefix]);
  std::string number = fmt::format("{:.1f}", static_cast<double>(bytes) / static_cast<double>(unit));
  if (number == "1024.0" && prefix + 1 < std::size(kPrefixes)) return fmt::format("1.0 {}", kPrefixes[prefix + 1]);
  return fmt::format("{} {}", number, kPrefixes[prefix]);
}

std::string SizeText(uint64_t bytes, bool human) { return human ? HumanBytes(bytes) : std::to_string(bytes); }

namespace {

std::string SignedText(int64_t number, bool human) {
  return number < 0 ? "-" + SizeText(static_cast<uint64_t>(-number), human) : SizeText(static_cast<uint64_t>(number), human);
}

}  // namespace

std::string CapacityText(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  size_t prefix = 0;
  auto number = static_cast<double>(bytes) / 1024;
  while (number >= 1024 && prefix + 1 < std::size(kPrefixes)) {
    number /= 1024;
    ++prefix;
  }
  return fmt::format("{:.2f} {}B", number, kPrefixes[prefix]);
}

std::string PercentText(uint64_t part, uint64_t whole) {
  return fmt::format("{:.2f}%", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string MinuteText(absl::Time time, absl::TimeZone zone) { return absl::FormatTime("%Y-%m-%d %H:%M", time, zone); }
std::string SecondText(absl::Time time) { return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::UTCTimeZone()); }

ListColumns ColumnsFor(const std::vector<FileStatus>& entries, bool human) {
  ListColumns columns;
  for (const FileStatus& entry : entries) {
    columns.replication = std::max(columns.replication, ReplicationText(entry).size());
    columns.owner = std::max(columns.owner, entry.owner.size());
    columns.group = std::max(columns.group, entry.group.size());
    columns.length = std::max(columns.length, SizeText(entry.length_bytes, human).size());
  }
  return columns;
}

std::string ListLine(const FileStatus& entry, const std::string& shown_path, const ListColumns& columns, bool human, absl::TimeZone zone) {
  return fmt::format("{}{} {:>{}} {:<{}} {:<{}} {:>{}} {} {}", entry.is_directory ? 'd' : '-', PermissionText(entry.mode),
                     ReplicationText(entry), columns.replication, entry.owner, columns.owner, entry.group, columns.group,
                     SizeText(entry.length_bytes, human), columns.length, MinuteText(entry.modification_time, zone), shown_path);
}

std::string StatText(const std::string& format, const FileStatus& status) {
  std::string text;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      text += format[i];
      continue;
    }
    switch (format[++i]) {
      case 'a': text += fmt::format("{:o}", status.mode); break;
      case 'A': text += PermissionText(status.mode); break;
      case 'b': text += std::to_string(status.length_bytes); break;
      case 'F': text += status.is_directory ? "directory" : "regular file"; break;
      case 'g': text += status.group; break;
      case 'n': text += status.path == "/" ? "" : status.path.substr(status.path.rfind('/') + 1); break;
      case 'o': text += std::to_string(status.block_size_bytes); break;
      case 'r': text += std::to_string(status.replication); break;
      case 'u': text += status.owner; break;
      case 'x': text += SecondText(status.access_time); break;
      case 'X': text += std::to_string(absl::ToUnixMillis(status.access_time)); break;
      case 'y': text += SecondText(status.modification_time); break;
      case 'Y': text += std::to_string(absl::ToUnixMillis(status.modification_time)); break;
      case '%': text += '%'; break;
      default: text += format[i]; break;  // As HDFS: the character itself.
    }
  }
  return text;
}

std::string CountHeader(CountColumns columns) {
  std::string header;
  if (columns != CountColumns::kTotals)
    header += fmt::format("{:>12} {:>15} {:>15} {:>15} ", "QUOTA", "REM_QUOTA", "SPACE_QUOTA", "REM_SPACE_QUOTA");
  if (columns != CountColumns::kQuotas) header += fmt::format("{:>12} {:>12} {:>18} ", "DIR_COUNT", "FILE_COUNT", "CONTENT_SIZE");
  return header + "PATHNAME";
}

std::string CountLine(const ContentSummary& summary, const std::string& shown_path, CountColumns columns, bool human) {
  std::string line;
  if (columns != CountColumns::kTotals) {
    const auto quota = [human](const std::optional<int64_t>& limit) { return limit ? SignedText(*limit, human) : "none"; };
    // What is left may be below zero: a quota may be set below what is used.
    const auto left = [human](const std::optional<int64_t>& limit, uint64_t used) {
      return limit ? SignedText(*limit - static_cast<int64_t>(used), human) : "inf";
    };
    line += fmt::format("{:>12} {:>15} {:>15} {:>15} ", quota(summary.namespace_quota),
                        left(summary.namespace_quota, summary.directories + summary.files), quota(summary.space_quota_bytes),
                        left(summary.space_quota_bytes, summary.charged_bytes));
  }
  if (columns != CountColumns::kQuotas)
    line += fmt::format("{:>12} {:>12} {:>18} ", SizeText(summary.directories, human), SizeText(summary.files, human),
                        SizeText(summary.length_bytes, human));
  return line + shown_path;
}

absl::StatusOr<int64_t> ParseQuota(const std::string& text, bool with_suffix) {
  constexpr std::string_view kLetters = "kmgtpe";
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  bool good = error == std::errc() && rest.size() <= 1 && number >= 0;
  if (good && !rest.empty()) {
    const size_t letter = kLetters.find(static_cast<char>(std::tolower(static_cast<unsigned char>(rest[0]))));
    good = with_suffix && letter != std::string_view::npos;
    if (good) good = !__builtin_mul_overflow(number, int64_t{1} << (10 * (letter + 1)), &number);
  }
  if (good) return number;
  return MakeError(ErrorKind::kInvalidArgument, fmt::format("\"{}\" is not a valid value for a quota.", text));
}

std::vector<std::string> AlignColumns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], widths[i]) : row[i];
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string ErrorText(const absl::Status& status) {
  if (errors::IsNotFound(status)) return "No such file or directory";
  if (errors::IsAlreadyExists(status)) return "File exists";
  if (errors::IsNotDirectory(status)) return "Is not a directory";
  if (errors::IsADirectory(status)) return "Is a directory";
  if (errors::IsNotEmpty(status)) return "Directory is not empty";
  return std::string(status.message());
}

}  // namespace cairn::cli
