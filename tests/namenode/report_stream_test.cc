// The ordered report stream against a whole replica plane: what survives which restart, and what a bad stream can and cannot do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "tests/namenode/replica_cluster.h"

namespace cairn::namenode::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::ReportEvent FinalizedEvent(const std::string& storage, BlockId block, uint64_t stamp, uint64_t length) {
  v1::ReportEvent event;
  event.set_type(v1::REPLICA_FINALIZED);
  event.set_storage_uuid(storage);
  event.mutable_replica()->set_block_id(block.value());
  event.mutable_replica()->set_generation_stamp(stamp);
  event.mutable_replica()->set_length_bytes(length);
  event.mutable_replica()->set_state(v1::FINALIZED);
  return event;
}

TEST(ReportStream, FirstHelloWalksAndThenEventsFlow) {
  ReplicaCluster cluster(2);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  EXPECT_EQ(cluster.nodes[0]->Count(v1::ReportDown::kWalk), 1u);
  const BlockId block = cluster.Write({0, 1}, 2);
  cluster.Settle();
  EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0", "dn1"));
  EXPECT_EQ(cluster.nodes[0]->applied, cluster.nodes[0]->last());
  EXPECT_EQ(cluster.nodes[0]->durable, cluster.nodes[0]->last());
}

TEST(ReportStream, ResumesAfterNamenodeRestartWithoutAFullReport) {
  ReplicaCluster cluster(1);
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId before = cluster.Write({0}, 1);
  cluster.Settle();
  cluster.RestartNamenode();
  FakeDatanode& node = *cluster.nodes[0];
  const BlockId meanwhile = cluster.Commit({}, 1);
  node.Finalize(meanwhile, 1001, 100);  // While nobody listens.
  node.downs.clear();
  node.Connect(cluster.plane.get());
  cluster.Settle();
  EXPECT_EQ(node.Count(v1::ReportDown::kResume), 1u);
  EXPECT_EQ(node.Count(v1::ReportDown::kWalk), 0u);
  EXPECT_EQ(node.durable, node.last());
  EXPECT_THAT(cluster.Locate(before), ElementsAre("dn0"));
  EXPECT_THAT(cluster.Locate(meanwhile), ElementsAre("dn0"));
}

TEST(ReportStream, LocationsWaitForTheDatanodeToRegisterAgain) {
  ReplicaCluster cluster(1);
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0}, 1);
  cluster.Settle();
  cluster.RestartNamenode();
  bool retry = false;
  EXPECT_THAT(cluster.Locate(block, &retry), IsEmpty());
  EXPECT_TRUE(retry);  // Its row says where, but not yet at which address.
  cluster.ConnectAll();
  cluster.world.RunFor(absl::Milliseconds(10));
  EXPECT_THAT(cluster.Locate(block, &retry), ElementsAre("dn0"));
}

TEST(ReportStream, PowerCutOfTheNamenodeLosesNoReplica) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    ReplicaCluster cluster(1, seed);
    cluster.options.acknowledged_grace = absl::ZeroDuration();  // Only what streams say.
    cluster.StartNamenode();
    cluster.ConnectAll();
    std::vector<BlockId> blocks;
    for (int i = 0; i < 20; ++i) {
      blocks.push_back(cluster.Write({0}, 1));
      cluster.world.RunFor(absl::Milliseconds(130));  // Some are synced, some are not.
    }
    cluster.nodes[0]->Drop(blocks[3]);
    cluster.CrashNamenode(true);
    cluster.StartNamenode();
    cluster.ConnectAll();
    cluster.Settle();
    for (size_t i = 0; i < blocks.size(); ++i)
      EXPECT_EQ(cluster.Locate(blocks[i]).size(), i == 3 ? 0u : 1u) << "seed " << seed << " block " << i;
  }
}

