#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace cairn {

// The one in the middle; of two in the middle the lower one. `values` is not empty.
template <typename T>
T LowerMedian(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return std::move(*middle);
}

}  // namespace cairn
