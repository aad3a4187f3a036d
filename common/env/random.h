#pragma once

// Chance, from one place. The generator is ours and fixed for ever (xoshiro256**, by Blackman and Vigna, public domain
// algorithm; seeded by SplitMix64), because std::*_distribution and std::shuffle differ between libraries and would make
// replays and stored choices depend on the compiler.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cairn {

// Not thread-safe: one owner. Copyable: a copy goes on with the same numbers.
class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t Next();
  // Uniform in [0, bound); bound > 0.
  uint64_t Below(uint64_t bound);
  // True with probability numerator / denominator.
  bool OneIn(uint64_t denominator) { return Below(denominator) == 0; }
  std::string Bytes(size_t count);
  // "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx".
  std::string Uuid();

  template <class Container>
  void Shuffle(Container& items) {
    for (size_t i = items.size(); i > 1; --i) {
      using std::swap;
      swap(items[i - 1], items[static_cast<size_t>(Below(i))]);
    }
  }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace cairn
