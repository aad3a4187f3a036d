#pragma once

#include <vector>

#include "client/cli/shell.h"

namespace cairn::cli {

// The verbs that only look: ls, stat, test.
std::vector<Verb> ListVerbs();

}  // namespace cairn::cli
