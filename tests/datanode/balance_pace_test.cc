#include "datanode/transfer/balance_pace.h"

#include <gtest/gtest.h>

#include "tests/testing/sim_world.h"

namespace cairn::datanode {
namespace {

TEST(BalancePace, BytesOfAllStreamsFollowOneAnother) {
  BalancePace pace(1000);
  const SteadyTime now = SteadyTime::FromStart(absl::Seconds(100));
  const SteadyTime first = pace.Take(1000, now);  // The burst: a fifth of a second ahead.
  EXPECT_EQ(first, now + absl::Milliseconds(800));
  EXPECT_EQ(pace.Take(500, now), first + absl::Milliseconds(500));
  EXPECT_EQ(pace.Take(500, now + absl::Milliseconds(1)), first + absl::Seconds(1));
  // What was not used is not saved up.
  const SteadyTime later = now + absl::Hours(1);
  EXPECT_EQ(pace.Take(1000, later), later + absl::Milliseconds(800));
}

TEST(BalancePace, AChangeCountsFromTheNextBytesAndZeroGoesBack) {
  BalancePace pace(1000);
  const SteadyTime now = SteadyTime::FromStart(absl::Seconds(100));
  const SteadyTime first = pace.Take(1000, now);
  pace.Set(10'000);
  EXPECT_EQ(pace.bytes_per_second(), 10'000u);
  EXPECT_EQ(pace.Take(1000, now), first + absl::Milliseconds(100));
  pace.Set(0);
  EXPECT_EQ(pace.bytes_per_second(), 1000u);
}

TEST(BalancePace, AWaitEndsInTimeAtItsDeadlineOrSoonAfterAStop) {
  cairn::testing::SimWorld world({.seed = 1});
  const std::unique_ptr<Executor> executor = world.executors().NewExecutor("lane");
  BalancePace pace(1000);
  TaskGroup group(executor.get());
  std::vector<absl::Duration> ended;
  const SteadyTime start = world.Now();
  const auto wait = [&](SteadyTime deadline) {
    group.Spawn("wait", [&, deadline]() -> Awaitable<void> {
      struct Body {
        static Awaitable<void> Run(BalancePace* pace, Executor* executor, TaskGroup* group, SteadyTime deadline,
                                   std::vector<absl::Duration>* ended, SteadyTime start) {
          co_await pace->Wait(executor, group, 2000, deadline);
          ended->push_back(executor->clock().Now() - start);
        }
      };
      return Body::Run(&pace, executor.get(), &group, deadline, &ended, start);
    });
  };
  wait(SteadyTime::Infinite());           // 2 s, less the burst.
  wait(start + absl::Milliseconds(500));  // Would be 4 s.
  wait(SteadyTime::Infinite());           // 6 s.
  world.RunFor(absl::Seconds(3));
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0], absl::Milliseconds(500));
  EXPECT_EQ(ended[1], absl::Milliseconds(1800));
  bool over = false;
  group.StopAndThen([&] { over = true; });
  world.RunFor(absl::Milliseconds(250));
  EXPECT_TRUE(over);
  EXPECT_EQ(ended.size(), 3u);
}

}  // namespace
}  // namespace cairn::datanode
