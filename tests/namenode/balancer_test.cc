// The balancer through a whole replica plane, with DataNodes that are only a protocol.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/namenode/balancer_fixture.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(BalancerTest, ANewNodeIsFilledToWithinTheThresholdAndNoBlockLosesACopy) {
  Start(4);
  Connect();
  Write(60, {0, 1, 2});
  Age();
  const v1::BalanceResponse end = Drive(7);
  EXPECT_EQ(end.outcome(), v1::BalanceResponse::BALANCED);
  EXPECT_EQ(end.left_bytes(), 0u);
  EXPECT_GE(end.moved_blocks(), 40u);
  EXPECT_EQ(end.moved_bytes(), 100 * end.moved_blocks());
  EXPECT_EQ(end.failed_moves(), 0u);
  EXPECT_NEAR(end.mean_percent(), 45, 0.1);
  for (size_t node = 0; node < 4; ++node) EXPECT_NEAR(Percent(node), 45, 5);
  ExpectWantedCopies();
  EXPECT_EQ(cluster_->plane->figures().moved_bytes, end.moved_bytes());
  // And nothing pulls it back.
  cluster_->world.RunFor(absl::Minutes(15));
  for (size_t node = 0; node < 4; ++node) EXPECT_NEAR(Percent(node), 45, 5);
  ExpectWantedCopies();
}

TEST_F(BalancerTest, TheSourcesReplicaGoesEvenIfAnotherNodeHasLessRoom) {
  Start(3);
  cluster_->nodes[1]->capacity_bytes = 2500;  // The least free space, but not the largest share in use.
  Connect();
  Write(10, {0, 1});
  Write(70, {0});
  Age();
  request_.add_sources("dn0");
  request_.set_threshold(1);
  EXPECT_EQ(Drive(1).outcome(), v1::BalanceResponse::BALANCED);
  for (size_t i = 0; i < 10; ++i) EXPECT_TRUE(cluster_->nodes[2]->Has(blocks_[i]));  // The lowest ids go first.
  for (size_t i = 0; i < 10; ++i) EXPECT_TRUE(cluster_->nodes[1]->Has(blocks_[i]));
  ExpectWantedCopies();
}

TEST_F(BalancerTest, NoBlockLosesARack) {
  Start(4);
  const absl::StatusOr<RackTable> racks = RackTable::Parse("dn0 /r1\ndn1 /r2\ndn2 /r1\ndn3 /r1\n");
  ASSERT_TRUE(racks.ok());
  cluster_->options.racks = std::make_shared<const RackTable>(*racks);
  Connect();
  Write(60, {0, 1});  // dn2 and dn3 stand beside dn0: only its copies may go there.
  Age();
  request_.set_idle_iterations(2);
  Drive(1);
  for (const BlockId block : blocks_) EXPECT_TRUE(cluster_->nodes[1]->Has(block));
  EXPECT_GT(cluster_->nodes[2]->replicas().size(), 10u);
  EXPECT_LT(cluster_->nodes[0]->replicas().size(), 40u);
  ExpectWantedCopies();
}

TEST_F(BalancerTest, ItGivesUpAfterIterationsThatMoveNothing) {
  Start(3);
  const absl::StatusOr<RackTable> racks = RackTable::Parse("dn0 /r1\ndn1 /r2\ndn2 /r2\n");
  ASSERT_TRUE(racks.ok());
  cluster_->options.racks = std::make_shared<const RackTable>(*racks);
  Connect();
  Write(60, {0, 1});
  Age();
  request_.add_sources("dn0");  // Whose blocks would be on one rack.
  request_.set_idle_iterations(3);
  const v1::BalanceResponse end = Drive(1);
  EXPECT_EQ(end.outcome(), v1::BalanceResponse::NO_MOVE_PROGRESS);
  EXPECT_EQ(end.iteration(), 3u);
  EXPECT_EQ(end.moved_blocks(), 0u);
  EXPECT_GT(end.left_bytes(), 0u);
  ExpectWantedCopies();
}

