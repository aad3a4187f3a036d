#pragma once

#include <string>
#include <string_view>

#include "namenode/store/views.h"

namespace cairn::namenode {

// A key for people: "(16385, \"a\")" for an inode, the number of a block, hex for what has not the family's shape.
std::string KeyText(Family family, std::string_view key);

// A row as one line of JSON: {"family": ..., "key": ..., "value": ...}; values that do not parse, and bytes, in hex.
std::string RowJson(Family family, std::string_view key, std::string_view value);

}  // namespace cairn::namenode
