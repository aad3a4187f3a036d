#include "namenode/namespace/quota.h"

#include <string>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace/namespace_queries.h"

namespace cairn::namenode {
namespace {

bool Fits(bool has_quota, int64_t quota, uint64_t used, int64_t more) {
  if (!has_quota || more <= 0) return true;
  const uint64_t after = used + static_cast<uint64_t>(more);
  return quota >= 0 && after <= static_cast<uint64_t>(quota);
}

bool NamesFit(const v1::UsageRecord& usage, int64_t more) {
  return Fits(usage.has_namespace_quota(), usage.namespace_quota(), NamesOf(usage), more);
}

bool SpaceFits(const v1::UsageRecord& usage, int64_t more) {
  return Fits(usage.has_space_quota_bytes(), usage.space_quota_bytes(), usage.charged_bytes(), more);
}

// "6 MB", "1.50 GB", as HDFS's messages put bytes in brackets.
std::string WithUnit(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double number = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (number >= 1024 && unit + 1 < std::size(kUnits)) {
    number /= 1024;
    ++unit;
  }
  std::string text = fmt::format("{:.2f}", number);
  if (text.ends_with(".00")) text.resize(text.size() - 3);
  return fmt::format("{} {}", text, kUnits[unit]);
}

}  // namespace

bool WithinQuota(const v1::UsageRecord& usage, int64_t more_names, int64_t more_charged_bytes) {
  return NamesFit(usage, more_names) && SpaceFits(usage, more_charged_bytes);
}

absl::Status QuotaExceeded(const ReadView& view, InodeId directory, const v1::UsageRecord& usage, int64_t more_names,
                           int64_t more_charged_bytes) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(view, directory));
  Error error;
  error.kind = ErrorKind::kQuota;
  error.path = path;
  if (!NamesFit(usage, more_names)) {
    error.reason = "NAMESPACE_QUOTA";
    error.limit = usage.namespace_quota();
    error.message = fmt::format("The NameSpace quota (directories and files) of directory {} is exceeded: quota={} file count={}", path,
                                usage.namespace_quota(), NamesOf(usage) + static_cast<uint64_t>(more_names));
    return MakeError(std::move(error));
  }
  const auto quota = static_cast<uint64_t>(usage.space_quota_bytes());
  const uint64_t after = usage.charged_bytes() + static_cast<uint64_t>(more_charged_bytes);
  error.reason = "SPACE_QUOTA";
  error.limit = usage.space_quota_bytes();
  error.message = fmt::format("The DiskSpace quota of {} is exceeded: quota = {} B = {} but diskspace consumed = {} B = {}", path, quota,
                              WithUnit(quota), after, WithUnit(after));
  return MakeError(std::move(error));
}

}  // namespace cairn::namenode
