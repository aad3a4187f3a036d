#include "datanode/transfer/balance_pace.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "common/api/balance.h"
#include "tests/testing/sim_world.h"

namespace cairn::datanode {
namespace {

constexpr uint64_t kRate = 1'000'000;
constexpr uint64_t kSecond = kRate;  // Bytes of one.

// In milliseconds.
double From(SteadyTime start, SteadyTime time) { return absl::ToDoubleMilliseconds(time - start); }

TEST(BalancePace, BytesOfAllStreamsFollowOneAnother) {
  BalancePace pace(kRate);
  const SteadyTime now = SteadyTime::FromStart(absl::Seconds(100));
  const auto take = [&pace](uint64_t bytes, SteadyTime at) { return pace.TimeOf(pace.Take(bytes, at), at); };
  EXPECT_NEAR(From(now, take(kSecond, now)), 800, 0.01);  // The burst: a fifth of a second ahead.
  EXPECT_NEAR(From(now, take(kSecond / 2, now)), 1300, 0.01);
  EXPECT_NEAR(From(now, take(kSecond / 2, now + absl::Milliseconds(1))), 1800, 0.01);
  // What was not used is not saved up.
  const SteadyTime later = now + absl::Hours(1);
  EXPECT_NEAR(From(later, take(kSecond, later)), 800, 0.01);
}

TEST(BalancePace, AChangeIsFeltByThoseThatHaveTakenTheirsAlready) {
  BalancePace pace(kRate);
  const SteadyTime now = SteadyTime::FromStart(absl::Seconds(100));
  const BalancePace::Place first = pace.Take(10 * kSecond, now);
  EXPECT_NEAR(From(now, pace.TimeOf(first, now)), 9800, 0.01);
  const SteadyTime later = now + absl::Milliseconds(4800);  // Half of it is left.
  pace.Set(10 * kRate, later);
  EXPECT_EQ(pace.bytes_per_second(), 10 * kRate);
  EXPECT_NEAR(From(later, pace.TimeOf(first, later)), 500, 0.01);
  EXPECT_NEAR(From(later, pace.TimeOf(pace.Take(kSecond, later), later)), 600, 0.01);
  pace.Set(0, later);  // As it was made.
  EXPECT_EQ(pace.bytes_per_second(), kRate);
  EXPECT_NEAR(From(later, pace.TimeOf(first, later)), 5000, 0.01);
}

TEST(BalancePace, NobodyWaitsForWhatWasTakenAtALowPaceBeforeARise) {
  BalancePace pace(kRate);
  const SteadyTime now = SteadyTime::FromStart(absl::Seconds(100));
  pace.Set(api::kLeastBalanceBytesPerSecond, now);
  for (int i = 0; i < 100; ++i) static_cast<void>(pace.Take(kSecond, now));
  pace.Set(0, now);
  EXPECT_LT(From(now, pace.TimeOf(pace.Take(1, now), now)), 3000);
}

TEST(BalancePace, NonsenseCountsAsTheLeastRate) {
  BalancePace pace(7);
  EXPECT_EQ(pace.bytes_per_second(), api::kLeastBalanceBytesPerSecond);
  pace.Set(1, SteadyTime());
  EXPECT_EQ(pace.bytes_per_second(), api::kLeastBalanceBytesPerSecond);
}

TEST(BalancePace, ReceiversThatTakeWithoutWaitingPutNobodyOffForLong) {
  BalancePace pace(kRate);
  const SteadyTime now = SteadyTime::FromStart(absl::Seconds(100));
  for (int i = 0; i < 1000; ++i) static_cast<void>(pace.Take(kSecond, now));
  EXPECT_LT(From(now, pace.TimeOf(pace.Take(kSecond, now), now)), 31'000);
}

class BalancePaceWait : public ::testing::Test {
 protected:
  void Start(uint64_t bytes, SteadyTime deadline, uint64_t packet = kPacket) {
    group_->Spawn("wait", [this, bytes, deadline, packet]() -> Awaitable<void> { return Run(bytes, deadline, packet); });
  }
  Awaitable<void> Run(uint64_t bytes, SteadyTime deadline, uint64_t packet) {
    for (uint64_t done = 0; done < bytes; done += packet)
      co_await pace_.Wait(executor_.get(), group_.get(), std::min(packet, bytes - done), deadline);
    ended_.push_back(From(start_, executor_->clock().Now()));
  }

  static constexpr uint64_t kPacket = 2 * kSecond;
  cairn::testing::SimWorld world_{{.seed = 1}};
  const std::unique_ptr<Executor> executor_ = world_.executors().NewExecutor("lane");
  const std::unique_ptr<TaskGroup> group_ = std::make_unique<TaskGroup>(executor_.get());
  BalancePace pace_{kRate};
  const SteadyTime start_ = world_.Now();
  std::vector<double> ended_;  // In milliseconds from the start.
};

TEST_F(BalancePaceWait, EndsInTimeAtItsDeadlineOrSoonAfterAStop) {
  Start(kPacket, SteadyTime::Infinite());            // 2 s, less the burst.
  Start(kPacket, start_ + absl::Milliseconds(500));  // Would be 4 s.
  Start(kPacket, SteadyTime::Infinite());            // 6 s.
  world_.RunFor(absl::Seconds(3));
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_NEAR(ended_[0], 500, 0.01);
  EXPECT_NEAR(ended_[1], 1800, 0.01);
  bool over = false;
  group_->StopAndThen([&] { over = true; });
  world_.RunFor(absl::Milliseconds(250));
  EXPECT_TRUE(over);
  EXPECT_EQ(ended_.size(), 3u);
}

TEST_F(BalancePaceWait, LooksAgainAfterAChange) {
  pace_.Set(api::kLeastBalanceBytesPerSecond, world_.Now());
  Start(kPacket, SteadyTime::Infinite());  // Half a minute.
  world_.RunFor(absl::Seconds(2));
  EXPECT_TRUE(ended_.empty());
  pace_.Set(100 * kRate, world_.Now());
  world_.RunFor(absl::Milliseconds(500));
  ASSERT_EQ(ended_.size(), 1u);
  bool over = false;
  group_->StopAndThen([&] { over = true; });
  EXPECT_TRUE(world_.RunUntil([&] { return over; }, absl::Seconds(1)));
}

TEST_F(BalancePaceWait, AsManyMovesAsThereMayBeEndWithinTheirPatience) {
  constexpr uint64_t kBlock = 10 * kSecond;
  const double patience = absl::ToDoubleMilliseconds(pace_.PatienceFor(kBlock));
  for (uint32_t i = 0; i < api::kMostBalanceMoves; ++i) Start(kBlock, SteadyTime::Infinite(), kSecond / 4);
  world_.RunUntil([&] { return ended_.size() == api::kMostBalanceMoves; }, absl::Hours(1));
  ASSERT_EQ(ended_.size(), size_t{api::kMostBalanceMoves});
  EXPECT_LT(ended_.back(), patience);
  EXPECT_GT(ended_.back(), patience / 8);  // Four at once would have had to do with that.
  bool over = false;
  group_->StopAndThen([&] { over = true; });
  EXPECT_TRUE(world_.RunUntil([&] { return over; }, absl::Seconds(1)));
}

}  // namespace
}  // namespace cairn::datanode
