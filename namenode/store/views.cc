#include "namenode/store/views.h"

#include <array>

#include "common/error.h"

namespace cairn::namenode {

std::string_view FamilyName(Family family) {
  static constexpr std::array<std::string_view, kFamilyCount> kNames = {"inode", "inode_by_id", "file_block", "block",    "usage",
                                                                        "lease", "work",        "retry",      "datanode", "meta"};
  return kNames.at(static_cast<size_t>(family));
}

// Of a code that nothing else gives without a kind.
absl::Status NotInMemory() { return {absl::StatusCode::kOutOfRange, "not in memory"}; }

bool IsNotInMemory(const absl::Status& status) {
  return status.code() == absl::StatusCode::kOutOfRange && KindOf(status) == ErrorKind::kNone;
}

}  // namespace cairn::namenode
