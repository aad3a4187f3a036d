#pragma once

#include <vector>

#include "client/cli/shell.h"

namespace cairn::cli {

// The verbs about the blocks of whole files: setrep, concat.
std::vector<Verb> BlockVerbs();

}  // namespace cairn::cli
