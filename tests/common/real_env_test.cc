#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>

#include "common/env/env.h"
#include "common/env/yielding.h"
#include "common/error.h"

namespace cairn {
namespace {

TEST(RealEnv, HasAllParts) {
  std::unique_ptr<Env> env = NewRealEnv();
  EXPECT_EQ(env->boot_id().bytes.size(), 16u);
  EXPECT_EQ(env->boot_id().bytes, NewRealEnv()->boot_id().bytes);
  EXPECT_NE(env->rocksdb_env(), nullptr);
  EXPECT_FALSE(env->network().HostName().empty());
  Random a = env->NewRandom();
  Random b = env->NewRandom();
  EXPECT_NE(a.Next(), b.Next());
  const SteadyTime before = env->clock().Now();
  EXPECT_LE(before, env->clock().Now());
  EXPECT_GT(env->clock().WallNow(), absl::FromUnixSeconds(1'700'000'000));
}

TEST(RealEnv, KnowsItsUserAndTheGroupsOfUsers) {
  std::unique_ptr<Env> env = NewRealEnv();
  EXPECT_FALSE(env->UserName().empty());
  const auto root = env->GroupsOf("root");  // Every system has this one.
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_FALSE(root->empty());
  EXPECT_EQ(root->front(), "root");
  EXPECT_EQ(KindOf(env->GroupsOf("no-such-user-here").status()), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(env->GroupsOf("").status()), ErrorKind::kNotFound);
}

TEST(RealEnv, BlockUntilSeesWhatAnExecutorDid) {
  std::unique_ptr<Env> env = NewRealEnv();
  std::unique_ptr<Executor> executor = env->executors().NewExecutor("setter");
  std::atomic<int> value = 0;
  for (int i = 0; i < 100; ++i) {
    executor->Post([&] {
      ++value;
      env->Wake();
    });
  }
  EXPECT_TRUE(env->BlockUntil([&] { return value == 100; }, SteadyTime::Infinite()));
}

TEST(RealEnv, ABackgroundExecutorsThreadGivesWayAndNoOther) {
  std::unique_ptr<Env> env = NewRealEnv();
  const auto nice_of = [&env](Executor* executor) {
    std::atomic<int> nice = -100;
    executor->Post([&] {
      nice = getpriority(PRIO_PROCESS, 0);
      env->Wake();
    });
    EXPECT_TRUE(env->BlockUntil([&] { return nice != -100; }, SteadyTime::Infinite()));
    return nice.load();
  };
  const int own = getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(nice_of(env->executors().NewExecutor("lane").get()), own);
  EXPECT_GE(nice_of(env->executors().NewBackgroundExecutor("deleter").get()), std::max(own, 10));
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), own);
}

TEST(Yielding, TheShareGrowsWithTheAgeOfTheWork) {
  const Yielding yielding{.share = 0.1, .patience = absl::Seconds(10)};
  EXPECT_DOUBLE_EQ(yielding.ShareAt(absl::ZeroDuration()), 0.1);
  EXPECT_DOUBLE_EQ(yielding.ShareAt(absl::Seconds(10)), 0.1);
  EXPECT_DOUBLE_EQ(yielding.ShareAt(absl::Seconds(20)), 0.2);
  EXPECT_DOUBLE_EQ(yielding.ShareAt(absl::Seconds(40)), 0.8);
  EXPECT_DOUBLE_EQ(yielding.ShareAt(absl::InfiniteDuration()), 1);
  EXPECT_EQ(yielding.PauseAfter(absl::Milliseconds(1), absl::ZeroDuration()), absl::Milliseconds(9));
  EXPECT_EQ(yielding.PauseAfter(absl::Milliseconds(1), absl::Minutes(1)), absl::ZeroDuration());
  EXPECT_DOUBLE_EQ((Yielding{.share = 0.1, .patience = absl::ZeroDuration()}).ShareAt(absl::ZeroDuration()), 1);
  EXPECT_DOUBLE_EQ((Yielding{.share = 0.1, .patience = absl::Seconds(10), .most = 0.5}).ShareAt(absl::Hours(1)), 0.5);
  EXPECT_DOUBLE_EQ((Yielding{.share = 0.8, .patience = absl::Seconds(10), .most = 0.5}).ShareAt(absl::Hours(1)), 0.8);
}

TEST(RealEnv, BlockUntilEndsAtItsDeadline) {
  std::unique_ptr<Env> env = NewRealEnv();
  const SteadyTime deadline = env->clock().Now() + absl::Milliseconds(10);
  EXPECT_FALSE(env->BlockUntil([] { return false; }, deadline));
  EXPECT_GE(env->clock().Now(), deadline);
  EXPECT_TRUE(env->BlockUntil([] { return true; }, deadline));  // Asked first.
}

}  // namespace
}  // namespace cairn
