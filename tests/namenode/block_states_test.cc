#include "namenode/replicas/block_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "common/env/random.h"

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kStamp = 1005;
constexpr uint64_t kLength = 77;

v1::BlockRecord Committed(uint32_t replication) {
  v1::BlockRecord record;
  record.set_state(v1::COMMITTED);
  record.set_generation_stamp(kStamp);
  record.set_length_bytes(kLength);
  record.set_replication(replication);
  return record;
}

// A replica that counts, on storage i of node "n<i>".
ReplicaEvidence Counting(uint32_t i) {
  ReplicaEvidence evidence;
  evidence.row.storage = StorageNumber(i);
  evidence.row.block = BlockId(1 << 30);
  evidence.row.stamp = GenerationStamp(kStamp);
  evidence.row.length_bytes = kLength;
  evidence.row.state = v1::FINALIZED;
  StorageStanding standing;
  standing.storage = StorageNumber(i);
  standing.datanode_uuid = "n" + std::to_string(i);
  standing.rack = "/r";
  standing.incarnation = Incarnation(1);
  standing.node = v1::LIVE;
  standing.state = v1::HEALTHY;
  standing.marked = true;
  standing.floor = 0;
  standing.remaining_bytes = 1000;
  evidence.standing = standing;
  return evidence;
}

BlockEvidence Evidence(std::optional<v1::BlockRecord> record, std::vector<ReplicaEvidence> replicas) {
  BlockEvidence evidence;
  evidence.id = BlockId(1 << 30);
  evidence.record = std::move(record);
  evidence.replicas = std::move(replicas);
  evidence.next_block_id = (1 << 30) + 16;
  evidence.now_ms = 1'000'000;
  return evidence;
}

std::vector<uint64_t> Going(const BlockVerdict& verdict) {
  std::vector<uint64_t> storages;
  for (const BlockVerdict::Go& go : verdict.go) storages.push_back(go.storage.value());
  return storages;
}

TEST(JudgeBlock, EnoughGoodCopiesIsQuiet) {
  const BlockVerdict verdict = JudgeBlock(Evidence(Committed(3), {Counting(1), Counting(2), Counting(3)}));
  EXPECT_EQ(verdict.present, 3u);
  EXPECT_EQ(verdict.counted, 3u);
  EXPECT_FALSE(verdict.under_replicated);
  EXPECT_THAT(verdict.go, IsEmpty());
}

TEST(JudgeBlock, ExcessGoesFromTheFullestStorageOrTheDoubledNode) {
  std::vector<ReplicaEvidence> replicas = {Counting(1), Counting(2), Counting(3)};
  replicas[1].standing->remaining_bytes = 10;
  EXPECT_THAT(Going(JudgeBlock(Evidence(Committed(2), replicas))), ElementsAre(2));
  replicas[2].standing->datanode_uuid = "n1";  // Two of three on one node: they are one to be counted on.
  EXPECT_THAT(Going(JudgeBlock(Evidence(Committed(2), replicas))), ElementsAre(3));
  EXPECT_THAT(Going(JudgeBlock(Evidence(Committed(3), replicas))), IsEmpty());
}

