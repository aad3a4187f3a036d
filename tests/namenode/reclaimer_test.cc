#include "namenode/reclaimer.h"

#include <vector>

#include "namenode/namespace_gateway.h"
#include "namenode/store/keys.h"
#include "tests/namenode/background_fixture.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

using ReclaimerTest = Background;

TEST_F(ReclaimerTest, TheReclaimerFreesAllInBoundedStepsAndTellsTheReplicaPlane) {
  Reclaimer reclaimer({.entries_per_step = 16}, &access_, executor_.get());
  access_.SetObserver(ObserveCommits(&replicas_, [&] { reclaimer.Kick(); }));
  MakeFiles("/big", 100);
  MakeFiles("/small", 1);
  reclaimer.Start();
  for (const char* path : {"/big", "/small"}) access_.Submit(DeleteMutation(path, true), [](const absl::StatusOr<v1::MutationResult>&) {});
  ASSERT_TRUE(RunUntil([&] { return replicas_.freed.size() == 101 && Rows(Family::kWork) == 0; }));
  EXPECT_EQ(Rows(Family::kInode), 1u);
  EXPECT_EQ(Rows(Family::kBlock), 0u);
  size_t steps = 0;
  for (const v1::Mutation& mutation : access_.submitted()) steps += mutation.has_reclaim_step() ? 1 : 0;
  EXPECT_GE(steps, 204u / 17);
  world_.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(reclaimer.stats().works_done, 2u);
  EXPECT_EQ(reclaimer.stats().entries_freed, 204u);
  EXPECT_EQ(reclaimer.stats().works, 0u);
  EXPECT_EQ(reclaimer.stats().left_inodes, 0u);
  StopPart(reclaimer);
}

TEST_F(ReclaimerTest, ALargeTreeDoesNotHoldUpASmallOne) {
  MakeFiles("/big", 500);
  MakeFiles("/small", 1);
  space_.Must(DeleteMutation("/big", true));
  space_.Must(DeleteMutation("/small", true));
  Reclaimer reclaimer({.entries_per_step = 4}, &access_, executor_.get());
  reclaimer.Start();
  ASSERT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 1; }));
  EXPECT_GT(Rows(Family::kInode), 400u);
  StopPart(reclaimer);
}

TEST_F(ReclaimerTest, ANewReclaimerGoesOnWhereTheLastOneStopped) {
  MakeFiles("/big", 100);
  space_.Must(DeleteMutation("/big", true));
  {
    Reclaimer first({.entries_per_step = 10}, &access_, executor_.get());
    first.Start();
    ASSERT_TRUE(RunUntil([&] { return Rows(Family::kInode) < 60; }));
    StopPart(first);
  }
  const size_t left = Rows(Family::kInode);
  EXPECT_GT(left, 1u);
  Reclaimer second({.entries_per_step = 10}, &access_, executor_.get());
  second.Start();
  ASSERT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 0; }));
  EXPECT_EQ(Rows(Family::kInode), 1u);
  StopPart(second);
}

TEST_F(ReclaimerTest, TheReclaimerTriesAgainAfterAFailure) {
  MakeFiles("/d", 1);
  space_.Must(DeleteMutation("/d", true));
  access_.FailNext(absl::UnavailableError("full"), 3);
  Reclaimer reclaimer({}, &access_, executor_.get());
  reclaimer.Start();
  ASSERT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 0; }));
  world_.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(reclaimer.stats().failed_steps, 3u);
  StopPart(reclaimer);
}

TEST_F(ReclaimerTest, ManySmallTreesGoTogether) {
  for (int i = 0; i < 300; ++i) {
    space_.Must(CreateMutation("/d/" + std::to_string(i) + "/f", "me", {1, 2}));
    space_.Must(DeleteMutation("/d/" + std::to_string(i), true));
  }
  Reclaimer reclaimer({}, &access_, executor_.get());
  access_.SetObserver(ObserveCommits(&replicas_, [] {}));
  reclaimer.Start();
  ASSERT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 0; }));
  world_.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(replicas_.freed.size(), 300u);
  EXPECT_EQ(reclaimer.stats().works_done, 300u);
  EXPECT_LE(reclaimer.stats().steps, 6u);
  StopPart(reclaimer);
}

