#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/env/random.h"

namespace cairn::datanode {

class Volume;

// A volume with room for a new replica.
struct VolumeChoice {
  Volume* volume = nullptr;
  uint64_t free_bytes = 0;
  double fullness = 0;       // 0 to 1.
  size_t queued = 0;         // Work that waits for its disk.
  double times_as_slow = 0;  // As the others, of one that is far above them; else 0.
};

// Above it a volume is taken only if no other has room: the last percents of a file system are slow, and others need them to live.
inline constexpr double kHighMark = 0.95;

// Takes the slowest out, at most `most` of them, and never more than half: with two slow disks writes go on, on one. Half of those below
// the high mark, if there are any: else a full one could be all that is left. Pure.
void ExcludeSlow(std::vector<VolumeChoice>* choices, size_t most);

// Draws one, the likelier the more room it has and the less its disk has to do: the emptiest one alone would take all the writes and be the
// slowest. Null if there is none. Pure.
Volume* ChooseVolume(const std::vector<VolumeChoice>& choices, Random* random);

}  // namespace cairn::datanode
