#include "namenode/replicas/repair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "namenode/replicas/invalidation_queue.h"

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SteadyTime At(int64_t seconds) { return SteadyTime::FromStart(absl::Seconds(seconds)); }

TEST(RepairQueue, OneCopyLeftComesFirstAndNoneLeftNotAtAll) {
  RepairQueue queue({});
  queue.Need(BlockId(1), 2, At(0));
  queue.Need(BlockId(2), 1, At(0));
  queue.Need(BlockId(3), 0, At(0));
  queue.Need(BlockId(4), 1, At(0));
  EXPECT_THAT(queue.Ready(9, At(0)), ElementsAre(BlockId(2), BlockId(4), BlockId(1)));
  EXPECT_EQ(queue.WithCopies(1), 2u);
  queue.Need(BlockId(1), 1, At(1));  // It got worse.
  EXPECT_THAT(queue.Ready(9, At(1)), ElementsAre(BlockId(1), BlockId(2), BlockId(4)));
  queue.Settled(BlockId(2));
  EXPECT_THAT(queue.Ready(1, At(1)), ElementsAre(BlockId(1)));
  EXPECT_EQ(queue.size(), 3u);
}

TEST(RepairQueue, FailureTimeoutAndLostSourceEndARepair) {
  RepairQueue::Limits limits;
  limits.per_node = 1;
  limits.timeout = absl::Seconds(100);
  limits.retry_after = absl::Seconds(5);
  RepairQueue queue(limits);
  for (uint64_t id : {1, 2, 3}) {
    queue.Need(BlockId(id), 1, At(0));
    queue.Started({id, BlockId(id), "source" + std::to_string(id), {"target" + std::to_string(id)}}, At(0));
  }
  EXPECT_THAT(queue.Ready(9, At(0)), IsEmpty());
  EXPECT_FALSE(queue.HasRoom("target1"));
  queue.Outcome(1, false, At(1));
  EXPECT_TRUE(queue.HasRoom("target1"));
  EXPECT_TRUE(queue.HasRoom("source1"));
  EXPECT_THAT(queue.Ready(9, At(5)), IsEmpty());  // Not at once.
  EXPECT_THAT(queue.Ready(9, At(6)), ElementsAre(BlockId(1)));
  queue.SourceLost("source2", At(6));
  EXPECT_THAT(queue.Ready(9, At(20)), ElementsAre(BlockId(1), BlockId(2)));
  queue.Expire(At(99));
  EXPECT_TRUE(queue.IsUnderRepair(BlockId(3)));
  queue.Expire(At(100));
  EXPECT_FALSE(queue.IsUnderRepair(BlockId(3)));
  EXPECT_THAT(queue.Ready(9, At(100)), SizeIs(3));
  EXPECT_EQ(queue.running(), 0u);
}

TEST(RepairQueue, DoneLeavesTimeForTheTargetsOwnWord) {
  RepairQueue queue({});
  queue.Need(BlockId(1), 1, At(0));
  queue.Started({7, BlockId(1), "a", {"b"}}, At(0));
  queue.Outcome(7, true, At(3));
  queue.Expire(At(12));
  EXPECT_TRUE(queue.IsUnderRepair(BlockId(1)));
  queue.Expire(At(13));
  EXPECT_FALSE(queue.IsUnderRepair(BlockId(1)));
  queue.Outcome(7, false, At(14));  // Long forgotten.
  EXPECT_THAT(queue.Ready(9, At(14)), ElementsAre(BlockId(1)));
}

TEST(RepairQueue, TurnsAwayWhatItCannotHold) {
  RepairQueue::Limits limits;
  limits.blocks = 1;
  RepairQueue queue(limits);
  EXPECT_TRUE(queue.Need(BlockId(1), 1, At(0)));
  EXPECT_FALSE(queue.Need(BlockId(2), 1, At(0)));
  EXPECT_TRUE(queue.Need(BlockId(1), 2, At(0)));
}

TEST(InvalidationQueue, WaitingIsBoundedAndTakenInOrder) {
  InvalidationQueue::Limits limits;
  limits.waiting_per_storage = 2;
  InvalidationQueue queue(limits, 1);
  EXPECT_TRUE(queue.Add(StorageNumber(1), BlockId(32), At(0)));
  EXPECT_TRUE(queue.Add(StorageNumber(1), BlockId(16), At(4)));
  EXPECT_TRUE(queue.Add(StorageNumber(1), BlockId(16), At(4)));  // Already there.
  EXPECT_FALSE(queue.Add(StorageNumber(1), BlockId(48), At(4)));
  EXPECT_TRUE(queue.Add(StorageNumber(2), BlockId(48), At(4)));  // Another storage's set.
  EXPECT_EQ(queue.OldestAge(At(9)), absl::Seconds(9));
  EXPECT_THAT(queue.Take(StorageNumber(1), 1), ElementsAre(BlockId(16)));
  queue.ForgetWaiting(StorageNumber(1));
  EXPECT_EQ(queue.waiting(), 1u);
}