TEST(ReportStream, DatanodeRestartWalksAndFindsWhatChangedMeanwhile) {
  ReplicaCluster cluster(2);
  cluster.options.acknowledged_grace = absl::ZeroDuration();  // Only what streams say.
  cluster.StartNamenode();
  cluster.ConnectAll();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(cluster.Write({0}, 1));
  cluster.Settle();
  FakeDatanode& node = *cluster.nodes[0];
  node.Restart();
  node.replicas().erase(blocks[2]);  // Lost, never told.
  node.replicas()[blocks[5]].corrupt = true;
  node.replicas()[blocks[7]].state = v1::RWR;
  node.downs.clear();
  node.Connect(cluster.plane.get());
  cluster.Settle();
  size_t walks = 0;  // Besides those of single blocks that are missed.
  for (const v1::ReportDown& down : node.downs) walks += down.has_walk() && down.walk().end_id() == 0;
  EXPECT_EQ(walks, 1u);
  EXPECT_GE(node.Count(v1::ReportDown::kExpand), 1u);
  EXPECT_LE(node.Count(v1::ReportDown::kExpand), 3u);  // Ranges that agree are not listed.
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(cluster.Locate(blocks[i]).size(), i == 2 || i == 5 || i == 7 ? 0u : 1u) << i;
  v1::ClusterReportResponse report;
  cluster.plane->FillReport(&report);
  EXPECT_EQ(report.corrupt_replicas(), 1u);
  EXPECT_EQ(report.missing_blocks(), 3u);
}

TEST(ReportStream, WalkGoesOnWhereItStoodAfterNamenodeRestart) {
  ReplicaCluster cluster(1);
  cluster.StartNamenode();
  FakeDatanode& node = *cluster.nodes[0];
  std::vector<BlockId> blocks;
  for (int i = 0; i < 10; ++i) {
    blocks.push_back(cluster.Commit({}, 1));
    node.replicas()[blocks.back()] = {1001, 100, v1::FINALIZED, false};
  }
  node.range_size = 1;
  node.Connect(cluster.plane.get());
  ASSERT_TRUE(cluster.world.RunUntil([&] { return node.Count(v1::ReportDown::kExpand) == 4; }, absl::Seconds(5)));
  cluster.RestartNamenode();
  node.downs.clear();
  node.Connect(cluster.plane.get());
  cluster.Settle();
  EXPECT_EQ(node.Count(v1::ReportDown::kResume), 1u);
  EXPECT_EQ(node.Count(v1::ReportDown::kWalk), 0u);
  for (BlockId block : blocks) EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0"));
  v1::ClusterReportResponse report;
  cluster.plane->FillReport(&report);
  EXPECT_GE(report.datanodes(0).last_walk_ms(), 0);
}

TEST(ReportStream, RangesThatAgreeBelowOneThatDoesNotAreNotWalkedAgain) {
  ReplicaCluster cluster(1);
  cluster.options.acknowledged_grace = absl::ZeroDuration();
  cluster.StartNamenode();
  cluster.ConnectAll();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(cluster.Write({0}, 1));
  cluster.Settle();
  FakeDatanode& node = *cluster.nodes[0];
  node.Restart();
  node.replicas().erase(blocks[9]);
  node.replicas().erase(blocks[4]);
  node.range_size = 2;
  node.ranges_ahead = 8;  // All are on their way before the first expansion is asked for.
  node.Connect(cluster.plane.get());
  cluster.Settle();
  v1::ClusterReportResponse report;
  cluster.plane->FillReport(&report);
  EXPECT_GE(report.datanodes(0).last_walk_ms(), 0);
  EXPECT_LE(report.datanodes(0).last_walk_ms(), 5000);  // This incarnation's.
  EXPECT_EQ(cluster.plane->figures().missing_blocks, 2u);
}

TEST(ReportStream, EventsThatFellOutOfTheLogCostAWalk) {
  ReplicaCluster cluster(1);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  FakeDatanode& node = *cluster.nodes[0];
  node.Disconnect();
  const BlockId block = cluster.Commit({}, 1);
  node.Finalize(block, 1001, 100);
  node.ForgetLog();
  node.downs.clear();
  node.Connect(cluster.plane.get());
  cluster.Settle();
  EXPECT_EQ(node.Count(v1::ReportDown::kWalk), 1u);
  EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0"));
}

