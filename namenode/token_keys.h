#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/datanode_namenode.pb.h"
#include "common/env/env.h"
#include "common/ids.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

// The block-token keys of this NameNode start, oldest first: those of earlier epochs that have not expired, and a new one whose id is the
// epoch. Kept in family `meta`, synced before this returns, so that tokens outlive a restart. Blocks; before the writer starts.
absl::StatusOr<std::vector<v1::BlockTokenKey>> RotateTokenKeys(MetaStore* store, Epoch epoch, absl::Duration token_lifetime, Env* env);

}  // namespace cairn::namenode
