#pragma once

#include <vector>

#include "client/cli/shell.h"

namespace cairn::cli {

// The verbs about modes, owners, times and extended attributes: chmod, chown, chgrp, touch, setfattr, getfattr.
std::vector<Verb> AttributeVerbs();

}  // namespace cairn::cli