TEST_F(BalancerTest, BlocksThatAreNotBeyondDoubtStayWhereTheyAre) {
  Start(4);
  Connect();
  Write(60, {0, 1});
  const std::vector<BlockId> young(blocks_.begin(), blocks_.end());
  cluster_->Settle();
  request_.set_idle_iterations(1);
  EXPECT_EQ(Drive(1).outcome(), v1::BalanceResponse::NO_MOVE_PROGRESS);  // In the grace, all of them.
  for (const BlockId block : young) EXPECT_TRUE(cluster_->nodes[0]->Has(block) && cluster_->nodes[1]->Has(block));
  Age();
  // One of a writer, one that lacks a copy that nobody can make (the others wait for it for ever), one with a copy that is bad.
  v1::BlockRecord open = *cluster_->space.Block(blocks_[0]);
  open.set_state(v1::UNDER_CONSTRUCTION);
  cluster_->space.SetBlock(blocks_[0], open);
  v1::BlockRecord wide = *cluster_->space.Block(blocks_[1]);
  wide.set_replication(5);
  cluster_->space.SetBlock(blocks_[1], wide);
  cluster_->plane->OnBlocksChanged({blocks_[0], blocks_[1]});
  cluster_->Settle();
  EXPECT_EQ(Drive(2).outcome(), v1::BalanceResponse::BALANCED);
  for (size_t node = 0; node < 2; ++node) {
    EXPECT_TRUE(cluster_->nodes[node]->Has(blocks_[0]));
    EXPECT_TRUE(cluster_->nodes[node]->Has(blocks_[1]));
  }
}

TEST_F(BalancerTest, OneRunAtATimeAndASilentDriverIsForgotten) {
  Start(4);
  Connect();
  Write(60, {0, 1, 2});
  Age();
  for (const auto& node : cluster_->nodes) node->transfers = false;  // It goes on for ever.
  ASSERT_TRUE(Ask(1).ok());
  cluster_->world.RunFor(absl::Seconds(30));
  const absl::Status refused = Ask(2).status();
  EXPECT_EQ(KindOf(refused), ErrorKind::kAlreadyExists);
  EXPECT_EQ(ReasonOf(refused), "BALANCER_RUNNING");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("another balancer is running"));
  ASSERT_TRUE(Ask(1).ok());
  cluster_->world.RunFor(absl::Seconds(59));
  EXPECT_FALSE(Ask(2).ok());
  cluster_->world.RunFor(absl::Seconds(2));
  EXPECT_TRUE(Ask(2).ok());
  // A driver that goes in order makes room at once.
  const absl::StatusOr<v1::BalanceResponse> stopped = Ask(2, true);
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->outcome(), v1::BalanceResponse::STOPPED);
  EXPECT_TRUE(Ask(3).ok());
}

TEST_F(BalancerTest, AStoppedRunsMovesEndByThemselves) {
  Start(4);
  Connect();
  Write(60, {0, 1, 2});
  Age();
  for (const auto& node : cluster_->nodes) node->obeys = false;  // Copies land; sources keep theirs for now.
  ASSERT_TRUE(Ask(1).ok());
  Watch(absl::Seconds(3));
  const absl::StatusOr<v1::BalanceResponse> stopped = Ask(1, true);
  ASSERT_TRUE(stopped.ok());
  EXPECT_GT(stopped->in_flight(), 0u);
  const size_t ordered = cluster_->nodes[0]->commands.size();
  for (const auto& node : cluster_->nodes) {
    node->obeys = true;
    node->AnswerInvalidations();
  }
  Watch(absl::Seconds(30));
  EXPECT_EQ(cluster_->nodes[0]->commands.size(), ordered);
  ExpectWantedCopies();
  EXPECT_GT(cluster_->nodes[3]->replicas().size(), 0u);
}

TEST_F(BalancerTest, ANamenodeThatRestartsInTheMiddleLeavesAtMostACopyTooManyAndANewRunEndsWell) {
  Start(4);
  Connect();
  Write(60, {0, 1, 2});
  Age();
  for (const auto& node : cluster_->nodes) node->obeys = false;
  ASSERT_TRUE(Ask(1).ok());
  Watch(absl::Seconds(2));
  EXPECT_GT(cluster_->nodes[3]->replicas().size(), 0u);
  cluster_->CrashNamenode(true);
  cluster_->StartNamenode();
  for (const auto& node : cluster_->nodes) node->obeys = true;
  cluster_->ConnectAll();
  Watch(absl::Seconds(90));
  ExpectWantedCopies();
  EXPECT_EQ(Drive(1).outcome(), v1::BalanceResponse::BALANCED);  // Its driver did not even notice.
  for (size_t node = 0; node < 4; ++node) EXPECT_NEAR(Percent(node), 45, 5);
  ExpectWantedCopies();
}

