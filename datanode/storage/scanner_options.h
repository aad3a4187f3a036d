#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace cairn::datanode {

// How often and how fast replicas are read again; see Scanner.
struct ScannerOptions {
  absl::Duration period = absl::Hours(504);            // dfs.datanode.scan.period.hours; zero: never.
  uint64_t bytes_per_second = 1 << 20;                 // dfs.block.scanner.volume.bytes.per.second; 0: never.
  absl::Duration longest_yield = absl::Seconds(1);     // Foreground work goes first, but not for ever.
  absl::Duration cursor_interval = absl::Minutes(10);  // How often its place is written down.
  size_t piece_bytes = 1 << 20;                        // Read at a time.
};

// When a failed volume may come back, and how long one that is taken out waits for its writers; see VolumeKeeper.
struct VolumeKeeperOptions {
  absl::Duration check_interval = absl::Seconds(5);
  absl::Duration first_return = absl::Seconds(5);  // Doubles with each failure.
  absl::Duration last_return = absl::Hours(1);
  absl::Duration drain = absl::Minutes(1);
  absl::Duration settle = absl::Seconds(5);  // How long a change waits for what is still under way on a disk that failed.
};

// When and how fast replicas are moved between the volumes of one node; see VolumeMover.
struct VolumeMoverOptions {
  double threshold_percent = 10;                     // cairn.datanode.volume-balance.threshold-percent; 0: never.
  uint64_t bytes_per_second = 10 << 20;              // cairn.datanode.volume-balance.bytes-per-second.
  absl::Duration check_interval = absl::Minutes(1);  // Between looks, while they are even.
  absl::Duration longest_yield = absl::Seconds(1);   // Foreground work goes first, but not for ever.
  size_t piece_bytes = 1 << 20;                      // Copied at a time.
};

}  // namespace cairn::datanode
