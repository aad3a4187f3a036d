// The balancer while not all is known that it decides by: after a start of the NameNode, while nodes' racks are asked for, while what
// is to go waits long for its turn.

#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/replicas/balance_plan.h"
#include "tests/namenode/balancer_fixture.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode::testing {
namespace {

using ::testing::HasSubstr;

class BalancerStarts : public BalancerTest {
 protected:
  // Three nodes in use, an empty one, and a NameNode that knows of them from before and has just started. Nobody has come yet.
  void RestartedAmongFour() {
    Start(4);
    Connect();
    Write(60, {0, 1, 2});
    Age();
    cluster_->CrashNamenode(true);
    cluster_->StartNamenode();
  }
  void ConnectNode(size_t node) {
    cluster_->nodes[node]->Connect(cluster_->plane.get());
    cluster_->Settle();
  }
  // It goes on, and has not planned yet.
  void ExpectWaiting(uint64_t run) {
    const absl::StatusOr<v1::BalanceResponse> response = Ask(run);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->outcome(), v1::BalanceResponse::RUNNING);
    EXPECT_EQ(response->iteration(), 0u);
  }
  void ExpectWaitingFor(int seconds) {
    for (int second = 0; second < seconds; ++second) {
      ExpectWaiting(1);
      cluster_->world.RunFor(absl::Seconds(1));
    }
  }
  // Of the sixty blocks of the three nodes that were in use.
  void ExpectTheEmptyNodeIsFilled() {
    EXPECT_EQ(Drive(1).outcome(), v1::BalanceResponse::BALANCED);
    EXPECT_GE(cluster_->nodes[3]->replicas().size(), 40u);
    ExpectWantedCopies();
  }
  static std::shared_ptr<const RackTable> Racks(const std::map<std::string, std::string>& known) {
    return std::make_shared<const RackTable>(RackTable::SoFar(known));
  }
  size_t Orders() const {
    size_t orders = 0;
    for (const auto& node : cluster_->nodes) orders += node->commands.size();
    return orders;
  }
};

TEST_F(BalancerStarts, NobodyIsBalancedBeforeAllHaveCome) {
  RestartedAmongFour();
  for (size_t node = 0; node < 3; ++node) {
    ExpectWaiting(1);
    ConnectNode(node);
  }
  ExpectWaiting(1);  // The three that are here are alike.
  ConnectNode(3);
  ExpectTheEmptyNodeIsFilled();
}

TEST_F(BalancerStarts, WhoDoesNotComeIsWaitedForUntilItIsLost) {
  RestartedAmongFour();
  for (size_t node = 0; node < 3; ++node) ConnectNode(node);
  ExpectWaitingFor(40);
  EXPECT_EQ(Drive(1, absl::Minutes(1)).outcome(), v1::BalanceResponse::BALANCED);
}

TEST_F(BalancerStarts, AWalkThatIsDueIsWaitedFor) {
  RestartedAmongFour();
  cluster_->nodes[0]->Restart();
  cluster_->nodes[0]->ranges_ahead = 0;  // It has much to do before.
  for (size_t node = 0; node < 4; ++node) ConnectNode(node);
  ExpectWaitingFor(25);
  cluster_->nodes[0]->ranges_ahead = 1;
  cluster_->nodes[0]->Restart();
  ConnectNode(0);
  ExpectTheEmptyNodeIsFilled();
}

TEST_F(BalancerStarts, ANameIsUnknownOnlyWhenAllHaveCome) {
  RestartedAmongFour();
  for (size_t node = 1; node < 4; ++node) ConnectNode(node);
  request_.add_sources("dn0");
  ExpectWaiting(1);
  ConnectNode(0);
  EXPECT_EQ(Drive(1).outcome(), v1::BalanceResponse::NO_MOVE_BLOCK);  // It is at the mean by then; the others do not give.
  cluster_->RestartNamenode();
  request_.add_sources("nobody");
  ExpectWaiting(2);
  for (size_t node = 0; node < 4; ++node) ConnectNode(node);
  const absl::Status unknown = Ask(2).status();
  EXPECT_EQ(KindOf(unknown), ErrorKind::kNotFound);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("'nobody'"));
  EXPECT_EQ(KindOf(Ask(3).status()), ErrorKind::kNotFound);  // And no run of it is left in the way.
}

TEST_F(BalancerStarts, AnswersNameTheEpochSoThatADriverNoticesARestart) {
  RestartedAmongFour();
  const absl::StatusOr<v1::BalanceResponse> response = Ask(1);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->epoch(), cluster_->epoch);
}

TEST_F(BalancerStarts, NothingMovesWhileARackIsAskedFor) {
  Start(3);
  cluster_->options.racks = Racks({{"dn0", "/r1"}, {"dn1", "/r2"}});
  Connect();
  Write(60, {0, 1});
  Age();
  for (const auto& node : cluster_->nodes) node->transfers = false;
  ExpectWaitingFor(10);
  cluster_->plane->SetRacks(Racks({{"dn0", "/r1"}, {"dn1", "/r2"}, {"dn2", "/r2"}}));
  cluster_->Settle();
  ASSERT_TRUE(Ask(1).ok());
  EXPECT_GT(Orders(), 0u);
  // Where the other copies are, none of these may go.
  for (const v1::CommandDown& command : cluster_->nodes[0]->commands) EXPECT_FALSE(command.has_transfer());
}