TEST(InvalidationQueue, ToldUntilTheRightAnswerOrAPassingWalk) {
  InvalidationQueue queue({}, 100);
  const StorageNumber s(1);
  ASSERT_EQ(queue.Tell(s, BlockId(16), GenerationStamp(1), Incarnation(1), At(0)), 100u);
  ASSERT_EQ(queue.Tell(s, BlockId(32), GenerationStamp(1), Incarnation(1), At(0)), 101u);
  ASSERT_EQ(queue.Tell(s, BlockId(48), GenerationStamp(1), Incarnation(1), At(0)), 102u);
  EXPECT_EQ(queue.Tell(s, BlockId(16), GenerationStamp(1), Incarnation(1), At(0)), std::nullopt);
  queue.Kept(s, BlockId(16), 7, At(1));  // An older start's command.
  EXPECT_TRUE(queue.IsTold(s, BlockId(16), GenerationStamp(1)));
  queue.Kept(s, BlockId(16), 100, At(1));
  EXPECT_FALSE(queue.IsTold(s, BlockId(16), GenerationStamp(1)));
  queue.Passed(s, 0, 100, Incarnation(1));  // The same process may still act.
  EXPECT_TRUE(queue.IsTold(s, BlockId(32), GenerationStamp(1)));
  queue.Passed(s, 33, 100, Incarnation(2));
  EXPECT_TRUE(queue.IsTold(s, BlockId(32), GenerationStamp(1)));
  EXPECT_FALSE(queue.IsTold(s, BlockId(48), GenerationStamp(1)));
  queue.Dropped(s, BlockId(32), At(2));
  EXPECT_EQ(queue.told(), 0u);
}

TEST(InvalidationQueue, WhatWasSentTwiceStaysTillBothSendingsAreOver) {
  InvalidationQueue queue({}, 1);
  const StorageNumber s(1);
  queue.Tell(s, BlockId(16), GenerationStamp(1), Incarnation(1), At(0));
  EXPECT_THAT(queue.Resend(s, Incarnation(2), true, At(1)), IsEmpty());
  EXPECT_THAT(queue.Resend(s, Incarnation(1), false, At(1)), IsEmpty());
  ASSERT_THAT(queue.Resend(s, Incarnation(1), true, At(1)), SizeIs(1));
  queue.Dropped(s, BlockId(16), At(2));
  EXPECT_TRUE(queue.IsTold(s, BlockId(16), GenerationStamp(1)));
  EXPECT_THAT(queue.ToldOf(BlockId(16)), ElementsAre(s));
  EXPECT_THAT(queue.Resend(s, Incarnation(1), true, At(3)), IsEmpty());
  queue.Kept(s, BlockId(16), 1, At(4));
  EXPECT_FALSE(queue.IsTold(s, BlockId(16), GenerationStamp(1)));

  queue.Tell(s, BlockId(32), GenerationStamp(1), Incarnation(1), At(10));
  queue.Resend(s, Incarnation(1), true, At(11));
  queue.Dropped(s, BlockId(32), At(12));
  queue.Resend(s, Incarnation(1), false, At(12 + 599));
  EXPECT_TRUE(queue.IsTold(s, BlockId(32), GenerationStamp(1)));
  queue.Resend(s, Incarnation(1), false, At(12 + 600));
  EXPECT_FALSE(queue.IsTold(s, BlockId(32), GenerationStamp(1)));
}

// A command at an old stamp cannot act on a replica that was recovered since, however long its second answer takes.
TEST(InvalidationQueue, ReplicaWhoseStampHasRisenIsToldAnew) {
  InvalidationQueue queue({}, 1);
  const StorageNumber s(1);
  const BlockId block(16);
  ASSERT_EQ(queue.Tell(s, block, GenerationStamp(5), Incarnation(1), At(0)), 1u);
  queue.Resend(s, Incarnation(1), true, At(1));
  queue.Kept(s, block, 1, At(2));
  EXPECT_TRUE(queue.IsTold(s, block, GenerationStamp(5)));  // The other sending may still come.
  EXPECT_FALSE(queue.IsTold(s, block, GenerationStamp(6)));
  ASSERT_EQ(queue.Tell(s, block, GenerationStamp(6), Incarnation(1), At(3)), 2u);
  EXPECT_TRUE(queue.IsTold(s, block, GenerationStamp(6)));
  queue.Kept(s, block, 1, At(4));  // Of the older one.
  EXPECT_TRUE(queue.IsTold(s, block, GenerationStamp(6)));
  queue.Dropped(s, block, At(5));
  EXPECT_EQ(queue.told(), 0u);
}

}  // namespace
}  // namespace cairn::namenode
