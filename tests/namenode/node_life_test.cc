// What operators want of nodes, through a whole replica plane: drains and what holds them back, maintenance, the files of hosts, and nodes
// that take each other's place.

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/namenode/replica_cluster.h"

namespace cairn::namenode::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Action = v1::SetNodeAdminRequest;

class NodeLifeTest : public ::testing::Test {
 protected:
  void Start(size_t nodes) {
    for (size_t i = 0; i < nodes; ++i) cluster_.AddDatanode("dn" + std::to_string(i), {"s" + std::to_string(i)});
    cluster_.StartNamenode();
    cluster_.ConnectAll();
    cluster_.Settle();
  }
  absl::StatusOr<v1::SetNodeAdminResponse> Set(const std::string& node, Action::Action action, absl::Duration length = {},
                                               bool force = false) {
    v1::SetNodeAdminRequest request;
    request.set_node(node);
    request.set_action(action);
    request.set_force(force);
    if (length > absl::ZeroDuration()) request.set_until_ms(absl::ToUnixMillis(cluster_.process()->clock().WallNow() + length));
    absl::StatusOr<v1::SetNodeAdminResponse> answer = absl::UnknownError("not answered");
    cluster_.plane->SetNodeAdmin(std::move(request), [&](absl::StatusOr<v1::SetNodeAdminResponse> got) { answer = std::move(got); });
    return answer;
  }
  // Whose answer may come later.
  std::shared_ptr<absl::StatusOr<v1::SetNodeAdminResponse>> Ask(const std::string& node, Action::Action action) {
    v1::SetNodeAdminRequest request;
    request.set_node(node);
    request.set_action(action);
    auto answer = std::make_shared<absl::StatusOr<v1::SetNodeAdminResponse>>(absl::UnknownError("not answered"));
    cluster_.plane->SetNodeAdmin(std::move(request), [answer](absl::StatusOr<v1::SetNodeAdminResponse> got) { *answer = std::move(got); });
    return answer;
  }
  // A new DataNode at its address, which is remembered but cannot be written.
  FakeDatanode* TakePlaceOfDn1WhileReadOnly() {
    FakeDatanode* const fresh = cluster_.AddDatanode("fresh", {"fresh-volume"});
    fresh->host = "dn1";
    cluster_.space.admin_error = MakeError(ErrorKind::kReadOnly, "full");
    fresh->Connect(cluster_.plane.get());
    return fresh;
  }
  v1::DatanodeReport Report(const std::string& uuid) {
    v1::ClusterReportResponse report;
    cluster_.plane->FillReport(&report);
    for (const v1::DatanodeReport& node : report.datanodes())
      if (node.info().uuid() == uuid) return node;
    return {};
  }
  v1::NodeAdminState State(const std::string& uuid) { return Report(uuid).admin_state(); }
  bool Reaches(const std::string& uuid, v1::NodeAdminState state, absl::Duration limit) {
    return cluster_.world.RunUntil([&] { return State(uuid) == state; }, limit);
  }
  v1::ListNodeBlockersResponse Blockers(const std::string& node) {
    v1::ListNodeBlockersRequest request;
    request.set_node(node);
    std::optional<absl::StatusOr<v1::ListNodeBlockersResponse>> answer;
    cluster_.plane->ListNodeBlockers(std::move(request),
                                     [&](absl::StatusOr<v1::ListNodeBlockersResponse> got) { answer = std::move(got); });
    cluster_.world.RunUntil([&] { return answer.has_value(); }, absl::Seconds(1));
    EXPECT_TRUE(answer && answer->ok());
    return answer && answer->ok() ? **answer : v1::ListNodeBlockersResponse();
  }
  absl::StatusOr<std::vector<StorageNumber>> Place(uint32_t replication) {
    ReplicaPlane::TargetRequest request;
    request.replication = replication;
    request.block_size_bytes = 100;
    return cluster_.plane->ChooseTargets(request);
  }
  std::vector<BlockId> WriteMany(int count, const std::vector<size_t>& on, uint32_t replication) {
    std::vector<BlockId> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(cluster_.Write(on, replication));
    cluster_.Settle();
    return blocks;
  }

  ReplicaCluster cluster_{0};
};

