#include "common/env/thread_stack.h"

#include <atomic>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/env/env.h"
#include "common/mutex.h"

namespace cairn {

// Of their own linkage, so that they keep their names.
struct Gate {
  Mutex mu;
  CondVar changed;
  bool open ABSL_GUARDED_BY(mu) = false;
  std::atomic<bool> entered{false};
  std::atomic<bool> stop{false};
};

__attribute__((noinline)) void WaitsAtTheGate(Gate* gate) {
  MutexLock lock(gate->mu);
  gate->entered = true;
  while (!gate->open) gate->changed.Wait(gate->mu);
}

__attribute__((noinline)) void TurnsInCircles(Gate* gate) {
  gate->entered = true;
  while (!gate->stop) {
  }
}

namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void Pause(Env* env) {
  env->BlockUntil([] { return false; }, env->clock().Now() + absl::Milliseconds(1));
}

// Runs `work` on a thread of its own; its stack while it is in there.
template <class Work, class End>
std::vector<std::string> StackWhile(Gate* gate, Work work, End end) {
  const std::unique_ptr<Env> env = NewRealEnv();
  std::atomic<ThreadId> thread{0};
  const std::unique_ptr<Executor> executor = env->executors().NewExecutor("busy");
  executor->Post([&thread, gate, work] {
    thread = CurrentThreadId();
    work(gate);
  });
  while (!gate->entered) Pause(env.get());
  std::vector<std::string> stack = StackOfThread(thread, absl::Seconds(10));
  end();
  return stack;
}

TEST(ThreadStack, ShowsWhereAThreadWaits) {
  Gate gate;
  const std::vector<std::string> stack = StackWhile(&gate, &WaitsAtTheGate, [&gate] {
    MutexLock lock(gate.mu);
    gate.open = true;
    gate.changed.NotifyAll();
  });
  EXPECT_THAT(stack, Contains(HasSubstr("WaitsAtTheGate")));
}

TEST(ThreadStack, ShowsWhereAThreadComputes) {
  Gate gate;
  const std::vector<std::string> stack = StackWhile(&gate, &TurnsInCircles, [&gate] { gate.stop = true; });
  EXPECT_THAT(stack, Contains(HasSubstr("TurnsInCircles")));
}

TEST(ThreadStack, ShowsTheCallersOwn) { EXPECT_THAT(StackOfThread(CurrentThreadId()), Contains(HasSubstr("StackOfThread"))); }

TEST(ThreadStack, OfAThreadThatIsGoneIsEmpty) {
  const std::unique_ptr<Env> env = NewRealEnv();
  std::atomic<ThreadId> thread{0};
  std::unique_ptr<Executor> executor = env->executors().NewExecutor("short");
  executor->Post([&thread] { thread = CurrentThreadId(); });
  while (thread == 0) Pause(env.get());
  executor.reset();
  EXPECT_THAT(StackOfThread(thread), IsEmpty());
}

}  // namespace
}  // namespace cairn