TEST_F(BalancerTest, ANodeWithWhichAllMovesFailIsLeftAloneAndOthersGoOn) {
  Start(4);
  cluster_->options.repair_timeout = absl::Seconds(20);
  Connect();
  Write(60, {0, 1, 2});
  Age();
  cluster_->nodes[0]->transfers = false;  // Takes orders, and does nothing.
  const v1::BalanceResponse end = Drive(1);
  EXPECT_EQ(end.outcome(), v1::BalanceResponse::NO_MOVE_PROGRESS);
  EXPECT_GE(end.failed_moves(), 5u);
  EXPECT_LE(end.failed_moves(), 13u * end.iteration());  // Five, and the eight that may be under way with the fifth.
  EXPECT_EQ(cluster_->nodes[0]->replicas().size(), 60u);
  EXPECT_EQ(cluster_->nodes[3]->replicas().size(), 30u);  // The other two are down at the mean.
  ExpectWantedCopies();
  cluster_->nodes[0]->transfers = true;
  EXPECT_EQ(Drive(2).outcome(), v1::BalanceResponse::BALANCED);
  EXPECT_GE(cluster_->nodes[3]->replicas().size(), 40u);
  ExpectWantedCopies();
}

TEST_F(BalancerTest, NothingMovesInSafeModeOrWhileFreeingIsPaused) {
  Start(4);
  Connect();
  Write(60, {0, 1, 2});
  Age();
  cluster_->plane->SetSafeMode(true);
  cluster_->world.RunFor(absl::Seconds(1));
  EXPECT_EQ(KindOf(Ask(1).status()), ErrorKind::kSafeMode);
  cluster_->plane->SetSafeMode(false);
  cluster_->space.PauseReclaim(true);
  cluster_->world.RunFor(absl::Seconds(1));
  EXPECT_EQ(KindOf(Ask(1).status()), ErrorKind::kBusy);
  cluster_->space.PauseReclaim(false);
  ASSERT_TRUE(Ask(1).ok());
  cluster_->space.PauseReclaim(true);  // In the middle: what has landed waits, nothing new begins.
  cluster_->world.RunFor(absl::Seconds(2));
  const size_t landed = cluster_->nodes[3]->replicas().size();
  cluster_->world.RunFor(absl::Seconds(10));
  EXPECT_EQ(cluster_->nodes[3]->replicas().size(), landed);
  cluster_->space.PauseReclaim(false);
  EXPECT_EQ(Drive(1).outcome(), v1::BalanceResponse::BALANCED);
  cluster_->Settle();
  ExpectWantedCopies();
}

TEST_F(BalancerTest, RequestsThatMakeNoSenseAreRefused) {
  Start(2);
  Connect();
  EXPECT_EQ(KindOf(Ask(0).status()), ErrorKind::kInvalidArgument);
  for (const double threshold : {0.0, -1.0, 100.5}) {
    request_.set_threshold(threshold);
    EXPECT_EQ(KindOf(Ask(1).status()), ErrorKind::kInvalidArgument) << threshold;
  }
  request_.set_threshold(5);
  request_.add_sources("nobody");
  const absl::Status unknown = Ask(1).status();
  EXPECT_EQ(KindOf(unknown), ErrorKind::kNotFound);
  EXPECT_EQ(std::string(unknown.message()), "no DataNode 'nobody' is known here");
  request_.clear_sources();
  request_.add_exclude("nobody");  // One that has gone for good may stay in the file.
  EXPECT_TRUE(Ask(1).ok());
}

TEST_F(BalancerTest, OrdersAreOfTheirOwnClassAndNoMoreThanAllowedAtOnce) {
  Start(4);
  Connect();
  Write(60, {0, 1, 2});
  Age();
  for (const auto& node : cluster_->nodes) node->transfers = false;
  request_.set_max_moves(3);
  ASSERT_TRUE(Ask(1).ok());
  cluster_->world.RunFor(absl::Seconds(20));
  size_t orders = 0;
  for (const auto& node : cluster_->nodes) {
    EXPECT_LE(node->commands.size(), 3u);
    orders += node->commands.size();
    for (const v1::CommandDown& command : node->commands) {
      ASSERT_TRUE(command.has_transfer());
      EXPECT_EQ(command.transfer().traffic_class(), v1::BALANCING);
      ASSERT_EQ(command.transfer().targets_size(), 1);
      EXPECT_EQ(command.transfer().targets(0).datanode().uuid(), "dn3");
    }
  }
  EXPECT_EQ(orders, 3u);  // The target, too, takes three.
}

}  // namespace
}  // namespace cairn::namenode::testing
