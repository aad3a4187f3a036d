#include <algorithm>
#include <string>
#include <vector>

#include "datanode/lanes/namenode_lanes.h"
#include "tests/datanode/fake_namenode.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::SizeIs;

class LanesTest : public StorageTest {
 protected:
  void SetUp() override {
    OpenWithoutAdopting();
    options_lanes_.identity = {.datanode_uuid = identity().Get().datanode_uuid, .incarnation = Incarnation(42)};
  }
  ~LanesTest() override { lanes_.reset(); }

  void Start() {
    NamenodeLanes::Callbacks callbacks;
    callbacks.active_streams = [] { return 3u; };
    callbacks.transfer = [this](v1::CommandDown::Transfer transfer, CommandLane::TransferDone done) {
      transfers_.emplace_back(std::move(transfer), std::move(done));
    };
    callbacks.recover = [this](v1::CommandDown::Recover recover, CommandLane::RecoverDone done) {
      recoveries_.emplace_back(std::move(recover), std::move(done));
    };
    callbacks.keys = [this](std::vector<v1::BlockTokenKey> keys) { keys_ = std::move(keys); };
    callbacks.shutdown = [this](std::string reason) { shutdown_ = std::move(reason); };
    callbacks.refused = [this](absl::Status status) { refused_ = std::move(status); };
    callbacks.other_cluster = [this](absl::Status status) { other_cluster_ = std::move(status); };
    lanes_ = std::make_unique<NamenodeLanes>(
        options_lanes_, process_,
        NamenodeLanes::Channels{.registration = &namenode_, .heartbeat = &namenode_, .report = &namenode_, .command = &namenode_},
        opened_.store.get(), opened_.identity, events_.get(), std::move(callbacks));
    lanes_->Start();
    world_.RunFor(absl::Milliseconds(1));
  }
  // Answers the newest Hello so that events flow from `from` on.
  void Resume(uint64_t from = 1) {
    v1::ReportDown down;
    down.mutable_resume()->set_from(from);
    namenode_.reports.back()->Say(down);
    Run();
  }
  void Walk(std::vector<std::string> storages, uint64_t from = 1) {
    v1::ReportDown down;
    down.mutable_walk()->set_from(from);
    for (std::string& storage : storages) down.mutable_walk()->add_storage_uuids(std::move(storage));
    namenode_.reports.back()->Say(down);
    Run();
  }
  void Acknowledge(uint64_t applied, uint64_t durable) {
    v1::ReportDown down;
    down.mutable_acknowledgement()->set_applied(applied);
    down.mutable_acknowledgement()->set_durable(durable);
    namenode_.reports.back()->Say(down);
    Run();
  }
  void Run() { world_.RunFor(absl::Milliseconds(20)); }
  // Events heard on the newest report stream.
  std::vector<v1::ReportEvent> Heard() {
    std::vector<v1::ReportEvent> events;
    for (const v1::ReportUp& up : namenode_.reports.back()->heard) {
      for (const v1::ReportEvent& event : up.events().events()) events.push_back(event);
    }
    return events;
  }
  v1::CommandDown Command(v1::CommandClass command_class, uint64_t epoch = 5, uint64_t incarnation = 42) {
    v1::CommandDown command;
    command.set_epoch(epoch);
    command.set_incarnation(incarnation);
    command.set_command_class(command_class);
    return command;
  }
  v1::CommandDown InvalidateOf(std::vector<BlockId> blocks, uint64_t epoch = 5, uint64_t incarnation = 42) {
    v1::CommandDown command = Command(v1::RECLAIM, epoch, incarnation);
    for (const BlockId block : blocks) {
      v1::InvalidateReplica* replica = command.mutable_invalidate()->add_replicas();
      replica->set_storage_uuid(storage());
      replica->set_block_id(block.value());
      replica->set_generation_stamp(kStamp.value());
      replica->set_command_id(block.value());
    }
    return command;
  }
  std::vector<v1::CommandUp::Outcome> Outcomes() {
    std::vector<v1::CommandUp::Outcome> outcomes;
    for (const v1::CommandUp& up : namenode_.commands.back()->heard) {
      if (up.has_outcome()) outcomes.push_back(up.outcome());
    }
    return outcomes;
  }

