#pragma once

#include <string>

#include "absl/status/status.h"
#include "cairn/namespace.pb.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// What can be refused of a path that is to be made before it is queued: a path that is none, and names that are too long, too deep
// or reserved, as Apply would. Only names that the snapshot lacks are judged, so that what was made under another limit stays in
// use. Walks the path, so that the one writer finds its records in memory: NotInMemory if the view reads memory only and lacks one.
absl::Status CheckNewPath(const ReadView& view, const v1::Mutation::Limits& limits, const std::string& path);

}  // namespace cairn::namenode