TEST_F(NodeLifeTest, DrainedNodesBlocksAreElsewhereBeforeItIsDecommissioned) {
  Start(4);
  const std::vector<BlockId> blocks = WriteMany(30, {0, 1, 2}, 3);
  const auto set = Set("dn2:9866", Action::DECOMMISSION);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->datanode().uuid(), "dn2");
  EXPECT_EQ(set->state(), v1::DECOMMISSIONING);
  for (int i = 0; i < 20; ++i) {  // It takes no new blocks, though it would be one of three.
    const auto targets = Place(4);
    ASSERT_TRUE(targets.ok());
    EXPECT_THAT(*targets, Not(Contains(*cluster_.plane->NumberOf("s2"))));
  }
  ASSERT_TRUE(Reaches("dn2", v1::DECOMMISSIONED, absl::Minutes(2)));
  for (BlockId block : blocks) {
    EXPECT_TRUE(cluster_.nodes[3]->Has(block));
    EXPECT_TRUE(cluster_.nodes[2]->Has(block));  // Nothing is taken from it: it may be taken back.
  }
  EXPECT_EQ(Report("dn2").blocks_left(), 0u);
  cluster_.world.RunFor(absl::Minutes(12));  // A scan finds nothing in excess, and nothing short.
  for (BlockId block : blocks) EXPECT_EQ(cluster_.Copies(block), 4u);
  EXPECT_EQ(cluster_.plane->figures().under_replicated_blocks, 0u);

  cluster_.nodes[2]->Disconnect();
  cluster_.world.RunFor(absl::Minutes(2));
  EXPECT_EQ(cluster_.plane->figures().under_replicated_blocks, 0u);  // Its end is no loss.
  cluster_.nodes[2]->Connect(cluster_.plane.get());
  cluster_.Settle();
  ASSERT_TRUE(Set("dn2", Action::RECOMMISSION).ok());
  EXPECT_EQ(State("dn2"), v1::NODE_NORMAL);
  cluster_.world.RunFor(absl::Minutes(1));
  for (BlockId block : blocks) EXPECT_EQ(cluster_.Copies(block), 3u);
}

TEST_F(NodeLifeTest, OnlyCopyOnADrainingNodeIsReadAndCopiedFrom) {
  Start(2);
  const BlockId block = WriteMany(1, {0}, 1)[0];
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  EXPECT_THAT(cluster_.Locate(block), ElementsAre("dn0"));
  ASSERT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Minutes(1)));
  EXPECT_EQ(cluster_.plane->figures().missing_blocks, 0u);
  EXPECT_TRUE(cluster_.nodes[1]->Has(block));
}

TEST_F(NodeLifeTest, DrainThatCannotEndSaysWhy) {
  Start(3);
  const std::vector<BlockId> blocks = WriteMany(3, {0, 1, 2}, 3);
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  cluster_.world.RunFor(absl::Minutes(1));
  EXPECT_EQ(State("dn0"), v1::DECOMMISSIONING);
  EXPECT_EQ(Report("dn0").blocks_left(), 3u);
  EXPECT_TRUE(Report("dn0").looked_once());
  const v1::ListNodeBlockersResponse blockers = Blockers("dn0");
  ASSERT_EQ(blockers.blockers_size(), 3);
  EXPECT_EQ(blockers.blocks_left(), 3u);
  EXPECT_EQ(blockers.blockers(0).block().id(), blocks[0].value());
  EXPECT_EQ(blockers.blockers(0).reason(), "NO_TARGET");
  EXPECT_EQ(blockers.blockers(0).wanted(), 3u);
  EXPECT_EQ(blockers.blockers(0).live(), 2u);
  EXPECT_GE(blockers.blockers(0).age_ms(), 50'000);
  // A fourth node comes: at once, not after the longest pause.
  cluster_.AddDatanode("dn3", {"s3"})->Connect(cluster_.plane.get());
  EXPECT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Seconds(30)));
}

