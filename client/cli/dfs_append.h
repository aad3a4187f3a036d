#pragma once

#include <vector>

#include "client/cli/shell.h"

namespace cairn::cli {

// -appendToFile, -truncate.
std::vector<Verb> AppendVerbs();

}  // namespace cairn::cli
