// The primary of a block recovery and the replicas of three nodes, in one simulated world; the NameNode is the test's.

#include "datanode/recovery/block_recoveries.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/block_token.h"
#include "common/fault_points.h"
#include "datanode/recovery/replica_recovery_service.h"
#include "tests/datanode/fake_namenode.h"
#include "tests/datanode/storage_fixture.h"
#include "tests/testing/sim_rpc.h"

namespace cairn::datanode::testing {
namespace {

constexpr GenerationStamp kNext{1002};

// A DataNode's store and its end of recovery.
struct Node {
  cairn::testing::SimMachine* machine = nullptr;
  cairn::testing::SimProcess* process = nullptr;
  std::unique_ptr<EventLog> events;
  OpenedBlockStore opened;
  std::unique_ptr<KeyringTokenVerifier> tokens;
  std::unique_ptr<ReplicaRecoveryService> recovery;
  std::unique_ptr<cairn::testing::SimService<api::InterDatanode>> service;
  BlockStore& store() { return *opened.store; }
  std::string storage() { return store().Statistics()[0].storage_uuid(); }
};

class BlockRecoveriesTest : public ::testing::Test {
 protected:
  BlockRecoveriesTest() {
    EnableFaultPoints();
    key_ = NewBlockTokenKey(1, std::string(32, 'k'), INT64_MAX);
    for (int i = 0; i < 3; ++i) {
      auto node = std::make_unique<Node>();
      node->machine = world_.AddMachine("dn" + std::to_string(i));
      node->process = node->machine->StartProcess();
      node->events = std::make_unique<EventLog>(&node->process->clock());
      BlockStoreOptions options;
      options.directories = {"/data"};
      options.max_block_bytes = 1 << 20;
      node->opened = *OpenBlockStore(options, node->process, node->events.get());
      EXPECT_THAT(node->opened.identity->AdoptCluster("cluster", kPool), IsOk());
      node->tokens = std::make_unique<KeyringTokenVerifier>(&node->process->clock(), /*accept_empty=*/false);
      node->tokens->SetKeys({key_});
      node->recovery = std::make_unique<ReplicaRecoveryService>(&node->store(), node->tokens.get(), [] { return std::string(kPool); });
      node->service = std::make_unique<cairn::testing::SimService<api::InterDatanode>>(node->machine);
      node->service->Serve(node->process, node->recovery.get());
      nodes_.push_back(std::move(node));
    }
    executor_ = node(0).process->executors().NewExecutor("recovery");
    const api::InterDatanodeResolver resolve = [this](const v1::Endpoint& admin) -> std::shared_ptr<api::InterDatanode> {
      return std::make_shared<cairn::testing::SimInterDatanode>(node(0).process, nodes_[admin.port()]->service.get());
    };
    recoveries_ = std::make_unique<BlockRecoveries>(BlockRecoveries::Options(), LaneIdentity{Uuid(0), Incarnation(42)}, executor_.get(),
                                                    &namenode_, node(0).recovery.get(), resolve);
  }
  ~BlockRecoveriesTest() override {
    DisarmAllFaults();
    recoveries_->Close();
    executor_.reset();
    recoveries_.reset();
    for (const auto& node : nodes_) node->service->Withdraw();
    world_.RunFor(absl::Seconds(60));
    for (const auto& node : nodes_) node->opened.store.reset();
  }

  Node& node(size_t i) { return *nodes_[i]; }
  static std::string Uuid(size_t i) { return "node-" + std::to_string(i); }