TEST_F(NodeLifeTest, NodesWithoutBlocksOrVolumesDrainAtOnce) {
  Start(3);
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  EXPECT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Seconds(3)));
  // All its volumes have failed: what it held is made again from the others, and nobody waits for a walk.
  const std::vector<BlockId> blocks = WriteMany(5, {1, 2}, 2);
  cluster_.AddDatanode("dn3", {"s3"})->Connect(cluster_.plane.get());
  cluster_.Settle();
  cluster_.nodes[1]->ReportStorage(v1::FAILED);
  ASSERT_TRUE(Set("dn1", Action::DECOMMISSION).ok());
  EXPECT_TRUE(Reaches("dn1", v1::DECOMMISSIONED, absl::Seconds(60)));
  for (BlockId block : blocks) EXPECT_TRUE(cluster_.nodes[3]->Has(block));
  cluster_.AddDatanode("dn5", {"s5"})->Connect(cluster_.plane.get());  // Nor could anything be read of its only one.
  cluster_.nodes.back()->ReportStorage(v1::FAILED);
  cluster_.Settle();
  ASSERT_TRUE(Set("dn5", Action::DECOMMISSION).ok());
  EXPECT_TRUE(Reaches("dn5", v1::DECOMMISSIONED, absl::Seconds(6)));
  cluster_.AddDatanode("dn4", {})->Connect(cluster_.plane.get());  // It never had any.
  cluster_.Settle();
  ASSERT_TRUE(Set("dn4", Action::DECOMMISSION).ok());
  EXPECT_TRUE(Reaches("dn4", v1::DECOMMISSIONED, absl::Seconds(6)));
}

TEST_F(NodeLifeTest, OpenBlockHoldsADrainBackOnlyWhileNobodyElseHasIt) {
  Start(3);
  const auto open = [&](const std::vector<size_t>& on) {
    const BlockId id = cluster_.space.NextBlock();
    v1::BlockRecord record;
    record.set_state(v1::UNDER_CONSTRUCTION);
    record.set_generation_stamp(1001);
    record.set_replication(2);
    cluster_.space.SetBlock(id, record);
    for (size_t i : on) cluster_.nodes[i]->Create(id, 1001);
    return id;
  };
  open({0, 1});  // Its writer goes on with dn1.
  const BlockId alone = open({0});
  cluster_.Settle();
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  cluster_.world.RunFor(absl::Minutes(1));
  EXPECT_EQ(State("dn0"), v1::DECOMMISSIONING);
  EXPECT_EQ(Report("dn0").open_blocks_left(), 1u);
  const v1::ListNodeBlockersResponse blockers = Blockers("dn0");
  ASSERT_EQ(blockers.blockers_size(), 1);
  EXPECT_EQ(blockers.blockers(0).block().id(), alone.value());
  EXPECT_EQ(blockers.blockers(0).reason(), "OPEN");
  // Its file is closed; now it is copied.
  v1::BlockRecord record = *cluster_.space.Block(alone);
  record.set_state(v1::COMMITTED);
  record.set_length_bytes(7);
  record.set_replication(1);
  cluster_.space.SetBlock(alone, record);
  cluster_.nodes[0]->Finalize(alone, 1001, 7);
  cluster_.plane->OnBlocksChanged({alone});
  EXPECT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Minutes(1)));
  EXPECT_EQ(cluster_.Copies(alone), 2u);
}

TEST_F(NodeLifeTest, NodesInMaintenanceMayBeAwayWithoutRepairUntilItsEnd) {
  Start(4);
  const std::vector<BlockId> blocks = WriteMany(10, {0, 1, 2}, 3);
  ASSERT_TRUE(Set("dn0", Action::MAINTENANCE, absl::Minutes(10)).ok());
  ASSERT_TRUE(Set("dn1", Action::MAINTENANCE, absl::Minutes(10)).ok());
  EXPECT_TRUE(Reaches("dn0", v1::IN_MAINTENANCE, absl::Seconds(60)));
  EXPECT_TRUE(Reaches("dn1", v1::IN_MAINTENANCE, absl::Seconds(60)));
  cluster_.nodes[0]->Disconnect();
  cluster_.nodes[1]->Disconnect();
  cluster_.world.RunFor(absl::Minutes(7));
  EXPECT_EQ(Report("dn0").state(), v1::DEAD);
  for (BlockId block : blocks) {
    EXPECT_FALSE(cluster_.nodes[3]->Has(block));
    EXPECT_THAT(cluster_.Locate(block), ElementsAre("dn2"));
  }
  EXPECT_EQ(cluster_.plane->figures().under_replicated_blocks, 0u);
  ASSERT_TRUE(Reaches("dn0", v1::NODE_NORMAL, absl::Minutes(5)));
  cluster_.world.RunFor(absl::Minutes(1));
  for (BlockId block : blocks) EXPECT_TRUE(cluster_.nodes[3]->Has(block));
}

