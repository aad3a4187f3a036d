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
  for (uint64_t id : {1u, 2u, 3u}) {
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

TEST(RepairQueue, ParkedBlocksStepAsideEverLongerUntilSomethingChanges) {
  RepairQueue queue({});
  queue.Need(BlockId(1), 1, At(0));
  queue.Need(BlockId(2), 2, At(0));
  queue.Park(BlockId(1), ParkReason::kNoTarget, At(0));
  EXPECT_THAT(queue.Ready(9, At(0)), ElementsAre(BlockId(2)));  // The less urgent one has its way.
  EXPECT_EQ(queue.StateOf(BlockId(1)), "NO_TARGET");
  EXPECT_THAT(queue.Ready(9, At(4)), ElementsAre(BlockId(2)));
  EXPECT_THAT(queue.Ready(9, At(5)), ElementsAre(BlockId(1), BlockId(2)));
  EXPECT_EQ(queue.parked(), 1u);  // Until it is known to be otherwise.
  queue.Park(BlockId(1), ParkReason::kNoTarget, At(5));
  EXPECT_THAT(queue.Ready(9, At(14)), ElementsAre(BlockId(2)));
  EXPECT_THAT(queue.Ready(9, At(15)), SizeIs(2));
  queue.Park(BlockId(1), ParkReason::kNoSource, At(15));
  queue.Wake();  // A node came.
  EXPECT_THAT(queue.Ready(9, At(16)), SizeIs(2));
  queue.Park(BlockId(1), ParkReason::kNoSource, At(16));
  queue.Need(BlockId(1), 2, At(17));  // A copy came.
  EXPECT_THAT(queue.Ready(9, At(17)), ElementsAre(BlockId(1), BlockId(2)));
  EXPECT_EQ(queue.parked(), 0u);
  queue.Park(BlockId(1), ParkReason::kNoTarget, At(18));
  queue.Reconsider(BlockId(1), At(19));  // Perhaps a bad copy went, and left its node free.
  EXPECT_THAT(queue.Ready(9, At(19)), SizeIs(2));
  queue.Reconsider(BlockId(2), At(19));  // Not parked.
  queue.Reconsider(BlockId(3), At(19));  // Not known.
  for (int i = 0; i < 20; ++i) queue.Park(BlockId(1), ParkReason::kNoSource, At(20));
  EXPECT_THAT(queue.Ready(9, At(20 + 299)), ElementsAre(BlockId(2)));
  EXPECT_THAT(queue.Ready(9, At(20 + 300)), SizeIs(2));
}

TEST(RepairQueue, MassesThatAreWokenOrBecomeDueGetIntoTheLineBitByBit) {
  RepairQueue queue({});
  for (uint64_t id = 1; id <= 3500; ++id) {
    queue.Need(BlockId(id), 1, At(0));
    queue.Park(BlockId(id), ParkReason::kNoTarget, At(0));
  }
  queue.Wake();
  EXPECT_THAT(queue.Ready(9999, At(1)), SizeIs(1000));
  queue.Park(BlockId(1), ParkReason::kNoTarget, At(1));  // After the wake: it sleeps on.
  EXPECT_THAT(queue.Ready(9999, At(1)), SizeIs(1999));
  EXPECT_THAT(queue.Ready(9999, At(1)), SizeIs(2999));
  EXPECT_THAT(queue.Ready(9999, At(1)), SizeIs(3499));
  EXPECT_THAT(queue.Ready(9999, At(2)), SizeIs(3499));
  EXPECT_EQ(queue.parked(), 3500u);  // Until they are looked at.
  for (uint64_t id = 1; id <= 3500; ++id) queue.Park(BlockId(id), ParkReason::kNoTarget, At(2));
  EXPECT_THAT(queue.Ready(9999, At(2)), IsEmpty());
  EXPECT_THAT(queue.Ready(9999, At(100)), SizeIs(1000));
  for (uint64_t id = 1; id <= 3500; ++id) queue.Settled(BlockId(id));
  EXPECT_THAT(queue.Ready(9999, At(500)), IsEmpty());
  EXPECT_EQ(queue.size(), 0u);
}

TEST(RepairQueue, EveryBlockIsInExactlyOneState) {
  RepairQueue queue({});
  for (uint64_t id = 1; id <= 6; ++id) queue.Need(BlockId(id), 1, At(0));
  queue.Need(BlockId(7), 0, At(0));
  queue.Started({1, BlockId(1), "a", {"b"}}, At(0));
  queue.Started({2, BlockId(2), "a", {"b"}}, At(0));
  queue.Outcome(2, false, At(1));
  queue.Park(BlockId(3), ParkReason::kNoTarget, At(1));
  queue.Postpone(BlockId(4), absl::Seconds(1), At(1));
  EXPECT_EQ(queue.StateOf(BlockId(1)), "IN_FLIGHT");
  EXPECT_EQ(queue.StateOf(BlockId(2)), "TIMED_OUT");
  EXPECT_EQ(queue.StateOf(BlockId(3)), "NO_TARGET");
  EXPECT_EQ(queue.StateOf(BlockId(4)), "WAITING");
  EXPECT_EQ(queue.StateOf(BlockId(7)), "NO_SOURCE");
  EXPECT_EQ(queue.StateOf(BlockId(8)), "");
  EXPECT_EQ(queue.running(), 1u);
  EXPECT_EQ(queue.timed_out(), 1u);
  EXPECT_EQ(queue.parked(ParkReason::kNoTarget), 1u);
  EXPECT_EQ(queue.parked(ParkReason::kNoSource), 1u);
  EXPECT_EQ(queue.waiting(), 3u);
  EXPECT_EQ(queue.size(), 7u);
  ASSERT_THAT(queue.ParkedFrom(BlockId(4), 9, At(11)), SizeIs(1));
  EXPECT_EQ(queue.ParkedFrom(BlockId(4), 9, At(11))[0].age, absl::Seconds(11));
  // A timed-out one is so until it is tried again, whatever else is found out about it.
  EXPECT_THAT(queue.Ready(9, At(6)), ElementsAre(BlockId(2), BlockId(3), BlockId(4), BlockId(5), BlockId(6), BlockId(7)));
  queue.Started({3, BlockId(2), "a", {"b"}}, At(6));
  EXPECT_EQ(queue.timed_out(), 0u);
  for (uint64_t id = 1; id <= 7; ++id) queue.Settled(BlockId(id));
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.waiting() + queue.running() + queue.timed_out() + queue.parked(), 0u);
  EXPECT_TRUE(queue.HasRoom("a"));
  EXPECT_EQ(queue.OldestAge(At(9)), absl::ZeroDuration());
}