TEST_F(ReclaimerTest, TheReclaimersFiguresSayWhatIsLeft) {
  for (int i = 0; i < 5; ++i) space_.WriteFile("/big/" + std::to_string(i), {1000});
  space_.WriteFile("/small", {10, 20, 30, 40, 50});
  space_.now_ms = absl::ToUnixMillis(process_->clock().WallNow());
  space_.Must(DeleteMutation("/big", true));
  space_.Must(DeleteMutation("/small", false));
  Reclaimer reclaimer({.entries_per_step = 1}, &access_, executor_.get());
  bool paused = false;
  reclaimer.Start();
  reclaimer.SetPaused(true, [&](const absl::Status& status) { paused = status.ok(); });
  ASSERT_TRUE(RunUntil([&] { return paused; }));
  world_.RunFor(absl::Seconds(60));
  Reclaimer::Stats stats = reclaimer.stats();
  EXPECT_TRUE(stats.paused);
  EXPECT_EQ(stats.works, 2u);
  EXPECT_LE(stats.steps, 1u);  // One may have been under way.
  EXPECT_GE(stats.left_inodes, 6u);
  EXPECT_LE(stats.left_inodes, 7u);
  EXPECT_GE(stats.left_bytes, 4'150u);
  EXPECT_LE(stats.left_bytes, 5'150u);
  EXPECT_GE(stats.oldest_age, absl::Seconds(59));
  EXPECT_EQ(stats.entries_per_second, 0);

  reclaimer.SetPaused(false, [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  ASSERT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 0; }));
  world_.RunFor(absl::Seconds(1));
  stats = reclaimer.stats();
  EXPECT_FALSE(stats.paused);
  EXPECT_EQ(stats.works, 0u);
  EXPECT_EQ(stats.left_inodes, 0u);
  EXPECT_EQ(stats.left_bytes, 0u);
  EXPECT_EQ(stats.entries_freed, 7u + 10u);
  EXPECT_EQ(stats.oldest_age, absl::ZeroDuration());
  EXPECT_GT(stats.entries_per_second, 1);
  world_.RunFor(absl::Seconds(11));
  EXPECT_EQ(reclaimer.stats().entries_per_second, 0);
  StopPart(reclaimer);
}

TEST_F(ReclaimerTest, APauseOutlivesTheReclaimer) {
  MakeFiles("/d", 3);
  space_.Must(DeleteMutation("/d", true));
  for (const bool pause : {true, false}) {
    Reclaimer reclaimer({}, &access_, executor_.get());
    reclaimer.SetPaused(pause, [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
    world_.RunFor(absl::Seconds(1));
    Reclaimer next({}, &access_, executor_.get());
    next.Start();
    world_.RunFor(absl::Seconds(30));
    EXPECT_EQ(next.stats().paused, pause);
    EXPECT_EQ(Rows(Family::kWork), pause ? 1u : 0u);
    StopPart(next);
    StopPart(reclaimer);
  }
}

TEST_F(ReclaimerTest, APauseThatCannotBeKeptIsNotFollowed) {
  MakeFiles("/d", 50);
  space_.Must(DeleteMutation("/d", true));
  Reclaimer reclaimer({.entries_per_step = 1}, &access_, executor_.get());
  absl::Status answer;
  access_.FailNext(absl::UnavailableError("full"));
  reclaimer.SetPaused(true, [&](const absl::Status& status) { answer = status; });
  world_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(answer));
  reclaimer.Start();
  EXPECT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 0; }));
  EXPECT_FALSE(reclaimer.stats().paused);
  StopPart(reclaimer);
}

TEST_F(ReclaimerTest, TheReclaimerKeepsThePaceItIsTold) {
  MakeFiles("/d", 2'000);
  space_.Must(DeleteMutation("/d", true));
  Reclaimer reclaimer({}, &access_, executor_.get());
  reclaimer.SetPace(100, [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  world_.RunFor(absl::Milliseconds(1));
  reclaimer.Start();
  world_.RunFor(absl::Seconds(10));
  EXPECT_GE(reclaimer.stats().entries_freed, 900u);
  EXPECT_LE(reclaimer.stats().entries_freed, 1'010u);
  EXPECT_GE(reclaimer.stats().steps, 150u);  // Small ones.
  EXPECT_NEAR(reclaimer.stats().entries_per_second, 100, 15);
  EXPECT_EQ(reclaimer.stats().pace, 100u);
  reclaimer.SetPace(0, [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(Rows(Family::kWork), 0u);
  StopPart(reclaimer);
}

TEST_F(ReclaimerTest, WorksBeyondThoseHeldAreCountedAndFreedLater) {
  for (int i = 0; i < 50; ++i) {
    space_.WriteFile("/f", {1, 1, 1, 1, 3});
    space_.Must(DeleteMutation("/f", false));
  }
  Reclaimer reclaimer({.entries_per_step = 2, .max_pending = 4}, &access_, executor_.get());
  bool paused = false;
  reclaimer.SetPaused(true, [&](const absl::Status&) { paused = true; });
  ASSERT_TRUE(RunUntil([&] { return paused; }));
  reclaimer.Start();
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(reclaimer.stats().works, 50u);
  EXPECT_EQ(reclaimer.stats().left_inodes, 50u);
  EXPECT_EQ(reclaimer.stats().left_bytes, 350u);
  reclaimer.SetPaused(false, [](const absl::Status&) {});
  ASSERT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 0; }));
  world_.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(reclaimer.stats().works, 0u);
  EXPECT_EQ(reclaimer.stats().works_done, 50u);
  StopPart(reclaimer);
}

TEST_F(ReclaimerTest, WorkOfAnotherKindIsLeftAlone) {
  v1::WorkRecord other;
  other.mutable_replication()->set_inode_id(77);
  space_.state().rows(Family::kWork)[WorkKey(0)] = other.SerializeAsString();
  MakeFiles("/d", 3);
  space_.Must(DeleteMutation("/d", true));
  Reclaimer reclaimer({}, &access_, executor_.get());
  reclaimer.Start();
  ASSERT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 1; }));
  world_.RunFor(absl::Seconds(20));
  EXPECT_TRUE(space_.view().rows(Family::kWork).contains(WorkKey(0)));
  EXPECT_EQ(reclaimer.stats().works, 0u);
  EXPECT_EQ(reclaimer.stats().works_done, 1u);
  StopPart(reclaimer);
}

