#pragma once

#include <xxhash.h>

#include <cstddef>
#include <string_view>

namespace cairn::namenode {

// Of a row's key, for tables in memory.
struct KeyHash {
  using is_transparent = void;
  size_t operator()(std::string_view key) const { return XXH3_64bits(key.data(), key.size()); }
};

}  // namespace cairn::namenode
