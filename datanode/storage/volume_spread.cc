#include "datanode/storage/volume_spread.h"

#include <algorithm>

namespace cairn::datanode {

std::optional<VolumeShift> FindShift(const std::vector<VolumeLoad>& loads, double threshold_percent) {
  const VolumeLoad* fullest = nullptr;
  const VolumeLoad* emptiest = nullptr;
  for (const VolumeLoad& load : loads) {
    if (load.total_bytes == 0) continue;
    if (load.may_give && (fullest == nullptr || load.share() >= fullest->share())) fullest = &load;
    if (load.may_take && (emptiest == nullptr || load.share() < emptiest->share())) emptiest = &load;
  }
  if (fullest == nullptr || emptiest == nullptr || fullest == emptiest) return std::nullopt;
  VolumeShift shift;
  shift.spread_percent = 100 * (fullest->share() - emptiest->share());
  if (shift.spread_percent <= threshold_percent) return std::nullopt;
  shift.from = static_cast<size_t>(fullest - loads.data());
  shift.to = static_cast<size_t>(emptiest - loads.data());
  // (from - moved) / from's total = (to + moved) / to's total.
  const double from_total = static_cast<double>(fullest->total_bytes);
  const double to_total = static_cast<double>(emptiest->total_bytes);
  const double moved = (fullest->share() - emptiest->share()) * from_total * to_total / std::max(1.0, from_total + to_total);
  shift.most_bytes = static_cast<uint64_t>(moved);
  return shift;
}

}  // namespace cairn::datanode
