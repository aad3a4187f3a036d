#pragma once

// Why a replica is not given out: words that several files of this folder share.

#include <string>

#include "absl/status/status.h"
#include "common/ids.h"

namespace cairn::datanode {

absl::Status ReplicaNotFound(BlockId id);
absl::Status StaleReplica(BlockId id, GenerationStamp have, GenerationStamp least, const std::string& most);
// A fault point: armed, the mistake of taking an old stamp for a good one; tests show that they would find it.
bool AcceptsOlderStamps();

}  // namespace cairn::datanode
