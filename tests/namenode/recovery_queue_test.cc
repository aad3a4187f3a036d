#include "namenode/replicas/recovery_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SteadyTime At(double seconds) { return SteadyTime::FromStart(absl::Seconds(seconds)); }

RecoveryQueue::Limits Limits() {
  RecoveryQueue::Limits limits;
  limits.first_round = absl::Seconds(10);
  limits.longest_round = absl::Seconds(60);
  limits.first_pause = absl::Seconds(1);
  limits.longest_pause = absl::Seconds(8);
  limits.answer_within = absl::Seconds(2);
  return limits;
}

TEST(RecoveryQueue, ABlockIsDueOnceAndNotWhileItsRoundIsUnderWay) {
  RecoveryQueue queue(Limits());
  EXPECT_TRUE(queue.Need(BlockId(1), At(0)));
  EXPECT_FALSE(queue.Need(BlockId(1), At(1)));
  EXPECT_TRUE(queue.Need(BlockId(2), At(1)));
  EXPECT_THAT(queue.Due(9, At(0)), ElementsAre(BlockId(1)));
  EXPECT_THAT(queue.Due(1, At(1)), ElementsAre(BlockId(1)));
  queue.Preparing(BlockId(1), At(1));
  EXPECT_THAT(queue.Due(9, At(1)), ElementsAre(BlockId(2)));
  queue.Started(BlockId(1), GenerationStamp(50), 7, "dn1", At(1));
  EXPECT_EQ(queue.RecoveryIdOf(BlockId(1)), GenerationStamp(50));
  EXPECT_EQ(queue.Rounds(BlockId(1)), 1u);
  EXPECT_EQ(queue.running(), 1u);
  EXPECT_EQ(queue.OldestAge(At(5)), absl::Seconds(5));
  queue.Settled(BlockId(1));
  queue.Settled(BlockId(2));
  queue.Settled(BlockId(3));
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.running(), 0u);
}

TEST(RecoveryQueue, EachFailedRoundIsFollowedByALongerOneAfterALongerPause) {
  RecoveryQueue queue(Limits());
  queue.Need(BlockId(1), At(0));
  double now = 0;
  const double rounds[] = {10, 20, 40, 60, 60};
  const double pauses[] = {1, 2, 4, 8, 8};
  for (size_t i = 0; i < 5; ++i) {
    ASSERT_THAT(queue.Due(9, At(now)), SizeIs(1)) << i;
    EXPECT_EQ(queue.RoundTime(BlockId(1)), absl::Seconds(rounds[i]));
    queue.Started(BlockId(1), GenerationStamp(50 + i), i + 1, "dn1", At(now));
    now += rounds[i] + 2;
    queue.Expire(At(now - 0.001));
    EXPECT_EQ(queue.running(), 1u);
    queue.Expire(At(now));
    EXPECT_EQ(queue.running(), 0u);
    EXPECT_THAT(queue.Due(9, At(now + pauses[i] - 0.001)), IsEmpty());
    now += pauses[i];
  }
}

TEST(RecoveryQueue, ARoundEndsWithItsPrimaryAndOnlyTheNewestCounts) {
  RecoveryQueue queue(Limits());
  for (const uint64_t id : {1, 2, 3}) {
    queue.Need(BlockId(id), At(0));
    queue.Started(BlockId(id), GenerationStamp(50 + id), id, "dn" + std::to_string(id), At(0));
  }
  queue.Outcome(1, true, At(1));  // The namespace tells of those that went well.
  EXPECT_EQ(queue.running(), 3u);
  queue.Outcome(1, false, At(1));
  queue.Outcome(99, false, At(1));
  queue.PrimaryLost("dn2", At(1));
  queue.PrimaryLost("dn9", At(1));
  queue.Failed(BlockId(3), GenerationStamp(50), At(1));  // Of an earlier round.
  EXPECT_EQ(queue.running(), 1u);
  queue.Failed(BlockId(3), GenerationStamp(53), At(1));
  EXPECT_EQ(queue.running(), 0u);
  EXPECT_THAT(queue.Due(9, At(2)), ElementsAre(BlockId(1), BlockId(2), BlockId(3)));
}

TEST(RecoveryQueue, WhoHasNoPrimaryWaitsUntilADatanodeComes) {
  RecoveryQueue queue(Limits());
  queue.Need(BlockId(1), At(0));
  for (int i = 0; i < 4; ++i) queue.Postpone(BlockId(1), At(0));
  EXPECT_THAT(queue.Due(9, At(7)), IsEmpty());
  EXPECT_EQ(queue.Rounds(BlockId(1)), 0u);
  queue.PrimaryFound(At(7));
  EXPECT_THAT(queue.Due(9, At(7)), ElementsAre(BlockId(1)));
  queue.Started(BlockId(1), GenerationStamp(50), 1, "dn1", At(7));
  queue.Outcome(1, false, At(8));
  queue.PrimaryFound(At(8));  // It waits for another reason now.
  EXPECT_THAT(queue.Due(9, At(8)), IsEmpty());
}

TEST(RecoveryQueue, BlocksRoundsAndTheLoadOfANodeAreBounded) {
  RecoveryQueue::Limits limits = Limits();
  limits.blocks = 3;
  limits.running = 2;
  limits.per_node = 1;
  RecoveryQueue queue(limits);
  for (const uint64_t id : {1, 2, 3}) EXPECT_TRUE(queue.Need(BlockId(id), At(0)));
  EXPECT_FALSE(queue.Need(BlockId(4), At(0)));
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_THAT(queue.Due(9, At(0)), SizeIs(2));
  EXPECT_TRUE(queue.HasRoom("dn1"));
  queue.Started(BlockId(1), GenerationStamp(50), 1, "dn1", At(0));
  EXPECT_FALSE(queue.HasRoom("dn1"));
  EXPECT_TRUE(queue.HasRoom("dn2"));
  EXPECT_THAT(queue.Due(9, At(0)), SizeIs(1));
  queue.Preparing(BlockId(2), At(0));
  EXPECT_THAT(queue.Due(9, At(0)), IsEmpty());
  queue.Settled(BlockId(1));
  EXPECT_TRUE(queue.HasRoom("dn1"));
  EXPECT_THAT(queue.Due(9, At(0)), ElementsAre(BlockId(3)));
}

}  // namespace
}  // namespace cairn::namenode
