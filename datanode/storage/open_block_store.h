#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/env/env.h"
#include "datanode/storage/block_store.h"
#include "datanode/storage/deleter.h"
#include "datanode/storage/event_log.h"
#include "datanode/storage/node_identity.h"
#include "datanode/storage/start_up_scan.h"

namespace cairn::datanode {

struct BlockStoreOptions {
  std::vector<std::string> directories;   // dfs.datanode.data.dir; at least one.
  uint64_t reserved_bytes = 0;            // dfs.datanode.du.reserved, of each volume.
  uint64_t max_block_bytes = 1ull << 30;  // cairn.block.max-size.
  size_t max_replicas = 8'000'000;        // cairn.datanode.replicas.max; beyond it the node is full. 512 MB of memory.
  size_t tolerated_failed_volumes = 0;    // dfs.datanode.failed.volumes.tolerated, at start.
  bool format_empty = true;               // Make volumes of empty or absent directories.
  std::string cluster_id;                 // If set, directories of any other cluster are refused.
  DeleterOptions deleter;
};

struct OpenedBlockStore {
  std::unique_ptr<BlockStore> store;
  NodeIdentity* identity = nullptr;   // Part of the store.
  std::vector<ScanResult> scans;      // One a volume, in the order of the directories.
  std::vector<std::string> failures;  // Directories that could not be used, and were tolerated.
};

// Locks the directories, checks that they belong together, and scans them, each on its volume's disk executor, all at once. Blocks; not
// from an executor's task. The error names the directory and what to do about it. Writers and readers must be gone before the store is.
absl::StatusOr<OpenedBlockStore> OpenBlockStore(const BlockStoreOptions& options, Env* env, EventLog* events);

}  // namespace cairn::datanode
