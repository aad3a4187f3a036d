#include "datanode/storage/volume_choice.h"

#include <algorithm>

namespace cairn::datanode {

void ExcludeSlow(std::vector<VolumeChoice>* choices, size_t most) {
  const auto below = [](const VolumeChoice& choice) { return choice.fullness < kHighMark; };
  const auto count_below = static_cast<size_t>(std::count_if(choices->begin(), choices->end(), below));
  for (size_t left = std::min(most, (count_below == 0 ? choices->size() : count_below) / 2); left > 0; --left) {
    const auto slowest = std::max_element(choices->begin(), choices->end(),
                                          [](const VolumeChoice& a, const VolumeChoice& b) { return a.times_as_slow < b.times_as_slow; });
    if (slowest == choices->end() || slowest->times_as_slow <= 0) return;
    choices->erase(slowest);
  }
}

Volume* ChooseVolume(const std::vector<VolumeChoice>& choices, Random* random) {
  const bool any_below =
      std::any_of(choices.begin(), choices.end(), [](const VolumeChoice& choice) { return choice.fullness < kHighMark; });
  // In mebibytes, so that no sum overflows; one of less than that still has a chance.
  const auto weight = [any_below](const VolumeChoice& choice) -> uint64_t {
    if (any_below && choice.fullness >= kHighMark) return 0;
    return std::max<uint64_t>(1, (choice.free_bytes >> 20) / (1 + choice.queued));
  };
  uint64_t total = 0;
  for (const VolumeChoice& choice : choices) total += weight(choice);
  if (total == 0) return nullptr;
  uint64_t at = random->Below(total);
  for (const VolumeChoice& choice : choices) {
    if (at < weight(choice)) return choice.volume;
    at -= weight(choice);
  }
  return nullptr;
}

}  // namespace cairn::datanode
