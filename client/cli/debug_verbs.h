#pragma once

#include <vector>

#include "client/cli/shell.h"

namespace cairn::cli {

// `cairn debug`: recoverLease.
std::vector<Verb> DebugVerbs();

}  // namespace cairn::cli
