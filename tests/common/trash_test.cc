#include "common/trash.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

absl::Time At(int year, int month, int day, int hour, int minute, int second) {
  return absl::FromCivil(absl::CivilSecond(year, month, day, hour, minute, second), absl::UTCTimeZone());
}

TEST(Trash, CheckpointsAreNamedAfterTheTime) {
  EXPECT_EQ(TrashCheckpointName(At(2026, 3, 1, 4, 5, 6)), "260301040506");
  EXPECT_EQ(TrashCheckpointName(At(2026, 3, 1, 4, 5, 6), 12), "260301040506-12");
  EXPECT_EQ(TrashOf("ada"), "/user/ada/.Trash");
}

TEST(Trash, NamesOfCheckpointsAreReadBack) {
  for (const absl::Time time : {At(2000, 1, 1, 0, 0, 0), At(2024, 2, 29, 23, 59, 59), At(2099, 12, 31, 23, 59, 59)}) {
    EXPECT_EQ(TrashCheckpointTime(TrashCheckpointName(time)), time);
    EXPECT_EQ(TrashCheckpointTime(TrashCheckpointName(time, 3)), time);
  }
  EXPECT_EQ(TrashCheckpointTime("2603010405"), At(2026, 3, 1, 4, 5, 0));
}

TEST(Trash, OtherNamesAreNoCheckpoints) {
  for (const char* name : {"", "Current", "26030104050", "2603010405066", "261301040506", "260230040506", "260301240506", "260301046006",
                           "260301040560", "260301040506-", "260301040506-x", "260301040506-1-2", "-1", "2603010405 6", "+60301040506"})
    EXPECT_FALSE(TrashCheckpointTime(name)) << name;
}

TEST(Trash, CheckpointsAreMadeAtLeastOnceInATrashInterval) {
  EXPECT_EQ(TrashCheckpointInterval(absl::Minutes(60), absl::ZeroDuration()), absl::Minutes(60));
  EXPECT_EQ(TrashCheckpointInterval(absl::Minutes(60), absl::Minutes(10)), absl::Minutes(10));
  EXPECT_EQ(TrashCheckpointInterval(absl::Minutes(60), absl::Minutes(61)), absl::Minutes(60));
  EXPECT_EQ(TrashCheckpointInterval(absl::ZeroDuration(), absl::Minutes(10)), absl::ZeroDuration());
}

}  // namespace
}  // namespace cairn
