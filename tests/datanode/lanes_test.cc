#include "tests/datanode/lanes_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::SizeIs;

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

TEST_F(LanesTest, NoMoreInvalidationsAreTakenWhileTheBacklogIsLong) {
  options_lanes_.command.invalidations = 8;
  options_lanes_.command.max_backlog = 4;
  Start();
  std::vector<BlockId> blocks;
  for (uint64_t i = 0; i < 8; ++i) {
    blocks.push_back(BlockId(kBlock.value() + 16 * i));
    Put(blocks.back(), 10);
  }
  ASSERT_THAT(ArmFault("datanode.deleter.unlink", "block"), IsOk());
  const auto granted = [this] {
    uint64_t sum = 0;
    for (const v1::CommandUp& up : namenode_.commands.back()->heard) sum += up.credit().invalidations();
    return sum;
  };
  ASSERT_EQ(granted(), 8u);
  namenode_.commands.back()->Say(InvalidateOf(blocks));
  world_.RunFor(absl::Seconds(30));
  EXPECT_EQ(store().pending_deletion_blocks(), 8u);
  EXPECT_EQ(namenode_.heartbeats.back().second.pending_deletion_blocks(), 8u);
  EXPECT_GE(namenode_.heartbeats.back().second.oldest_pending_deletion_ms(), 20'000u);
  EXPECT_EQ(granted(), 8u);
  DisarmAllFaults();
  world_.RunFor(absl::Seconds(2));
  EXPECT_EQ(granted(), 16u);
}

TEST_F(LanesTest, VolumeThatUnlinksNothingDoesNotStopTheInvalidationsOfOthers) {
  options_.directories = {"/data/1", "/data/2"};
  Close();
  OpenWithoutAdopting();
  options_lanes_.identity.datanode_uuid = identity().Get().datanode_uuid;
  options_lanes_.command.invalidations = 8;
  options_lanes_.command.max_backlog = 4;
  Start();
  std::vector<BlockId> blocks[2];
  for (uint64_t i = 0; i < 16; ++i) {
    const BlockId block(kBlock.value() + 16 * i);
    const auto writer = Create(block, kStamp, {.storage_uuid = storage(i % 2)});
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT((*writer)->Finalize(0, true), IsOk());
    blocks[i % 2].push_back(block);
  }
  ASSERT_THAT(ArmFault("datanode.deleter.unlink", "block"), IsOk());
  const auto granted = [this] {
    uint64_t sum = 0;
    for (const v1::CommandUp& up : namenode_.commands.back()->heard) sum += up.credit().invalidations();
    return sum;
  };
  const auto invalidate = [&](size_t volume) {
    v1::CommandDown down = InvalidateOf(blocks[volume]);
    for (v1::InvalidateReplica& replica : *down.mutable_invalidate()->mutable_replicas()) replica.set_storage_uuid(storage(volume));
    namenode_.commands.back()->Say(down);
    world_.RunFor(absl::Seconds(5));
  };
  ASSERT_EQ(granted(), 8u);
  invalidate(0);
  EXPECT_EQ(store().pending_deletion_blocks(), 8u);
  EXPECT_EQ(granted(), 16u);  // All of them may be for the other volume.
  invalidate(1);
  EXPECT_EQ(store().pending_deletion_blocks(), 16u);
  EXPECT_EQ(granted(), 16u);  // Now neither has room.
  DisarmAllFaults();
  world_.RunFor(absl::Seconds(2));
  EXPECT_EQ(granted(), 24u);
}

TEST_F(LanesTest, KnowsWhenTheNamenodeLastAnswered) {
  Start();
  world_.RunFor(absl::Seconds(4));
  EXPECT_LE(lanes_->heartbeat().since_answer(), absl::Seconds(3));
  namenode_.heartbeat_status = absl::UnavailableError("cut off");
  world_.RunFor(absl::Seconds(20));
  EXPECT_GE(lanes_->heartbeat().since_answer(), absl::Seconds(19));
  namenode_.heartbeat_status = absl::OkStatus();
  world_.RunFor(absl::Seconds(5));
  EXPECT_LE(lanes_->heartbeat().since_answer(), absl::Seconds(3));
}

TEST_F(LanesTest, ANodeTakesItselfForSlowNoLongerThanTheNamenodeSaysSo) {
  namenode_.heartbeat_response.set_slow(true);
  Start();
  world_.RunFor(absl::Seconds(4));
  EXPECT_TRUE(slow_);
  namenode_.heartbeat_status = absl::UnavailableError("cut off");
  world_.RunFor(absl::Seconds(6));
  EXPECT_TRUE(slow_);
  world_.RunFor(absl::Seconds(6));
  EXPECT_FALSE(slow_);
  namenode_.heartbeat_status = absl::OkStatus();
  world_.RunFor(absl::Seconds(4));
  EXPECT_TRUE(slow_);
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

TEST_F(LanesTest, MovesOfTheBalancerAreBoundedApartAndNoRepairWaitsForThem) {
  Start();
  for (uint64_t id = 1; id <= 6; ++id) {
    v1::CommandDown command = Command(v1::REPAIR_WORK);
    command.mutable_transfer()->set_command_id(id);
    command.mutable_transfer()->set_traffic_class(v1::BALANCING);
    namenode_.commands.back()->Say(command);
  }
  v1::CommandDown repair = Command(v1::REPAIR_WORK);
  repair.mutable_transfer()->set_command_id(7);
  repair.mutable_transfer()->set_traffic_class(v1::REPAIR);
  namenode_.commands.back()->Say(repair);
  Run();
  ASSERT_THAT(transfers_, SizeIs(5));  // Four moves, and the repair that came behind all of them.
  EXPECT_EQ(transfers_[4].first.command_id(), 7u);
  EXPECT_EQ(lanes_->command().queued(), 2u);
  transfers_[4].second(absl::OkStatus());
  Run();
  EXPECT_THAT(transfers_, SizeIs(5));  // Its place is no move's.
  transfers_[0].second(absl::OkStatus());
  Run();
  ASSERT_THAT(transfers_, SizeIs(6));
  EXPECT_EQ(transfers_[5].first.command_id(), 5u);
  EXPECT_EQ(lanes_->command().queued(), 1u);
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
