// What works on the namespace in the background, the reclaimer apart.

#include <fmt/format.h>

#include "namenode/lease_monitor.h"
#include "namenode/limit_watch.h"
#include "namenode/namespace/op_context.h"
#include "namenode/namespace_gateway.h"
#include "namenode/replication_spreader.h"
#include "namenode/retry_sweeper.h"
#include "namenode/store/keys.h"
#include "tests/namenode/background_fixture.h"
#include "tests/namenode/store_world.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::IsEmpty;
using ::testing::Not;

v1::Mutation SetReplicationMutation(const std::string& path, uint32_t replication) {
  v1::Mutation mutation = MutationOf("");
  mutation.mutable_set_replication()->set_path(path);
  mutation.mutable_set_replication()->set_replication(replication);
  return mutation;
}

TEST_F(Background, TheSpreaderRewritesBlocksInStepsAndTellsTheReplicaPlane) {
  ReplicationSpreader spreader({.blocks_per_step = 16}, &access_, executor_.get());
  access_.SetObserver(ObserveCommits(&replicas_, nullptr, [&] { spreader.Kick(); }));
  space_.WriteFile("/a", std::vector<uint64_t>(100, 5));
  space_.WriteFile("/b", std::vector<uint64_t>(70, 5));
  space_.WriteFile("/short", {5});
  spreader.Start();
  for (const char* path : {"/a", "/b", "/short"})
    access_.Submit(SetReplicationMutation(path, 2), [](const absl::StatusOr<v1::MutationResult>& result) { ASSERT_THAT(result, IsOk()); });
  ASSERT_TRUE(RunUntil([&] { return replicas_.changed.size() == 171 && Rows(Family::kWork) == 0; }));
  world_.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(spreader.stats().works_done, 2u);
  EXPECT_EQ(spreader.stats().blocks, 170u);
  EXPECT_EQ(spreader.stats().steps, 7u + 5u);
  EXPECT_EQ(spreader.stats().pending, 0u);
  StopPart(spreader);
}

TEST_F(Background, ANewSpreaderGoesOnAmongOthersWork) {
  space_.WriteFile("/a", std::vector<uint64_t>(100, 5));
  MakeFiles("/gone", 3);
  space_.Must(DeleteMutation("/gone", true));
  space_.Must(SetReplicationMutation("/a", 2));
  access_.FailNext(absl::UnavailableError("full"), 2);
  {
    ReplicationSpreader first({.blocks_per_step = 10}, &access_, executor_.get());
    first.Start();
    ASSERT_TRUE(RunUntil([&] { return first.stats().steps == 5; }));
    EXPECT_EQ(first.stats().failed_steps, 2u);
    StopPart(first);
  }
  ReplicationSpreader second({.blocks_per_step = 10}, &access_, executor_.get());
  second.Start();
  ASSERT_TRUE(RunUntil([&] { return Rows(Family::kWork) == 1; }));
  for (const auto& [key, value] : space_.view().rows(Family::kBlock)) {
    v1::BlockRecord block;
    ASSERT_TRUE(block.ParseFromString(value));
    if (block.length_bytes() == 5) {
      EXPECT_EQ(block.replication(), 2u);
    }
  }
  StopPart(second);
}

