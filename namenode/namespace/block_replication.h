#pragma once

// How many replicas the blocks of a file are to have. The file's record has the last word, and its charged bytes count by it at once; the
// rows of its blocks may lag behind while `work` rewrites them. So whoever changes or moves a block settles its row first.

#include <string>

#include "absl/status/status.h"
#include "cairn/namespace.pb.h"

namespace cairn::namenode {

// Whether a file may have this replication: kInvalidArgument in HDFS's words (BlockManager.verifyReplication), naming the key.
absl::Status CheckReplication(const v1::Mutation::Limits& limits, uint32_t replication, const std::string& path);

// Charged bytes under another replication: they are always a multiple of it.
uint64_t ChargedAt(uint64_t charged_bytes, uint32_t replication, uint32_t new_replication);

// Brings a block's row to `replication`, charged bytes included; false if it stood there.
bool SettleReplication(v1::BlockRecord& block, uint32_t replication);

}  // namespace cairn::namenode