// Whatever keeps a copy from counting keeps another from going.
TEST(JudgeBlock, NothingThatDoesNotCountLetsAnotherGo) {
  struct Case {
    const char* name;
    std::function<void(ReplicaEvidence*)> spoil;
  };
  const std::vector<Case> cases = {
      {"stale node", [](ReplicaEvidence* e) { e->standing->node = v1::STALE; }},
      {"dead node", [](ReplicaEvidence* e) { e->standing->node = v1::DEAD; }},
      {"not registered", [](ReplicaEvidence* e) { e->standing.reset(); }},
      {"no mark", [](ReplicaEvidence* e) { e->standing->marked = false; }},
      {"not walked yet", [](ReplicaEvidence* e) { e->standing->floor = (1 << 30) + 1; }},
      {"failed storage", [](ReplicaEvidence* e) { e->standing->state = v1::FAILED; }},
      {"unavailable storage", [](ReplicaEvidence* e) { e->standing->state = v1::UNAVAILABLE; }},
      {"told to go", [](ReplicaEvidence* e) { e->told_to_go = true; }},
      {"corrupt", [](ReplicaEvidence* e) { e->row.corrupt = true; }},
      {"older stamp", [](ReplicaEvidence* e) { e->row.stamp = GenerationStamp(kStamp - 1); }},
      {"newer stamp", [](ReplicaEvidence* e) { e->row.stamp = GenerationStamp(kStamp + 1); }},
      {"shorter", [](ReplicaEvidence* e) { e->row.length_bytes = kLength - 1; }},
      {"being written", [](ReplicaEvidence* e) { e->row.state = v1::RBW; }},
      {"waiting for recovery", [](ReplicaEvidence* e) { e->row.state = v1::RWR; }},
      {"transfer's target", [](ReplicaEvidence* e) { e->row.state = v1::TEMPORARY; }},
  };
  for (const Case& each : cases) {
    ReplicaEvidence spoilt = Counting(1);
    each.spoil(&spoilt);
    ReplicaEvidence old = Counting(3);
    old.row.stamp = GenerationStamp(kStamp - 2);
    const BlockVerdict verdict = JudgeBlock(Evidence(Committed(1), {spoilt, old}));
    EXPECT_EQ(verdict.counted, 0u) << each.name;
    EXPECT_THAT(verdict.go, IsEmpty()) << each.name;
    const BlockVerdict pair = JudgeBlock(Evidence(Committed(1), {spoilt, Counting(2)}));
    for (uint64_t gone : Going(pair)) EXPECT_EQ(gone, 1u) << each.name;  // The good one stays.
  }
}

TEST(JudgeBlock, CorruptAndStaleGoWhenOneOtherCounts) {
  ReplicaEvidence corrupt = Counting(1), stale = Counting(2);
  corrupt.row.corrupt = true;
  stale.row.stamp = GenerationStamp(kStamp - 1);
  const BlockVerdict verdict = JudgeBlock(Evidence(Committed(3), {corrupt, stale, Counting(3)}));
  EXPECT_THAT(Going(verdict), ElementsAre(1, 2));
  EXPECT_EQ(verdict.present, 1u);
  EXPECT_EQ(verdict.corrupt, 1u);
  EXPECT_TRUE(verdict.under_replicated);
}

