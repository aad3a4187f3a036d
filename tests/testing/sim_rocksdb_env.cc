#include "tests/testing/sim_rocksdb_env.h"

#include <cstdarg>
#include <deque>
#include <string>
#include <utility>

#include <rocksdb/env.h>
#include <rocksdb/system_clock.h>

#include "absl/time/time.h"
#include "common/check.h"
#include "tests/testing/local_rocksdb_file_system.h"

// RocksDB 7.8 forgets the new memtable when power is lost at a certain point of its switch to it; it returns the error, and the database
// is closed. The leak checker calls this.
extern "C" const char* __lsan_default_suppressions() { return "leak:rocksdb::DBImpl::SwitchMemtable\n"; }

namespace cairn::testing {
namespace {

class SilentLogger : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
  rocksdb::Status Close() override { return rocksdb::Status::OK(); }
};

class ClockAdapter : public rocksdb::SystemClock {
 public:
  explicit ClockAdapter(const Clock* clock) : clock_(clock) {}
  const char* Name() const override { return "CairnSimClock"; }
  // Never 0: RocksDB takes that for "not measured".
  uint64_t NowMicros() override { return 1 + static_cast<uint64_t>(absl::ToInt64Microseconds(clock_->Now().since_start())); }
  uint64_t NowNanos() override { return 1000 + static_cast<uint64_t>(absl::ToInt64Nanoseconds(clock_->Now().since_start())); }
  // Only error paths of background jobs sleep; time moves by the simulation alone.
  void SleepForMicroseconds(int) override {}
  rocksdb::Status GetCurrentTime(int64_t* unix_time) override {
    *unix_time = absl::ToUnixSeconds(clock_->WallNow());
    return rocksdb::Status::OK();
  }
  std::string TimeToString(uint64_t time) override { return std::to_string(time); }

 private:
  const Clock* clock_;
};

class PumpedEnv : public rocksdb::EnvWrapper {
 public:
  PumpedEnv(const std::shared_ptr<rocksdb::FileSystem>& files, std::shared_ptr<ClockAdapter> clock)
      : EnvWrapper(rocksdb::NewCompositeEnv(files)), clock_(std::move(clock)) {
    // Without these the wrapper would offer its own adapters over the legacy calls, and the system's clock.
    file_system_ = files;
    system_clock_ = clock_;
  }
  const char* Name() const override { return "CairnPumpedEnv"; }

  void Schedule(void (*function)(void*), void* arg, Priority priority, void* tag, void (*unschedule)(void*)) override {
    jobs_.push_back({function, arg, priority, tag, unschedule});
  }
  int UnSchedule(void* tag, Priority priority) override {
    std::deque<Job> kept, dropped;
    for (Job& job : jobs_) (job.tag == tag && job.priority == priority ? dropped : kept).push_back(job);
    jobs_ = std::move(kept);
    for (Job& job : dropped)
      if (job.unschedule != nullptr) job.unschedule(job.arg);
    return static_cast<int>(dropped.size());
  }
  void StartThread(void (*)(void*), void*) override { CAIRN_CHECK(false, "a simulated database wants a thread"); }
  void WaitForJoin() override {}
  unsigned int GetThreadPoolQueueLen(Priority priority) const override {
    unsigned int count = 0;
    for (const Job& job : jobs_) count += job.priority == priority ? 1 : 0;
    return count;
  }
  void SetBackgroundThreads(int, Priority) override {}
  int GetBackgroundThreads(Priority) override { return 1; }
  void IncBackgroundThreadsIfNeeded(int, Priority) override {}
  void LowerThreadPoolIOPriority(Priority) override {}
  void LowerThreadPoolCPUPriority(Priority) override {}
  rocksdb::Status LowerThreadPoolCPUPriority(Priority, rocksdb::CpuPriority) override { return rocksdb::Status::OK(); }

  rocksdb::Status NewLogger(const std::string&, std::shared_ptr<rocksdb::Logger>* result) override {
    *result = std::make_shared<SilentLogger>();
    return rocksdb::Status::OK();
  }
  uint64_t NowMicros() override { return clock_->NowMicros(); }
  uint64_t NowNanos() override { return clock_->NowNanos(); }
  uint64_t NowCPUNanos() override { return 0; }
  void SleepForMicroseconds(int micros) override { clock_->SleepForMicroseconds(micros); }
  rocksdb::Status GetCurrentTime(int64_t* unix_time) override { return clock_->GetCurrentTime(unix_time); }
  std::string TimeToString(uint64_t time) override { return clock_->TimeToString(time); }

  size_t Pump(size_t max_jobs) {
    size_t ran = 0;
    for (; ran < max_jobs && !jobs_.empty(); ++ran) {
      const Job job = jobs_.front();
      jobs_.pop_front();
      job.function(job.arg);
    }
    return ran;
  }
  size_t queued_jobs() const { return jobs_.size(); }
  void DropJobs() { jobs_.clear(); }

 private:
  struct Job {
    void (*function)(void*);
    void* arg;
    Priority priority;
    void* tag;
    void (*unschedule)(void*);
  };
  std::shared_ptr<ClockAdapter> clock_;
  std::deque<Job> jobs_;
};

class SimRocksdbEnvImpl : public SimRocksdbEnv {
 public:
  SimRocksdbEnvImpl(LocalFileSystem* files, const Clock* clock)
      : files_(std::make_shared<LocalRocksdbFileSystem>(files, clock)), env_(files_, std::make_shared<ClockAdapter>(clock)) {}
  rocksdb::Env* env() override { return &env_; }
  size_t Pump(size_t max_jobs) override { return env_.Pump(max_jobs); }
  size_t queued_jobs() const override { return env_.queued_jobs(); }
  void Reset() override {
    env_.DropJobs();
    files_->DropLocks();
  }

 private:
  std::shared_ptr<LocalRocksdbFileSystem> files_;
  PumpedEnv env_;
};

}  // namespace

std::unique_ptr<SimRocksdbEnv> NewSimRocksdbEnv(LocalFileSystem* files, const Clock* clock) {
  return std::make_unique<SimRocksdbEnvImpl>(files, clock);
}

}  // namespace cairn::testing
