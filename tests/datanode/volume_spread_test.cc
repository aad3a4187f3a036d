#include "datanode/storage/volume_spread.h"

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

TEST(FindShift, VolumeThatMayHoldNothingIsFull) {
  const auto shift = FindShift({{0, 0}, {100, 1000}}, 10);
  ASSERT_TRUE(shift.has_value());
  EXPECT_EQ(shift->from, 0u);
  EXPECT_EQ(shift->most_bytes, 0u);
}

}  // namespace
}  // namespace cairn::datanode