  NamenodeLanes::Options options_lanes_;
  FakeNamenode namenode_{&world_.clock()};
  std::vector<std::pair<v1::CommandDown::Transfer, CommandLane::TransferDone>> transfers_;
  std::vector<std::pair<v1::CommandDown::Recover, CommandLane::RecoverDone>> recoveries_;
  std::vector<v1::BlockTokenKey> keys_;
  std::string shutdown_;
  absl::Status refused_;
  absl::Status other_cluster_;
  std::unique_ptr<NamenodeLanes> lanes_;
};

TEST_F(LanesTest, RegistrationAdoptsClusterEpochAndKeysThenTheOtherLanesStart) {
  namenode_.register_response.add_keys()->set_id(7);
  Start();
  ASSERT_THAT(namenode_.registrations, SizeIs(1));
  EXPECT_EQ(namenode_.registrations[0].cluster_id(), "");
  EXPECT_EQ(namenode_.registrations[0].incarnation(), 42u);
  EXPECT_EQ(namenode_.registrations[0].storages_size(), 1);
  EXPECT_EQ(identity().Get().cluster_id, "cluster");
  EXPECT_EQ(identity().Get().highest_epoch, 5u);
  EXPECT_EQ(lanes_->epoch(), Epoch(5));
  ASSERT_THAT(keys_, SizeIs(1));
  ASSERT_THAT(EventsOf(v1::EPOCH_MARK), SizeIs(1));
  EXPECT_THAT(namenode_.heartbeats, SizeIs(1));
  EXPECT_THAT(namenode_.reports, SizeIs(1));
  ASSERT_THAT(namenode_.commands, SizeIs(1));
  EXPECT_EQ(namenode_.commands[0]->heard[0].hello().epoch(), 5u);
  EXPECT_GT(namenode_.commands[0]->heard[1].credit().invalidations(), 0u);
}

TEST_F(LanesTest, RegistrationIsTriedAgainWithABackOff) {
  namenode_.register_status = absl::UnavailableError("down");
  Start();
  world_.RunFor(absl::Seconds(20));
  const size_t tries = namenode_.registrations.size();
  EXPECT_GE(tries, 3u);
  EXPECT_LE(tries, 6u);
  EXPECT_TRUE(namenode_.heartbeats.empty());
  namenode_.register_status = absl::OkStatus();
  world_.RunFor(absl::Seconds(40));
  EXPECT_TRUE(lanes_->registered());
}