TEST_F(Background, LimitsThatComeNearAreNamedOnceAndForgottenWhenTheyAreNot) {
  LimitWatch watch(&access_);
  access_.SetObserver([&watch](const std::vector<NamespaceWriter::Applied>& batch) { watch.OnCommit(batch); });
  const auto submit = [&](v1::Mutation mutation) {
    bool done = false;
    mutation.mutable_limits()->set_max_directory_entries(10);
    access_.Submit(std::move(mutation), [&done](const absl::StatusOr<v1::MutationResult>& result) {
      EXPECT_THAT(result, IsOk());
      done = true;
    });
    ASSERT_TRUE(RunUntil([&] { return done; }));
  };
  for (int i = 0; i < 7; ++i) submit(MkdirsMutation("/d/" + std::to_string(i)));
  EXPECT_EQ(watch.Near(kMaxDirectoryItemsKey), 0u);
  submit(MkdirsMutation("/d/7"));
  EXPECT_EQ(watch.Near(kMaxDirectoryItemsKey), 1u);
  EXPECT_EQ(watch.Near(kMaxBlocksPerFileKey), 0u);
  submit(MkdirsMutation("/d/8"));
  EXPECT_EQ(watch.Near(kMaxDirectoryItemsKey), 1u);
  submit(DeleteMutation("/d/8", false));
  submit(DeleteMutation("/d/7", false));
  EXPECT_EQ(watch.Near(kMaxDirectoryItemsKey), 0u);
  submit(MkdirsMutation("/d/7"));  // And comes near again.
  EXPECT_EQ(watch.Near(kMaxDirectoryItemsKey), 1u);
  submit(DeleteMutation("/d", true));
  EXPECT_EQ(watch.Near(kMaxDirectoryItemsKey), 0u);
}

