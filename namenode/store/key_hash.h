#pragma once

#include <cstddef>
#include <string_view>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace cairn::namenode {

// Of a row's key, for tables in memory; another in every process.
struct KeyHash {
  using is_transparent = void;
  size_t operator()(std::string_view key) const { return absl::HashOf(absl::string_view(key.data(), key.size())); }
};

}  // namespace cairn::namenode
