#pragma once

#include <string>
#include <string_view>

#include "cairn/types.pb.h"
#include "common/status.h"

namespace cairn::client {

// "user.origin" as name space and name, without a value. The name space may be written in any case, as in HDFS. kInvalidArgument in
// HDFS's words.
absl::StatusOr<v1::Xattr> ParseXattrName(std::string_view text);
std::string XattrName(const v1::Xattr& xattr);

}  // namespace cairn::client
