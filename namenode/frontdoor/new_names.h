#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/namespace.pb.h"
#include "namenode/namespace/path_walk.h"

namespace cairn::namenode {

// What can be refused of a path that is to be made before it is queued: a path that is none, and names that are too long, too deep
// or reserved, as Apply would. `walk` is WalkPath's of `path`, as a trusted caller; the one writer then finds the path's records in
// memory. Only names that it lacks are judged, so that what was made under another limit stays in use. NotInMemory if the walk is.
absl::Status CheckNewPath(const absl::StatusOr<PathWalk>& walk, const v1::Mutation::Limits& limits, const std::string& path);

}  // namespace cairn::namenode
