#pragma once

#include <vector>

#include "client/cli/shell.h"

namespace cairn::cli {

// The verbs that change the namespace and move no bytes: mkdir, mv, touchz.
std::vector<Verb> ChangeVerbs();

}  // namespace cairn::cli
