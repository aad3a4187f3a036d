#include "common/task_group.h"

#include <future>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "common/env/real_executor.h"

namespace cairn {
namespace {

class TaskGroupTest : public testing::Test {
 protected:
  // Runs `task` on the executor and waits for it.
  void OnExecutor(absl::AnyInvocable<void()> task) {
    std::promise<void> done;
    executor_->Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  void StopAndWait(TaskGroup& group) {
    std::promise<void> done;
    group.StopAndThen([&] { done.set_value(); });
    done.get_future().wait();
  }

  std::unique_ptr<Executor> executor_ = NewRealExecutor("group_test");
};

TEST_F(TaskGroupTest, RunsBodiesOnItsExecutorAndCountsThem) {
  TaskGroup group(executor_.get());
  Event go(executor_.get());
  std::promise<void> ran;
  group.Spawn("body", [&]() -> Awaitable<void> {
    EXPECT_TRUE(executor_->IsCurrent());
    const bool set = co_await go.Wait(SteadyTime::Infinite());
    EXPECT_TRUE(set);
    ran.set_value();
  });
  OnExecutor([&] {
    EXPECT_EQ(group.running(), 1u);
    EXPECT_FALSE(group.stopping());
    go.Set();
  });
  ran.get_future().wait();
  StopAndWait(group);
  OnExecutor([&] { EXPECT_EQ(group.running(), 0u); });
}

TEST_F(TaskGroupTest, StopRunsHooksInOrderAndLateHooksAtOnce) {
  TaskGroup group(executor_.get());
  std::vector<int> order;
  std::vector<std::unique_ptr<TaskGroup::StopHook>> hooks;
  OnExecutor([&] {
    hooks.push_back(group.OnStop([&] { order.push_back(1); }));
    const auto taken_back = group.OnStop([&] { order.push_back(-1); });
    hooks.push_back(group.OnStop([&] { order.push_back(2); }));
  });
  StopAndWait(group);
  OnExecutor([&] {
    EXPECT_TRUE(group.stopping());
    hooks.push_back(group.OnStop([&] { order.push_back(3); }));
    group.Stop();
    hooks.clear();
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(TaskGroupTest, HookMayDestroyItsOwnAndOtherHooks) {
  TaskGroup group(executor_.get());
  int ran = 0;
  std::unique_ptr<TaskGroup::StopHook> first;
  std::unique_ptr<TaskGroup::StopHook> second;
  OnExecutor([&] {
    first = group.OnStop([&] {
      ++ran;
      first.reset();
      second.reset();
    });
    second = group.OnStop([&] { ran += 100; });
  });
  StopAndWait(group);
  EXPECT_EQ(ran, 1);
}

TEST_F(TaskGroupTest, NothingStartsAfterStop) {
  TaskGroup group(executor_.get());
  bool started = false;
  auto kept = std::make_shared<int>(0);
  group.Stop();
  group.Spawn("late", [&started, kept]() -> Awaitable<void> {
    started = true;
    co_return;
  });
  StopAndWait(group);
  EXPECT_FALSE(started);
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(TaskGroupTest, JoinWaitsForAllIncludingThoseSpawnedByOthers) {
  TaskGroup workers(executor_.get());
  TaskGroup joiner(executor_.get());
  int ended = 0;
  workers.Spawn("outer", [&]() -> Awaitable<void> {
    co_await SleepUntil(executor_.get(), RealClock().Now() + absl::Milliseconds(1));
    workers.Spawn("inner", [&]() -> Awaitable<void> {
      co_await SleepUntil(executor_.get(), RealClock().Now() + absl::Milliseconds(1));
      ++ended;
    });
    ++ended;
  });
  joiner.Spawn("joiner", [&]() -> Awaitable<void> {
    co_await workers.Join();
    EXPECT_EQ(ended, 2);
    EXPECT_EQ(workers.running(), 0u);
    co_await workers.Join();  // Of an idle group: at once.
  });
  StopAndWait(joiner);
  EXPECT_EQ(ended, 2);
}

TEST_F(TaskGroupTest, BodysCapturesAreGoneWhenTheGroupIsIdle) {
  TaskGroup group(executor_.get());
  auto kept = std::make_shared<int>(0);
  group.Spawn("body", [kept, this]() -> Awaitable<void> {
    co_await SleepUntil(executor_.get(), RealClock().Now() + absl::Milliseconds(1));
    EXPECT_EQ(*kept, 0);
  });
  long uses = 0;
  std::promise<void> done;
  executor_->Post([&] {
    group.StopAndThen([&] {
      uses = kept.use_count();
      done.set_value();
    });
  });
  done.get_future().wait();
  EXPECT_EQ(uses, 1);
}

TEST(TaskGroupDeathTest, ExceptionEndsTheProcessWithItsText) {
  EXPECT_DEATH(
      {
        std::unique_ptr<Executor> executor = NewRealExecutor("death");
        TaskGroup group(executor.get());
        group.Spawn("thrower", []() -> Awaitable<void> {
          throw std::runtime_error("the reason");
          co_return;
        });
        std::promise<void>().get_future().wait();
      },
      "coroutine thrower threw: the reason");
}

TEST(TaskGroupDeathTest, DestroyedWhileRunningIsABug) {
  EXPECT_DEATH(
      {
        std::unique_ptr<Executor> executor = NewRealExecutor("death");
        TaskGroup group(executor.get());
        group.Spawn("sleeper", [&]() -> Awaitable<void> { co_await SleepUntil(executor.get(), SteadyTime::Infinite()); });
      },
      "destroyed while coroutines run");
}

}  // namespace
}  // namespace cairn
