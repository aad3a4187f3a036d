#include "namenode/store/views.h"

#include <array>

namespace cairn::namenode {

std::string_view FamilyName(Family family) {
  static constexpr std::array<std::string_view, kFamilyCount> kNames = {"inode", "inode_by_id", "file_block", "block",    "usage",
                                                                        "lease", "work",        "retry",      "datanode", "meta"};
  return kNames.at(static_cast<size_t>(family));
}

}  // namespace cairn::namenode