TEST_F(LanesTest, AnotherClustersNamenodeAtTheFirstRegistrationIsTheEnd) {
  ASSERT_THAT(identity().AdoptCluster("mine", kPool), IsOk());
  Start();
  EXPECT_FALSE(lanes_->registered());
  EXPECT_THAT(other_cluster_, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(EventsOf(v1::EPOCH_MARK), SizeIs(0));
  world_.RunFor(absl::Minutes(2));
  EXPECT_THAT(namenode_.registrations, SizeIs(1));  // Nobody is asked again.
}

TEST_F(LanesTest, ANodeThatServedOutlivesANamenodeOfAnotherCluster) {
  Start();
  ASSERT_TRUE(lanes_->registered());
  namenode_.register_response.set_cluster_id("another");
  namenode_.heartbeat_status = MakeError(ErrorKind::kUnregistered, "register first");
  world_.RunFor(absl::Seconds(20));
  EXPECT_THAT(refused_, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(other_cluster_, IsOk());
  namenode_.register_response.set_cluster_id("cluster");
  namenode_.heartbeat_status = absl::OkStatus();
  const size_t before = namenode_.registrations.size();
  world_.RunFor(absl::Seconds(40));
  EXPECT_GT(namenode_.registrations.size(), before);
}

TEST_F(LanesTest, AUuidThatIsInUseElsewhereIsToldAndAskedForAgain) {
  namenode_.register_status = MakeError(ErrorKind::kInvalidArgument, "two DataNodes use the uuid");
  Start();
  EXPECT_THAT(refused_, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(other_cluster_, IsOk());
  namenode_.register_status = absl::OkStatus();
  world_.RunFor(absl::Seconds(10));
  EXPECT_TRUE(lanes_->registered());
}

TEST_F(LanesTest, NamenodeOfAnOlderEpochIsNotObeyed) {
  ASSERT_THAT(identity().RememberEpoch(Epoch(9)), IsOk());
  Start();
  EXPECT_FALSE(lanes_->registered());
  EXPECT_THAT(EventsOf(v1::EPOCH_MARK), SizeIs(0));
  namenode_.register_response.set_epoch(9);
  world_.RunFor(absl::Seconds(5));
  EXPECT_TRUE(lanes_->registered());
  EXPECT_THAT(EventsOf(v1::EPOCH_MARK), SizeIs(1));  // Of this process, though the epoch was met by one before.
}

TEST_F(LanesTest, HeartbeatsKeepTheirScheduleWhileAnswersAreHeldBack) {
  Start();
  ASSERT_THAT(ArmFault("datanode.heartbeat.answer", "block"), IsOk());
  world_.RunFor(absl::Seconds(30));
  ASSERT_GE(namenode_.heartbeats.size(), 10u);
  for (size_t i = 1; i < namenode_.heartbeats.size(); ++i) {
    EXPECT_EQ(namenode_.heartbeats[i].first - namenode_.heartbeats[i - 1].first, absl::Seconds(3));
    EXPECT_EQ(namenode_.heartbeats[i].second.last_interval_ms(), 3000u);
  }
  EXPECT_EQ(namenode_.heartbeats.back().second.active_streams(), 3u);
  const uint64_t answered = lanes_->heartbeat().answered();
  DisarmAllFaults();
  Run();
  EXPECT_GT(lanes_->heartbeat().answered(), answered);
}

TEST_F(LanesTest, HeldHeartbeatAnswersDelayNoReport) {
  Start();
  Resume();
  ASSERT_THAT(ArmFault("datanode.heartbeat.answer", "block"), IsOk());
  world_.RunFor(absl::Seconds(5));
  const SteadyTime before = world_.Now();
  Put(kBlock, 100);
  ASSERT_TRUE(world_.RunUntil([this] { return !Heard().empty() && Heard().back().type() == v1::REPLICA_FINALIZED; }, absl::Seconds(1)));
  EXPECT_EQ(world_.Now(), before);
}

TEST_F(LanesTest, HeartbeatAnswersLeadToRegistrationEpochAndIds) {
  Start();
  namenode_.heartbeat_response.set_register_again(true);
  world_.RunFor(absl::Seconds(3));
  namenode_.heartbeat_response.set_register_again(false);
  EXPECT_THAT(namenode_.registrations, SizeIs(2));
  namenode_.heartbeat_response.set_next_block_id(1 << 30);
  namenode_.heartbeat_response.set_epoch(6);
  namenode_.register_response.set_epoch(6);
  world_.RunFor(absl::Seconds(3));
  EXPECT_EQ(identity().Get().highest_epoch, 6u);
  EXPECT_EQ(identity().Get().highest_block_id, 1u << 30);
  EXPECT_THAT(namenode_.registrations, SizeIs(3));
  ASSERT_THAT(EventsOf(v1::EPOCH_MARK), SizeIs(2));
  EXPECT_EQ(EventsOf(v1::EPOCH_MARK)[1].epoch(), 6u);
  world_.RunFor(absl::Seconds(10));
  EXPECT_THAT(namenode_.registrations, SizeIs(3));
}

TEST_F(LanesTest, EventsLeaveStrictlyByNumberAndAreForgottenWhenDurable) {
  Start();
  EXPECT_EQ(namenode_.reports[0]->heard[0].hello().last(), 1u);  // The mark.
  Resume();
  for (uint64_t i = 0; i < 20; ++i) Put(BlockId(kBlock.value() + 16 * i), 10);
  Run();
  const auto heard = Heard();
  ASSERT_THAT(heard, SizeIs(41));
  for (size_t i = 0; i < heard.size(); ++i) EXPECT_EQ(heard[i].number(), i + 1);
  Acknowledge(41, 30);
  EXPECT_EQ(events().first_kept(), 31u);
  // A broken stream goes on where the NameNode says.
  namenode_.reports.back()->Break();
  world_.RunFor(absl::Seconds(2));
  ASSERT_THAT(namenode_.reports, SizeIs(2));
  EXPECT_EQ(namenode_.reports[1]->heard[0].hello().first_kept(), 31u);
  EXPECT_EQ(namenode_.reports[1]->heard[0].hello().last(), 41u);
  Resume(35);
  EXPECT_EQ(Heard().front().number(), 35u);
  EXPECT_THAT(Heard(), SizeIs(7));
}

TEST_F(LanesTest, MessageHoldsAtMostAThousandEventsAndASlowStreamIsNotFlooded) {
  Start();
  for (uint64_t i = 0; i < 3000; ++i) store().MarkEpoch(Epoch(5));
  namenode_.reports.back()->queued = 100;
  Resume();
  EXPECT_TRUE(Heard().empty());
  namenode_.reports.back()->queued = 0;
  Run();
  EXPECT_THAT(Heard(), SizeIs(3001));
  for (const v1::ReportUp& up : namenode_.reports.back()->heard) {
    EXPECT_LE(up.events().events_size(), 1000);
    EXPECT_LE(up.ByteSizeLong(), 66u << 10);
  }
}

TEST_F(LanesTest, WalkKeepsAtMostEightRangesUnappliedAndAnswersExpansionsFirst) {
  Start();
  for (uint64_t i = 0; i < 20'000; ++i) Put(BlockId(kBlock.value() + 16 * i), 0, kStamp, false);
  const uint64_t before = events().last();
  Resume(before + 1);
  v1::ReportDown request;
  request.mutable_walk()->add_storage_uuids(storage());
  namenode_.reports.back()->Say(request);
  Run();
  ASSERT_THAT(Heard(), SizeIs(8));
  v1::ReportDown expand;
  expand.mutable_expand()->set_storage_uuid(storage());
  expand.mutable_expand()->set_first_id(kBlock.value());
  expand.mutable_expand()->set_end_id(kBlock.value() + 16 * 10);
  namenode_.reports.back()->Say(expand);
  Acknowledge(before + 8, before);
  ASSERT_GT(Heard().size(), 9u);
  EXPECT_TRUE(Heard()[8].range().expanded());
  EXPECT_FALSE(Heard()[9].range().expanded());
  for (int i = 0; i < 10; ++i) Acknowledge(events().last(), before);
  EXPECT_TRUE(Heard().back().range().last());
  EXPECT_EQ(Heard().back().range().first_id(), 0u);
  EXPECT_EQ(lanes_->report().walks_done(), 1u);
}

TEST_F(LanesTest, RangesThatAreSentAgainWaitForOneAnotherToo) {
  Start();
  for (uint64_t i = 0; i < 30'000; ++i) Put(BlockId(kBlock.value() + 16 * i), 0, kStamp, false);
  const uint64_t before = events().last();
  Walk({}, before + 1);
  for (int i = 0; i < 20; ++i) Acknowledge(events().last(), 0);  // Applied, and never durable.
  const uint64_t after = events().last();
  ASSERT_GE(after, before + 30);
  namenode_.reports.back()->Break();
  world_.RunFor(absl::Seconds(2));
  Put(BlockId(kBlock.value() - 16), 10);
  Resume(before + 1);  // It has lost them all.
  EXPECT_THAT(Heard(), SizeIs(8));
  Acknowledge(before + 3, 0);
  EXPECT_THAT(Heard(), SizeIs(11));
  for (int i = 0; i < 20; ++i) Acknowledge(Heard().back().number(), 0);
  EXPECT_EQ(Heard().back().type(), v1::REPLICA_FINALIZED);
  for (size_t i = 0; i < Heard().size(); ++i) EXPECT_EQ(Heard()[i].number(), before + 1 + i);
}

TEST_F(LanesTest, EventsOfANamenodeThatIsLongAwayCollapseIntoAWalk) {
  events_limit_ = 50;
  Close();
  OpenWithoutAdopting();
  options_lanes_.identity.datanode_uuid = identity().Get().datanode_uuid;
  Start();
  Resume();
  namenode_.reports.back()->Break();
  for (uint64_t i = 0; i < 100; ++i) Put(BlockId(kBlock.value() + 16 * i), 10);
  EXPECT_EQ(events().kept(), 50u);
  world_.RunFor(absl::Seconds(2));
  const v1::ReportHello hello = namenode_.reports.back()->heard[0].hello();
  EXPECT_EQ(hello.first_kept(), events().last() - 49);
  Walk({}, hello.first_kept());
  ASSERT_GT(Heard().size(), 50u);  // The walk's own ranges have pushed out nothing that was still to be said.
  EXPECT_EQ(Heard().front().number(), hello.first_kept());
  EXPECT_TRUE(Heard().back().range().last());
  EXPECT_EQ(Heard().back().range().finalized(), 100u);
}

// A slow NameNode, not an absent one: what is gone is noticed in the middle of a stream.
TEST_F(LanesTest, EventThatFellOutOfTheLogWhileStreamingOpensTheStreamAgain) {
  events_limit_ = 50;
  Close();
  OpenWithoutAdopting();
  options_lanes_.identity.datanode_uuid = identity().Get().datanode_uuid;
  Start();
  Resume();
  namenode_.reports.back()->queued = 100;
  for (uint64_t i = 0; i < 100; ++i) Put(BlockId(kBlock.value() + 16 * i), 10);
  Run();
  namenode_.reports.back()->queued = 0;
  world_.RunFor(absl::Seconds(2));
  ASSERT_THAT(namenode_.reports, SizeIs(2));
  EXPECT_EQ(namenode_.reports[1]->heard[0].hello().first_kept(), events().first_kept());
}

TEST_F(LanesTest, NothingSpinsWhileAHeartbeatIsLate) {
  Start();
  Resume();
  world_.RunFor(absl::Seconds(4));
  const auto tasks_of_30_seconds = [this] {
    const uint64_t before = world_.tasks_run();
    world_.RunFor(absl::Seconds(30));
    return world_.tasks_run() - before;
  };
  const uint64_t idle = tasks_of_30_seconds();
  namenode_.answer_heartbeats = false;
  EXPECT_LE(tasks_of_30_seconds(), idle + 10);
  EXPECT_LE(idle, 300u);
}

TEST_F(LanesTest, RejectionOfAClassThatIsNewIsOverWithinTwoHeartbeats) {
  Start();
  Resume();
  v1::ReportDown down;
  down.mutable_rejection()->set_reject(static_cast<v1::RejectionClass>(9999));
  namenode_.reports.back()->Say(down);
  ASSERT_TRUE(world_.RunUntil([this] { return namenode_.reports.size() == 2; }, absl::Seconds(6)));
  Run();
  EXPECT_TRUE(namenode_.reports[1]->heard[0].has_hello());
  Resume();
  EXPECT_TRUE(lanes_->report().streaming());
}

TEST_F(LanesTest, AskedToTryAgainForLongItAsksLessOften) {
  Start();
  for (int i = 0; i < 8; ++i) {
    v1::ReportDown down;
    down.mutable_rejection()->set_reject(v1::RETRY_SAME);
    const size_t streams = namenode_.reports.size();
    namenode_.reports.back()->Say(down);
    ASSERT_TRUE(world_.RunUntil([&] { return namenode_.reports.size() > streams; }, absl::Seconds(13))) << i;
  }
  v1::ReportDown down;
  down.mutable_rejection()->set_reject(v1::RETRY_SAME);
  const size_t streams = namenode_.reports.size();
  namenode_.reports.back()->Say(down);
  world_.RunFor(absl::Seconds(9));
  EXPECT_EQ(namenode_.reports.size(), streams);
}

TEST_F(LanesTest, WalkAskedForDuringAWalkGoesRoundOnceMore) {
  Start();
  for (uint64_t i = 0; i < 20'000; ++i) Put(BlockId(kBlock.value() + 16 * i), 0, kStamp, false);
  Walk({}, events().last() + 1);
  v1::ReportDown request;
  request.mutable_walk()->add_storage_uuids(storage());
  namenode_.reports.back()->Say(request);
  namenode_.reports.back()->Say(request);
  for (int i = 0; i < 20; ++i) Acknowledge(events().last(), 0);
  EXPECT_EQ(lanes_->report().walks_done(), 2u);
}

TEST_F(LanesTest, RejectionsAreObeyedByTheirClass) {
  Start();
  const auto reject = [this](v1::RejectionClass rejection) {
    v1::ReportDown down;
    down.mutable_rejection()->set_reject(rejection);
    namenode_.reports.back()->Say(down);
  };
  reject(v1::RETRY_SAME);
  world_.RunFor(absl::Milliseconds(1100));
  EXPECT_THAT(namenode_.reports, SizeIs(2));
  for (int i = 0; i < 6; ++i) {
    const size_t streams = namenode_.reports.size();
    reject(i % 2 == 0 ? v1::START_AFRESH : static_cast<v1::RejectionClass>(77));
    ASSERT_TRUE(world_.RunUntil([&] { return namenode_.reports.size() > streams; }, absl::Minutes(6)));
  }
  const size_t streams = namenode_.reports.size();
  reject(v1::START_AFRESH);
  world_.RunFor(absl::Seconds(30));
  EXPECT_EQ(namenode_.reports.size(), streams);  // The back-off has grown.
}

TEST_F(LanesTest, StreamThatIsNotGreetedIsOpenedAgain) {
  Start();
  world_.RunFor(absl::Seconds(35));
  EXPECT_GE(namenode_.reports.size(), 2u);
}

TEST_F(LanesTest, InvalidationsAreCarriedOutAndCreditIsRefilledAtHalf) {
  options_lanes_.command.invalidations = 8;
  Start();
  std::vector<BlockId> blocks;
  for (uint64_t i = 0; i < 8; ++i) blocks.push_back(BlockId(kBlock.value() + 16 * i));
  for (const BlockId block : blocks) Put(block, 10);
  auto& stream = *namenode_.commands.back();
  const size_t heard = stream.heard.size();
  stream.Say(InvalidateOf({blocks[0], blocks[1], blocks[2]}));
  Run();
  EXPECT_THAT(EventsOf(v1::DROPPED), SizeIs(3));
  EXPECT_EQ(stream.heard.size(), heard);
  stream.Say(InvalidateOf({blocks[3]}));
  Run();
  ASSERT_EQ(stream.heard.size(), heard + 1);
  EXPECT_EQ(stream.heard.back().credit().invalidations(), 4u);
  EXPECT_EQ(lanes_->command().invalidations_done(), 4u);
}

TEST_F(LanesTest, CommandsBeyondCreditBreakTheStream) {
  options_lanes_.command.invalidations = 2;
  Start();
  namenode_.commands.back()->Say(InvalidateOf({BlockId(16), BlockId(32), BlockId(48)}));
  Run();
  EXPECT_TRUE(namenode_.commands[0]->closed);
  world_.RunFor(absl::Seconds(2));
  EXPECT_THAT(namenode_.commands, SizeIs(2));
}

TEST_F(LanesTest, CommandsOfOlderEpochsAndOtherIncarnationsAreVoid) {
  Start();
  Put(kBlock, 10);
  namenode_.commands.back()->Say(InvalidateOf({kBlock}, /*epoch=*/4));
  namenode_.commands.back()->Say(InvalidateOf({kBlock}, 5, /*incarnation=*/41));
  v1::CommandDown verify = Command(v1::REPAIR_WORK, 4);
  verify.mutable_verify()->set_command_id(9);
  namenode_.commands.back()->Say(verify);
  Run();
  EXPECT_THAT(EventsOf(v1::KEPT), SizeIs(2));
  EXPECT_THAT(EventsOf(v1::DROPPED), SizeIs(0));
  ASSERT_THAT(Outcomes(), SizeIs(1));
  EXPECT_FALSE(Outcomes()[0].ok());
}

TEST_F(LanesTest, CommandOfAHigherEpochWaitsUntilItsMarkIsNumbered) {
  Start();
  Put(kBlock, 10);
  namenode_.register_response.set_epoch(8);
  namenode_.commands.back()->Say(InvalidateOf({kBlock}, /*epoch=*/8));
  Run();
  ASSERT_THAT(EventsOf(v1::EPOCH_MARK), SizeIs(2));
  ASSERT_THAT(EventsOf(v1::DROPPED), SizeIs(1));
  EXPECT_LT(EventsOf(v1::EPOCH_MARK)[1].number(), EventsOf(v1::DROPPED)[0].number());
  EXPECT_EQ(identity().Get().highest_epoch, 8u);
}

TEST_F(LanesTest, ControlGoesBeforeRepairAndRepairBeforeReclaim) {
  Start();
  std::vector<BlockId> blocks;
  for (uint64_t i = 0; i < 500; ++i) blocks.push_back(BlockId(kBlock.value() + 16 * i));
  namenode_.commands.back()->Say(InvalidateOf(blocks));
  v1::CommandDown transfer = Command(v1::REPAIR_WORK);
  transfer.mutable_transfer()->set_command_id(1);
  namenode_.commands.back()->Say(transfer);
  v1::CommandDown keys = Command(v1::CONTROL);
  keys.mutable_keys()->add_keys()->set_id(9);
  namenode_.commands.back()->Say(keys);
  ASSERT_TRUE(world_.RunUntil([this] { return !transfers_.empty(); }, absl::Seconds(1)));
  EXPECT_THAT(keys_, SizeIs(1));
  EXPECT_LE(lanes_->command().invalidations_done(), 64u);
}

TEST_F(LanesTest, TransfersAreBoundedAndAnsweredWhenTheyEnd) {
  Start();
  for (uint64_t id = 1; id <= 3; ++id) {
    v1::CommandDown command = Command(v1::REPAIR_WORK);
    command.mutable_transfer()->set_command_id(id);
    namenode_.commands.back()->Say(command);
  }
  Run();
  ASSERT_THAT(transfers_, SizeIs(2));
  EXPECT_EQ(lanes_->command().queued(), 1u);
  world_.RunFor(absl::Seconds(5));
  EXPECT_GE(lanes_->command().oldest_age(), absl::Seconds(5));
  transfers_[0].second(absl::OkStatus());
  transfers_[1].second(absl::UnavailableError("target is gone"));
  Run();
  EXPECT_EQ(lanes_->command().queued(), 0u);
  EXPECT_EQ(lanes_->command().oldest_age(), absl::ZeroDuration());
  ASSERT_THAT(transfers_, SizeIs(3));
  const auto outcomes = Outcomes();
  ASSERT_THAT(outcomes, SizeIs(2));
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_FALSE(outcomes[1].ok());
  EXPECT_EQ(outcomes[1].command_id(), 2u);
  EXPECT_EQ(outcomes[1].message(), "target is gone");
}

TEST_F(LanesTest, RecoveriesAreBoundedAndDoNotWaitForTransfers) {
  Start();
  for (uint64_t id = 1; id <= 3; ++id) {
    v1::CommandDown command = Command(v1::REPAIR_WORK);
    command.mutable_transfer()->set_command_id(id);
    namenode_.commands.back()->Say(command);
  }
  for (uint64_t id = 11; id <= 15; ++id) {
    v1::CommandDown command = Command(v1::REPAIR_WORK);
    command.mutable_recover()->set_command_id(id);
    command.mutable_recover()->set_recovery_id(1000 + id);
    namenode_.commands.back()->Say(command);
  }
  Run();
  ASSERT_THAT(transfers_, SizeIs(2));
  ASSERT_THAT(recoveries_, SizeIs(4));
  EXPECT_EQ(recoveries_[3].first.recovery_id(), 1014u);
  EXPECT_EQ(lanes_->command().queued(), 2u);
  recoveries_[0].second(MakeError(ErrorKind::kRetriable, "nobody answers"));
  Run();
  ASSERT_THAT(recoveries_, SizeIs(5));
  const auto outcomes = Outcomes();
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].command_id(), 11u);
  EXPECT_FALSE(outcomes[0].ok());
  EXPECT_EQ(outcomes[0].message(), "nobody answers");
}

TEST_F(LanesTest, RecoveryOfAnOlderEpochIsVoid) {
  Start();
  v1::CommandDown command = Command(v1::REPAIR_WORK, /*epoch=*/4);
  command.mutable_recover()->set_command_id(11);
  namenode_.commands.back()->Say(command);
  Run();
  EXPECT_THAT(recoveries_, SizeIs(0));
  ASSERT_THAT(Outcomes(), SizeIs(1));
  EXPECT_FALSE(Outcomes()[0].ok());
}

TEST_F(LanesTest, VerifyReportsWhatItFinds) {
  Start();
  Put(kBlock, 1000);
  v1::CommandDown verify = Command(v1::REPAIR_WORK);
  verify.mutable_verify()->set_command_id(1);
  verify.mutable_verify()->mutable_block()->set_id(kBlock.value());
  verify.mutable_verify()->mutable_block()->set_generation_stamp(kStamp.value());
  namenode_.commands.back()->Say(verify);
  Run();
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(kBlock), 8192 + 4096 + 10), IsOk());
  verify.mutable_verify()->set_command_id(2);
  namenode_.commands.back()->Say(verify);
  Run();
  ASSERT_THAT(Outcomes(), SizeIs(2));
  EXPECT_TRUE(Outcomes()[0].ok());
  EXPECT_FALSE(Outcomes()[1].ok());
  EXPECT_THAT(EventsOf(v1::CORRUPT), SizeIs(1));
}

TEST_F(LanesTest, ShutdownIsPassedOn) {
  Start();
  v1::CommandDown command = Command(v1::CONTROL);
  command.mutable_shutdown()->set_reason("decommissioned");
  namenode_.commands.back()->Say(command);
  Run();
  EXPECT_EQ(shutdown_, "decommissioned");
}

TEST_F(LanesTest, WatchdogCountsAStepThatHangsOnce) {
  auto executor = process_->executors().NewExecutor("watchdog");
  Watchdog watchdog(executor.get(), absl::Seconds(10));
  watchdog.Start();
  {
    const Watchdog::Step quick(&watchdog, "report", "pump");
    world_.RunFor(absl::Seconds(5));
  }
  EXPECT_EQ(watchdog.overdue_steps(), 0u);
  const Watchdog::Step slow(&watchdog, "report", "pump");
  world_.RunFor(absl::Seconds(40));
  EXPECT_EQ(watchdog.overdue_steps(), 1u);
}

}  // namespace
}  // namespace cairn::datanode::testing