TEST(ReportStream, GapDuplicateAndNonsenseAreRejectedAndHarmNothing) {
  ReplicaCluster cluster(2);
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0, 1}, 2);
  cluster.Settle();
  FakeDatanode& node = *cluster.nodes[0];
  const BlockId other = cluster.Commit({}, 1);
  const auto raw = [&](const std::vector<v1::ReportEvent>& events) {
    v1::ReportUp message;
    message.mutable_events();
    for (const v1::ReportEvent& event : events) *message.mutable_events()->add_events() = event;
    return message;
  };
  const auto numbered = [&](uint64_t ahead, v1::ReportEvent event) {
    event.set_number(node.last() + ahead);
    return event;
  };
  v1::ReportEvent backwards;
  backwards.set_type(v1::RANGE);
  backwards.set_storage_uuid(node.storage());
  backwards.mutable_range()->set_first_id(10);
  backwards.mutable_range()->set_end_id(10);
  v1::ReportEvent unknown_type = FinalizedEvent(node.storage(), other, 1001, 100);
  unknown_type.set_type(static_cast<v1::ReportEventType>(99));
  v1::ReportEvent crowded;
  crowded.set_type(v1::RANGE);
  crowded.set_storage_uuid(node.storage());
  crowded.mutable_range()->set_end_id(UINT64_MAX);
  for (uint64_t i = 1; i <= 1025; ++i) crowded.mutable_range()->add_entries()->set_block_id(i * 16);
  v1::ReportUp hello;
  hello.mutable_hello()->set_datanode_uuid(node.uuid());
  std::vector<v1::ReportUp> bad = {
      raw({numbered(2, FinalizedEvent(node.storage(), other, 1001, 100))}),                  // A gap.
      raw({numbered(0, FinalizedEvent(node.storage(), other, 1001, 100))}),                  // Old.
      raw({numbered(1, FinalizedEvent(node.storage(), BlockId(uint64_t{1} << 63), 1, 1))}),  // No such block can be.
      raw({numbered(1, backwards)}),
      raw({numbered(1, unknown_type)}),
      raw({numbered(1, crowded)}),
      raw(std::vector<v1::ReportEvent>(1001, numbered(1, FinalizedEvent(node.storage(), other, 1001, 100)))),
      hello,  // A second one.
      v1::ReportUp(),
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    ASSERT_TRUE(node.reports_open()) << i;
    node.downs.clear();
    node.SendRaw(bad[i]);
    cluster.world.RunFor(absl::Milliseconds(100));
    ASSERT_EQ(node.Count(v1::ReportDown::kRejection), 1u) << i;
    EXPECT_EQ(node.downs.back().rejection().reject(), v1::START_AFRESH) << i;
    EXPECT_FALSE(node.reports_open()) << i;
    EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0", "dn1")) << i;
    EXPECT_THAT(cluster.Locate(other), IsEmpty()) << i;
    node.OpenReports();
    cluster.world.RunFor(absl::Milliseconds(100));
    EXPECT_EQ(node.Count(v1::ReportDown::kResume), 1u) << i;
  }
  EXPECT_TRUE(cluster.nodes[1]->reports_open());
  node.Finalize(other, 1001, 100);  // And all goes on.
  cluster.Settle();
  EXPECT_THAT(cluster.Locate(other), ElementsAre("dn0"));
}

v1::ReportEvent RangeOf(const std::string& storage, uint64_t first, uint64_t end) {
  v1::ReportEvent event;
  event.set_type(v1::RANGE);
  event.set_storage_uuid(storage);
  event.mutable_range()->set_first_id(first);
  event.mutable_range()->set_end_id(end);
  event.mutable_range()->set_digest(12345);  // Of nothing that is there: it would have to be listed.
  event.mutable_range()->set_finalized(1);
  return event;
}

TEST(ReportStream, NineUnappliedRangesAreTooManyAndEightAreNot) {
  ReplicaCluster cluster(1);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  FakeDatanode& node = *cluster.nodes[0];
  for (const size_t count : {size_t{8}, size_t{9}}) {
    node.downs.clear();
    v1::ReportUp message;
    for (size_t i = 0; i < count; ++i) {
      v1::ReportEvent range = RangeOf(node.storage(), 16 * i, 16 * (i + 1));
      range.mutable_range()->set_digest(XXH3_64bits("", 0));  // There is nothing, as it says.
      range.mutable_range()->set_finalized(0);
      range.set_number(node.last() + 1 + i);
      *message.mutable_events()->add_events() = range;
    }
    node.SendRaw(message);
    cluster.world.RunFor(absl::Milliseconds(100));
    EXPECT_EQ(node.Count(v1::ReportDown::kRejection), count > 8 ? 1u : 0u);
    EXPECT_EQ(node.reports_open(), count <= 8);
    if (!node.reports_open()) {
      EXPECT_EQ(node.downs.back().rejection().reject(), v1::START_AFRESH);
      break;
    }
    node.Restart();  // Its numbers are not what was said; begin anew.
    node.Connect(cluster.plane.get());
    cluster.Settle();
  }
}