TEST_F(NodeLifeTest, MaintenanceWaitsForTheLeastNumberOfLiveCopiesUnlessItIsForced) {
  Start(3);
  const BlockId single = WriteMany(1, {0}, 1)[0];
  WriteMany(1, {0, 1}, 2);
  cluster_.nodes[0]->transfers = false;
  ASSERT_TRUE(Set("dn0", Action::MAINTENANCE).ok());
  cluster_.world.RunFor(absl::Minutes(1));
  EXPECT_EQ(State("dn0"), v1::ENTERING_MAINTENANCE);
  const v1::ListNodeBlockersResponse blockers = Blockers("dn0");
  ASSERT_EQ(blockers.blockers_size(), 1);
  EXPECT_EQ(blockers.blockers(0).block().id(), single.value());
  EXPECT_EQ(blockers.blockers(0).reason(), "IN_FLIGHT");
  ASSERT_TRUE(Set("dn0", Action::MAINTENANCE, {}, /*force=*/true).ok());
  EXPECT_EQ(State("dn0"), v1::IN_MAINTENANCE);
}

TEST_F(NodeLifeTest, DeletionNeverCountsWhatIsInMaintenance) {
  Start(3);
  const BlockId block = WriteMany(1, {0, 1, 2}, 3)[0];
  ASSERT_TRUE(Set("dn0", Action::MAINTENANCE).ok());
  ASSERT_TRUE(Reaches("dn0", v1::IN_MAINTENANCE, absl::Seconds(60)));
  v1::BlockRecord record = *cluster_.space.Block(block);
  record.set_replication(2);
  cluster_.space.SetBlock(block, record);
  cluster_.plane->OnBlocksChanged({block});
  cluster_.world.RunFor(absl::Seconds(30));
  EXPECT_EQ(cluster_.Copies(block), 3u);  // dn0's may be gone for long.
  ASSERT_TRUE(Set("dn0", Action::RECOMMISSION).ok());
  cluster_.world.RunFor(absl::Seconds(30));
  EXPECT_EQ(cluster_.Copies(block), 2u);
}

TEST_F(NodeLifeTest, WhatIsWantedOutlivesTheNamenodeEvenOfNodesThatAreAway) {
  Start(4);
  const std::vector<BlockId> blocks = WriteMany(5, {0, 1}, 2);
  ASSERT_TRUE(Set("dn0", Action::MAINTENANCE).ok());
  ASSERT_TRUE(Reaches("dn0", v1::IN_MAINTENANCE, absl::Seconds(60)));
  ASSERT_TRUE(Set("dn3", Action::DECOMMISSION).ok());
  cluster_.nodes[0]->Disconnect();
  cluster_.RestartNamenode();
  for (size_t i = 1; i < 4; ++i) cluster_.nodes[i]->Connect(cluster_.plane.get());
  cluster_.world.RunFor(absl::Minutes(5));
  EXPECT_EQ(State("dn0"), v1::IN_MAINTENANCE);
  EXPECT_EQ(Report("dn0").state(), v1::DEAD);
  EXPECT_EQ(State("dn3"), v1::DECOMMISSIONED);
  for (BlockId block : blocks) EXPECT_EQ(cluster_.Copies(block), 2u);
  cluster_.nodes[0]->Connect(cluster_.plane.get());
  cluster_.Settle();
  EXPECT_EQ(Report("dn0").state(), v1::LIVE);
  EXPECT_EQ(State("dn0"), v1::IN_MAINTENANCE);
}

// Nobody knows what it holds: not the rows, which may be lost, and least of all those who would switch it off.
TEST_F(NodeLifeTest, NodeThatHasNotComeBackSinceTheNamenodesStartIsNotLetGo) {
  Start(3);
  cluster_.nodes[0]->Disconnect();
  const BlockId block = cluster_.Commit({0}, 1);
  cluster_.nodes[0]->replicas()[block] = {.stamp = 1001, .length = 100};
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  cluster_.RestartNamenode();
  for (size_t i = 1; i < 3; ++i) cluster_.nodes[i]->Connect(cluster_.plane.get());
  cluster_.world.RunFor(absl::Minutes(5));
  EXPECT_EQ(State("dn0"), v1::DECOMMISSIONING);
  cluster_.nodes[0]->Restart();
  cluster_.nodes[0]->Connect(cluster_.plane.get());
  ASSERT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Minutes(5)));
  EXPECT_TRUE(cluster_.nodes[1]->Has(block) || cluster_.nodes[2]->Has(block));
}

