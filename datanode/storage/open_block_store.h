#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/env/env.h"
#include "datanode/storage/block_store.h"
#include "datanode/storage/deleter.h"
#include "datanode/storage/event_log.h"
#include "datanode/storage/node_identity.h"
#include "datanode/storage/scanner_options.h"
#include "datanode/storage/start_up_scan.h"

namespace cairn::datanode {

struct BlockStoreOptions {
  std::vector<std::string> directories;   // dfs.datanode.data.dir; at least one.
  uint64_t reserved_bytes = 0;            // dfs.datanode.du.reserved, of each volume.
  uint64_t max_block_bytes = 1ull << 30;  // cairn.block.max-size.
  size_t max_replicas = 8'000'000;        // cairn.datanode.replicas.max; beyond it the node is full. 512 MB of memory.
  size_t tolerated_failed_volumes = 0;    // dfs.datanode.failed.volumes.tolerated, at start.
  bool format_empty = true;               // Make volumes of empty or absent directories.
  size_t max_slow_excluded = 1;           // dfs.datanode.max.slowdisks.to.exclude.
  std::string cluster_id;                 // If set, directories of any other cluster are refused.
  DeleterOptions deleter;
  ScannerOptions scanner;
  VolumeKeeperOptions keeper;
  VolumeMoverOptions mover;
};

// What may change while a node runs. Part of a store; outlived by it. Thread-safe.
class ChangeableVolumes {
 public:
  virtual ~ChangeableVolumes() = default;
  // Makes exactly these directories the volumes: new ones are added, those that failed and work again return, those that are not named are
  // drained of writers and REMOVED, unless a later change names them again. May be repeated. `done`, once, on a thread of the store: what
  // could not be done, directory by directory; the rest is. A directory that is named twice is an error, and nothing is done.
  virtual void ChangeVolumes(std::vector<std::string> directories, std::function<void(absl::Status)> done) = 0;
  virtual void SetPace(const DeleterOptions& deleter, const ScannerOptions& scanner, const VolumeMoverOptions& mover) = 0;
};

struct OpenedBlockStore {
  std::unique_ptr<BlockStore> store;
  NodeIdentity* identity = nullptr;      // Part of the store.
  ChangeableVolumes* volumes = nullptr;  // Part of the store.
  std::vector<ScanResult> scans;         // One a volume, in the order of the directories.
  std::vector<std::string> failures;     // Directories that could not be used, and were tolerated.
};

// kInvalidArgument if one is named twice.
absl::Status CheckDirectories(const std::vector<std::string>& directories);

// One more volume of a node that runs: of `directory`, with its replicas found; with `distrust`, only what is read from the disk itself is
// believed. Blocks; kCancelled soon after `stop` has become true. The error names the directory.
absl::StatusOr<std::unique_ptr<Volume>> OpenVolume(const BlockStoreOptions& options, Env* env, EventLog* events, VersionRecord node,
                                                   const std::string& directory, size_t index, bool distrust,
                                                   const std::atomic<bool>* stop);

// Locks the directories, checks that they belong together, and scans them, each on its volume's disk executor, all at once. Blocks; not
// from an executor's task. The error names the directory and what to do about it. Writers and readers must be gone before the store is.
//
// A volume that is distrusted takes long to read, and keeps nobody waiting if there is another: it is there as one that has failed, and
// comes back as those do. It is none of those that have to be tolerated.
absl::StatusOr<OpenedBlockStore> OpenBlockStore(const BlockStoreOptions& options, Env* env, EventLog* events);

}  // namespace cairn::datanode