TEST_F(BalancerStarts, MovesPauseWhileTheRackOfANewcomerIsAskedFor) {
  Start(4);
  cluster_->options.racks = Racks({{"dn0", "/r"}, {"dn1", "/r"}, {"dn2", "/r"}, {"dn3", "/r"}});
  cluster_->options.balancer_moves_per_node = 1;
  Connect();
  Write(60, {0, 1, 2});
  Age();
  ASSERT_TRUE(Ask(1).ok());
  cluster_->world.RunUntil([&] { return Orders() > 2; }, absl::Seconds(10));
  cluster_->AddDatanode("dn4", {"s4"})->capacity_bytes = kCapacity;
  ConnectNode(4);
  const size_t orders = Orders();
  cluster_->world.RunFor(absl::Seconds(20));
  EXPECT_EQ(Orders(), orders);
  ASSERT_TRUE(Ask(1).ok());
  cluster_->plane->SetRacks(Racks({{"dn0", "/r"}, {"dn1", "/r"}, {"dn2", "/r"}, {"dn3", "/r"}, {"dn4", "/r"}}));
  EXPECT_EQ(Drive(1).outcome(), v1::BalanceResponse::BALANCED);
  EXPECT_GT(Orders(), orders);
}

TEST_F(BalancerStarts, AMoveToARackThatIsNewToTheBlockTakesTheSourcesPlace) {
  Start(3);
  const absl::StatusOr<RackTable> racks = RackTable::Parse("dn0 /r1\ndn1 /r2\ndn2 /r3\n");
  ASSERT_TRUE(racks.ok());
  cluster_->options.racks = std::make_shared<const RackTable>(*racks);
  cluster_->nodes[1]->capacity_bytes = 7000;  // The fullest: by the rule for any excess its copies would go.
  Connect();
  Write(60, {0, 1});
  Age();
  request_.add_sources("dn0");
  request_.set_idle_iterations(1);
  const v1::BalanceResponse end = Drive(1);
  EXPECT_GE(end.moved_blocks(), 10u);
  EXPECT_EQ(end.failed_moves(), 0u);
  EXPECT_EQ(cluster_->nodes[1]->replicas().size(), 60u);
  EXPECT_EQ(cluster_->nodes[0]->replicas().size() + cluster_->nodes[2]->replicas().size(), 60u);
  ExpectWantedCopies();
}

TEST_F(BalancerStarts, ALandedMoveDoesNotFailWhileItsSourceHasMuchElseToDrop) {
  Start(4);
  for (const auto& node : cluster_->nodes) node->invalidation_credit = 0;  // Deleters that are behind take no orders.
  Connect();
  Write(60, {0, 1, 2});
  Age();
  ASSERT_TRUE(Ask(1).ok());
  for (int second = 0; second < 400; ++second) {
    cluster_->world.RunFor(absl::Seconds(1));
    const absl::StatusOr<v1::BalanceResponse> response = Ask(1);
    ASSERT_TRUE(response.ok());
    ASSERT_EQ(response->failed_moves(), 0u) << second;
    ASSERT_EQ(response->outcome(), v1::BalanceResponse::RUNNING);
  }
  const absl::StatusOr<v1::BalanceResponse> waiting = Ask(1);
  EXPECT_GT(waiting->in_flight(), 0u);
  EXPECT_EQ(waiting->moved_blocks(), 0u);
  for (const auto& node : cluster_->nodes) {
    node->invalidation_credit = 1000;
    node->OpenCommands();
  }
  const v1::BalanceResponse end = Drive(1);
  EXPECT_EQ(end.outcome(), v1::BalanceResponse::BALANCED);
  EXPECT_EQ(end.failed_moves(), 0u);
  ExpectWantedCopies();
}

TEST_F(BalancerStarts, ALandedMoveWhoseSourceIsNotToGoAnyMoreEnds) {
  Start(4);
  for (const auto& node : cluster_->nodes) node->invalidation_credit = 0;
  Connect();
  Write(60, {0, 1, 2});
  Age();
  ASSERT_TRUE(Ask(1).ok());
  cluster_->world.RunFor(absl::Seconds(5));
  ASSERT_TRUE(Ask(1, true).ok());
  ASSERT_GT(cluster_->plane->figures().moves_in_flight, 0u);
  // A fourth copy is wanted of all, so that nothing is too much.
  for (const BlockId block : blocks_) {
    v1::BlockRecord record = *cluster_->space.Block(block);
    record.set_replication(4);
    cluster_->space.SetBlock(block, record);
  }
  cluster_->plane->OnBlocksChanged(blocks_);
  cluster_->world.RunFor(absl::Minutes(3));
  EXPECT_EQ(cluster_->plane->figures().moves_in_flight, 0u);
}

TEST_F(BalancerStarts, RatesThatNoDatanodeCanKeepToAreRefused) {
  Start(2);
  Connect();
  for (const uint64_t rate : {uint64_t{1}, uint64_t{1024}, uint64_t{65535}}) {
    request_.set_bytes_per_second(rate);
    const absl::Status refused = Ask(1).status();
    EXPECT_EQ(KindOf(refused), ErrorKind::kInvalidArgument) << rate;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("at least 65536"));
    EXPECT_EQ(CheckBalanceRate(rate), refused);
  }
  request_.set_bytes_per_second(65536);
  EXPECT_TRUE(Ask(1).ok());
  EXPECT_TRUE(CheckBalanceRate(0).ok());
}

}  // namespace
}  // namespace cairn::namenode::testing
