#include "tests/testing/sim_world.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/env/wait.h"
#include "common/task_group.h"
#include "tests/testing/sim_network.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;

TEST(SimWorld, TimeMovesOnlyWhenNobodyCanRun) {
  SimWorld world({});
  std::unique_ptr<Executor> executor = world.executors().NewExecutor("one");
  std::vector<std::string> seen;
  const SteadyTime start = world.Now();
  executor->PostAt(start + absl::Seconds(2), [&] { seen.push_back("late"); });
  executor->PostAt(start + absl::Seconds(1), [&] {
    seen.push_back("early");
    executor->Post([&] { seen.push_back("task"); });
  });
  const Executor::TimerId cancelled = executor->PostAt(start + absl::Seconds(1), [&] { seen.push_back("never"); });
  executor->Post([&] {
    EXPECT_EQ(world.Now(), start);
    executor->CancelTimer(cancelled);
  });
  EXPECT_TRUE(world.RunUntilQuiet(absl::Hours(1)));
  EXPECT_THAT(seen, ElementsAre("early", "task", "late"));
  EXPECT_EQ(world.Now(), start + absl::Seconds(2));
}

TEST(SimWorld, RunUntilStopsAtTheTaskOrAtTheDeadline) {
  SimWorld world({});
  std::unique_ptr<Executor> executor = world.executors().NewExecutor("one");
  int ran = 0;
  for (int i = 0; i < 3; ++i) executor->Post([&] { ++ran; });
  EXPECT_TRUE(world.RunUntil([&] { return ran == 2; }, absl::Seconds(1)));
  EXPECT_EQ(ran, 2);
  const SteadyTime start = world.Now();
  EXPECT_FALSE(world.RunUntil([&] { return ran == 9; }, absl::Seconds(1)));
  EXPECT_EQ(world.Now(), start + absl::Seconds(1));
  world.RunFor(absl::Seconds(3));
  EXPECT_EQ(world.Now(), start + absl::Seconds(4));
}

TEST(SimWorld, ExecutorsTasksDieWithIt) {
  SimWorld world({});
  std::unique_ptr<Executor> executor = world.executors().NewExecutor("one");
  auto kept = std::make_shared<int>(0);
  executor->Post([kept] { ADD_FAILURE(); });
  executor->PostAt(world.Now() + absl::Seconds(1), [kept] { ADD_FAILURE(); });
  EXPECT_EQ(executor->QueueDepth(), 1u);
  executor.reset();
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_TRUE(world.RunUntilQuiet(absl::Seconds(5)));
}

TEST(SimWorld, CoroutinesSleepInVirtualTime) {
  SimWorld world({});
  std::unique_ptr<Executor> executor = world.executors().NewExecutor("one");
  TaskGroup group(executor.get());
  const SteadyTime start = world.Now();
  SteadyTime end;
  group.Spawn("sleeper", [&]() -> Awaitable<void> {
    co_await SleepUntil(executor.get(), start + absl::Hours(5));
    end = world.Now();
  });
  EXPECT_TRUE(world.RunUntil([&] { return group.running() == 0; }, absl::Hours(6)));
  EXPECT_EQ(end, start + absl::Hours(5));
}

TEST(SimWorld, BlockUntilRunsTheWorld) {
  SimWorld world({});
  SimProcess* process = world.AddMachine("a")->StartProcess();
  std::unique_ptr<Executor> executor = process->executors().NewExecutor("one");
  bool done = false;
  executor->PostAt(world.Now() + absl::Seconds(1), [&] { done = true; });
  EXPECT_TRUE(process->BlockUntil([&] { return done; }, world.Now() + absl::Seconds(2)));
  EXPECT_FALSE(process->BlockUntil([&] { return false; }, world.Now() + absl::Seconds(2)));
  // A process that was killed still has to be stopped: its waits go on.
  executor->PostAt(world.Now() + absl::Seconds(1), [&] { process->Kill(); });
  done = false;
  executor->PostAt(world.Now() + absl::Seconds(2), [&] { done = true; });
  EXPECT_TRUE(process->BlockUntil([&] { return done; }, SteadyTime::Infinite()));
  EXPECT_FALSE(process->alive());
}

TEST(SimWorld, WallClocksMayDiffer) {
  SimWorld world({});
  SimMachine* a = world.AddMachine("a");
  SimMachine* b = world.AddMachine("b");
  b->SetWallSkew(absl::Minutes(3));
  EXPECT_EQ(b->clock().WallNow() - a->clock().WallNow(), absl::Minutes(3));
  EXPECT_EQ(b->clock().Now(), a->clock().Now());
  std::unique_ptr<Executor> executor = b->StartProcess()->executors().NewExecutor("one");
  EXPECT_EQ(executor->clock().WallNow(), b->clock().WallNow());
}