TEST_F(NodeLifeTest, RefusesWhatMakesNoSense) {
  Start(1);
  EXPECT_EQ(KindOf(Set("nobody", Action::DECOMMISSION).status()), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(Set("dn0", Action::ACTION_UNSPECIFIED).status()), ErrorKind::kInvalidArgument);
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  EXPECT_EQ(KindOf(Set("dn0", Action::MAINTENANCE).status()), ErrorKind::kInvalidArgument);
  v1::SetNodeAdminRequest past;
  past.set_node("dn0");
  past.set_action(Action::MAINTENANCE);
  past.set_until_ms(1);
  absl::Status status;
  cluster_.plane->SetNodeAdmin(past, [&](const absl::StatusOr<v1::SetNodeAdminResponse>& got) { status = got.status(); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("over before it begins"));
}

TEST_F(NodeLifeTest, StateIsNotTakenOverBeforeItIsWrittenAndADrainsEndIsTriedAgain) {
  Start(2);
  cluster_.space.admin_error = MakeError(ErrorKind::kReadOnly, "full");
  EXPECT_EQ(KindOf(Set("dn0", Action::DECOMMISSION).status()), ErrorKind::kReadOnly);
  EXPECT_EQ(State("dn0"), v1::NODE_NORMAL);
  cluster_.space.admin_error = absl::OkStatus();
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  cluster_.space.admin_error = MakeError(ErrorKind::kReadOnly, "full");
  cluster_.world.RunFor(absl::Seconds(30));
  EXPECT_EQ(State("dn0"), v1::DECOMMISSIONING);
  cluster_.space.admin_error = absl::OkStatus();
  EXPECT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Seconds(20)));
}

// The drain's end was decided before the call, and is written behind it.
TEST_F(NodeLifeTest, RecommissionIsNotOverwrittenByADrainThatEndsMeanwhile) {
  Start(2);
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  cluster_.space.hold_admin = true;
  const auto answer = Ask("dn0", Action::RECOMMISSION);
  ASSERT_TRUE(cluster_.world.RunUntil([&] { return cluster_.space.held_admin() == 2; }, absl::Seconds(30)));
  cluster_.space.ReleaseAdmin();
  ASSERT_TRUE(answer->ok()) << answer->status();
  cluster_.world.RunFor(absl::Seconds(30));
  EXPECT_EQ(State("dn0"), v1::NODE_NORMAL);
  EXPECT_EQ(cluster_.space.AdminRow("dn0"), std::nullopt);
}

TEST_F(NodeLifeTest, CallsThatFindAnotherStateThanTheyDecidedOnDecideAnew) {
  Start(2);
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  cluster_.space.hold_admin = true;
  ASSERT_TRUE(cluster_.world.RunUntil([&] { return cluster_.space.held_admin() == 1; }, absl::Seconds(30)));  // The drain's end.
  const auto back = Ask("dn0", Action::RECOMMISSION);
  const auto away = Ask("dn0", Action::DECOMMISSION);
  cluster_.space.ReleaseAdmin();
  ASSERT_TRUE(back->ok()) << back->status();
  ASSERT_TRUE(away->ok()) << away->status();
  EXPECT_EQ((*away)->state(), v1::DECOMMISSIONING);
  // All of that between two looks of the drain: it is another drain, and comes to its own end.
  EXPECT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Seconds(30)));
}

std::shared_ptr<const HostList> Hosts(const std::string& hosts, const std::string& exclude) {
  absl::StatusOr<HostList> list = HostList::Parse(hosts, exclude);
  EXPECT_TRUE(list.ok()) << list.status();
  return std::make_shared<const HostList>(*std::move(list));
}

