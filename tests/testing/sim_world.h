#pragma once

// The simulated world: a whole cluster in the calling thread, repeatable bit for bit from a seed.
//
// How to use it:
//
//   SimWorld world({.seed = 7});
//   SimMachine* a = world.AddMachine("nn");      // A disk, a boot id, an address ("10.0.0.1"); reachable as "nn".
//   SimProcess* process = a->StartProcess();     // An Env: give it to the product's code.
//   process->executors().NewExecutor("lane");    // Task queues of the world; files(), network(), clock() likewise.
//   world.RunUntil([&] { return done; }, absl::Seconds(60));   // Runs tasks; time moves when nobody can run.
//   world.RunFor(absl::Seconds(3));
//   process->BlockUntil(...)                     // What blocking client calls use; it runs the world as well.
//
// Crashing a process, in this order:
//   process->Kill();          // kill -9. From now on its files answer errors without effect, its connections are broken (the
//                             // other ends see it after the link's delay), its listeners and services are gone. Its objects
//                             // still exist and its tasks still run, as zombies that nobody hears: all waits on the network end.
//   world.RunFor(...);        // As long as wished.
//   <stop and destroy the process's objects as in a clean stop>
//   SimProcess* next = a->StartProcess();        // A new process on what the disk has.
// machine->PowerCut() kills all processes of the machine, loses any subset of what was not synced, and changes the boot id.
// machine->Kill() is kill -9 of all of them. A SimProcess object itself lives as long as the world; executors must be
// destroyed before the world.
//
// Attackers: world.network() cuts, blocks, slows links; machine->disk() fills up, fails syncs, flips bytes; SetWallSkew.
// Chance for a test's own choices: world.NewRandom(). world.trace_hash() is a digest of everything that ran and when: two runs
// of one seed must have the same (Note() mixes facts of the test in). Blocking product code (fault points that block, condition
// variables) must not run in a simulation: use FaultHold and Events.
//
// RocksDB: SimProcess::rocksdb_env() is a SimRocksdbEnv over the process's files, whose jobs run when no task can.
// The api interfaces between processes: SimService and SimClientNamenode and its like, in tests/testing/sim_rpc.h.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/env/env.h"
#include "common/env/random.h"
#include "tests/testing/sim_disk.h"

namespace cairn::testing {

class SimMachine;
class SimNetwork;
class SimProcess;
class SimRocksdbEnv;
class SimWorld;

struct SimOptions {
  uint64_t seed = 1;
  // Picks the next task at random among executors (each keeps its order) instead of in the order of posting.
  bool shuffle_executors = false;
  uint64_t disk_capacity_bytes = 1ull << 40;
};

// One incarnation of a process on a machine, and its Env. Owned by its machine until the world ends.
class SimProcess final : public Env {
 public:
  ~SimProcess() override;

  const Clock& clock() const override;
  LocalFileSystem& files() override { return *files_; }
  Network& network() override { return *network_; }
  ExecutorFactory& executors() override { return *executors_; }
  Random NewRandom() override;
  BootId boot_id() override { return boot_id_; }
  rocksdb::Env* rocksdb_env() override;
  // Runs the world. Only from outside of tasks. Also in a process that was killed, which still has to be stopped.
  bool BlockUntil(absl::AnyInvocable<bool()> done, SteadyTime deadline) override;
  void Wake() override {}

  // kill -9; see above. Idempotent.
  void Kill();
  bool alive() const { return *alive_; }
  std::shared_ptr<const bool> life() const { return alive_; }
  SimMachine& machine() { return *machine_; }
  SimWorld& world();

  // Calls `on_death` once when the process is killed (in the killer's call), in the order they came. The id, never 0, takes it back.
  uint64_t OnDeath(absl::AnyInvocable<void()> on_death);
  void ForgetOnDeath(uint64_t id);

  // Runs RocksDB's queued jobs; false if there were none. The world calls it.
  bool PumpRocksdb();

 private:
  friend class SimMachine;
  SimProcess(SimMachine* machine, BootId boot_id);

  SimMachine* const machine_;
  const BootId boot_id_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<LocalFileSystem> files_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<ExecutorFactory> executors_;
  std::unique_ptr<SimRocksdbEnv> rocksdb_env_;  // Made when first asked for.
  std::map<uint64_t, absl::AnyInvocable<void()>> on_death_;
  uint64_t last_on_death_ = 0;
};

class SimMachine {
 public:
  ~SimMachine();

  const std::string& name() const { return name_; }        // A host name in the simulated network.
  const std::string& address() const { return address_; }  // "10.0.0.N".
  SimWorld& world() { return *world_; }
  SimDisk& disk() { return disk_; }
  const Clock& clock() const;

  SimProcess* StartProcess();
  // The one started last, alive or not; null before the first.
  SimProcess* process() { return processes_.empty() ? nullptr : processes_.back().get(); }
  void Kill();      // kill -9 of all its processes.
  void PowerCut();  // The same, and all that was not synced is at risk; the next process sees another boot id.
  void SetWallSkew(absl::Duration skew);

 private:
  friend class SimWorld;
  class SkewedClock;
  SimMachine(SimWorld* world, std::string name, std::string address);
  void NewBoot();

  SimWorld* const world_;
  const std::string name_;
  const std::string address_;
  std::unique_ptr<SkewedClock> clock_;
  SimDisk disk_;
  BootId boot_id_;
  std::vector<std::unique_ptr<SimProcess>> processes_;
};

class SimWorld {
 public:
  explicit SimWorld(SimOptions options);
  ~SimWorld();  // CHECKs that all executors are gone.
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  uint64_t seed() const { return options_.seed; }
  const Clock& clock() const;
  SteadyTime Now() const;
  Random NewRandom();
  SimNetwork& network() { return *network_; }
  SimMachine* AddMachine(const std::string& name);
  // Null if there is none of that name or address.
  SimMachine* FindMachine(const std::string& name_or_address);
  const std::vector<std::unique_ptr<SimMachine>>& machines() const { return machines_; }

  // An executor of no machine, for the test's own coroutines and for the network's deliveries.
  Executor& executor() { return *executor_; }
  ExecutorFactory& executors() { return *factory_; }
  std::unique_ptr<ExecutorFactory> NewFactory(const Clock* clock);  // Of executors that show this clock.

  // Runs until done() is true, which is asked after every task; false when the time came first. Never from inside a task.
  bool RunUntil(absl::AnyInvocable<bool()> done, SteadyTime deadline);
  bool RunUntil(absl::AnyInvocable<bool()> done, absl::Duration limit);
  void RunFor(absl::Duration duration);
  // Until nothing can run and no timer is set (so never with a heartbeat about), or `limit` has passed: false.
  bool RunUntilQuiet(absl::Duration limit);

  // A digest of which executor ran when, and of the notes.
  uint64_t trace_hash() const;
  uint64_t tasks_run() const;
  void Note(std::string_view fact);

 private:
  friend class SimMachine;
  class Impl;
  class Factory;
  const SimOptions options_;
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<ExecutorFactory> factory_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<SimNetwork> network_;
  std::vector<std::unique_ptr<SimMachine>> machines_;
};

}  // namespace cairn::testing
