#include "namenode/replicas/datanode_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/namenode/hand_clock.h"

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using testing::HandClock;
using ::testing::IsEmpty;

class DatanodeRegistryTest : public ::testing::Test {
 protected:
  DatanodeRegistryTest() : registry_({"cluster", "pool", Epoch(5), absl::Seconds(15), absl::Seconds(60), {}}, &clock_) {}

  static v1::RegisterRequest Request(const std::string& uuid, uint64_t incarnation, const std::string& host, const std::string& storage) {
    v1::RegisterRequest request;
    request.set_datanode_uuid(uuid);
    request.set_incarnation(incarnation);
    request.mutable_info()->mutable_transfer()->set_host(host);
    request.mutable_info()->mutable_transfer()->set_port(9866);
    v1::StorageStatistics* statistics = request.add_storages();
    statistics->set_storage_uuid(storage);
    statistics->set_state(v1::HEALTHY);
    statistics->set_remaining_bytes(1000);
    return request;
  }
  absl::Status Register(const v1::RegisterRequest& request, uint64_t number = 1) {
    return registry_.Register(request, {StorageNumber(number)}).status();
  }
  absl::Status Beat(const std::string& uuid, uint64_t incarnation) {
    v1::HeartbeatRequest request;
    request.set_datanode_uuid(uuid);
    request.set_incarnation(incarnation);
    bool new_storages = false;
    return registry_.Heartbeat(request, &new_storages);
  }
  v1::NodeState State() { return registry_.StandingOf(StorageNumber(1))->node; }

  HandClock clock_;
  DatanodeRegistry registry_;
};

TEST_F(DatanodeRegistryTest, SilenceMakesANodeStaleAndThenDeadAndAnyLaneRevivesIt) {
  ASSERT_TRUE(Register(Request("u", 1, "h", "s")).ok());
  clock_.now = clock_.now + absl::Seconds(14);
  EXPECT_EQ(State(), v1::LIVE);
  clock_.now = clock_.now + absl::Seconds(1);
  EXPECT_EQ(State(), v1::STALE);
  EXPECT_THAT(registry_.Sweep().died, IsEmpty());
  ASSERT_TRUE(registry_.Heard("u", Incarnation(1)).ok());
  EXPECT_EQ(State(), v1::LIVE);
  clock_.now = clock_.now + absl::Seconds(60);
  EXPECT_EQ(State(), v1::DEAD);
  EXPECT_THAT(registry_.Sweep().died, ElementsAre("u"));
  EXPECT_THAT(registry_.Sweep().died, IsEmpty());  // Told once.
  ASSERT_TRUE(Beat("u", 1).ok());
  EXPECT_THAT(registry_.Sweep().returned, ElementsAre("u"));
}

TEST_F(DatanodeRegistryTest, StrangersAreRefused) {
  v1::RegisterRequest request = Request("u", 1, "h", "s");
  request.set_cluster_id("another");
  EXPECT_EQ(KindOf(registry_.CheckRegistration(request)), ErrorKind::kInvalidArgument);
  request.set_cluster_id("cluster");
  request.set_pool_id("another");
  EXPECT_EQ(KindOf(registry_.CheckRegistration(request)), ErrorKind::kInvalidArgument);
  request.set_pool_id("pool");
  EXPECT_TRUE(registry_.CheckRegistration(request).ok());
  request.set_incarnation(0);
  EXPECT_EQ(KindOf(registry_.CheckRegistration(request)), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf(Beat("u", 1)), ErrorKind::kUnregistered);
}

TEST_F(DatanodeRegistryTest, RestartSupersedesAndTheOldProcessIsNotHeardAnyMore) {
  ASSERT_TRUE(Register(Request("u", 1, "h", "s")).ok());
  registry_.SetFloor(StorageNumber(1), Incarnation(1), 0);
  registry_.SetMarked("u", Incarnation(1));
  EXPECT_TRUE(registry_.StandingOf(StorageNumber(1))->marked);
  ASSERT_TRUE(Register(Request("u", 2, "h", "s")).ok());
  EXPECT_FALSE(registry_.StandingOf(StorageNumber(1))->marked);
  EXPECT_EQ(registry_.StandingOf(StorageNumber(1))->floor, kNothingWalked);
  EXPECT_EQ(KindOf(Beat("u", 1)), ErrorKind::kUnregistered);
  registry_.SetMarked("u", Incarnation(1));  // Too late.
  EXPECT_FALSE(registry_.StandingOf(StorageNumber(1))->marked);
  // It is alive after all: two processes with one uuid.
  EXPECT_EQ(KindOf(Register(Request("u", 1, "h", "s"))), ErrorKind::kInvalidArgument);
  EXPECT_TRUE(Beat("u", 2).ok());
}

