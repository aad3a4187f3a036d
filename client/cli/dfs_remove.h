#pragma once

#include <vector>

#include "client/cli/shell.h"

namespace cairn::cli {

// rm, expunge.
std::vector<Verb> RemoveVerbs();

}  // namespace cairn::cli
