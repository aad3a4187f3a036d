// What a run of the balancer makes of moves that fail.

#include "namenode/replicas/balance_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kBytes = 100;

class BalanceRunTest : public ::testing::Test {
 protected:
  // Each of the sources gives to each of the targets.
  void Begin(const std::vector<std::string>& sources, const std::vector<std::string>& targets) {
    BalancePlan plan;
    plan.mean = 0.5;
    plan.left_bytes = 10'000;
    std::vector<BalanceNode> nodes;
    for (const std::string& uuid : sources) nodes.push_back(Node(uuid, 90'000));
    for (const std::string& uuid : targets) nodes.push_back(Node(uuid, 10'000));
    for (const std::string& source : sources)
      for (const std::string& target : targets) plan.pairs.push_back({source, target, 40'000});
    run_.Begin(
        std::move(plan), nodes,
        [](const std::string& uuid) { return std::vector<StorageNumber>{StorageNumber(static_cast<uint64_t>(uuid[0]))}; }, SteadyTime());
  }
  static BalanceNode Node(const std::string& uuid, uint64_t used) {
    BalanceNode node;
    node.datanode_uuid = uuid;
    node.capacity_bytes = 100'000;
    node.used_bytes = used;
    node.remaining_bytes = 100'000 - used;
    return node;
  }
  BalanceMove Move(const std::string& source, const std::string& target) {
    BalanceMove move;
    move.run = 1;
    move.block = BlockId(next_block_++);
    move.length_bytes = kBytes;
    move.source = source;
    move.target = target;
    run_.Scheduled(move);
    return move;
  }
  void Fail(const std::string& source, const std::string& target, int times) {
    for (int i = 0; i < times; ++i) run_.Failed(Move(source, target));
  }
  // Of all that could be looked at in a while.
  std::set<std::string> Sources() {
    std::set<std::string> sources;
    for (int i = 0; i < 10; ++i) {
      const std::optional<BalanceRun::Look> look = run_.NextLook([](const std::string&) { return true; }, SteadyTime());
      if (look) sources.insert(look->source);
    }
    return sources;
  }
  std::vector<std::string> TargetsOf(const std::string& source) { return run_.TargetsFor(source, kBytes); }

  static v1::BalanceRequest Request() {
    v1::BalanceRequest request;
    request.set_run(1);
    request.set_threshold(10);
    return request;
  }
  BalanceRun run_{Request(), BalanceRun::Limits(), SteadyTime(), SteadyTime()};
  uint64_t next_block_ = 1;
};

TEST_F(BalanceRunTest, ASourceThatFailsDoesNotTakeTheOnlyTargetFromTheOthers) {
  Begin({"a", "b"}, {"t"});
  Fail("a", "t", 4);
  EXPECT_THAT(Sources(), ElementsAre("a", "b"));
  Fail("a", "t", 1);
  EXPECT_THAT(Sources(), ElementsAre("b"));
  EXPECT_THAT(TargetsOf("a"), IsEmpty());
  EXPECT_THAT(TargetsOf("b"), ElementsAre("t"));
}

TEST_F(BalanceRunTest, ATargetThatFailsDoesNotTakeTheSourceFromTheOthers) {
  Begin({"a"}, {"t", "u"});
  Fail("a", "t", 5);
  EXPECT_THAT(TargetsOf("a"), ElementsAre("u"));
}

TEST_F(BalanceRunTest, WhoFailsWithTwoIsLeftOutAndTheyAreNot) {
  Begin({"a", "b"}, {"t", "u", "v"});
  Fail("a", "t", 5);
  EXPECT_THAT(TargetsOf("a"), ElementsAre("u", "v"));
  Fail("a", "u", 5);
  EXPECT_THAT(TargetsOf("a"), IsEmpty());
  EXPECT_THAT(TargetsOf("b"), ElementsAre("t", "u", "v"));
}

TEST_F(BalanceRunTest, ATargetWithWhichAnotherMoveWentWellIsNotLeftOut) {
  Begin({"a", "b", "c"}, {"t"});
  run_.Moved(Move("c", "t"));
  Fail("a", "t", 5);
  Fail("b", "t", 5);
  EXPECT_THAT(Sources(), ElementsAre("c"));
  EXPECT_THAT(TargetsOf("c"), ElementsAre("t"));
}

TEST_F(BalanceRunTest, FewFailuresWithEachKeepNobodyApart) {
  Begin({"a", "b"}, {"t", "u"});
  Fail("a", "t", 4);
  Fail("a", "u", 4);
  Fail("b", "t", 4);
  EXPECT_THAT(TargetsOf("a"), ElementsAre("t", "u"));
  EXPECT_THAT(TargetsOf("b"), ElementsAre("t", "u"));
}

}  // namespace
}  // namespace cairn::namenode
