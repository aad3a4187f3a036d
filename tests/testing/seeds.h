#pragma once

// Which seeds a simulation runs: those of ./dev sim --seed N --seeds K (environment variables CAIRN_SIM_SEED, CAIRN_SIM_SEEDS), else
// 1 to `count`.
//
//   for (const uint64_t seed : testing::Seeds(20)) {
//     SCOPED_TRACE(testing::ReplayHint(seed));
//     ...

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace cairn::testing {

inline uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it meanwhile.
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// ./dev test --long: counts and durations at full size, for nights.
inline bool LongRun() { return NumberFromEnvironment("CAIRN_TEST_LONG", 0) != 0; }
// A count or duration of the everyday run, or the one at full size.
template <class Value>
Value Scaled(Value everyday, Value full) {
  return LongRun() ? full : everyday;
}

inline std::vector<uint64_t> Seeds(uint64_t count) {
  const uint64_t first = NumberFromEnvironment("CAIRN_SIM_SEED", 1);
  const uint64_t wanted = NumberFromEnvironment("CAIRN_SIM_SEEDS", count);
  std::vector<uint64_t> seeds;
  for (uint64_t i = 0; i < wanted; ++i) seeds.push_back(first + i);
  return seeds;
}

inline std::string ReplayHint(uint64_t seed) {
  return "seed " + std::to_string(seed) + "; again: ./dev sim --seed " + std::to_string(seed);
}

}  // namespace cairn::testing
