#pragma once

#include <vector>

#include "client/cli/shell.h"

namespace cairn::cli {

// dfsadmin's verbs about quotas: setQuota, clrQuota, setSpaceQuota, clrSpaceQuota. Silent on success.
std::vector<Verb> QuotaVerbs();

}  // namespace cairn::cli
