#pragma once

// Quotas of directories, kept in family `usage` beside the totals they bound. A name quota counts the files and directories of the
// subtree, the directory itself included; a space quota counts charged bytes (docs/formats.md). A quota may be set below what is used:
// then nothing can be added until it fits again, as in HDFS.

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/namespace.pb.h"
#include "common/ids.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// What a call says to take a quota away.
inline constexpr int64_t kNoQuota = -1;

// Files and directories that count against the directory's name quota.
inline uint64_t NamesOf(const v1::UsageRecord& usage) { return usage.directories() + usage.files() + 1; }

// Whether so many more names and charged bytes fit. What does not grow always does (as HDFS: Quota.isViolated).
bool WithinQuota(const v1::UsageRecord& usage, int64_t more_names, int64_t more_charged_bytes);

// The refusal, in HDFS's words (NSQuotaExceededException, DSQuotaExceededException): kQuota with reason NAMESPACE_QUOTA or SPACE_QUOTA, the
// path of `directory` as it stands in `view`, and the quota as limit.
absl::Status QuotaExceeded(const ReadView& view, InodeId directory, const v1::UsageRecord& usage, int64_t more_names,
                           int64_t more_charged_bytes);

}  // namespace cairn::namenode
