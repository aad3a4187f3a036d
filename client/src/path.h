#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace cairn::client {

// A path as the NameNode takes it: absolute, one slash between names, none at the end, without "." and "..", which are resolved here as
// HDFS's Path does. kInvalidPath, saying why, for what is empty, relative, goes above the root, holds a NUL, or is not UTF-8: names in
// Cairn are UTF-8, and protobuf carries no other. "scheme://..." is refused by the scheme's name.
absl::StatusOr<std::string> CleanPath(const std::string& typed);

}  // namespace cairn::client
