// The watchdog with real threads: a lane that hangs, and where.

#include "common/env/watchdog.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/env/env.h"
#include "common/env/watched_executor.h"
#include "common/mutex.h"

namespace cairn {

struct HungLane {
  Mutex mu;
  CondVar changed;
  bool released ABSL_GUARDED_BY(mu) = false;
};

// Of its own linkage, so that it keeps its name.
__attribute__((noinline)) void LaneThatHangs(Watchdog* watchdog, HungLane* lane) {
  const Watchdog::Step step(watchdog, "report", "pump");
  MutexLock lock(lane->mu);
  while (!lane->released) lane->changed.Wait(lane->mu);
}

__attribute__((noinline)) void TaskThatHangs(HungLane* lane) {
  MutexLock lock(lane->mu);
  while (!lane->released) lane->changed.Wait(lane->mu);
}

namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(WatchdogThreads, StepThatHangsIsCountedOnceWithItsLanesStack) {
  const std::unique_ptr<Env> env = NewRealEnv();
  const std::unique_ptr<Executor> watchdog_executor = env->executors().NewExecutor("watchdog");
  Watchdog watchdog(watchdog_executor.get(), absl::Milliseconds(200));
  EXPECT_THAT(watchdog.last_overdue().step, IsEmpty());
  watchdog.Start();
  HungLane lane;
  {
    const std::unique_ptr<Executor> executor = env->executors().NewExecutor("report");
    executor->Post([&watchdog, &lane] { LaneThatHangs(&watchdog, &lane); });
    while (watchdog.last_overdue().step.empty()) env->BlockUntil([] { return false; }, env->clock().Now() + absl::Milliseconds(5));
    EXPECT_EQ(watchdog.overdue_steps(), 1u);
    EXPECT_EQ(watchdog.last_overdue().step, "report: pump");
    EXPECT_THAT(watchdog.last_overdue().stack, Contains(HasSubstr("LaneThatHangs")));
    MutexLock lock(lane.mu);
    lane.released = true;
    lane.changed.NotifyAll();
  }
}

TEST(WatchdogThreads, TaskOfAWatchedExecutorThatHangsIsCountedOnceWithItsStack) {
  const std::unique_ptr<Env> env = NewRealEnv();
  const std::unique_ptr<Executor> watchdog_executor = env->executors().NewExecutor("watchdog");
  Watchdog watchdog(watchdog_executor.get(), absl::Milliseconds(200));
  watchdog.Start();
  HungLane lane;
  const auto wait = [&env](absl::Duration time) { env->BlockUntil([] { return false; }, env->clock().Now() + time); };
  {
    WatchedExecutor executor(env->executors().NewExecutor("nn-test"), &watchdog, "nn-test");
    wait(absl::Milliseconds(500));  // One that has nothing to do hangs nowhere.
    EXPECT_EQ(watchdog.overdue_steps(), 0u);
    executor.Post([&lane] { TaskThatHangs(&lane); });
    while (watchdog.last_overdue().step.empty()) wait(absl::Milliseconds(5));
    EXPECT_EQ(watchdog.last_overdue().step, "nn-test: task");
    EXPECT_THAT(watchdog.last_overdue().stack, Contains(HasSubstr("TaskThatHangs")));
    wait(absl::Milliseconds(500));
    EXPECT_EQ(watchdog.overdue_steps(), 1u);
    {
      MutexLock lock(lane.mu);
      lane.released = true;
      lane.changed.NotifyAll();
    }
    // The next one that hangs is another, also one that a timer began.
    std::atomic<bool> passed = false;
    executor.PostAt(env->clock().Now(), [&] {
      wait(absl::Milliseconds(400));
      passed.store(true);
    });
    while (!passed.load()) wait(absl::Milliseconds(5));
    EXPECT_EQ(watchdog.overdue_steps(), 2u);
  }
}

}  // namespace
}  // namespace cairn
