#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/env/file_system.h"
#include "datanode/storage/volume.h"

namespace cairn::datanode {

// What a scan found, for the log and for metrics.
struct ScanResult {
  absl::Status status;
  uint64_t replicas = 0;
  uint64_t unfinished = 0;  // RBW found: now RWR.
  uint64_t corrupt = 0;
  uint64_t removed = 0;                  // Left over from cut-off creations and transfers.
  std::vector<std::string> quarantined;  // "path: why"; at most kMaxNamed.
  uint64_t quarantined_count = 0;
  static constexpr size_t kMaxNamed = 20;
};

// Fills the volume's shard from the headers of the files it finds, however the process before ended (replica_load.h). Numbers no
// events: a walk follows every start. A file whose header fails, whose id differs from its name or that is another pool's is moved to
// quarantine/. One that cannot be read twice, on a disk that works else, is CORRUPT, or quarantined too if not even its slots can be read:
// it does not keep the others away.
//
// Of a volume that is distrusted each file is first written back and let go by the system's cache, which may show bytes that a failed sync
// has lost; then it is judged as after a reboot. When all have been, the volume is trusted again.
//
// Copies that were on their way here from another volume are removed: the replica is still there.
//
// Runs on the volume's disk executor, or while nobody else knows the volume; blocks. kCancelled soon after `stop`, if it is not null, has
// become true.
ScanResult ScanVolume(Volume* volume, const BootId& boot_id, const std::string& pool_id, const std::atomic<bool>* stop = nullptr);

}  // namespace cairn::datanode
