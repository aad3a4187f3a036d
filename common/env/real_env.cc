#include <cctype>
#include <fstream>
#include <random>
#include <string>

#include <rocksdb/env.h>

#include "absl/base/thread_annotations.h"
#include "common/env/env.h"
#include "common/env/real_executor.h"
#include "common/env/real_file_system.h"
#include "common/env/real_network.h"
#include "common/env/real_users.h"
#include "common/mutex.h"

namespace cairn {
namespace {

// As Linux has it: "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
BootId ReadBootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  BootId id;
  int nibbles = 0;
  int value = 0;
  for (char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    value = value * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    if (++nibbles % 2 == 0) {
      id.bytes.push_back(static_cast<char>(value));
      value = 0;
    }
  }
  // Without /proc every process start counts as a boot: more is verified than need be, never less.
  if (id.bytes.size() != 16) {
    std::random_device device;
    id.bytes.clear();
    for (int i = 0; i < 16; ++i) id.bytes.push_back(static_cast<char>(device()));
  }
  return id;
}

class RealExecutorFactory final : public ExecutorFactory {
 public:
  std::unique_ptr<Executor> NewExecutor(const std::string& name) override { return NewRealExecutor(name); }
  std::unique_ptr<Executor> NewBackgroundExecutor(const std::string& name) override { return NewRealBackgroundExecutor(name); }
};

class RealEnv final : public Env {
 public:
  const Clock& clock() const override { return RealClock(); }
  LocalFileSystem& files() override { return *files_; }
  Network& network() override { return *network_; }
  ExecutorFactory& executors() override { return executors_; }
  Random NewRandom() override {
    std::random_device device;
    return Random(static_cast<uint64_t>(device()) << 32 | device());
  }
  std::string SecretBytes(size_t count) override {
    std::random_device device;  // The kernel's, not a generator seeded from it.
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(device());
    return bytes;
  }
  BootId boot_id() override { return boot_id_; }
  std::string UserName() override { return RealUserName(); }
  absl::StatusOr<std::vector<std::string>> GroupsOf(const std::string& user) override { return RealGroupsOf(user); }
  rocksdb::Env* rocksdb_env() override { return rocksdb::Env::Default(); }

  bool BlockUntil(absl::AnyInvocable<bool()> done, SteadyTime deadline) override {
    AssertMayBlock("BlockUntil");
    for (;;) {
      uint64_t seen = 0;
      {
        MutexLock lock(mu_);
        seen = wakes_;
      }
      // Outside of the lock, as it may take others. A Wake meanwhile is not lost: it has changed the count.
      if (done()) return true;
      MutexLock lock(mu_);
      while (wakes_ == seen) {
        if (deadline == SteadyTime::Infinite()) {
          woken_.Wait(mu_);
          continue;
        }
        const absl::Duration left = deadline - RealClock().Now();
        if (left <= absl::ZeroDuration()) return false;
        woken_.WaitFor(mu_, left);
      }
    }
  }
  void Wake() override {
    MutexLock lock(mu_);
    ++wakes_;
    woken_.NotifyAll();
  }

 private:
  const BootId boot_id_ = ReadBootId();
  // Made by the constructor, thread-safe themselves.
  std::unique_ptr<LocalFileSystem> files_ = NewRealFileSystem();
  std::unique_ptr<Network> network_ = NewRealNetwork();
  RealExecutorFactory executors_;

  Mutex mu_;
  CondVar woken_;
  uint64_t wakes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

std::unique_ptr<Env> NewRealEnv() { return std::make_unique<RealEnv>(); }

}  // namespace cairn