// A namespace whose writer says how long it took, and that others use it, too.
class BusyNamespace : public MemoryNamespace {
 public:
  using MemoryNamespace::MemoryNamespace;

  absl::Duration per_entry = absl::Microseconds(20);
  uint64_t others_per_step = 0;
  std::vector<uint32_t> sizes;  // Of the steps.

  void Submit(v1::Mutation mutation, NamespaceWriter::Done done) override {
    if (!mutation.has_reclaim_step()) return MemoryNamespace::Submit(std::move(mutation), std::move(done));
    MemoryNamespace::Submit(std::move(mutation), [this, done = std::move(done)](absl::StatusOr<v1::MutationResult> result) mutable {
      sizes.push_back(result->next());
      stats_.mutations += 1 + others_per_step;
      stats_.reclaim_time += result->next() * per_entry;
      done(std::move(result));
    });
  }
  NamespaceWriter::Stats WriterStats() const override { return stats_; }

 private:
  NamespaceWriter::Stats stats_;
};

TEST_F(ReclaimerTest, StepsAreAsLongAsTheWriterMaySpendOnThem) {
  BusyNamespace busy(&space_, writer_.get());
  MakeFiles("/d", 3'000);
  space_.Must(DeleteMutation("/d", true));
  Reclaimer reclaimer({.step_time = absl::Milliseconds(5)}, &busy, executor_.get());
  reclaimer.Start();
  // 20 us each: 250 of them are 5 ms.
  ASSERT_TRUE(RunUntil([&] { return reclaimer.stats().entries_freed > 3'000; }));
  EXPECT_GT(busy.sizes.back(), 125u);
  EXPECT_LE(busy.sizes.back(), 315u);

  busy.others_per_step = 3;
  const uint64_t freed = reclaimer.stats().entries_freed;
  const SteadyTime begun = process_->clock().Now();
  ASSERT_TRUE(RunUntil([&] { return reclaimer.stats().entries_freed > freed + 1'500; }));
  EXPECT_LE(busy.sizes.back(), 160u);
  // 1,500 entries are 30 ms of the writer, 3 % of whose time the reclaimer takes at first.
  EXPECT_GT(process_->clock().Now() - begun, absl::Milliseconds(900));

  busy.per_entry = absl::Milliseconds(2);  // A disk that is slow of a sudden.
  ASSERT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 0; }));
  EXPECT_LE(busy.sizes.back(), 16u);
  StopPart(reclaimer);
}

TEST_F(ReclaimerTest, TreesThatHaveBeenWaitingForLongGetMoreOfABusyWriter) {
  BusyNamespace busy(&space_, writer_.get());
  busy.others_per_step = 3;
  MakeFiles("/d", 3'000);
  space_.Must(DeleteMutation("/d", true));
  Reclaimer reclaimer({.yielding = {.share = 0.001, .patience = absl::Seconds(10), .most = 0.25}}, &busy, executor_.get());
  reclaimer.Start();
  // 20 us an entry: 50 entries a second of a thousandth at first.
  world_.RunFor(absl::Seconds(15));
  const uint64_t early = reclaimer.stats().entries_freed;
  EXPECT_LT(early, 2'000u);
  world_.RunFor(absl::Seconds(60));
  EXPECT_EQ(Rows(Family::kWork), 0u);
  StopPart(reclaimer);
}

}  // namespace
}  // namespace cairn::namenode