TEST(SimWorld, BootIdChangesWithPowerOnly) {
  SimWorld world({});
  SimMachine* machine = world.AddMachine("a");
  SimProcess* first = machine->StartProcess();
  const BootId boot = first->boot_id();
  EXPECT_EQ(boot.bytes.size(), 16u);
  machine->Kill();
  EXPECT_FALSE(first->alive());
  SimProcess* second = machine->StartProcess();
  EXPECT_TRUE(second->alive());
  EXPECT_EQ(second->boot_id().bytes, boot.bytes);
  machine->PowerCut();
  EXPECT_FALSE(second->alive());
  EXPECT_NE(machine->StartProcess()->boot_id().bytes, boot.bytes);
  EXPECT_EQ(first->boot_id().bytes, boot.bytes);  // Zombies see nothing of it.
}

TEST(SimWorld, DeathIsToldOnce) {
  SimWorld world({});
  SimProcess* process = world.AddMachine("a")->StartProcess();
  int told = 0;
  process->OnDeath([&] { ++told; });
  process->ForgetOnDeath(process->OnDeath([&] { told += 100; }));
  process->Kill();
  process->Kill();
  EXPECT_EQ(told, 1);
  process->OnDeath([&] { ++told; });
  EXPECT_EQ(told, 2);
}

// Executors, timers, chance, files and connections, as one digest.
uint64_t Trace(uint64_t seed, bool shuffle) {
  SimWorld world({.seed = seed, .shuffle_executors = shuffle});
  world.network().SetDefaultLink({.latency = absl::Milliseconds(1), .jitter = absl::Milliseconds(3)});
  SimMachine* a = world.AddMachine("a");
  SimMachine* b = world.AddMachine("b");
  SimProcess* server = a->StartProcess();
  SimProcess* client = b->StartProcess();
  std::unique_ptr<Executor> server_executor = server->executors().NewExecutor("server");
  std::unique_ptr<Executor> client_executor = client->executors().NewExecutor("client");
  Random random = client->NewRandom();
  TaskGroup servers(server_executor.get());
  TaskGroup clients(client_executor.get());
  std::unique_ptr<Listener> listener = server->network().Listen({"", 9000}, server_executor.get()).value();
  servers.Spawn("echo", [&]() -> Awaitable<void> {
    for (;;) {
      absl::StatusOr<std::unique_ptr<Connection>> accepted = co_await listener->Accept(server_executor.get());
      if (!accepted.ok()) co_return;
      std::string byte(1, ' ');
      const absl::StatusOr<size_t> read = co_await (*accepted)->Read(byte, 1, SteadyTime::Infinite());
      if (!read.ok()) continue;
      world.Note(byte);
      std::vector<std::span<const char>> parts(1, byte);
      const absl::Status written = co_await (*accepted)->Write(std::move(parts), SteadyTime::Infinite());
      world.Note(written.ToString());
    }
  });
  for (int i = 0; i < 10; ++i) {
    clients.Spawn("client", [&]() -> Awaitable<void> {
      const absl::Duration pause = absl::Milliseconds(random.Below(10));
      co_await SleepUntil(client_executor.get(), world.Now() + pause);
      const HostPort to{"a", 9000};
      absl::StatusOr<std::unique_ptr<Connection>> connection =
          co_await client->network().Connect(to, client_executor.get(), world.Now() + absl::Seconds(1));
      if (!connection.ok()) co_return;
      std::string byte(1, static_cast<char>('a' + random.Below(26)));
      std::vector<std::span<const char>> parts(1, byte);
      const absl::Status written = co_await (*connection)->Write(std::move(parts), SteadyTime::Infinite());
      world.Note(written.ToString());
      const absl::StatusOr<size_t> read = co_await (*connection)->Read(byte, 1, SteadyTime::Infinite());
      world.Note(read.status().ToString());
    });
  }
  EXPECT_TRUE(world.RunUntil([&] { return clients.running() == 0; }, absl::Minutes(1)));
  listener->Close();
  EXPECT_TRUE(world.RunUntil([&] { return servers.running() == 0; }, absl::Minutes(1)));
  return world.trace_hash();
}

TEST(SimWorld, SameSeedSameTraceOtherSeedAnother) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(Trace(seed, false), Trace(seed, false));
    EXPECT_EQ(Trace(seed, true), Trace(seed, true));
    EXPECT_NE(Trace(seed, true), Trace(seed, false));
    EXPECT_NE(Trace(seed, false), Trace(seed + 1, false));
  }
}

TEST(SimWorldDeathTest, RunFromInsideATaskIsABug) {
  SimWorld world({});
  EXPECT_DEATH(
      {
        world.executor().Post([&] { world.RunFor(absl::Seconds(1)); });
        world.RunFor(absl::Seconds(1));
      },
      "from inside one of its tasks");
}

}  // namespace
}  // namespace cairn::testing