TEST_F(Background, OnlyASilentHoldersFilesAreClosed) {
  LeaseMonitor leases({.hard_limit = absl::Minutes(20), .check_interval = absl::Seconds(10)}, &access_, executor_.get());
  std::vector<BlockId> recovering;
  leases.SetOnRecovering([&](std::vector<BlockId> blocks) { recovering.insert(recovering.end(), blocks.begin(), blocks.end()); });
  leases.Start();
  space_.Must(CreateMutation("/silent", "silent"));
  space_.Must(CreateMutation("/alive", "alive"));
  const v1::MutationResult stuck = space_.Must(CreateMutation("/stuck", "silent", {1}));
  ASSERT_THAT(leases.Renew("silent"), IsOk());
  for (int i = 0; i < 21; ++i) {
    ASSERT_THAT(leases.Renew("alive"), IsOk());
    EXPECT_TRUE(StatusOfPath(space_.view(), "/silent")->under_construction() || i == 20);
    world_.RunFor(absl::Minutes(1));
  }
  EXPECT_FALSE(StatusOfPath(space_.view(), "/silent")->under_construction());
  EXPECT_TRUE(StatusOfPath(space_.view(), "/alive")->under_construction());
  EXPECT_TRUE(StatusOfPath(space_.view(), "/stuck")->under_construction());
  world_.RunFor(absl::Seconds(11));
  EXPECT_EQ(leases.stats().expired, 2u);
  EXPECT_EQ(leases.stats().recovering, 1u);
  EXPECT_THAT(recovering, Not(IsEmpty()));
  EXPECT_EQ(recovering.back(), BlockId(stuck.block().id()));
  EXPECT_EQ(leases.stats().holders, 1u);
  const auto expiry =
      std::find_if(access_.submitted().begin(), access_.submitted().end(), [](const auto& m) { return m.has_expire_lease(); });
  ASSERT_NE(expiry, access_.submitted().end());
  EXPECT_GE(expiry->expire_lease().observed_idle_ms(), 20 * 60'000);
  StopPart(leases);
}

TEST_F(Background, AFileThatIsToVanishIsDeletedAtTheSoftLimitWithinTenSeconds) {
  LeaseMonitor leases({.hard_limit = absl::Minutes(20), .soft_limit = absl::Minutes(1)}, &access_, executor_.get());
  leases.Start();
  for (const char* holder : {"silent", "alive"}) {
    for (const bool vanishes : {true, false}) {
      v1::Mutation create = CreateMutation(fmt::format("/{}-{}", holder, vanishes), holder, {1, 2});
      create.mutable_create()->set_delete_if_abandoned(vanishes);
      space_.Must(create);
    }
    ASSERT_THAT(leases.Renew(holder), IsOk());
  }
  const auto exists = [&](const std::string& path) { return StatusOfPath(space_.view(), path).ok(); };
  for (int i = 0; i < 7; ++i) {
    ASSERT_THAT(leases.Renew("alive"), IsOk());
    EXPECT_TRUE(exists("/silent-true") || i == 6);
    world_.RunFor(absl::Seconds(10));
  }
  EXPECT_FALSE(exists("/silent-true"));
  EXPECT_TRUE(StatusOfPath(space_.view(), "/silent-false")->under_construction());
  EXPECT_TRUE(exists("/alive-true"));
  EXPECT_EQ(leases.stats().deleted, 1u);
  EXPECT_EQ(leases.stats().expired, 1u);
  StopPart(leases);
}

TEST_F(Background, AStallOfTheNamenodeIsNoSilenceOfItsClients) {
  ManualClock clock;
  QueueExecutor stalls(&clock);  // Its timers come as late as the clock is moved.
  v1::Mutation create = CreateMutation("/f", "me", {1, 2});
  create.mutable_create()->set_delete_if_abandoned(true);
  space_.Must(create);
  LeaseMonitor leases({.soft_limit = absl::Minutes(1), .check_interval = absl::Seconds(5)}, &access_, &stalls);
  ASSERT_THAT(leases.Renew("me"), IsOk());
  leases.Start();
  const auto run = [&] {
    stalls.RunAll();
    world_.RunFor(absl::Milliseconds(10));  // The namespace's writer.
    stalls.RunAll();
  };
  run();
  clock.Advance(absl::Minutes(3));
  run();
  EXPECT_THAT(access_.submitted(), IsEmpty());
  EXPECT_LE(leases.SilenceOf("me").idle, absl::Seconds(5));
  for (int i = 0; i < 10; ++i) {
    clock.Advance(absl::Seconds(5));
    run();
  }
  EXPECT_THAT(access_.submitted(), IsEmpty());
  clock.Advance(absl::Seconds(5));  // Silence while it works counts.
  run();
  EXPECT_EQ(access_.submitted().size(), 1u);
  EXPECT_EQ(leases.stats().deleted, 1u);
  bool stopped = false;
  leases.Stop([&] { stopped = true; });
  stalls.RunAll();
  EXPECT_TRUE(stopped);
}

TEST_F(Background, ANewNamenodeGrantsAFullPeriod) {
  space_.Must(CreateMutation("/f", "me"));
  world_.RunFor(absl::Hours(2));
  LeaseMonitor leases({}, &access_, executor_.get());
  leases.Start();
  world_.RunFor(absl::Minutes(19));
  EXPECT_TRUE(StatusOfPath(space_.view(), "/f")->under_construction());
  world_.RunFor(absl::Minutes(2));
  EXPECT_FALSE(StatusOfPath(space_.view(), "/f")->under_construction());
  StopPart(leases);
}

TEST_F(Background, NobodyIsJudgedByALimitThatHeHasNotSaidHeGoesBy) {
  constexpr absl::Duration kShort = absl::Seconds(5);
  constexpr absl::Duration kLong = absl::Seconds(60);
  LeaseMonitor leases({.soft_limit = kShort, .unsaid_limit = kLong}, &access_, executor_.get());
  const auto judged = [&](const char* holder) { return leases.SilenceOf(holder).soft_limit; };
  EXPECT_EQ(judged("w"), kLong);  // What it was told by the NameNode before, nobody knows.
  EXPECT_THAT(leases.Renew("w"), IsOkAndHolds(kShort));
  EXPECT_EQ(judged("w"), kLong);
  EXPECT_THAT(leases.Renew("w", kShort), IsOkAndHolds(kShort));
  EXPECT_EQ(judged("w"), kShort);
  EXPECT_THAT(leases.Renew("w"), IsOkAndHolds(kShort));  // It opens a file.
  EXPECT_EQ(judged("w"), kShort);
  leases.SetLimits(kLong, absl::Minutes(20));
  EXPECT_EQ(judged("w"), kLong);
  EXPECT_THAT(leases.Renew("w", kShort), IsOkAndHolds(kLong));
  leases.SetLimits(kShort, absl::Minutes(20));
  EXPECT_EQ(judged("w"), kLong);  // As it was told.
  EXPECT_THAT(leases.Renew("w", kLong), IsOkAndHolds(kShort));
  EXPECT_EQ(judged("w"), kLong);
  EXPECT_THAT(leases.Renew("w", kShort), IsOkAndHolds(kShort));
  EXPECT_EQ(judged("w"), kShort);
  EXPECT_THAT(leases.Renew("w", absl::Hours(24)), IsOkAndHolds(kShort));
  EXPECT_EQ(judged("w"), absl::Minutes(20));  // Nobody says himself beyond the hard limit.
}

TEST_F(Background, ALimitBelowTheClientsIntervalTakesNothingFromALivingWriter) {
  LeaseMonitor leases({.hard_limit = absl::Minutes(20), .soft_limit = absl::Minutes(1)}, &access_, executor_.get());
  leases.Start();
  v1::Mutation create = CreateMutation("/vanishing", "w", {1});
  create.mutable_create()->set_delete_if_abandoned(true);
  space_.Must(create);
  space_.Must(CreateMutation("/kept", "w"));
  ASSERT_THAT(leases.Renew("w", absl::Seconds(60)), IsOk());
  leases.SetLimits(absl::Seconds(5), absl::Seconds(6));
  world_.RunFor(absl::Seconds(55));
  EXPECT_TRUE(StatusOfPath(space_.view(), "/vanishing").ok());
  EXPECT_TRUE(StatusOfPath(space_.view(), "/kept")->under_construction());
  ASSERT_THAT(leases.Renew("w", absl::Seconds(60)), IsOkAndHolds(absl::Seconds(5)));
  ASSERT_THAT(leases.Renew("w", absl::Seconds(5)), IsOk());
  world_.RunFor(absl::Seconds(20));
  EXPECT_FALSE(StatusOfPath(space_.view(), "/vanishing").ok());
  EXPECT_FALSE(StatusOfPath(space_.view(), "/kept")->under_construction());
  StopPart(leases);
}

TEST_F(Background, TheWalkOfLeasesGoesInPages) {
  for (int i = 0; i < 25; ++i) space_.Must(CreateMutation("/" + std::to_string(i), "me" + std::to_string(i)));
  LeaseMonitor leases({.rows_per_page = 4}, &access_, executor_.get());
  leases.Start();
  world_.RunFor(absl::Seconds(11));
  EXPECT_EQ(leases.stats().leases, 25u);
  world_.RunFor(absl::Minutes(21));
  EXPECT_EQ(leases.stats().expired, 25u);
  EXPECT_EQ(Rows(Family::kLease), 0u);
  StopPart(leases);
}

TEST_F(Background, HoldersAreBounded) {
  LeaseMonitor leases({.max_holders = 2}, &access_, executor_.get());
  EXPECT_THAT(leases.Renew("a"), IsOk());
  EXPECT_THAT(leases.Renew("b"), IsOk());
  EXPECT_THAT(leases.Renew("c"), HasKind(ErrorKind::kBusy));
  EXPECT_THAT(leases.Renew("a"), IsOk());
  EXPECT_THAT(leases.Renew(""), HasKind(ErrorKind::kInvalidArgument));
}

TEST_F(Background, TheSweeperDropsOnlyUnusedSlots) {
  space_.now_ms = absl::ToUnixMillis(process_->clock().WallNow());
  for (uint32_t slot = 0; slot < 5; ++slot) space_.Must(WithRetry(MkdirsMutation("/" + std::to_string(slot)), slot, 1));
  RetrySweeper sweeper({.rows_per_step = 2}, &access_, executor_.get());
  sweeper.Start();
  world_.RunFor(absl::Minutes(9));
  EXPECT_EQ(Rows(Family::kRetry), 5u);
  space_.now_ms = absl::ToUnixMillis(process_->clock().WallNow());
  space_.Must(WithRetry(MkdirsMutation("/x"), 3, 2));
  world_.RunFor(absl::Minutes(3));
  EXPECT_EQ(Rows(Family::kRetry), 1u);
  EXPECT_EQ(sweeper.rows_dropped(), 4u);
  StopPart(sweeper);
}

}  // namespace
}  // namespace cairn::namenode
