#pragma once

#include <memory>

#include "namenode/journal/journal.h"

namespace cairn::namenode {

// RocksDB's own write-ahead log, one sync a batch. Commit blocks until the batch is on disk and calls `done` before it returns.
//
// The first failure poisons it: what is on disk is unknown then (a failed sync may have dropped pages that a second one would call clean),
// so every later commit fails with the first one's cause, without touching the disk, until the store was brought back. Writer's executor
// only; ReadBarrier from any thread.
class LocalJournal : public Journal {
 public:
  // `sync` false is for the control of a test that must fail.
  explicit LocalJournal(MetaStore* store, bool sync = true) : store_(store), sync_(sync) {}  // `store` outlives this.

  void Commit(EffectBatch batch, absl::AnyInvocable<void(absl::Status)> done) override;
  void Recovered() override { poison_ = absl::OkStatus(); }
  void ReadBarrier(absl::AnyInvocable<void(absl::Status)> done) override;

 private:
  MetaStore* const store_;
  const bool sync_;
  absl::Status poison_;  // Writer's executor.
};

}  // namespace cairn::namenode
