#include "tests/testing/sim_world.h"

#include <bit>
#include <deque>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "common/check.h"
#include "tests/testing/sim_network.h"
#include "tests/testing/sim_rocksdb_env.h"

namespace cairn::testing {
namespace {

// Not 0: code that takes SteadyTime() for "long ago" works as on a machine that booted long ago.
constexpr absl::Duration kStart = absl::Hours(1);

// Tasks that follow one another without any time passing: more is a livelock.
constexpr uint64_t kMaxTasksWithoutTime = 50'000'000;

uint64_t Mix(uint64_t hash, uint64_t value) { return (std::rotl(hash, 5) ^ value) * 0x9e3779b97f4a7c15ull; }

}  // namespace

// The scheduler. Ready tasks first, in order; then due timers, in the order of their times; then time moves.
class SimWorld::Impl final : public Clock {
 public:
  class SimExecutor;

  Impl(const SimOptions& options) : shuffle_(options.shuffle_executors), random_(options.seed) {}

  ~Impl() override {
    CAIRN_CHECK(executors_.empty(), "executor " + (executors_.empty() ? "" : NameOf(*executors_.begin())) + " outlives its world");
    asio_ = boost::asio::any_io_executor();
  }

  SteadyTime Now() const override { return now_; }
  absl::Time WallNow() const override { return absl::FromUnixSeconds(1'767'225'600) + (now_.since_start() - kStart); }

  bool RunUntil(absl::AnyInvocable<bool()>& done, SteadyTime deadline, SimWorld* world) {
    CAIRN_CHECK(!running_, "the simulated world is run from inside one of its tasks");
    if (done()) return true;
    for (;;) {
      if (Step(deadline, world)) {
        if (done()) return true;
      } else {
        if (deadline < SteadyTime::Infinite()) now_ = std::max(now_, deadline);
        return done();
      }
    }
  }

  // Nothing can run and no timer is set.
  bool quiet() const { return ready_.empty() && timers_.empty(); }
  // False when nothing runs until `deadline`.
  bool Step(SteadyTime deadline, SimWorld* world);

  boost::asio::io_context io_{1};
  boost::asio::any_io_executor asio_{io_.get_executor()};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};

  using TimerKey = std::pair<SteadyTime, Executor::TimerId>;
  struct Timer {
    SimExecutor* executor;
    Task task;
  };
  void Run(SimExecutor* executor, Task task);
  static std::string NameOf(SimExecutor* executor);

  const bool shuffle_;
  Random random_;
  SteadyTime now_ = SteadyTime::FromStart(kStart);
  std::deque<SimExecutor*> ready_;  // One entry a task.
  std::map<TimerKey, Timer> timers_;
  std::map<Executor::TimerId, SteadyTime> timer_times_;
  Executor::TimerId last_timer_ = 0;
  std::set<SimExecutor*> executors_;
  uint64_t last_executor_ = 0;
  bool running_ = false;
  uint64_t trace_hash_ = 0;
  uint64_t tasks_run_ = 0;
  uint64_t tasks_since_time_moved_ = 0;
};

class SimWorld::Impl::SimExecutor final : public Executor {
 public:
  SimExecutor(Impl* world, const Clock* clock, std::string name)
      : world_(world), clock_(clock), name_(std::move(name)), number_(++world->last_executor_) {
    world_->executors_.insert(this);
  }
  ~SimExecutor() override {
    std::erase(world_->ready_, this);
    std::vector<Task> dropped;  // Destroyed last: tasks may hold what posts again.
    for (auto timer = world_->timers_.begin(); timer != world_->timers_.end();) {
      if (timer->second.executor != this) {
        ++timer;
        continue;
      }
      world_->timer_times_.erase(timer->first.second);
      dropped.push_back(std::move(timer->second.task));
      timer = world_->timers_.erase(timer);
    }
    stopped_ = true;
    dropped.clear();
    while (!tasks_.empty()) std::deque<Item>().swap(tasks_);
    world_->executors_.erase(this);
  }

  void Post(Task task) override {
    if (stopped_) return;
    tasks_.push_back(Item{std::move(task), world_->now_});
    world_->ready_.push_back(this);
  }
  TimerId PostAt(SteadyTime when, Task task) override {
    const TimerId id = ++world_->last_timer_;
    if (stopped_ || when == SteadyTime::Infinite()) return id;
    world_->timers_.emplace(TimerKey(std::max(when, world_->now_), id), Timer{this, std::move(task)});
    world_->timer_times_.emplace(id, std::max(when, world_->now_));
    return id;
  }
  void CancelTimer(TimerId id) override {
    auto time = world_->timer_times_.find(id);
    if (time == world_->timer_times_.end()) return;
    auto timer = world_->timers_.find(TimerKey(time->second, id));
    const Task dropped = std::move(timer->second.task);
    world_->timers_.erase(timer);
    world_->timer_times_.erase(time);
  }
  bool IsCurrent() const override { return true; }
  const Clock& clock() const override { return *clock_; }
  const boost::asio::any_io_executor& asio() const override { return world_->asio_; }
  size_t QueueDepth() const override { return tasks_.size(); }
  absl::Duration OldestAge() const override { return tasks_.empty() ? absl::ZeroDuration() : world_->now_ - tasks_.front().posted; }

