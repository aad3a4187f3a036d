#include "common/env/wait.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/env/real_executor.h"
#include "common/task_group.h"

namespace cairn {
namespace {

SteadyTime In(absl::Duration d) { return RealClock().Now() + d; }

class WaitTest : public testing::Test {
 protected:
  // Runs `body` on the executor and waits for its end. What it captured by reference lives in the test.
  void Run(absl::AnyInvocable<Awaitable<void>()> body) {
    TaskGroup group(executor_.get());
    std::promise<void> ended;
    group.Spawn("test", std::move(body));
    executor_->Post([&] { group.StopAndThen([&] { ended.set_value(); }); });
    ended.get_future().wait();
  }

  std::unique_ptr<Executor> executor_ = NewRealExecutor("wait_test");
};

TEST_F(WaitTest, TasksRunInOrderOnTheExecutorsThread) {
  std::vector<int> order;
  std::promise<void> done;
  for (int i = 0; i < 100; ++i) {
    executor_->Post([&, i] {
      EXPECT_TRUE(executor_->IsCurrent());
      order.push_back(i);
    });
  }
  executor_->Post([&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_FALSE(executor_->IsCurrent());
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(executor_->QueueDepth(), 0u);
  EXPECT_EQ(executor_->OldestAge(), absl::ZeroDuration());
}

TEST_F(WaitTest, QueueDepthAndAgeCountWhatWaits) {
  std::promise<void> blocked;
  std::promise<void> release;
  executor_->Post([&] {
    blocked.set_value();
    release.get_future().wait();
  });
  blocked.get_future().wait();
  executor_->Post([] {});
  executor_->Post([] {});
  EXPECT_EQ(executor_->QueueDepth(), 2u);
  EXPECT_GT(executor_->OldestAge(), absl::ZeroDuration());
  release.set_value();
  executor_.reset();  // Before what its task uses.
}

TEST_F(WaitTest, TimersRunInTheOrderOfTheirTimes) {
  std::vector<int> order;
  std::promise<void> done;
  const SteadyTime base = In(absl::Milliseconds(20));
  executor_->PostAt(base + absl::Milliseconds(10), [&] {
    order.push_back(3);
    done.set_value();
  });
  executor_->PostAt(base, [&] { order.push_back(1); });
  executor_->PostAt(base + absl::Milliseconds(5), [&] { order.push_back(2); });
  done.get_future().wait();
  EXPECT_GE(RealClock().Now(), base + absl::Milliseconds(10));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(WaitTest, CancelledTimerNeverRuns) {
  std::atomic<bool> ran = false;
  std::promise<void> done;
  executor_->Post([&] {
    const Executor::TimerId id = executor_->PostAt(RealClock().Now(), [&] { ran = true; });  // Due at once.
    EXPECT_NE(id, 0u);
    executor_->CancelTimer(id);
    executor_->CancelTimer(id);
    executor_->CancelTimer(123456);
    executor_->PostAt(In(absl::Milliseconds(2)), [&] { done.set_value(); });
  });
  done.get_future().wait();
  EXPECT_FALSE(ran);
}

TEST_F(WaitTest, TenThousandTimersAreCheap) {
  std::atomic<int> ran = 0;
  std::promise<void> done;
  executor_->Post([&] {
    std::vector<Executor::TimerId> ids;
    for (int i = 0; i < 10'000; ++i) ids.push_back(executor_->PostAt(In(absl::Hours(1)), [&] { ++ran; }));
    for (Executor::TimerId id : ids) executor_->CancelTimer(id);
    for (int i = 0; i < 1'000; ++i) executor_->PostAt(In(absl::Milliseconds(1)), [&] { ++ran; });
    executor_->PostAt(In(absl::Milliseconds(3)), [&] { done.set_value(); });
  });
  done.get_future().wait();
  EXPECT_EQ(ran, 1'000);
}

TEST_F(WaitTest, QueuedTasksAreDestroyedUnrunWithTheExecutor) {
  auto kept = std::make_shared<int>(1);
  std::atomic<bool> ran = false;
  std::promise<void> blocked;
  std::promise<void> release;
  executor_->Post([&] {
    blocked.set_value();
    release.get_future().wait();
  });
  blocked.get_future().wait();
  for (int i = 0; i < 3; ++i) executor_->PostAt(In(absl::Hours(1)), [kept, &ran] { ran = true; });
  std::thread destroyer([&] { executor_.reset(); });
  release.set_value();
  destroyer.join();
  EXPECT_FALSE(ran);
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(WaitTest, SetEventLetsThroughAtOnceAndResetStopsAgain) {
  Event event(executor_.get());
  Run([&]() -> Awaitable<void> {
    event.Set();
    const bool first = co_await event.Wait(SteadyTime::Infinite());
    EXPECT_TRUE(first);
    event.Reset();
    EXPECT_FALSE(event.is_set());
    const bool second = co_await event.Wait(In(absl::Milliseconds(1)));
    EXPECT_FALSE(second);
  });
}

TEST_F(WaitTest, SetWakesAllWaitersInOrder) {
  Event event(executor_.get());
  std::vector<int> woken;
  TaskGroup group(executor_.get());
  for (int i = 0; i < 3; ++i) {
    group.Spawn("waiter", [&, i]() -> Awaitable<void> {
      const bool set = co_await event.Wait(In(absl::Hours(1)));
      EXPECT_TRUE(set);
      woken.push_back(i);
    });
  }
  group.Spawn("setter", [&]() -> Awaitable<void> {
    co_await SleepUntil(executor_.get(), In(absl::Milliseconds(1)));
    EXPECT_TRUE(woken.empty());
    event.Set();
    EXPECT_TRUE(woken.empty());  // Woken through the queue, not inside Set.
    event.Reset();
  });
  std::promise<void> ended;
  executor_->Post([&] { group.StopAndThen([&] { ended.set_value(); }); });
  ended.get_future().wait();
  EXPECT_EQ(woken, (std::vector<int>{0, 1, 2}));
}

TEST_F(WaitTest, SleepLastsAtLeastAsLong) {
  const SteadyTime until = In(absl::Milliseconds(5));
  Run([&]() -> Awaitable<void> {
    co_await SleepUntil(executor_.get(), until);
    EXPECT_GE(RealClock().Now(), until);
    EXPECT_TRUE(executor_->IsCurrent());
    co_await SleepUntil(executor_.get(), SteadyTime());  // Long past.
  });
}

TEST_F(WaitTest, RunOnWorksElsewhereAndComesBack) {
  std::unique_ptr<Executor> other = NewRealExecutor("other");
  Run([&]() -> Awaitable<void> {
    absl::AnyInvocable<std::string()> work = [&] {
      EXPECT_TRUE(other->IsCurrent());
      return std::string(1000, 'x');
    };
    const std::string result = co_await RunOn<std::string>(executor_.get(), other.get(), std::move(work));
    EXPECT_EQ(result, std::string(1000, 'x'));
    EXPECT_TRUE(executor_->IsCurrent());
  });
}

TEST_F(WaitTest, CallbackAnswersBeforeStartReturnsOrFromAnotherThread) {
  using Callback = absl::AnyInvocable<void(absl::StatusOr<int>)>;
  std::unique_ptr<Executor> other = NewRealExecutor("other");
  Run([&]() -> Awaitable<void> {
    absl::AnyInvocable<void(Callback)> at_once = [](Callback done) { done(7); };
    const absl::StatusOr<int> first = co_await AwaitCallback<int>(executor_.get(), SteadyTime::Infinite(), std::move(at_once));
    EXPECT_EQ(first.value_or(0), 7);
    absl::AnyInvocable<void(Callback)> later = [&](Callback done) {
      other->Post([done = std::move(done)]() mutable { done(absl::NotFoundError("no")); });
    };
    const absl::StatusOr<int> second = co_await AwaitCallback<int>(executor_.get(), SteadyTime::Infinite(), std::move(later));
    EXPECT_EQ(second.status().code(), absl::StatusCode::kNotFound);
  });
}

TEST_F(WaitTest, CallbackThatIsLostOrLateIsADeadline) {
  using Callback = absl::AnyInvocable<void(absl::StatusOr<int>)>;
  Callback kept;
  Run([&]() -> Awaitable<void> {
    absl::AnyInvocable<void(Callback)> lose = [](Callback) {};
    const absl::StatusOr<int> lost = co_await AwaitCallback<int>(executor_.get(), In(absl::Milliseconds(1)), std::move(lose));
    EXPECT_EQ(lost.status().code(), absl::StatusCode::kDeadlineExceeded);
    absl::AnyInvocable<void(Callback)> keep = [&](Callback done) { kept = std::move(done); };
    const absl::StatusOr<int> late = co_await AwaitCallback<int>(executor_.get(), In(absl::Milliseconds(1)), std::move(keep));
    EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
    kept(1);
  });
}

TEST_F(WaitTest, ChannelHoldsBackAndKeepsOrder) {
  Channel<int> channel(executor_.get(), 2);
  std::vector<int> got;
  TaskGroup group(executor_.get());
  group.Spawn("pusher", [&]() -> Awaitable<void> {
    for (int i = 0; i < 10; ++i) {
      const bool pushed = co_await channel.Push(i, SteadyTime::Infinite());
      EXPECT_TRUE(pushed);
      EXPECT_LE(channel.size(), 2u);
    }
    channel.Close();
    const bool after = co_await channel.Push(99, SteadyTime::Infinite());
    EXPECT_FALSE(after);
  });
  group.Spawn("popper", [&]() -> Awaitable<void> {
    for (;;) {
      const std::optional<int> item = co_await channel.Pop(SteadyTime::Infinite());
      if (!item) break;
      got.push_back(*item);
    }
  });
  std::promise<void> ended;
  executor_->Post([&] { group.StopAndThen([&] { ended.set_value(); }); });
  ended.get_future().wait();
  EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(WaitTest, ChannelDeadlinesEndPushAndPop) {
  Channel<int> channel(executor_.get(), 1);
  Run([&]() -> Awaitable<void> {
    const std::optional<int> nothing = co_await channel.Pop(In(absl::Milliseconds(1)));
    EXPECT_FALSE(nothing.has_value());
    const bool first = co_await channel.Push(1, In(absl::Milliseconds(1)));
    EXPECT_TRUE(first);
    const bool second = co_await channel.Push(2, In(absl::Milliseconds(1)));
    EXPECT_FALSE(second);
    const std::optional<int> item = co_await channel.Pop(In(absl::Milliseconds(1)));
    EXPECT_EQ(item, 1);
  });
}

TEST(EventDeathTest, DestroyedUnderAWaiterIsABug) {
  EXPECT_DEATH(
      {
        std::unique_ptr<Executor> executor = NewRealExecutor("death");
        TaskGroup group(executor.get());
        auto event = std::make_unique<Event>(executor.get());
        group.Spawn("waiter", [&]() -> Awaitable<void> {
          const bool set = co_await event->Wait(SteadyTime::Infinite());
          static_cast<void>(set);
        });
        group.Spawn("destroyer", [&]() -> Awaitable<void> {  // Starts after the waiter.
          event.reset();
          co_return;
        });
        std::promise<void>().get_future().wait();
      },
      "destroyed while a coroutine waits");
}

}  // namespace
}  // namespace cairn
