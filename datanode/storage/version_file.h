#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cairn::datanode {

inline constexpr uint32_t kVolumeLayout = 1;

// What the file VERSION of a volume says, as one flat JSON object:
//   {"layout": 1, "clusterId": "...", "poolId": "<32 hex digits>", "datanodeUuid": "...", "storageUuid": "...", "highestEpoch": "7",
//    "highestBlockId": "1073807360", "highestGenerationStamp": "66537", "distrust": true}
// 64-bit numbers are strings, as in protobuf's JSON: doubles would round them. Keys that are not known are kept out of the way, not
// refused.
struct VersionRecord {
  uint32_t layout = kVolumeLayout;
  std::string cluster_id;  // Empty before the first registration.
  std::string pool_id;     // 16 bytes, or empty.
  std::string datanode_uuid;
  std::string storage_uuid;
  uint64_t highest_epoch = 0;
  uint64_t highest_block_id = 0;  // Highest next id and stamp heard, exact to 2^16.
  uint64_t highest_generation_stamp = 0;
  // The volume failed, and no scan has ended since that believed only what it read from the disk itself. Written only if true.
  bool distrust = false;
};

std::string EncodeVersion(const VersionRecord& record);
// kCorruptMetadata; kUnsupported for a newer layout, naming both.
absl::StatusOr<VersionRecord> DecodeVersion(std::string_view json);

}  // namespace cairn::datanode