// A process registers and is killed at once; its word is held up on the way until its successor has registered.
TEST_F(DatanodeRegistryTest, ALateRegistrationOfADeadProcessDoesNotShutItsSuccessorOut) {
  ASSERT_TRUE(Register(Request("u", 2, "h", "s")).ok());
  ASSERT_TRUE(Register(Request("u", 1, "h", "s")).ok());  // The dead one's.
  EXPECT_EQ(KindOf(Register(Request("u", 2, "h", "s"))), ErrorKind::kInvalidArgument);
  clock_.now = clock_.now + absl::Seconds(15);
  EXPECT_TRUE(Register(Request("u", 2, "h", "s")).ok());
  EXPECT_TRUE(Beat("u", 2).ok());
  EXPECT_EQ(KindOf(Register(Request("u", 1, "h", "s"))), ErrorKind::kInvalidArgument);  // Two that are both alive.
}

TEST_F(DatanodeRegistryTest, SecondProcessElsewhereIsRefusedWhileTheFirstIsConnected) {
  ASSERT_TRUE(Register(Request("u", 1, "h", "s")).ok());
  registry_.SetReportStreamOpen("u", Incarnation(1), true);
  EXPECT_EQ(KindOf(Register(Request("u", 2, "elsewhere", "s"))), ErrorKind::kInvalidArgument);
  registry_.SetReportStreamOpen("u", Incarnation(1), false);  // A move to another host closes it.
  EXPECT_TRUE(Register(Request("u", 2, "elsewhere", "s")).ok());
}

TEST_F(DatanodeRegistryTest, VolumeOfAnotherLiveNodeIsRefused) {
  ASSERT_TRUE(Register(Request("u", 1, "h", "s")).ok());
  EXPECT_EQ(KindOf(Register(Request("v", 2, "i", "s"))), ErrorKind::kInvalidArgument);
  clock_.now = clock_.now + absl::Minutes(2);
  ASSERT_TRUE(Register(Request("v", 2, "i", "s"), 2).ok());  // Carried over from a dead one.
  EXPECT_EQ(registry_.NumberOf("s"), StorageNumber(2));
}

TEST_F(DatanodeRegistryTest, ProcessThatKnewThisEpochFromTheStartNeedsNoMark) {
  v1::RegisterRequest request = Request("u", 1, "h", "s");
  request.set_highest_epoch(5);
  ASSERT_TRUE(Register(request).ok());
  EXPECT_TRUE(registry_.StandingOf(StorageNumber(1))->marked);
  request.set_incarnation(2);
  request.set_highest_epoch(4);
  ASSERT_TRUE(Register(request).ok());
  EXPECT_FALSE(registry_.StandingOf(StorageNumber(1))->marked);
}

TEST_F(DatanodeRegistryTest, StorageThatIsGoneDoesNotBecomeOneThatIsOnlyUnavailable) {
  ASSERT_TRUE(Register(Request("u", 1, "h", "s")).ok());
  for (const int gone : {v1::FAILED, v1::REMOVED}) {
    registry_.SetStorageState(StorageNumber(1), static_cast<v1::StorageState>(gone));
    registry_.SetStorageState(StorageNumber(1), v1::UNAVAILABLE);
    EXPECT_EQ(registry_.StandingOf(StorageNumber(1))->state, gone);
  }
  registry_.SetStorageState(StorageNumber(1), v1::HEALTHY);
  registry_.SetStorageState(StorageNumber(1), v1::UNAVAILABLE);
  EXPECT_EQ(registry_.StandingOf(StorageNumber(1))->state, v1::UNAVAILABLE);
}

TEST_F(DatanodeRegistryTest, WorseOfStreamAndHeartbeatIsTheStorageState) {
  ASSERT_TRUE(Register(Request("u", 1, "h", "s")).ok());
  registry_.SetStorageState(StorageNumber(1), v1::FAILED);
  EXPECT_EQ(registry_.StandingOf(StorageNumber(1))->state, v1::FAILED);
  EXPECT_THAT(registry_.PlacementNodes()[0].storages, IsEmpty());
  registry_.SetStorageState(StorageNumber(1), v1::HEALTHY);
  v1::HeartbeatRequest beat;
  beat.set_datanode_uuid("u");
  beat.set_incarnation(1);
  beat.add_storages()->set_storage_uuid("s");
  beat.mutable_storages(0)->set_state(v1::UNAVAILABLE);
  bool new_storages = true;
  ASSERT_TRUE(registry_.Heartbeat(beat, &new_storages).ok());
  EXPECT_FALSE(new_storages);
  EXPECT_EQ(registry_.StandingOf(StorageNumber(1))->state, v1::UNAVAILABLE);
  beat.add_storages()->set_storage_uuid("unheard of");
  ASSERT_TRUE(registry_.Heartbeat(beat, &new_storages).ok());
  EXPECT_TRUE(new_storages);
}

TEST_F(DatanodeRegistryTest, ChosenStreamsWeighUntilTheNextHeartbeat) {
  ASSERT_TRUE(Register(Request("u", 1, "h", "s")).ok());
  registry_.NoteChosen(StorageNumber(1));
  registry_.NoteChosen(StorageNumber(1));
  EXPECT_EQ(registry_.PlacementNodes()[0].active_streams, 2u);
  ASSERT_TRUE(Beat("u", 1).ok());
  EXPECT_EQ(registry_.PlacementNodes()[0].active_streams, 0u);
}

}  // namespace
}  // namespace cairn::namenode