  std::shared_ptr<ReplicaWriter> Rbw(size_t i, size_t length, GenerationStamp stamp = kStamp) {
    auto writer = node(i).store().CreateRbw(*node(i).store().Place({}), kBlock, stamp, {});
    EXPECT_THAT(writer, IsOk());
    const std::string data = Pattern(0, length);
    const std::string checksums = ChecksumsOf(data);
    EXPECT_THAT((*writer)->Write({.offset = 0, .data = data, .checksums = checksums, .verify = true, .sync = false}), IsOk());
    return *writer;
  }
  v1::CommandDown::Recover Command(uint64_t known_length = 0, GenerationStamp recovery_id = kNext) {
    v1::CommandDown::Recover command;
    command.set_command_id(7);
    command.mutable_block()->set_id(kBlock.value());
    command.mutable_block()->set_generation_stamp(kStamp.value());
    command.mutable_block()->set_length_bytes(known_length);
    command.set_recovery_id(recovery_id.value());
    command.set_budget_ms(10'000);
    BlockTokenClaims claims;
    claims.pool_id = kPool;
    claims.block = kBlock;
    claims.stamp = recovery_id;
    claims.modes = static_cast<uint8_t>(TokenMode::kWrite);
    claims.expires_ms = INT64_MAX;
    command.set_token(SealBlockToken(key_, claims));
    for (size_t i = 0; i < nodes_.size(); ++i) {
      v1::StorageLocation* replica = command.add_replicas();
      replica->set_storage_uuid(node(i).storage());
      replica->mutable_datanode()->set_uuid(Uuid(i));
      replica->mutable_datanode()->mutable_admin()->set_port(static_cast<uint32_t>(i));
    }
    return command;
  }
  // To its end.
  absl::Status Recover(v1::CommandDown::Recover command, absl::Duration limit = absl::Seconds(11)) {
    auto outcome = std::make_shared<std::optional<absl::Status>>();
    recoveries_->Recover(std::move(command), [outcome](absl::Status status) { *outcome = std::move(status); });
    world_.RunUntil([outcome] { return outcome->has_value(); }, world_.Now() + limit);
    return outcome->value_or(absl::UnknownError("it has not ended"));
  }
  void ExpectReplica(size_t i, uint64_t length, GenerationStamp stamp = kNext) {
    const auto replica = node(i).store().Describe(kBlock);
    ASSERT_TRUE(replica.has_value());
    EXPECT_EQ(replica->state, ReplicaState::kFinalized);
    EXPECT_EQ(replica->stamp, stamp);
    EXPECT_EQ(replica->length, length);
    auto reader = node(i).store().OpenForRead(kBlock, stamp);
    ASSERT_THAT(reader, IsOk());
    std::string data(length, '\0');
    EXPECT_EQ(*(*reader)->ReadData(0, data), length);
    EXPECT_EQ(data, Pattern(0, length));
  }

  cairn::testing::SimWorld world_{{.seed = 5}};
  v1::BlockTokenKey key_;
  FakeNamenode namenode_{&world_.clock()};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<BlockRecoveries> recoveries_;
};

TEST_F(BlockRecoveriesTest, BringsAllReplicasToTheShortestOfThem) {
  const auto a = Rbw(0, 1000);
  const auto b = Rbw(1, 900);
  const auto c = Rbw(2, 1300);
  ASSERT_THAT(Recover(Command(900)), IsOk());
  for (size_t i = 0; i < 3; ++i) ExpectReplica(i, 900);
  ASSERT_EQ(namenode_.recoveries.size(), 1u);
  const v1::CommitBlockRecoveryRequest& commit = namenode_.recoveries[0];
  EXPECT_EQ(commit.datanode_uuid(), Uuid(0));
  EXPECT_EQ(commit.incarnation(), 42u);
  EXPECT_EQ(commit.block().generation_stamp(), kNext.value());
  EXPECT_EQ(commit.block().length_bytes(), 900u);
  EXPECT_EQ(commit.recovery_id(), kNext.value());
  EXPECT_EQ(commit.storage_uuids_size(), 3);
  EXPECT_FALSE(commit.drop());
  EXPECT_FALSE(commit.has_error());
  ASSERT_EQ(commit.outcomes_size(), 3);
  EXPECT_EQ(commit.outcomes(2).replica().length_bytes(), 1300u);
  EXPECT_EQ(commit.outcomes(2).state(), v1::RBW);
  EXPECT_TRUE(commit.outcomes(2).sure());
  EXPECT_EQ(recoveries_->committed(), 1u);
  EXPECT_EQ(recoveries_->running(), 0u);
}

// A node may move a replica to another of its volumes, and the block expects the one that it was asked about.
TEST_F(BlockRecoveriesTest, ReplicaThatIsOnAnotherVolumeOfItsNodeEndsWhereItIsExpected) {
  const auto a = Rbw(0, 1000);
  const auto b = Rbw(1, 1000);
  const auto c = Rbw(2, 1000);
  v1::CommandDown::Recover command = Command(1000);
  command.mutable_replicas(1)->set_storage_uuid("DS-where-it-was");
  ASSERT_THAT(Recover(std::move(command)), IsOk());
  const auto& ended_on = namenode_.recoveries[0].storage_uuids();
  ASSERT_EQ(ended_on.size(), 3);
  EXPECT_EQ(std::count(ended_on.begin(), ended_on.end(), "DS-where-it-was"), 1);
  EXPECT_EQ(std::count(ended_on.begin(), ended_on.end(), node(1).storage()), 0);
}

TEST_F(BlockRecoveriesTest, DeadNodeIsNotWaitedForLonger) {
  const auto a = Rbw(0, 1000);
  const auto b = Rbw(1, 1000);
  const auto c = Rbw(2, 1000);
  world_.network().Block(node(0).machine, node(2).machine);
  const SteadyTime began = world_.Now();
  ASSERT_THAT(Recover(Command(1000)), IsOk());
  EXPECT_LE(world_.Now() - began, absl::Seconds(3));
  EXPECT_EQ(namenode_.recoveries[0].storage_uuids_size(), 2);
  EXPECT_FALSE(namenode_.recoveries[0].outcomes(2).answered());
  EXPECT_NE(namenode_.recoveries[0].outcomes(2).error(), "");
  ExpectReplica(0, 1000);
  ExpectReplica(1, 1000);
}

TEST_F(BlockRecoveriesTest, PrimaryNeedNotHoldTheBlockItself) {
  const auto b = Rbw(1, 500);
  ASSERT_THAT(Recover(Command()), IsOk());
  ExpectReplica(1, 500);
  EXPECT_TRUE(namenode_.recoveries[0].outcomes(0).answered());
  EXPECT_FALSE(namenode_.recoveries[0].outcomes(0).found());
}

TEST_F(BlockRecoveriesTest, DropsWhatNobodyEverGotAByteOf) {
  const auto a = Rbw(0, 0);
  ASSERT_THAT(Recover(Command()), IsOk());
  EXPECT_TRUE(namenode_.recoveries[0].drop());
  EXPECT_EQ(namenode_.recoveries[0].storage_uuids_size(), 0);
}

TEST_F(BlockRecoveriesTest, AFileInQuarantineIsNoWordThatThereIsNoByte) {
  LocalFileSystem& files = node(1).process->files();
  ASSERT_THAT(files.MakeDirectories("/data/quarantine"), IsOk());
  ASSERT_THAT(files.Open("/data/quarantine/blk_" + std::to_string(kBlock.value()), LocalFileSystem::OpenMode::kCreateNew).status(), IsOk());
  EXPECT_THAT(Recover(Command()), HasKind(ErrorKind::kReplicaNotFound));
  EXPECT_FALSE(namenode_.recoveries[0].drop());
  EXPECT_TRUE(namenode_.recoveries[0].has_error());
}

TEST_F(BlockRecoveriesTest, FailureIsToldWithItsReasonAndChangesNothing) {
  world_.network().Block(node(0).machine, node(2).machine);
  const absl::Status failed = Recover(Command());
  EXPECT_THAT(failed, HasKind(ErrorKind::kRetriable));
  ASSERT_EQ(namenode_.recoveries.size(), 1u);
  EXPECT_TRUE(namenode_.recoveries[0].has_error());
  EXPECT_FALSE(namenode_.recoveries[0].drop());
  EXPECT_NE(namenode_.recoveries[0].error().message().find(node(2).storage()), std::string::npos);
  EXPECT_EQ(recoveries_->failed(), 1u);
}

TEST_F(BlockRecoveriesTest, StorageThatIsNotThereHasNotAnswered) {
  v1::CommandDown::Recover command = Command();
  command.mutable_replicas(1)->set_storage_uuid("DS-gone");
  EXPECT_THAT(Recover(std::move(command)), HasKind(ErrorKind::kRetriable));
  EXPECT_FALSE(namenode_.recoveries[0].drop());
}

TEST_F(BlockRecoveriesTest, TruncateCutsFinalizedReplicas) {
  for (size_t i = 0; i < 3; ++i) ASSERT_THAT(Rbw(i, 1300)->Finalize(1300, true), IsOk());
  v1::CommandDown::Recover command = Command(1300);
  command.set_new_length_bytes(700);
  ASSERT_THAT(Recover(std::move(command)), IsOk());
  for (size_t i = 0; i < 3; ++i) ExpectReplica(i, 700);
  EXPECT_EQ(namenode_.recoveries[0].block().length_bytes(), 700u);
}

TEST_F(BlockRecoveriesTest, TokenIsForThatBlockAndStamp) {
  const auto a = Rbw(0, 100);
  v1::CommandDown::Recover command = Command();
  command.set_recovery_id(1005);  // Not what the token says.
  EXPECT_FALSE(Recover(std::move(command)).ok());
  EXPECT_EQ(node(0).store().Describe(kBlock)->state, ReplicaState::kRbw);
  command = Command();
  command.clear_token();
  EXPECT_FALSE(Recover(std::move(command)).ok());
  EXPECT_EQ(node(0).store().Describe(kBlock)->state, ReplicaState::kRbw);
}

TEST_F(BlockRecoveriesTest, CommitIsRepeatedWhileItsOutcomeIsUnknown) {
  const auto a = Rbw(0, 100);
  namenode_.commit_statuses = {absl::UnavailableError("restarting"), absl::UnavailableError("restarting")};
  ASSERT_THAT(Recover(Command()), IsOk());
  EXPECT_EQ(namenode_.recoveries.size(), 3u);
  namenode_.commit_statuses = {MakeError(ErrorKind::kStaleGeneration, "a later round has begun")};
  EXPECT_THAT(Recover(Command(0, GenerationStamp(1003))), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_EQ(namenode_.recoveries.size(), 4u);
}

TEST_F(BlockRecoveriesTest, LaterRoundTakesOverFromOneThatHangs) {
  const auto a = Rbw(0, 1000);
  const auto b = Rbw(1, 1000);
  ASSERT_THAT(ArmFault("datanode.recovery.before_update", "block"), IsOk());
  absl::Status first;
  recoveries_->Recover(Command(1000), [&first](absl::Status status) { first = std::move(status); });
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(recoveries_->running(), 1u);
  DisarmAllFaults();
  // Asked again before the first wakes up: its Init has been everywhere when the first's updates arrive.
  ASSERT_THAT(node(1).store().InitReplicaRecovery(kBlock, GenerationStamp(1003)), IsOk());
  ASSERT_THAT(node(0).store().InitReplicaRecovery(kBlock, GenerationStamp(1003)), IsOk());
  world_.RunFor(absl::Seconds(1));
  EXPECT_FALSE(first.ok());
  EXPECT_TRUE(namenode_.recoveries[0].has_error());
  ASSERT_THAT(Recover(Command(1000, GenerationStamp(1004))), IsOk());
  ExpectReplica(0, 1000, GenerationStamp(1004));
  ExpectReplica(1, 1000, GenerationStamp(1004));
}

TEST_F(BlockRecoveriesTest, FencedWriterChangesNothingAfterwards) {
  const auto a = Rbw(0, 1000);
  const auto b = Rbw(1, 1000);
  ASSERT_THAT(Recover(Command(1000)), IsOk());
  const std::string data = Pattern(1000, 10);
  EXPECT_THAT(a->Write({.offset = 1000, .data = data, .checksums = {}, .verify = true, .sync = false}), HasKind(ErrorKind::kCancelled));
  EXPECT_THAT(b->Finalize(1000, true), HasKind(ErrorKind::kCancelled));
  EXPECT_THAT(node(0).store().RecoverRbw(kBlock, kStamp, kNext, 0, 1 << 20), HasKind(ErrorKind::kReplicaNotFound));
  ExpectReplica(0, 1000);
}

}  // namespace
}  // namespace cairn::datanode::testing
