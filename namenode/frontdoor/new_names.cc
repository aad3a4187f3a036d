#include "namenode/frontdoor/new_names.h"

#include "common/status.h"
#include "namenode/namespace/op_context.h"

namespace cairn::namenode {

absl::Status CheckNewPath(const absl::StatusOr<PathWalk>& walk, const v1::Mutation::Limits& limits, const std::string& path) {
  if (!walk.ok()) {
    // Of anything else, a file in the middle, say, the mutation decides.
    return IsNotInMemory(walk.status()) ? walk.status() : SplitPath(path).status();
  }
  for (size_t i = walk->inodes.size() - 1; i < walk->components.size(); ++i)
    RETURN_IF_ERROR(CheckName(limits, walk->components[i], JoinPath(walk->components, i + 1), i + 1));
  return absl::OkStatus();
}

}  // namespace cairn::namenode
