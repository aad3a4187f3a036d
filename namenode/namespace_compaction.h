#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/env/env.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

struct NamespaceCompaction {
  uint64_t bytes_before = 0;  // Of the database's files.
  uint64_t bytes_after = 0;
  std::string options_before;  // Names of the files with the database's options; before: empty if there was none.
  std::string options_after;
  // Lines of options that are not the same now, "- old" and "+ new": those that this program opens it with, and so a NameNode of this
  // version, where another version had opened it before. Else none.
  std::vector<std::string> changed_options;
};

// Rewrites the database of a stopped NameNode as the NameNode itself would, see MetaStore::Compact. `directory` as in FindNamespace. kBusy
// naming it if a NameNode runs on it; kNotFound; kDiskFull; kCorruptMetadata.
absl::StatusOr<NamespaceCompaction> CompactNamespace(const std::string& directory, Env* env, std::function<void(Family)> done);

// The lines of two texts of options that are not in the other one, whatever their order.
std::vector<std::string> DifferentLines(std::string_view before, std::string_view after);

}  // namespace cairn::namenode