TEST(JudgeBlock, AcknowledgedStoragesHoldOffRepairButCountForNoDeletion) {
  v1::BlockRecord record = Committed(2);
  record.set_committed_ms(1'000'000 - 59'999);
  ReplicaEvidence stale = Counting(3);
  stale.row.stamp = GenerationStamp(kStamp - 1);
  BlockEvidence evidence = Evidence(record, {stale});
  evidence.expected = {*Counting(1).standing, *Counting(2).standing};
  BlockVerdict verdict = JudgeBlock(evidence);
  EXPECT_EQ(verdict.present, 2u);
  EXPECT_EQ(verdict.counted, 0u);
  EXPECT_TRUE(verdict.unconfirmed);
  EXPECT_FALSE(verdict.under_replicated);
  EXPECT_THAT(verdict.go, IsEmpty());
  evidence.now_ms += 1;
  verdict = JudgeBlock(evidence);
  EXPECT_TRUE(verdict.missing);
  EXPECT_THAT(verdict.go, IsEmpty());
}

TEST(JudgeBlock, OfABlockThatIsNotCommittedNothingGoes) {
  for (v1::BlockUCState state : {v1::RESERVED, v1::UNDER_CONSTRUCTION, v1::UNDER_RECOVERY}) {
    v1::BlockRecord record = Committed(1);
    record.set_state(state);
    ReplicaEvidence stale = Counting(1);
    stale.row.stamp = GenerationStamp(1);
    const BlockVerdict verdict = JudgeBlock(Evidence(record, {stale, Counting(2), Counting(3)}));
    EXPECT_THAT(verdict.go, IsEmpty());
    EXPECT_FALSE(verdict.under_replicated);
  }
}

TEST(JudgeBlock, GarbageGoesAtOnceUnlessItCannotBeOurs) {
  ReplicaEvidence unmarked = Counting(1);
  unmarked.standing->marked = false;
  BlockEvidence evidence = Evidence(std::nullopt, {unmarked, Counting(2)});
  EXPECT_THAT(Going(JudgeBlock(evidence)), ElementsAre(1, 2));
  evidence.keep_unknown = true;
  EXPECT_THAT(JudgeBlock(evidence).go, IsEmpty());
  EXPECT_TRUE(JudgeBlock(evidence).quarantined);
  evidence.keep_unknown = false;
  evidence.next_block_id = evidence.id.value();
  EXPECT_THAT(JudgeBlock(evidence).go, IsEmpty());
  EXPECT_TRUE(JudgeBlock(evidence).quarantined);
}

TEST(JudgeBlock, RightAfterAStartUnregisteredNodesAreNotYetLost) {
  ReplicaEvidence unknown = Counting(2);
  unknown.standing.reset();
  BlockEvidence evidence = Evidence(Committed(2), {Counting(1), unknown});
  evidence.starting = true;
  EXPECT_FALSE(JudgeBlock(evidence).under_replicated);
  evidence.starting = false;
  EXPECT_TRUE(JudgeBlock(evidence).under_replicated);
}

// Any mixture: after all that may go has gone, as many still count as were wanted, or nothing good went at all.
TEST(JudgeBlock, NeverLetsGoodCopiesGoBelowTheWantedNumber) {
  Random random(11);
  for (int round = 0; round < 20'000; ++round) {
    const uint32_t wanted = static_cast<uint32_t>(1 + random.Below(3));
    std::vector<ReplicaEvidence> replicas;
    for (uint32_t i = 1; i <= 1 + random.Below(6); ++i) {
      ReplicaEvidence e = Counting(i);
      if (random.OneIn(4)) e.row.stamp = GenerationStamp(kStamp - 1 + random.Below(3));
      if (random.OneIn(6)) e.row.corrupt = true;
      if (random.OneIn(6)) e.row.length_bytes = kLength - random.Below(2);
      if (random.OneIn(5)) e.row.state = static_cast<v1::ReplicaState>(1 + random.Below(5));
      if (random.OneIn(5)) e.standing->node = static_cast<v1::NodeState>(1 + random.Below(3));
      if (random.OneIn(5)) e.standing->state = static_cast<v1::StorageState>(1 + random.Below(4));
      if (random.OneIn(5)) e.standing->marked = false;
      if (random.OneIn(5)) e.standing->floor = kNothingWalked;
      if (random.OneIn(5)) e.standing->datanode_uuid = "n1";
      if (random.OneIn(6)) e.told_to_go = true;
      if (random.OneIn(9)) e.standing.reset();
      replicas.push_back(std::move(e));
    }
    const BlockVerdict verdict = JudgeBlock(Evidence(Committed(wanted), replicas));
    std::set<uint64_t> going;
    for (const BlockVerdict::Go& go : verdict.go) going.insert(go.storage.value());
    ASSERT_THAT(going, SizeIs(verdict.go.size()));
    bool good_goes = false;
    std::set<std::string> staying;
    for (const ReplicaEvidence& e : replicas) {
      const bool right = e.row.state == v1::FINALIZED && e.row.stamp.value() == kStamp && e.row.length_bytes == kLength && !e.row.corrupt;
      if (going.contains(e.row.storage.value())) {
        ASSERT_FALSE(e.told_to_go);
        good_goes |= right;
      } else if (right && e.standing && !e.told_to_go && e.standing->node == v1::LIVE && e.standing->state == v1::HEALTHY &&
                 e.standing->marked && e.standing->floor == 0) {
        staying.insert(e.standing->datanode_uuid);
      }
    }
    if (good_goes) {
      ASSERT_GE(staying.size(), wanted) << round;
    }
    if (!going.empty()) {
      ASSERT_GE(staying.size(), 1u) << round;
    }
  }
}

// It comes back, and with it its rack.
TEST(JudgeBlock, CopiesInMaintenanceCountForTheRacksOfABlock) {
  std::vector<ReplicaEvidence> replicas = {Counting(1), Counting(2), Counting(3)};
  replicas[2].standing->rack = "/other";
  for (const auto& [state, spread] : {std::pair(v1::NODE_NORMAL, true), std::pair(v1::ENTERING_MAINTENANCE, true),
                                      std::pair(v1::IN_MAINTENANCE, true), std::pair(v1::DECOMMISSIONING, false)}) {
    replicas[2].standing->admin = state;
    BlockEvidence evidence = Evidence(Committed(state == v1::DECOMMISSIONING ? 2 : 3), replicas);
    evidence.racks = 2;
    EXPECT_EQ(JudgeBlock(evidence).mis_replicated, !spread) << v1::NodeAdminState_Name(state);
  }
  replicas[2].standing->admin = v1::IN_MAINTENANCE;
  replicas[2].standing->node = v1::DEAD;  // Switched off, as it may be.
  BlockEvidence evidence = Evidence(Committed(3), replicas);
  evidence.racks = 2;
  EXPECT_FALSE(JudgeBlock(evidence).mis_replicated);
}

TEST(HoldsBack, WhoMayHaveAcknowledgedBytesOfABlockThatIsNotCommittedIsNotLetGo) {
  v1::BlockRecord record = Committed(2);
  record.set_state(v1::UNDER_CONSTRUCTION);
  ReplicaEvidence writing = Counting(1), left_over = Counting(2), leaving = Counting(3);
  writing.row.state = leaving.row.state = v1::RBW;
  left_over.row.state = v1::RWR;  // Its host lost its power: it may lack what the others have.
  leaving.standing->admin = v1::DECOMMISSIONING;
  const auto holds = [](const BlockEvidence& evidence) { return HoldsBack(evidence, JudgeBlock(evidence), v1::DECOMMISSIONING); };
  EXPECT_TRUE(holds(Evidence(record, {left_over, leaving})));
  EXPECT_FALSE(holds(Evidence(record, {writing, leaving})));
  record.set_state(v1::UNDER_RECOVERY);
  EXPECT_TRUE(holds(Evidence(record, {writing, leaving})));
}

TEST(JudgeBlock, TheRackOfAMovesTargetIsNotOneThatTheBlockWouldLose) {
  std::vector<ReplicaEvidence> replicas = {Counting(1), Counting(2), Counting(3)};
  for (uint32_t i = 0; i < 3; ++i) replicas[i].standing->rack = "/r" + std::to_string(i);
  replicas[0].standing->remaining_bytes = 10;  // Would go otherwise.
  BlockEvidence evidence = Evidence(Committed(2), replicas);
  evidence.leaving = StorageNumber(2);
  evidence.arriving = "n3";  // On a rack that the block was not on.
  EXPECT_THAT(Going(JudgeBlock(evidence)), ElementsAre(2));
  // Two of three were on one rack, and the third, which leaves, on another.
  replicas[0].standing->rack = "/r1";
  replicas.push_back(Counting(4));
  replicas[3].standing->rack = "/r0";
  evidence = Evidence(Committed(3), replicas);
  evidence.leaving = StorageNumber(4);
  evidence.arriving = "n3";
  EXPECT_THAT(Going(JudgeBlock(evidence)), ElementsAre(4));
  // But one that lands beside the others takes no rack from the block.
  evidence.replicas[2].standing->rack = "/r1";
  EXPECT_THAT(Going(JudgeBlock(evidence)), ::testing::Not(::testing::Contains(4)));
}

TEST(JudgeBlock, OfTooManyTheOneThatTheBalancerMovesAwayGoesUnlessARackWouldBeLost) {
  std::vector<ReplicaEvidence> replicas = {Counting(1), Counting(2), Counting(3)};
  replicas[0].standing->remaining_bytes = 10;  // Would go otherwise.
  BlockEvidence evidence = Evidence(Committed(2), replicas);
  evidence.leaving = StorageNumber(2);
  BlockVerdict verdict = JudgeBlock(evidence);
  ASSERT_EQ(verdict.go.size(), 1u);
  EXPECT_EQ(verdict.go[0].storage, StorageNumber(2));
  EXPECT_EQ(verdict.go[0].reason, GoReason::kExcess);

  evidence.replicas[1].standing->rack = "/other";  // Meanwhile the only one there.
  verdict = JudgeBlock(evidence);
  ASSERT_EQ(verdict.go.size(), 1u);
  EXPECT_EQ(verdict.go[0].storage, StorageNumber(1));

  evidence.replicas[1].standing->rack = "/r";
  evidence.record->set_replication(3);  // Not one too many: it stays until the new copy counts.
  EXPECT_TRUE(JudgeBlock(evidence).go.empty());
}

}  // namespace
}  // namespace cairn::namenode
