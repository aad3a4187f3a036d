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
// The next scan of all blocks may be ten minutes away. Seldom; that is what a replica needs that was dropped and whose disk failed before
// its file was unlinked.
constexpr absl::Duration kAtLast = absl::Minutes(25);
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

TEST(Convergence, RotThatNobodyReadsIsFoundByTheScannerAndHealedFromTheOtherCopy) {
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    ConvergenceWorld world(seed);
    for (int block = 0; block < 20; ++block) world.Do(Step::kBlockAdded);
    ASSERT_EQ(world.Converge(kSoon), "") << world.story();
    const size_t rotten = world.RotOneOfTwo();
    ASSERT_GE(rotten, 1u);
    EXPECT_EQ(world.scan_errors(), 0u);
    world.RunFor(absl::Minutes(12));
    EXPECT_EQ(world.scan_errors(), rotten);
    ASSERT_EQ(world.Converge(kAtLast), "") << world.story();
    EXPECT_TRUE(world.AllVerify());
  }
}

TEST(Convergence, AnyOrder) {
  constexpr int kOrdersOfAWorld = 20;
  PropertyRun runs("Convergence.AnyOrder", absl::Seconds(20));
  uint64_t orders = 0, late = 0;
  absl::Duration longest;
  while (const std::optional<uint64_t> seed = runs.NextSeed()) {
    ConvergenceWorld world(*seed);
    for (int order = 0; order < kOrdersOfAWorld; ++order, ++orders) {
      const uint64_t steps = 2 + world.chance().Below(7);
      for (uint64_t step = 0; step < steps; ++step) {
        world.Do(static_cast<Step>(world.chance().Below(ConvergenceWorld::kSteps)));
        // Mostly close together: half of what happens does so before the step before it has been told.
        world.RunFor(absl::Microseconds(1) * world.chance().Below(uint64_t{1} << world.chance().Below(21)));
      }
      ASSERT_EQ(world.Converge(kAtLast), "") << runs.Replay() << world.story();
      late += world.last() > kSoon ? 1 : 0;
    }
    longest = std::max(longest, world.longest());
  }
  EXPECT_LE(late, 1 + orders / 100);
  std::printf("%llu orders, %llu took more than two minutes, the longest %s\n", static_cast<unsigned long long>(orders),
              static_cast<unsigned long long>(late), absl::FormatDuration(longest).c_str());
}

}  // namespace
}  // namespace cairn::testing
