#include "datanode/storage/volume_spread.h"

#include <vector>

#include <gtest/gtest.h>

namespace cairn::datanode {
namespace {

TEST(FindShift, EvenVolumesAreLeftAlone) {
  EXPECT_EQ(FindShift({}, 10), std::nullopt);
  EXPECT_EQ(FindShift({{900, 1000}}, 10), std::nullopt);
  EXPECT_EQ(FindShift({{500, 1000}, {500, 1000}}, 0), std::nullopt);
  EXPECT_EQ(FindShift({{500, 1000}, {400, 1000}}, 10), std::nullopt);  // Ten points are not more than ten.
  EXPECT_NE(FindShift({{501, 1000}, {400, 1000}}, 10), std::nullopt);
}

TEST(FindShift, FullestGivesToTheEmptiest) {
  const auto shift = FindShift({{500, 1000}, {100, 1000}, {900, 1000}, {300, 1000}}, 10);
  ASSERT_TRUE(shift.has_value());
  EXPECT_EQ(shift->from, 2u);
  EXPECT_EQ(shift->to, 1u);
  EXPECT_NEAR(shift->spread_percent, 80, 0.001);
  EXPECT_NEAR(static_cast<double>(shift->most_bytes), 400, 1);  // Then both have 500.
}

TEST(FindShift, SharesCountNotBytes) {
  // The large one holds more, and is emptier.
  const auto shift = FindShift({{400, 1000}, {1000, 10'000}}, 10);
  ASSERT_TRUE(shift.has_value());
  EXPECT_EQ(shift->from, 0u);
  EXPECT_EQ(shift->to, 1u);
  const double moved = static_cast<double>(shift->most_bytes);
  EXPECT_NEAR((400 - moved) / 1000, (1000 + moved) / 10'000, 0.001);
}

TEST(FindShift, VolumeThatMayHoldNothingIsLeftOut) {
  EXPECT_EQ(FindShift({{0, 0}, {100, 1000}}, 10), std::nullopt);
  const auto shift = FindShift({{0, 0}, {100, 1000}, {900, 1000}}, 10);
  ASSERT_TRUE(shift.has_value());
  EXPECT_EQ(shift->from, 2u);
  EXPECT_EQ(shift->to, 1u);
}

TEST(FindShift, OnesThatMayNotGiveOrTakeLeaveItToTheNext) {
  std::vector<VolumeLoad> loads = {{900, 1000}, {700, 1000}, {100, 1000}, {300, 1000}};
  loads[0].may_give = false;
  loads[2].may_take = false;
  const auto shift = FindShift(loads, 10);
  ASSERT_TRUE(shift.has_value());
  EXPECT_EQ(shift->from, 1u);
  EXPECT_EQ(shift->to, 3u);
  loads[1].may_give = false;
  EXPECT_EQ(FindShift(loads, 10), std::nullopt);  // The one that is left is the emptiest itself, of those that may take.
}

}  // namespace
}  // namespace cairn::datanode