TEST_F(NodeLifeTest, FilesDrainAndTakeBackButNotWhatACallHasSaid) {
  Start(3);
  EXPECT_EQ(cluster_.plane->SetHosts(Hosts("", "dn0:9866\ndn1 # broken fan")), 2u);
  EXPECT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Seconds(30)));
  EXPECT_TRUE(Reaches("dn1", v1::DECOMMISSIONED, absl::Seconds(30)));
  ASSERT_TRUE(Set("dn2", Action::DECOMMISSION).ok());
  EXPECT_EQ(cluster_.plane->SetHosts(Hosts("", "dn1")), 1u);
  EXPECT_EQ(State("dn0"), v1::NODE_NORMAL);
  EXPECT_EQ(State("dn1"), v1::DECOMMISSIONED);
  EXPECT_NE(State("dn2"), v1::NODE_NORMAL);
  // One that comes later finds its name on the list.
  cluster_.plane->SetHosts(Hosts("", "dn1 dn3"));
  cluster_.AddDatanode("dn3", {"s3"})->Connect(cluster_.plane.get());
  EXPECT_TRUE(Reaches("dn3", v1::DECOMMISSIONED, absl::Seconds(30)));
}

TEST_F(NodeLifeTest, FilesDoNotTurnWhatACallHasSaidIntoSomethingElse) {
  Start(4);
  const std::string json = R"([{"hostName": "dn0", "adminState": "IN_MAINTENANCE"}, {"hostName": "dn1"}, {"hostName": "dn2"},
                              {"hostName": "dn3"}])";
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  EXPECT_EQ(cluster_.plane->SetHosts(Hosts(json, "")), 0u);
  EXPECT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Seconds(30)));
  EXPECT_EQ(cluster_.plane->SetHosts(Hosts(json, "")), 0u);
  EXPECT_EQ(State("dn0"), v1::DECOMMISSIONED);
  ASSERT_TRUE(Set("dn0", Action::RECOMMISSION).ok());  // Now the files may.
  EXPECT_EQ(cluster_.plane->SetHosts(Hosts(json, "")), 1u);
  EXPECT_TRUE(Reaches("dn0", v1::IN_MAINTENANCE, absl::Seconds(30)));

  // A maintenance that a call has given an end: then it is the files' turn.
  ASSERT_TRUE(Set("dn1", Action::MAINTENANCE, absl::Minutes(2)).ok());
  EXPECT_TRUE(Reaches("dn1", v1::IN_MAINTENANCE, absl::Seconds(30)));
  EXPECT_EQ(cluster_.plane->SetHosts(Hosts("", "dn1")), 1u);  // dn0 is normal again.
  EXPECT_EQ(State("dn1"), v1::IN_MAINTENANCE);
  EXPECT_TRUE(Reaches("dn1", v1::DECOMMISSIONED, absl::Minutes(3)));
}

TEST_F(NodeLifeTest, NodesThatAreNotOnTheListAreDeadAndRefused) {
  Start(3);
  const BlockId block = WriteMany(1, {0, 1}, 2)[0];
  cluster_.plane->SetHosts(Hosts("dn1 dn2", ""));
  cluster_.world.RunFor(absl::Seconds(30));
  EXPECT_EQ(Report("dn0").state(), v1::DEAD);
  EXPECT_TRUE(Report("dn0").not_allowed());
  EXPECT_TRUE(cluster_.nodes[2]->Has(block));
  cluster_.nodes[0]->Disconnect();
  cluster_.nodes[0]->Connect(cluster_.plane.get());
  cluster_.Settle();
  EXPECT_EQ(KindOf(cluster_.nodes[0]->registered), ErrorKind::kPermission);
  EXPECT_THAT(std::string(cluster_.nodes[0]->registered.message()), HasSubstr("not in the include-list: dn0:9866"));
  cluster_.plane->SetHosts(Hosts("dn0 dn1 dn2", ""));
  cluster_.nodes[0]->Disconnect();
  cluster_.nodes[0]->Connect(cluster_.plane.get());
  cluster_.Settle();
  EXPECT_EQ(Report("dn0").state(), v1::LIVE);
}

