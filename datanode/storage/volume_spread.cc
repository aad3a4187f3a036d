#include "datanode/storage/volume_spread.h"

#include <algorithm>

namespace cairn::datanode {

std::optional<VolumeShift> FindShift(const std::vector<VolumeLoad>& loads, double threshold_percent) {
  if (loads.size() < 2) return std::nullopt;
  const auto emptier = [](const VolumeLoad& a, const VolumeLoad& b) { return a.share() < b.share(); };
  const auto [emptiest, fullest] = std::minmax_element(loads.begin(), loads.end(), emptier);
  VolumeShift shift;
  shift.spread_percent = 100 * (fullest->share() - emptiest->share());
  if (shift.spread_percent <= threshold_percent) return std::nullopt;
  shift.from = static_cast<size_t>(fullest - loads.begin());
  shift.to = static_cast<size_t>(emptiest - loads.begin());
  // (from - moved) / from's total = (to + moved) / to's total.
  const double from_total = static_cast<double>(fullest->total_bytes);
  const double to_total = static_cast<double>(emptiest->total_bytes);
  const double moved = (fullest->share() - emptiest->share()) * from_total * to_total / std::max(1.0, from_total + to_total);
  shift.most_bytes = static_cast<uint64_t>(moved);
  return shift;
}

}  // namespace cairn::datanode
