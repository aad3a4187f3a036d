#include "namenode/trash_emptier.h"

#include "common/trash.h"
#include "tests/testing/matchers.h"
#include "tests/testing/memory_namespace.h"
#include "tests/testing/sim_world.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

class TrashEmptierTest : public ::testing::Test {
 protected:
  TrashEmptier::Options Every(absl::Duration interval, absl::Duration checkpoint_interval) {
    return {.interval = interval, .checkpoint_interval = checkpoint_interval, .limits = DefaultLimits(), .names_per_page = 3};
  }
  std::vector<std::string> Names(const std::string& path) {
    std::vector<std::string> names;
    const absl::StatusOr<Listing> listing = ListDirectory(space_.view(), path, "", 1000);
    if (listing.ok())
      for (const v1::FileStatus& entry : listing->entries) names.push_back(entry.path());
    return names;
  }
  void StopPart(TrashEmptier& emptier) {
    bool stopped = false;
    emptier.Stop([&] { stopped = true; });
    EXPECT_TRUE(world_.RunUntil([&] { return stopped; }, absl::Hours(1)));
  }
  // The clock stands just after a multiple of an hour.
  void GoToAFullHour() {
    const absl::Duration rest = (process_->clock().WallNow() - absl::UnixEpoch()) % absl::Hours(1);
    world_.RunFor(absl::Hours(1) - rest + absl::Seconds(1));
  }

  SimWorld world_{SimOptions{.seed = 1}};
  SimProcess* process_ = world_.AddMachine("nn")->StartProcess();
  std::unique_ptr<Executor> writer_ = process_->executors().NewExecutor("writer");
  std::unique_ptr<Executor> executor_ = process_->executors().NewExecutor("background");
  TestNamespace space_;
  MemoryNamespace access_{&space_, writer_.get()};
};

TEST_F(TrashEmptierTest, MakesCheckpointsAndDeletesThemWhenTheyAreOld) {
  for (const char* user : {"ada", "bob", "carl", "dora", "eve"})
    space_.Must(MkdirsMutation(std::string("/user/") + user + "/.Trash/Current/x"));
  space_.Must(MkdirsMutation("/user/without"));
  space_.WriteFile("/user/file", {1});
  GoToAFullHour();
  TrashEmptier emptier(Every(absl::Hours(2), absl::Hours(1)), &access_, executor_.get());
  emptier.Start();
  world_.RunFor(absl::Minutes(58));
  EXPECT_EQ(emptier.stats().passes, 0u);
  world_.RunFor(absl::Minutes(2));
  EXPECT_EQ(emptier.stats().passes, 1u);
  EXPECT_EQ(emptier.stats().checkpoints_made, 5u);
  for (const char* user : {"ada", "bob", "carl", "dora", "eve"}) {
    const std::vector<std::string> names = Names(TrashOf(user));
    ASSERT_EQ(names.size(), 1u) << user;
    EXPECT_TRUE(TrashCheckpointTime(names[0])) << names[0];
    EXPECT_EQ(Names(TrashOf(user) + "/" + names[0]), std::vector<std::string>{"x"});
  }
  for (const v1::Mutation& mutation : access_.submitted()) {
    EXPECT_TRUE(mutation.superuser());
    EXPECT_EQ(mutation.sequence(), 0u);
  }
  // One more for ada, which is young when the first is old.
  space_.Must(MkdirsMutation("/user/ada/.Trash/Current/y"));
  world_.RunFor(absl::Hours(2));
  EXPECT_EQ(Names("/user/ada/.Trash").size(), 2u);
  world_.RunFor(absl::Hours(1));
  EXPECT_EQ(Names("/user/ada/.Trash").size(), 1u);
  EXPECT_EQ(Names("/user/bob/.Trash").size(), 0u);
  EXPECT_EQ(emptier.stats().checkpoints_deleted, 5u);
  world_.RunFor(absl::Hours(1));
  EXPECT_EQ(Names("/user/ada/.Trash").size(), 0u);
  EXPECT_EQ(Names("/user").size(), 7u);
  StopPart(emptier);
}

TEST_F(TrashEmptierTest, LeavesWhatIsNoCheckpointAndGoesOnAfterAFailure) {
  for (const char* user : {"ada", "bob"}) space_.Must(MkdirsMutation(std::string("/user/") + user + "/.Trash/Current/x"));
  space_.Must(MkdirsMutation("/user/ada/.Trash/Currently"));
  space_.WriteFile("/user/carl/.Trash", {1});
  access_.FailNext(absl::UnavailableError("full"));
  TrashEmptier emptier(Every(absl::Hours(1), absl::ZeroDuration()), &access_, executor_.get());
  emptier.Start();
  GoToAFullHour();
  EXPECT_EQ(Names("/user/ada/.Trash"), (std::vector<std::string>{"Current", "Currently"}));
  EXPECT_EQ(Names("/user/bob/.Trash").size(), 1u);
  world_.RunFor(absl::Hours(1));
  EXPECT_EQ(emptier.stats().checkpoints_made, 2u);
  StopPart(emptier);
}

TEST_F(TrashEmptierTest, ATakenNameGetsANumber) {
  space_.Must(MkdirsMutation("/user/ada/.Trash/Current/x"));
  const absl::Duration rest = (process_->clock().WallNow() - absl::UnixEpoch()) % absl::Hours(1);
  const absl::Time next = process_->clock().WallNow() + absl::Hours(1) - rest;
  for (const int attempt : {0, 1, 3}) space_.Must(MkdirsMutation("/user/ada/.Trash/" + TrashCheckpointName(next, attempt)));
  TrashEmptier emptier(Every(absl::Hours(1), absl::ZeroDuration()), &access_, executor_.get());
  emptier.Start();
  GoToAFullHour();
  EXPECT_EQ(Names("/user/ada/.Trash/" + TrashCheckpointName(next, 2)), std::vector<std::string>{"x"});
  StopPart(emptier);
}

TEST_F(TrashEmptierTest, DoesNothingWithoutAnInterval) {
  space_.Must(MkdirsMutation("/user/ada/.Trash/Current/x"));
  TrashEmptier emptier(Every(absl::ZeroDuration(), absl::Hours(1)), &access_, executor_.get());
  emptier.Start();
  world_.RunFor(absl::Hours(100));
  EXPECT_EQ(Names("/user/ada/.Trash"), std::vector<std::string>{"Current"});
  StopPart(emptier);
}

TEST_F(TrashEmptierTest, ANamespaceWithoutUsersIsNoError) {
  TrashEmptier emptier(Every(absl::Hours(1), absl::ZeroDuration()), &access_, executor_.get());
  emptier.Start();
  world_.RunFor(absl::Hours(3));
  EXPECT_GE(emptier.stats().passes, 2u);
  EXPECT_TRUE(access_.submitted().empty());
  StopPart(emptier);
}

}  // namespace
}  // namespace cairn::namenode