// Its only volume was wiped, and with it its identity.
TEST_F(NodeLifeTest, NewIdentityAtAnAddressTakesThePlaceOfTheOldOne) {
  Start(3);
  const std::vector<BlockId> blocks = WriteMany(5, {0, 1, 2}, 3);
  cluster_.nodes[1]->Disconnect();
  cluster_.Settle();
  FakeDatanode* const fresh = cluster_.AddDatanode("fresh", {"fresh-volume"});
  fresh->host = "dn1";
  fresh->Connect(cluster_.plane.get());
  cluster_.world.RunFor(absl::Seconds(90));
  v1::ClusterReportResponse report;
  cluster_.plane->FillReport(&report);
  std::set<std::string> uuids;
  for (const v1::DatanodeReport& node : report.datanodes()) {
    uuids.insert(node.info().uuid());
    EXPECT_EQ(node.state(), v1::LIVE);
  }
  EXPECT_THAT(uuids, ElementsAre("dn0", "dn2", "fresh"));
  for (BlockId block : blocks) EXPECT_TRUE(fresh->Has(block));
  EXPECT_EQ(cluster_.plane->figures().under_replicated_blocks, 0u);
}

TEST_F(NodeLifeTest, ConnectedNodeIsNotReplacedAndWhatWasWantedStaysWithTheAddress) {
  Start(2);
  ASSERT_TRUE(Set("dn1", Action::DECOMMISSION).ok());
  FakeDatanode* const fresh = cluster_.AddDatanode("fresh", {"fresh-volume"});
  fresh->host = "dn1";
  fresh->Connect(cluster_.plane.get());
  cluster_.Settle();
  EXPECT_EQ(KindOf(fresh->registered), ErrorKind::kRetriable);
  fresh->Disconnect();
  cluster_.nodes[1]->Disconnect();
  cluster_.Settle();
  fresh->Connect(cluster_.plane.get());
  cluster_.Settle();
  EXPECT_TRUE(fresh->registered.ok()) << fresh->registered;
  EXPECT_NE(State("fresh"), v1::NODE_NORMAL);
  cluster_.RestartNamenode();
  cluster_.Settle();
  v1::ClusterReportResponse report;
  cluster_.plane->FillReport(&report);
  ASSERT_EQ(report.datanodes_size(), 1);  // The old one is not remembered.
  EXPECT_EQ(report.datanodes(0).info().uuid(), "fresh");
}

TEST_F(NodeLifeTest, PlaceIsTakenOverInOneBatch) {
  Start(3);
  ASSERT_TRUE(Set("dn1", Action::DECOMMISSION).ok());
  ASSERT_TRUE(Reaches("dn1", v1::DECOMMISSIONED, absl::Seconds(30)));
  cluster_.nodes[1]->Disconnect();
  cluster_.Settle();
  FakeDatanode* const fresh = cluster_.AddDatanode("fresh", {"fresh-volume"});
  fresh->host = "dn1";
  cluster_.space.hold_admin = true;
  fresh->Connect(cluster_.plane.get());
  cluster_.Settle();
  // Whenever the NameNode dies, what is wanted at that address is on record.
  EXPECT_EQ(cluster_.space.held_admin(), 1u);
  EXPECT_NE(cluster_.space.AdminRow("dn1"), std::nullopt);
  cluster_.CrashNamenode(/*power_cut=*/false);
  cluster_.space.DropAdmin();
  cluster_.StartNamenode();
  for (const size_t i : {size_t{0}, size_t{2}, size_t{3}}) cluster_.nodes[i]->Connect(cluster_.plane.get());
  cluster_.Settle();
  EXPECT_EQ(cluster_.space.AdminRow("dn1"), std::nullopt);
  EXPECT_NE(cluster_.space.AdminRow("fresh"), std::nullopt);
  EXPECT_EQ(State("fresh"), v1::DECOMMISSIONED);
  EXPECT_EQ(Report("dn1").info().uuid(), "");
}

// The NameNode was read-only just then.
TEST_F(NodeLifeTest, TakenOverPlaceThatCouldNotBeWrittenIsWrittenLater) {
  Start(2);
  ASSERT_TRUE(Set("dn1", Action::DECOMMISSION).ok());
  cluster_.nodes[1]->Disconnect();
  cluster_.Settle();
  TakePlaceOfDn1WhileReadOnly();
  cluster_.Settle();
  EXPECT_EQ(cluster_.space.AdminRow("fresh"), std::nullopt);
  cluster_.space.admin_error = absl::OkStatus();
  EXPECT_TRUE(Reaches("fresh", v1::DECOMMISSIONED, absl::Seconds(60)));
  EXPECT_NE(cluster_.space.AdminRow("fresh"), std::nullopt);
  EXPECT_EQ(cluster_.space.AdminRow("dn1"), std::nullopt);
}