TEST(ReportStream, ListThatWasAskedForAndLostIsAskedForAgain) {
  ReplicaCluster cluster(1);
  cluster.options.acknowledged_grace = absl::ZeroDuration();
  cluster.StartNamenode();
  cluster.ConnectAll();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(cluster.Write({0}, 1));
  cluster.Settle();
  FakeDatanode& node = *cluster.nodes[0];
  // A replica that the NameNode does not know of, as if its event had been lost: a walk that is over finds the range that it is in, and the
  // connection breaks with the question.
  const BlockId lost = blocks[2];
  node.replicas().erase(lost);
  v1::ReportEvent range = RangeOf(node.storage(), lost.value(), lost.value() + 16);
  range.set_number(node.last() + 1);
  node.Send(range);
  node.Disconnect();
  cluster.world.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster.Locate(lost).size(), 1u);
  node.Connect(cluster.plane.get());
  cluster.world.RunFor(absl::Minutes(3));
  EXPECT_THAT(cluster.Locate(lost), IsEmpty());
  v1::ClusterReportResponse report;
  cluster.plane->FillReport(&report);
  EXPECT_GE(report.datanodes(0).last_walk_ms(), 0);
}

TEST(ReportStream, LateEventOfAnEarlierStampDoesNotHideTheNewerOne) {
  ReplicaCluster cluster(1);
  cluster.options.acknowledged_grace = absl::ZeroDuration();
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  FakeDatanode& node = *cluster.nodes[0];
  const BlockId block = cluster.Commit({}, 1, 1002);
  const v1::ReportEvent older = FinalizedEvent(node.storage(), block, 1001, 100);
  node.Finalize(block, 1002, 100);
  cluster.Settle();
  v1::ReportUp message;
  *message.mutable_events()->add_events() = older;  // Of a queue that kept it: its number has gone by.
  message.mutable_events()->mutable_events(0)->set_number(node.last());
  node.SendRaw(message);
  cluster.Settle();
  node.OpenReports();
  cluster.Settle();
  EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0"));
  EXPECT_EQ(cluster.plane->figures().missing_blocks, 0u);
  EXPECT_EQ(cluster.plane->figures().corrupt_replicas, 0u);
}

// In one table or in both: the stream does not stand still, and the row is there again soon.
TEST(ReportStream, DamagedRowIsAskedForAndMended) {
  EnableFaultPoints();
  for (const char* action : {"error*1", "error*2", "error*1@1"}) {
    ReplicaCluster cluster(1);
    cluster.options.acknowledged_grace = absl::ZeroDuration();
    cluster.StartNamenode();
    cluster.ConnectAll();
    const BlockId before = cluster.Write({0}, 1);
    cluster.Settle();
    ASSERT_TRUE(ArmFault("replica_store.damage_row", action).ok());
    const BlockId block = cluster.Write({0}, 1);
    cluster.world.RunFor(absl::Milliseconds(50));
    DisarmAllFaults();
    const BlockId after = cluster.Write({0}, 1);
    cluster.world.RunFor(absl::Seconds(15));
    for (const BlockId each : {before, block, after}) EXPECT_THAT(cluster.Locate(each), ElementsAre("dn0")) << action;
    FakeDatanode& node = *cluster.nodes[0];
    EXPECT_EQ(node.Count(v1::ReportDown::kRejection), 0u);
    node.Restart();  // A walk over damaged rows comes to its end, too.
    ASSERT_TRUE(ArmFault("replica_store.damage_row", action).ok());
    node.Connect(cluster.plane.get());
    cluster.world.RunFor(absl::Seconds(15));
    DisarmAllFaults();
    cluster.world.RunFor(absl::Seconds(15));
    for (const BlockId each : {before, block, after}) EXPECT_THAT(cluster.Locate(each), ElementsAre("dn0")) << action;
    EXPECT_EQ(cluster.plane->figures().missing_blocks, 0u);
  }
}

TEST(ReportStream, UnregisteredNodeIsToldToRegisterFirst) {
  ReplicaCluster cluster(1);
  cluster.StartNamenode();
  class Down : public api::MessageHandler<v1::ReportDown> {
   public:
    void OnMessage(v1::ReportDown message) override { rejected += message.has_rejection(); }
    void OnClosed(absl::Status status) override { closed = status; }
    int rejected = 0;
    std::optional<absl::Status> closed;
  };
  auto down = std::make_shared<Down>();
  auto sink = cluster.plane->Reports({}, down);
  v1::ReportUp hello;
  hello.mutable_hello()->set_datanode_uuid("nobody");
  sink->Send(hello);
  cluster.world.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(down->rejected, 0);
  ASSERT_TRUE(down->closed.has_value());
  EXPECT_EQ(KindOf(*down->closed), ErrorKind::kUnregistered);
  EXPECT_FALSE(sink->Send(hello));
}

