#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/mutex.h"
#include "namenode/namespace_access.h"

namespace cairn::namenode {

// Directories and files that have come to 80 % of a limit: one line in the log for each, and their number for a gauge, so that an operator
// hears of it before the first refusal. Apply says in its results who came near; here they are remembered, at most kMaxKept of them, and
// looked at again when their number is asked for, so that it falls when they shrink or go. Soft: after a restart one is known again when it
// grows by another step. Thread-safe.
class LimitWatch {
 public:
  static constexpr size_t kMaxKept = 1000;

  explicit LimitWatch(NamespaceAccess* space) : space_(space) {}  // `space` outlives this.

  // After each commit: what its results say.
  void OnCommit(const std::vector<NamespaceWriter::Applied>& batch) ABSL_LOCKS_EXCLUDED(mu_);

  // How many are near the limit of this key now.
  size_t Near(std::string_view key) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Kept {
    std::string path;  // When it came near.
    uint64_t limit = 0;
  };

  NamespaceAccess* const space_;
  Mutex mu_;
  std::map<std::pair<std::string, InodeId>, Kept> kept_ ABSL_GUARDED_BY(mu_);
  bool full_ ABSL_GUARDED_BY(mu_) = false;  // And said so.
};

}  // namespace cairn::namenode