// Else the old one's row, which is still there, would drain it again.
TEST_F(NodeLifeTest, RecommissionOfATakenOverPlaceThatCouldNotBeWrittenOutlivesTheNamenode) {
  Start(2);
  cluster_.Write({1}, 2);  // There is nowhere to bring it: the drain does not end.
  cluster_.Settle();
  ASSERT_TRUE(Set("dn1", Action::DECOMMISSION).ok());
  cluster_.nodes[0]->Disconnect();
  cluster_.nodes[1]->Disconnect();
  cluster_.Settle();
  FakeDatanode* const fresh = TakePlaceOfDn1WhileReadOnly();
  cluster_.world.RunFor(absl::Milliseconds(100));
  EXPECT_EQ(State("fresh"), v1::DECOMMISSIONING);
  cluster_.space.admin_error = absl::OkStatus();
  ASSERT_TRUE(Set("fresh", Action::RECOMMISSION).ok());
  EXPECT_EQ(cluster_.space.AdminRow("dn1"), std::nullopt);
  cluster_.RestartNamenode();
  fresh->Connect(cluster_.plane.get());
  cluster_.Settle();
  EXPECT_EQ(State("fresh"), v1::NODE_NORMAL);
}

TEST_F(NodeLifeTest, ChangeThatWasWrittenThoughNobodyCouldSayIsFollowedWhenTheDrainWouldEnd) {
  Start(3);
  ASSERT_TRUE(Set("dn0", Action::DECOMMISSION).ok());
  cluster_.space.admin_unknown = true;
  ASSERT_TRUE(cluster_.world.RunUntil(
      [&] {
        v1::NodeAdminRecord record;
        record.ParseFromString(cluster_.space.AdminRow("dn0").value_or(""));
        return record.state() == v1::DECOMMISSIONED;
      },
      absl::Seconds(30)));
  EXPECT_EQ(State("dn0"), v1::DECOMMISSIONING);
  EXPECT_TRUE(Reaches("dn0", v1::DECOMMISSIONED, absl::Seconds(30)));

  cluster_.space.admin_unknown = false;
  ASSERT_TRUE(Set("dn1", Action::DECOMMISSION).ok());
  cluster_.space.admin_unknown = true;
  EXPECT_FALSE(Set("dn1", Action::RECOMMISSION).ok());
  EXPECT_EQ(cluster_.space.AdminRow("dn1"), std::nullopt);
  EXPECT_EQ(State("dn1"), v1::DECOMMISSIONING);
  EXPECT_TRUE(Reaches("dn1", v1::NODE_NORMAL, absl::Seconds(30)));
}

// Many nodes go in and out of maintenance at once, again and again; nothing is copied, nobody is forgotten.
TEST_F(NodeLifeTest, ManyNodesEnterAndLeaveMaintenanceTogether) {
  Start(13);
  std::vector<BlockId> blocks;
  for (size_t i = 0; i < 13; ++i) blocks.push_back(cluster_.Write({i, (i + 4) % 13, (i + 8) % 13}, 3));
  cluster_.Settle();
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(Set("dn" + std::to_string(i), Action::RECOMMISSION).ok());
    for (int i = 10; i < 13; ++i) ASSERT_TRUE(Set("dn" + std::to_string(i), Action::MAINTENANCE).ok());
    cluster_.world.RunFor(absl::Milliseconds(50));
    for (int i = 10; i < 13; ++i) ASSERT_TRUE(Set("dn" + std::to_string(i), Action::RECOMMISSION).ok());
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(Set("dn" + std::to_string(i), Action::MAINTENANCE).ok());
    cluster_.world.RunFor(absl::Milliseconds(50));
  }
  for (int i = 0; i < 13; ++i) ASSERT_TRUE(Set("dn" + std::to_string(i), Action::RECOMMISSION).ok());
  cluster_.world.RunFor(absl::Minutes(2));
  for (int i = 0; i < 13; ++i) EXPECT_EQ(State("dn" + std::to_string(i)), v1::NODE_NORMAL);
  for (BlockId block : blocks) EXPECT_EQ(cluster_.Copies(block), 3u);
}

}  // namespace
}  // namespace cairn::namenode::testing
