#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/env/clock.h"
#include "common/env/executor.h"
#include "common/env/file_system.h"
#include "common/env/network.h"
#include "common/env/random.h"

namespace rocksdb {
class Env;
}

namespace cairn {

// Everything of the world that a process may touch, in one hand. Owned by main() or by a test; outlives all that got a pointer to it.
// Thread-safe.
class Env {
 public:
  virtual ~Env() = default;
  virtual const Clock& clock() const = 0;
  virtual LocalFileSystem& files() = 0;
  virtual Network& network() = 0;
  virtual ExecutorFactory& executors() = 0;
  // A generator of its own for each caller: seeded by the system in production, from the seed in simulation.
  virtual Random NewRandom() = 0;
  // Unpredictable bytes for keys: the system's in production, from the seed in simulation.
  virtual std::string SecretBytes(size_t count) { return NewRandom().Bytes(count); }
  virtual BootId boot_id() = 0;
  // The user that this process runs as, and the groups of a user as the machine knows them (kNotFound: no such user). May block as long as
  // a directory service does. In simulation: "cairn", and everybody is in no group.
  virtual std::string UserName() { return "cairn"; }
  virtual absl::StatusOr<std::vector<std::string>> GroupsOf(const std::string& user) {
    static_cast<void>(user);
    return std::vector<std::string>();
  }
  // RocksDB's view of files, threads and time.
  virtual rocksdb::Env* rocksdb_env() = 0;
  // Blocks the calling thread until `done()` is true; `done` is evaluated again after each Wake. In simulation it runs the world
  // meanwhile, so that blocking calls work in the one thread. Never from an executor's task. False when `deadline` passed.
  virtual bool BlockUntil(absl::AnyInvocable<bool()> done, SteadyTime deadline) = 0;
  virtual void Wake() = 0;
};

// The real one: POSIX files, Boost.Asio sockets, threads.
std::unique_ptr<Env> NewRealEnv();

}  // namespace cairn
