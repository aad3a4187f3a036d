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
  double fullness = 0;  // 0 to 1.
  size_t queued = 0;    // Work that waits for its disk.
};

// Above it a volume is taken only if no other has room: the last percents of a file system are slow, and others need them to live.
inline constexpr double kHighMark = 0.95;

// Draws one, the likelier the more room it has and the less its disk has to do: the emptiest one alone would take all the writes and be the
// slowest. Null if there is none. Pure.
Volume* ChooseVolume(const std::vector<VolumeChoice>& choices, Random* random);

}  // namespace cairn::datanode