  Task Pop() {
    Task task = std::move(tasks_.front().task);
    tasks_.pop_front();
    return task;
  }
  const std::string& name() const { return name_; }
  uint64_t number() const { return number_; }

 private:
  struct Item {
    Task task;
    SteadyTime posted;
  };
  Impl* const world_;
  const Clock* const clock_;
  const std::string name_;
  const uint64_t number_;
  std::deque<Item> tasks_;
  bool stopped_ = false;
};

std::string SimWorld::Impl::NameOf(SimExecutor* executor) { return executor->name(); }

void SimWorld::Impl::Run(SimExecutor* executor, Task task) {
  running_ = true;
  ++tasks_run_;
  trace_hash_ = Mix(Mix(trace_hash_, executor->number()), static_cast<uint64_t>(absl::ToInt64Nanoseconds(now_.since_start())));
  CAIRN_CHECK(++tasks_since_time_moved_ < kMaxTasksWithoutTime,
              fmt::format("tasks go round without time passing, on executor {}", executor->name()));
  task();
  task = nullptr;
  io_.poll();  // New coroutines begin here, and frames of abandoned ones end.
  running_ = false;
}

bool SimWorld::Impl::Step(SteadyTime deadline, SimWorld* world) {
  if (ready_.empty()) {
    // Zombies' databases too: closing one waits for its jobs.
    running_ = true;
    bool pumped = false;
    for (const auto& machine : world->machines_) {
      for (const auto& process : machine->processes_) pumped = process->PumpRocksdb() || pumped;
    }
    io_.poll();
    running_ = false;
    if (pumped) return true;
  }
  if (!ready_.empty()) {
    if (shuffle_) std::swap(ready_.front(), ready_[static_cast<size_t>(random_.Below(ready_.size()))]);
    SimExecutor* executor = ready_.front();
    ready_.pop_front();
    Run(executor, executor->Pop());
    return true;
  }
  if (timers_.empty() || timers_.begin()->first.first > deadline) return false;
  auto first = timers_.begin();
  if (first->first.first > now_) {
    now_ = first->first.first;
    tasks_since_time_moved_ = 0;
  }
  Timer timer = std::move(first->second);
  timer_times_.erase(first->first.second);
  timers_.erase(first);
  Run(timer.executor, std::move(timer.task));
  return true;
}

// ---- SimWorld

class SimWorld::Factory final : public ExecutorFactory {
 public:
  Factory(Impl* world, const Clock* clock) : world_(world), clock_(clock) {}
  std::unique_ptr<Executor> NewExecutor(const std::string& name) override {
    return std::make_unique<Impl::SimExecutor>(world_, clock_, name);
  }

