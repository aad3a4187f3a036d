// Whatever happens to a NameNode, its DataNodes and what they say to one another: afterwards the NameNode's rows, the maps, the disks and
// the namespace agree, and soon.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/sim/convergence_world.h"
#include "tests/testing/property_run.h"

namespace cairn::testing {
namespace {

using Step = ConvergenceWorld::Step;

// A command whose stream broke, a walk that stood still, a repair that failed: each is tried again within a minute.
constexpr absl::Duration kSoon = absl::Minutes(2);
// From before the first's effects have left their process to when all of it is over.
constexpr absl::Duration kGaps[] = {absl::ZeroDuration(), absl::Microseconds(350), absl::Milliseconds(20), absl::Seconds(2)};

class ConvergencePairs : public ::testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(ConvergencePairs, BothViewsComeToTheDisksTruth) {
  const Step first = static_cast<Step>(std::get<0>(GetParam()));
  const Step second = static_cast<Step>(std::get<1>(GetParam()));
  for (size_t i = 0; i < std::size(kGaps); ++i) {
    ConvergenceWorld world(1 + i);
    for (int block = 0; block < 4; ++block) world.Do(Step::kBlockAdded);
    ASSERT_EQ(world.Converge(kSoon), "") << world.story();
    for (int time = 0; time < 2; ++time) {
      world.Do(Step::kBlockAdded);  // So that there is something to be said.
      world.Do(first);
      world.RunFor(kGaps[i]);
      world.Do(second);
      ASSERT_EQ(world.Converge(kSoon), "") << world.story();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvergencePairs,
                         ::testing::Combine(::testing::Range<size_t>(0, ConvergenceWorld::kSteps),
                                            ::testing::Range<size_t>(0, ConvergenceWorld::kSteps)),
                         [](const auto& pair) {
                           return fmt::format("{}Then{}", ConvergenceWorld::NameOf(static_cast<Step>(std::get<0>(pair.param))),
                                              ConvergenceWorld::NameOf(static_cast<Step>(std::get<1>(pair.param))));
                         });

TEST(Convergence, AnyOrder) {
  constexpr int kOrdersOfAWorld = 20;
  PropertyRun runs("Convergence.AnyOrder", absl::Seconds(20));
  uint64_t orders = 0;
  absl::Duration longest;
  while (const std::optional<uint64_t> seed = runs.NextSeed()) {
    ConvergenceWorld world(*seed);
    for (int order = 0; order < kOrdersOfAWorld; ++order, ++orders) {
      const uint64_t steps = 2 + world.random().Below(7);
      for (uint64_t step = 0; step < steps; ++step) {
        world.Do(static_cast<Step>(world.random().Below(ConvergenceWorld::kSteps)));
        // Mostly close together: half of what happens does so before the step before it has been told.
        world.RunFor(absl::Microseconds(1) * world.random().Below(uint64_t{1} << world.random().Below(21)));
      }
      ASSERT_EQ(world.Converge(kSoon), "") << runs.Replay() << world.story();
    }
    longest = std::max(longest, world.longest());
  }
  std::printf("%llu orders, the longest took %s to settle\n", static_cast<unsigned long long>(orders),
              absl::FormatDuration(longest).c_str());
}

}  // namespace
}  // namespace cairn::testing