TEST(RepairQueue, HostsOfShortBlocksNeitherOverflowNorLiftTheThrottle) {
  RepairQueue::Limits limits;
  limits.blocks = 10'000;
  limits.per_node = 2;
  RepairQueue queue(limits);
  size_t turned_away = 0;
  for (uint64_t id = 1; id <= 400'000; ++id) turned_away += !queue.Need(BlockId(id), 1 + id % 2, At(0));
  EXPECT_EQ(queue.size(), 10'000u);
  EXPECT_EQ(turned_away, 390'000u);
  uint64_t command = 0;
  for (int64_t tick = 0; tick < 50; ++tick) {
    for (BlockId block : queue.Ready(200, At(tick)))
      if (queue.HasRoom("a") && queue.HasRoom("b")) queue.Started({++command, block, "a", {"b"}}, At(tick));
    EXPECT_LE(queue.running(), 2u);
    queue.Outcome(command, tick % 2 == 0, At(tick));
    EXPECT_EQ(queue.waiting() + queue.running() + queue.timed_out() + queue.parked(), queue.size());
  }
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
  queue.Answered(s, BlockId(16), 7);  // An older start's command.
  EXPECT_TRUE(queue.IsTold(s, BlockId(16), GenerationStamp(1)));
  queue.Answered(s, BlockId(16), 100);
  EXPECT_FALSE(queue.IsTold(s, BlockId(16), GenerationStamp(1)));
  queue.Passed(s, 0, 100, Incarnation(1));  // The same process may still act.
  EXPECT_TRUE(queue.IsTold(s, BlockId(32), GenerationStamp(1)));
  queue.Passed(s, 33, 100, Incarnation(2));
  EXPECT_TRUE(queue.IsTold(s, BlockId(32), GenerationStamp(1)));
  EXPECT_FALSE(queue.IsTold(s, BlockId(48), GenerationStamp(1)));
  queue.Answered(s, BlockId(32), 101);
  EXPECT_EQ(queue.told(), 0u);
}

TEST(InvalidationQueue, WhatWasSentTwiceStaysUntilItsNewestSendingIsAnswered) {
  InvalidationQueue queue({}, 1);
  const StorageNumber s(1);
  queue.Tell(s, BlockId(16), GenerationStamp(1), Incarnation(1), At(0));
  EXPECT_THAT(queue.Resend(s, Incarnation(2), true, At(1)), IsEmpty());
  EXPECT_THAT(queue.Resend(s, Incarnation(1), false, At(1)), IsEmpty());
  const std::vector<InvalidationQueue::Told> again = queue.Resend(s, Incarnation(1), true, At(1));
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].command_id, 2u);
  EXPECT_TRUE(queue.IsNewest(again[0]));
  queue.Answered(s, BlockId(16), 1);  // The first one has acted; the second still may.
  EXPECT_TRUE(queue.IsTold(s, BlockId(16), GenerationStamp(1)));
  EXPECT_THAT(queue.ToldOf(BlockId(16)), ElementsAre(s));
  queue.Answered(s, BlockId(16), 2);
  EXPECT_FALSE(queue.IsTold(s, BlockId(16), GenerationStamp(1)));
  EXPECT_FALSE(queue.IsNewest(again[0]));
}

// What a broken stream swallowed is never answered: the answer to the one that came through is enough, and nobody waits for another.
TEST(InvalidationQueue, OneAnswerIsEnoughWhenTheFirstSendingWasLost) {
  InvalidationQueue queue({}, 1);
  const StorageNumber s(1);
  queue.Tell(s, BlockId(16), GenerationStamp(1), Incarnation(1), At(0));
  const std::vector<InvalidationQueue::Told> again = queue.Resend(s, Incarnation(1), true, At(1));
  ASSERT_THAT(again, SizeIs(1));
  queue.Answered(s, BlockId(16), again[0].command_id);
  EXPECT_EQ(queue.told(), 0u);
}

// A command at an old stamp cannot act on a replica that was recovered since, however long its second answer takes.
TEST(InvalidationQueue, ReplicaWhoseStampHasRisenIsToldAnew) {
  InvalidationQueue queue({}, 1);
  const StorageNumber s(1);
  const BlockId block(16);
  ASSERT_EQ(queue.Tell(s, block, GenerationStamp(5), Incarnation(1), At(0)), 1u);
  queue.Resend(s, Incarnation(1), true, At(1));
  queue.Answered(s, block, 1);
  EXPECT_TRUE(queue.IsTold(s, block, GenerationStamp(5)));  // The other sending may still come.
  EXPECT_FALSE(queue.IsTold(s, block, GenerationStamp(6)));
  ASSERT_EQ(queue.Tell(s, block, GenerationStamp(6), Incarnation(1), At(3)), 3u);
  EXPECT_TRUE(queue.IsTold(s, block, GenerationStamp(6)));
  queue.Answered(s, block, 2);  // Of the older one.
  EXPECT_TRUE(queue.IsTold(s, block, GenerationStamp(6)));
  queue.Answered(s, block, 3);
  EXPECT_EQ(queue.told(), 0u);
}

}  // namespace
}  // namespace cairn::namenode
