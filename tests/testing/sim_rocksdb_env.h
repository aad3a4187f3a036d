#pragma once

#include <cstddef>
#include <memory>

#include "common/env/clock.h"
#include "common/env/file_system.h"

namespace rocksdb {
class Env;
}

namespace cairn::testing {

// RocksDB's world inside a simulation: files of a LocalFileSystem (the simulated disk, or real ones), time of a Clock, and no
// threads. Background jobs (flushes, compactions) are only queued and run, in order, in the caller of Pump, so that a run
// repeats from its seed.
//
// What is different from a real disk's Env, and why:
// - the directory is synced before a rename onto CURRENT: else a power cut could keep the rename and lose the MANIFEST it names;
// - preallocation does nothing, so a log never ends in zeros that nobody wrote;
// - LockFile keeps a set in memory: directories are locked by their owners, and a machine that lost power holds none.
//
// A database over it must not use an API that waits for a background job (Flush with wait, CompactRange, Checkpoint): it would
// wait for ever. One thread. Outlives every database opened over it; outlived by `files` and `clock`.
class SimRocksdbEnv {
 public:
  virtual ~SimRocksdbEnv() = default;
  virtual rocksdb::Env* env() = 0;
  // Runs at most `max_jobs` queued jobs, those they queue included; says how many ran.
  virtual size_t Pump(size_t max_jobs = 1000) = 0;
  virtual size_t queued_jobs() const = 0;
  // After a power cut: forgets jobs and locks of databases that are gone.
  virtual void Reset() = 0;
};

std::unique_ptr<SimRocksdbEnv> NewSimRocksdbEnv(LocalFileSystem* files, const Clock* clock);

}  // namespace cairn::testing