 private:
  Impl* const world_;
  const Clock* const clock_;
};

std::unique_ptr<ExecutorFactory> SimWorld::NewFactory(const Clock* clock) { return std::make_unique<Factory>(impl_.get(), clock); }

SimWorld::SimWorld(SimOptions options) : options_(options), impl_(std::make_unique<Impl>(options)) {
  factory_ = NewFactory(impl_.get());
  executor_ = factory_->NewExecutor("world");
  network_ = std::make_unique<SimNetwork>(this);
}

SimWorld::~SimWorld() {
  network_.reset();  // Drops what is under way, while the processes it belongs to are still there.
  machines_.clear();
  executor_.reset();
}

const Clock& SimWorld::clock() const { return *impl_; }
SteadyTime SimWorld::Now() const { return impl_->Now(); }
Random SimWorld::NewRandom() { return Random(impl_->random_.Next()); }

SimMachine* SimWorld::AddMachine(const std::string& name) {
  CAIRN_CHECK(FindMachine(name) == nullptr, "two machines named " + name);
  const std::string address = fmt::format("10.0.{}.{}", machines_.size() / 250, machines_.size() % 250 + 1);
  machines_.push_back(std::unique_ptr<SimMachine>(new SimMachine(this, name, address)));
  return machines_.back().get();
}

SimMachine* SimWorld::FindMachine(const std::string& name_or_address) {
  for (const auto& machine : machines_) {
    if (machine->name() == name_or_address || machine->address() == name_or_address) return machine.get();
  }
  return nullptr;
}

bool SimWorld::RunUntil(absl::AnyInvocable<bool()> done, SteadyTime deadline) { return impl_->RunUntil(done, deadline, this); }
bool SimWorld::RunUntil(absl::AnyInvocable<bool()> done, absl::Duration limit) { return impl_->RunUntil(done, Now() + limit, this); }
void SimWorld::RunFor(absl::Duration duration) {
  absl::AnyInvocable<bool()> never = [] { return false; };
  impl_->RunUntil(never, Now() + duration, this);
}
bool SimWorld::RunUntilQuiet(absl::Duration limit) {
  const SteadyTime deadline = Now() + limit;
  CAIRN_CHECK(!impl_->running_, "the simulated world is run from inside one of its tasks");
  while (impl_->Step(deadline, this)) {
  }
  return impl_->quiet();
}

uint64_t SimWorld::trace_hash() const { return impl_->trace_hash_; }
uint64_t SimWorld::tasks_run() const { return impl_->tasks_run_; }
void SimWorld::Note(std::string_view fact) {
  for (char c : fact) impl_->trace_hash_ = Mix(impl_->trace_hash_, static_cast<unsigned char>(c));
}

// ---- SimMachine

class SimMachine::SkewedClock final : public Clock {
 public:
  explicit SkewedClock(const Clock* clock) : clock_(clock) {}
  SteadyTime Now() const override { return clock_->Now(); }
  absl::Time WallNow() const override { return clock_->WallNow() + skew_; }
  void SetSkew(absl::Duration skew) { skew_ = skew; }

 private:
  const Clock* const clock_;
  absl::Duration skew_ = absl::ZeroDuration();
};

SimMachine::SimMachine(SimWorld* world, std::string name, std::string address)
    : world_(world),
      name_(std::move(name)),
      address_(std::move(address)),
      clock_(std::make_unique<SkewedClock>(&world->clock())),
      disk_(world->NewRandom(), world->options_.disk_capacity_bytes) {
  NewBoot();
}

SimMachine::~SimMachine() = default;

const Clock& SimMachine::clock() const { return *clock_; }

void SimMachine::NewBoot() { boot_id_.bytes = world_->NewRandom().Bytes(16); }

SimProcess* SimMachine::StartProcess() {
  processes_.push_back(std::unique_ptr<SimProcess>(new SimProcess(this, boot_id_)));
  return processes_.back().get();
}

void SimMachine::Kill() {
  for (const auto& process : processes_) process->Kill();
}

void SimMachine::PowerCut() {
  Kill();
  disk_.PowerCut();
  NewBoot();
}

void SimMachine::SetWallSkew(absl::Duration skew) { clock_->SetSkew(skew); }

// ---- SimProcess

SimProcess::SimProcess(SimMachine* machine, BootId boot_id)
    : machine_(machine),
      boot_id_(std::move(boot_id)),
      files_(machine->disk().NewView(alive_)),
      network_(machine->world().network().NewView(this)),
      executors_(machine->world().NewFactory(&machine->clock())) {}

SimProcess::~SimProcess() = default;

const Clock& SimProcess::clock() const { return machine_->clock(); }
Random SimProcess::NewRandom() { return world().NewRandom(); }
SimWorld& SimProcess::world() { return machine_->world(); }

rocksdb::Env* SimProcess::rocksdb_env() {
  if (!rocksdb_env_) rocksdb_env_ = NewSimRocksdbEnv(files_.get(), &machine_->clock());
  return rocksdb_env_->env();
}

bool SimProcess::PumpRocksdb() { return rocksdb_env_ != nullptr && rocksdb_env_->queued_jobs() > 0 && rocksdb_env_->Pump() > 0; }

bool SimProcess::BlockUntil(absl::AnyInvocable<bool()> done, SteadyTime deadline) {
  bool result = false;
  world().RunUntil([&] { return result = done(); }, deadline);
  return result;
}

void SimProcess::Kill() {
  if (!*alive_) return;
  *alive_ = false;
  while (!on_death_.empty()) {
    absl::AnyInvocable<void()> call = std::move(on_death_.begin()->second);
    on_death_.erase(on_death_.begin());
    call();
  }
}

uint64_t SimProcess::OnDeath(absl::AnyInvocable<void()> on_death) {
  if (!*alive_) {
    on_death();
    return ++last_on_death_;
  }
  on_death_.emplace(++last_on_death_, std::move(on_death));
  return last_on_death_;
}

void SimProcess::ForgetOnDeath(uint64_t id) { on_death_.erase(id); }

}  // namespace cairn::testing
