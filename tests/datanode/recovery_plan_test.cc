#include "datanode/recovery/recovery_plan.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace cairn::datanode {
namespace {

using cairn::testing::HasKind;
using cairn::testing::IsOk;
using Indexes = std::vector<size_t>;

ReplicaAnswer Found(ReplicaState state, uint64_t length, bool sure = true, uint64_t stamp = 1001) {
  ReplicaAnswer answer;
  answer.status = absl::OkStatus();
  answer.found = true;
  answer.stamp = GenerationStamp(stamp);
  answer.length = length;
  answer.state = state;
  answer.sure = sure;
  return answer;
}
ReplicaAnswer None() {
  ReplicaAnswer answer;
  answer.status = absl::OkStatus();
  return answer;
}
ReplicaAnswer Silent() {
  ReplicaAnswer answer;
  answer.status = absl::DeadlineExceededError("no answer in time");
  return answer;
}
constexpr ReplicaState kFinalized = ReplicaState::kFinalized;
constexpr ReplicaState kRbw = ReplicaState::kRbw;
constexpr ReplicaState kRwr = ReplicaState::kRwr;

void ExpectPlan(const RecoveryQuestion& question, const std::vector<ReplicaAnswer>& answers, uint64_t length, const Indexes& update) {
  const absl::StatusOr<RecoveryPlan> plan = PlanRecovery(question, answers);
  ASSERT_THAT(plan, IsOk());
  EXPECT_FALSE(plan->drop);
  EXPECT_EQ(plan->length, length);
  EXPECT_EQ(plan->update, update);
}

TEST(RecoveryPlan, MinimumOfTheSureOnes) { ExpectPlan({}, {Found(kRbw, 1000), Found(kRbw, 900), Found(kRwr, 1100)}, 900, {0, 1, 2}); }

TEST(RecoveryPlan, FinalizedLengthComesFirst) {
  ExpectPlan({}, {Found(kRbw, 1000), Found(kFinalized, 1000), Found(kRbw, 800)}, 1000, {0, 1});
}

TEST(RecoveryPlan, FinalizedReplicasThatDifferAreNotSettledByChance) {
  EXPECT_THAT(PlanRecovery({}, {Found(kFinalized, 1000), Found(kFinalized, 900)}), HasKind(ErrorKind::kReplicaNotFound));
}

TEST(RecoveryPlan, OnlyTheHighestStampCounts) {
  ExpectPlan({}, {Found(kRbw, 500, true, 1001), Found(kRbw, 1000, true, 1002), Found(kFinalized, 400, true, 1001)}, 1000, {1});
}

TEST(RecoveryPlan, UnsureReplicasFollowTheSureOnesIfTheyReach) {
  ExpectPlan({}, {Found(kRwr, 2000, false), Found(kRbw, 1000), Found(kRwr, 500, false)}, 1000, {0, 1});
}

TEST(RecoveryPlan, NoneSureNeedsEveryAnswerAndTakesTheLongest) {
  const std::vector<ReplicaAnswer> two = {Found(kRwr, 512, false), Found(kRwr, 1024, false)};
  ExpectPlan({}, two, 1024, {1});
  EXPECT_THAT(PlanRecovery({}, {two[0], two[1], Silent()}), HasKind(ErrorKind::kRetriable));
  EXPECT_THAT(PlanRecovery({.unreachable = 1}, two), HasKind(ErrorKind::kRetriable));
}

TEST(RecoveryPlan, LongDeadNodesArePassedOverOnlyIfWhatIsSafeIsThere) {
  const std::vector<ReplicaAnswer> one = {Found(kRwr, 1024, false)};
  ExpectPlan({.known_length = 1024, .unreachable = 1, .long_dead = 1}, one, 1024, {0});
  EXPECT_THAT(PlanRecovery({.known_length = 1025, .unreachable = 1, .long_dead = 1}, one), HasKind(ErrorKind::kRetriable));
  EXPECT_THAT(PlanRecovery({.known_length = 1024, .unreachable = 2, .long_dead = 1}, one), HasKind(ErrorKind::kRetriable));
}

TEST(RecoveryPlan, SureReplicasNeedNoOtherAnswer) { ExpectPlan({.unreachable = 2}, {Found(kRbw, 700), Silent()}, 700, {0}); }

TEST(RecoveryPlan, SafeBytesAreNeverCut) {
  EXPECT_THAT(PlanRecovery({.known_length = 701}, {Found(kRbw, 700)}), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_THAT(PlanRecovery({.known_length = 701}, {Found(kRbw, 700), Silent()}), HasKind(ErrorKind::kRetriable));
  ExpectPlan({.known_length = 700}, {Found(kRbw, 700)}, 700, {0});
}

TEST(RecoveryPlan, WhatNobodyHasAnyMoreIsCutOnlyWhenAllHaveAnsweredAndNoneIsSure) {
  const std::vector<ReplicaAnswer> unsure = {Found(kRwr, 512, false), Found(kRwr, 1024, false), None()};
  ExpectPlan({.known_length = 1500}, unsure, 1024, {1});
  EXPECT_THAT(PlanRecovery({.known_length = 1500}, {unsure[0], unsure[1], Silent()}), HasKind(ErrorKind::kRetriable));
  EXPECT_THAT(PlanRecovery({.known_length = 1500, .unreachable = 1, .long_dead = 1}, unsure), HasKind(ErrorKind::kRetriable));
  // What was synced or closed was on disk; a corrupt replica may hold what is missing.
  EXPECT_THAT(PlanRecovery({.known_length = 1500, .kept_length = 1025}, unsure), HasKind(ErrorKind::kReplicaNotFound));
  ExpectPlan({.known_length = 1500, .kept_length = 1024}, unsure, 1024, {1});
  ReplicaAnswer corrupt = Found(kRwr, 1500, false);
  corrupt.corrupt = true;
  EXPECT_THAT(PlanRecovery({.known_length = 1500}, {unsure[0], unsure[1], corrupt}), HasKind(ErrorKind::kReplicaNotFound));
}

TEST(RecoveryPlan, AmongUnsureOnesTheLongestDecidesWhateverTheStampOfAPipelineThatNeverStood) {
  ReplicaAnswer newer = Found(kRwr, 300, false);
  newer.stamp = GenerationStamp(1002);
  const std::vector<ReplicaAnswer> answers = {newer, Found(kRwr, 1000, false), Found(kRwr, 1000, false)};
  ExpectPlan({.known_length = 1000, .oldest_stamp = GenerationStamp(1001)}, answers, 1000, {1, 2});
  ExpectPlan({.known_length = 1000}, answers, 300, {0});  // Without a word on the older, they may have been left behind.
}

TEST(RecoveryPlan, SureReplicasOfTheStandingPipelineCountBeforeUnsureOnesOfOneThatNeverStood) {
  // The writer was gone when one node had the new stamp; then that node's host lost its power, and with it acknowledged bytes.
  const RecoveryQuestion question{.known_length = 300, .oldest_stamp = GenerationStamp(1002)};
  ExpectPlan(question, {Found(kRwr, 100, false, 1003), Found(kRbw, 500, true, 1002), Silent()}, 500, {1});
  ExpectPlan(question, {Found(kRwr, 600, false, 1003), Found(kRbw, 500, true, 1002), Silent()}, 500, {0, 1});
  // Sure at the higher stamp, it decides.
  ExpectPlan(question, {Found(kRbw, 400, true, 1003), Found(kRbw, 500, true, 1002)}, 400, {0});
  // Below the pipeline that stands nothing counts.
  EXPECT_THAT(PlanRecovery(question, {Found(kRbw, 500, true, 1001)}), HasKind(ErrorKind::kReplicaNotFound));
  // A node that had not a byte when it took the new stamp says nothing against those that have some.
  ExpectPlan({.oldest_stamp = GenerationStamp(1002)}, {Found(kRbw, 0, true, 1003), Found(kRbw, 500, true, 1002)}, 500, {1});
}

TEST(RecoveryPlan, ATruncateTakesReplicasThatAnEarlierRoundHasCut) {
  const RecoveryQuestion question{.known_length = 1000, .oldest_stamp = GenerationStamp(1001), .new_length = 400};
  ExpectPlan(question, {Found(kFinalized, 400, true, 1005), Found(kFinalized, 1000, true, 1001)}, 400, {0, 1});
}

TEST(RecoveryPlan, DroppedOnlyWhenEveryStorageSaidThatItHasNoByte) {
  absl::StatusOr<RecoveryPlan> plan = PlanRecovery({}, {None(), Found(kRbw, 0), None()});
  ASSERT_THAT(plan, IsOk());
  EXPECT_TRUE(plan->drop);
  EXPECT_THAT(PlanRecovery({}, {None(), Silent()}), HasKind(ErrorKind::kRetriable));
  EXPECT_THAT(PlanRecovery({.unreachable = 1, .long_dead = 1}, {None()}), HasKind(ErrorKind::kRetriable));
  EXPECT_THAT(PlanRecovery({.kept_length = 1}, {None(), None()}), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_THAT(PlanRecovery({.known_length = 1}, {None(), Silent()}), HasKind(ErrorKind::kRetriable));
  plan = PlanRecovery({.known_length = 1}, {None(), None()});  // Flushed, and every host has lost its power since.
  ASSERT_THAT(plan, IsOk());
  EXPECT_TRUE(plan->drop);
  plan = PlanRecovery({}, {});
  ASSERT_THAT(plan, IsOk());
  EXPECT_TRUE(plan->drop);
}

TEST(RecoveryPlan, EmptyReplicasDecideNothingWhileOthersHaveBytes) { ExpectPlan({}, {Found(kRbw, 0), Found(kRbw, 300), None()}, 300, {1}); }

TEST(RecoveryPlan, CorruptReplicasAreNoHelpAndNoReasonToDrop) {
  ReplicaAnswer corrupt = Found(kFinalized, 1000, true, 1009);
  corrupt.corrupt = true;
  ExpectPlan({}, {corrupt, Found(kRbw, 800)}, 800, {1});
  EXPECT_THAT(PlanRecovery({}, {corrupt, None()}), HasKind(ErrorKind::kReplicaNotFound));
}

TEST(RecoveryPlan, TruncateTakesEveryReplicaThatReaches) {
  const RecoveryQuestion question{.known_length = 1000, .new_length = 400};
  ExpectPlan(question, {Found(kFinalized, 1000), Found(kRwr, 512, false), Found(kRbw, 399)}, 400, {0, 1});
  EXPECT_THAT(PlanRecovery(question, {Found(kRwr, 399, false), None()}), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_THAT(PlanRecovery(question, {None(), None()}), HasKind(ErrorKind::kReplicaNotFound));  // Never dropped.
  ExpectPlan({.known_length = 1000, .new_length = 0}, {Found(kFinalized, 1000)}, 0, {0});
}

TEST(RecoveryPlan, ErrorsNameEveryStorageAndWhatItSaid) {
  ReplicaAnswer short_one = Found(kRbw, 700);
  short_one.storage_uuid = "DS-1";
  ReplicaAnswer silent = Silent();
  silent.storage_uuid = "DS-2";
  const absl::StatusOr<RecoveryPlan> plan = PlanRecovery({.known_length = 900, .kept_length = 800, .unreachable = 1}, {short_one, silent});
  const std::string message(plan.status().message());
  for (const char* part : {"700", "900", "800 of them on disk", "DS-1", "DS-2", "RBW", "1 of 2 answered", "no answer in time", "1 more"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
}

}  // namespace
}  // namespace cairn::datanode
