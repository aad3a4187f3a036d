#pragma once

// How the commands print things: the columns and words of HDFS's shell, which scripts parse. Pure
// functions.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/file_system.h"

namespace cairn::cli {

// "rwxr-xr-x"; a sticky bit shows as t or T in the last place.
std::string PermissionText(uint32_t mode);
// "128 M", "1.5 K", "532": powers of 1024, one decimal unless it is exact, a blank before the
// letter.
std::string HumanBytes(uint64_t bytes);
// HumanBytes or plain digits.
std::string SizeText(uint64_t bytes, bool human);
// As dfsadmin prints capacities: "10.50 GB", "0 B"; two decimals.
std::string CapacityText(uint64_t bytes);
// "42.00%"; 0 of 0 is 0.
std::string PercentText(uint64_t part, uint64_t whole);
// "2026-03-01 14:05", in local time as HDFS prints it.
std::string MinuteText(absl::Time time, absl::TimeZone zone);
// "2026-03-01 14:05:09", UTC.
std::string SecondText(absl::Time time);

// Columns of ls: widths are those of the widest entry.
struct ListColumns {
  size_t replication = 3;
  size_t owner = 0;
  size_t group = 0;
  size_t length = 10;
};
ListColumns ColumnsFor(const std::vector<FileStatus>& entries, bool human);
// "-rw-r--r--   3 flink flink       1024 2026-03-01 14:05 /a/b"
std::string ListLine(const FileStatus& entry, const std::string& shown_path, const ListColumns& columns, bool human, absl::TimeZone zone);

// stat's format: %a %A %b %F %g %n %o %r %u %x %X %y %Y and %%; anything else stays as it is.
std::string StatText(const std::string& format, const FileStatus& status);

// count's columns: what is there; its quotas and what is left of them; both. "none" and "inf" where there is no quota.
enum class CountColumns { kTotals, kQuotas, kQuotasAndTotals };
std::string CountHeader(CountColumns columns);
std::string CountLine(const ContentSummary& summary, const std::string& shown_path, CountColumns columns, bool human);

// The number that HDFS's shell takes for a size: digits, and perhaps one of k m g t p e (powers of 1024). kInvalidArgument in
// HDFS's words.
absl::StatusOr<int64_t> ParseQuota(const std::string& text, bool with_suffix);

// Rows of left-aligned columns, two blanks apart, the last one not padded (du).
std::vector<std::string> AlignColumns(const std::vector<std::vector<std::string>>& rows);

// What HDFS's shell says after "verb: `path': " for this error.
std::string ErrorText(const absl::Status& status);

}  // namespace cairn::cli
