#include "common/fault_points.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "common/error.h"

namespace cairn {
namespace {

class FaultPoints : public ::testing::Test {
 protected:
  FaultPoints() { EnableFaultPoints(); }
  ~FaultPoints() override { DisarmAllFaults(); }
};

TEST_F(FaultPoints, DoNothingUntilArmed) {
  EXPECT_TRUE(FaultPoint("test.point").ok());
  EXPECT_FALSE(FaultHold("test.point").has_value());
  EXPECT_EQ(FaultHits("test.point"), 0u);
}

TEST_F(FaultPoints, FailWithTheirText) {
  ASSERT_TRUE(ArmFault("test.point", "error(disk 3 * gone)").ok());
  const absl::Status status = FaultPoint("test.point");
  EXPECT_NE(std::string(status.message()).find("disk 3 * gone"), std::string::npos) << status;
  EXPECT_TRUE(FaultPoint("test.other").ok());
  EXPECT_EQ(FaultHits("test.point"), 1u);
  ASSERT_TRUE(ArmFault("test.point", "").ok());
  EXPECT_TRUE(FaultPoint("test.point").ok());
}

TEST_F(FaultPoints, CountAndSkip) {
  ASSERT_TRUE(ArmFault("test.point", "error*2@1").ok());
  EXPECT_TRUE(FaultPoint("test.point").ok());
  EXPECT_FALSE(FaultPoint("test.point").ok());
  EXPECT_FALSE(FaultPoint("test.point").ok());
  EXPECT_TRUE(FaultPoint("test.point").ok());
  EXPECT_EQ(FaultHits("test.point"), 4u);
}

TEST_F(FaultPoints, HoldSaysHowLong) {
  ASSERT_TRUE(ArmFault("test.point", "delay(250)*1").ok());
  EXPECT_EQ(FaultHold("test.point"), absl::Milliseconds(250));
  EXPECT_FALSE(FaultHold("test.point").has_value());
  ASSERT_TRUE(ArmFault("test.point", "block").ok());
  EXPECT_EQ(FaultHold("test.point"), absl::InfiniteDuration());
}

TEST_F(FaultPoints, DelayReallyWaits) {
  ASSERT_TRUE(ArmFault("test.point", "delay(20)*1").ok());
  EXPECT_TRUE(FaultPoint("test.point").ok());
}

TEST_F(FaultPoints, RefuseOtherActions) {
  for (const char* action : {"explode", "delay", "delay(x)", "delay()", "error*", "error*x", "block(1)", "crash(now)"})
    EXPECT_EQ(KindOf(ArmFault("test.point", action)), ErrorKind::kInvalidArgument) << action;
  EXPECT_EQ(KindOf(ArmFault("", "error")), ErrorKind::kInvalidArgument);
}

TEST_F(FaultPoints, ComeFromTheEnvironment) {
  ASSERT_EQ(setenv("CAIRN_FAULTS", "test.one=error;test.two=delay(5);", 1), 0);
  EXPECT_TRUE(ArmFaultsFromEnvironment().ok());
  EXPECT_FALSE(FaultPoint("test.one").ok());
  EXPECT_EQ(FaultHold("test.two"), absl::Milliseconds(5));
  ASSERT_EQ(setenv("CAIRN_FAULTS", "nonsense", 1), 0);
  EXPECT_EQ(KindOf(ArmFaultsFromEnvironment()), ErrorKind::kInvalidArgument);
  ASSERT_EQ(unsetenv("CAIRN_FAULTS"), 0);
}

TEST_F(FaultPoints, CrashEndsTheProcess) {
  ASSERT_TRUE(ArmFault("test.point", "crash").ok());
  EXPECT_EXIT(static_cast<void>(FaultPoint("test.point")), ::testing::ExitedWithCode(134), "test.point");
}

}  // namespace
}  // namespace cairn
