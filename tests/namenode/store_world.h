#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/check.h"
#include "common/env/env.h"
#include "tests/testing/sim_disk.h"
#include "tests/testing/sim_rocksdb_env.h"

namespace cairn::testing {

class ManualClock : public Clock {
 public:
  SteadyTime Now() const override { return SteadyTime::FromStart(since_start_); }
  absl::Time WallNow() const override { return absl::FromUnixSeconds(1'700'000'000) + since_start_; }
  void Advance(absl::Duration by) { since_start_ += by; }

 private:
  absl::Duration since_start_ = absl::ZeroDuration();
};

// Runs tasks when told to.
class QueueExecutor : public Executor {
 public:
  explicit QueueExecutor(const Clock* clock) : clock_(clock) {}
  void Post(Task task) override { tasks_.push_back(std::move(task)); }
  TimerId PostAt(SteadyTime when, Task task) override {
    timers_[++last_timer_] = {when, std::move(task)};
    return last_timer_;
  }
  void CancelTimer(TimerId id) override { timers_.erase(id); }
  bool IsCurrent() const override { return true; }
  const Clock& clock() const override { return *clock_; }
  const boost::asio::any_io_executor& asio() const override { CAIRN_CHECK(false, "no coroutines here"); }
  size_t QueueDepth() const override { return tasks_.size(); }
  absl::Duration OldestAge() const override { return absl::ZeroDuration(); }

  bool RunOne() {
    if (tasks_.empty()) return false;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
    return true;
  }
  // Timers that are due, and what is posted.
  void RunAll() {
    for (auto timer = timers_.begin(); timer != timers_.end();) {
      if (timer->second.first <= clock_->Now()) {
        tasks_.push_back(std::move(timer->second.second));
        timer = timers_.erase(timer);
      } else {
        ++timer;
      }
    }
    while (RunOne()) {
    }
  }

 private:
  const Clock* clock_;
  std::map<TimerId, std::pair<SteadyTime, Task>> timers_;
  TimerId last_timer_ = 0;
  std::deque<Task> tasks_;
};

// A machine with a simulated disk, as far as the namespace's store needs one. Crash() and Boot() are power cuts: databases must be
// closed in between.
class StoreWorld : public Env {
 public:
  explicit StoreWorld(uint64_t seed = 1) : random_(seed), disk_(Random(seed + 1), 1ull << 40) { Boot(); }

  // The running process is dead: every operation of its databases fails from now on.
  void Kill() { *alive_ = false; }
  // After Kill() and closing all databases.
  void LosePowerAndBoot() {
    rocksdb_.reset();
    view_.reset();
    disk_.PowerCut();
    Boot();
  }

  const Clock& clock() const override { return clock_; }
  LocalFileSystem& files() override { return *view_; }
  Network& network() override { CAIRN_CHECK(false, "no network here"); }
  ExecutorFactory& executors() override { CAIRN_CHECK(false, "no executors here"); }
  Random NewRandom() override { return Random(random_.Next()); }
  BootId boot_id() override { return BootId{std::string(16, 'b')}; }
  rocksdb::Env* rocksdb_env() override { return rocksdb_->env(); }
  bool BlockUntil(absl::AnyInvocable<bool()>, SteadyTime) override { CAIRN_CHECK(false, "nothing to wait for"); }
  void Wake() override {}

  SimDisk& disk() { return disk_; }
  SimRocksdbEnv& rocksdb() { return *rocksdb_; }
  ManualClock& manual_clock() { return clock_; }

 private:
  void Boot() {
    alive_ = std::make_shared<bool>(true);
    view_ = disk_.NewView(alive_);
    rocksdb_ = NewSimRocksdbEnv(view_.get(), &clock_);
  }

  Random random_;
  ManualClock clock_;
  SimDisk disk_;
  std::shared_ptr<bool> alive_;
  std::unique_ptr<LocalFileSystem> view_;
  std::unique_ptr<SimRocksdbEnv> rocksdb_;
};

}  // namespace cairn::testing
