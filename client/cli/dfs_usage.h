#pragma once

#include <vector>

#include "client/cli/shell.h"

namespace cairn::cli {

// The verbs that sum up: du, count. Each path is one read of totals that the NameNode keeps.
std::vector<Verb> UsageVerbs();

}  // namespace cairn::cli