TEST(ReportStream, LateEventOfAnEarlierConnectionCannotResurrect) {
  ReplicaCluster cluster(1);
  cluster.options.acknowledged_grace = absl::ZeroDuration();  // Only what streams say.
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0}, 1);
  cluster.Settle();
  FakeDatanode& node = *cluster.nodes[0];
  const uint64_t number = node.last();  // Of the FINALIZED event.
  node.Drop(block);
  cluster.Settle();
  v1::ReportEvent late = FinalizedEvent(node.storage(), block, 1001, 100);
  late.set_number(number);
  v1::ReportUp message;
  *message.mutable_events()->add_events() = late;
  node.SendRaw(message);
  cluster.Settle();
  EXPECT_THAT(cluster.Locate(block), IsEmpty());
}

TEST(ReportStream, LostEventIsFoundByTheNextWalk) {
  EnableFaultPoints();
  ReplicaCluster cluster(1);
  cluster.options.walk_period = absl::Minutes(30);
  cluster.options.acknowledged_grace = absl::Seconds(1);
  cluster.StartNamenode();
  cluster.ConnectAll();
  cluster.Settle();
  ASSERT_TRUE(ArmFault("replicas.lose_event", "error*1").ok());
  const BlockId block = cluster.Commit({}, 1);
  cluster.nodes[0]->Finalize(block, 1001, 100);
  cluster.Settle();
  EXPECT_THAT(cluster.Locate(block), IsEmpty());
  cluster.world.RunFor(absl::Minutes(38));
  DisarmAllFaults();
  EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0"));
}

TEST(ReportStream, NewVolumeOfALiveDatanodeIsWalked) {
  ReplicaCluster cluster(0);
  cluster.StartNamenode();
  FakeDatanode* small = cluster.AddDatanode("dn", {"a"});
  small->Connect(cluster.plane.get());
  cluster.Settle();
  const uint64_t incarnation = small->incarnation();
  v1::RegisterRequest request;
  request.set_datanode_uuid("dn");
  request.set_incarnation(incarnation);
  request.mutable_info()->mutable_transfer()->set_host("dn");
  request.mutable_info()->mutable_transfer()->set_port(9866);
  for (const char* uuid : {"a", "b"}) request.add_storages()->set_storage_uuid(uuid);
  small->downs.clear();
  cluster.plane->Register({}, request, [](const absl::StatusOr<v1::RegisterResponse>& answer) { EXPECT_TRUE(answer.ok()); });
  cluster.world.RunFor(absl::Milliseconds(100));
  ASSERT_EQ(small->Count(v1::ReportDown::kWalk), 1u);
  EXPECT_THAT(small->downs[0].walk().storage_uuids(), ElementsAre("b"));
}

TEST(ReportStream, FailedStorageStopsCountingAndItsReturnIsWalked) {
  ReplicaCluster cluster(3);
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0, 1}, 2);
  cluster.Settle();
  cluster.nodes[0]->ReportStorage(v1::FAILED);
  cluster.Settle();
  EXPECT_THAT(cluster.Locate(block), ElementsAre("dn1", "dn2"));  // Repaired.
}

TEST(ReportStream, RemovedStorageThatComesBackKeepsWhatIsOnIt) {
  ReplicaCluster cluster(1);
  cluster.options.acknowledged_grace = absl::ZeroDuration();
  cluster.StartNamenode();
  cluster.ConnectAll();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(cluster.Write({0}, 1));
  cluster.Settle();
  cluster.nodes[0]->ReportStorage(v1::REMOVED);
  cluster.nodes[0]->ReportStorage(v1::HEALTHY);
  cluster.world.RunFor(absl::Minutes(3));  // Asked to walk, at the latest when nothing is heard of it.
  for (BlockId block : blocks) EXPECT_THAT(cluster.Locate(block), ElementsAre("dn0"));
}

TEST(ReportStream, RemovedStorageLosesItsRows) {
  ReplicaCluster cluster(2);
  cluster.StartNamenode();
  cluster.ConnectAll();
  const BlockId block = cluster.Write({0}, 1);
  cluster.Settle();
  cluster.nodes[0]->transfers = false;
  cluster.nodes[0]->ReportStorage(v1::REMOVED);
  cluster.Settle();
  EXPECT_THAT(cluster.Locate(block), IsEmpty());
  EXPECT_EQ(cluster.plane->figures().missing_blocks, 1u);
}

}  // namespace
}  // namespace cairn::namenode::testing
