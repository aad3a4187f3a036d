#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cairn::datanode {

// How full a volume is, or would be once what waits to be unlinked has gone.
struct VolumeLoad {
  uint64_t used_bytes = 0;
  uint64_t total_bytes = 0;  // That it may hold. 0, where other data has taken all of the disk, say: it is left out.
  bool may_give = true;
  bool may_take = true;
  double share() const { return total_bytes == 0 ? 1 : static_cast<double>(used_bytes) / static_cast<double>(total_bytes); }
};

// What would make a node's volumes more even.
struct VolumeShift {
  size_t from = 0;  // The fullest of those that may give,
  size_t to = 0;    // and the emptiest of those that may take: places among those asked about.
  double spread_percent = 0;
  // A replica that takes up more would leave the emptiest fuller than the fullest.
  uint64_t most_bytes = 0;
};

// Nothing if these two differ by `threshold_percent` points of their used shares, or less. Pure.
std::optional<VolumeShift> FindShift(const std::vector<VolumeLoad>& loads, double threshold_percent);

}  // namespace cairn::datanode
