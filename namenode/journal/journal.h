#pragma once

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

// Where a batch becomes durable. LocalJournal is RocksDB's write-ahead log with one sync; a replicated journal plugs in here.
// Called on the writer's executor. `done` calls come in the order of the commits; an error means durability unknown, and every
// later commit fails too, until Recovered.
class Journal {
 public:
  virtual ~Journal() = default;
  virtual void Commit(EffectBatch batch, absl::AnyInvocable<void(absl::Status)> done) = 0;
  // The store was brought back to a known state (MetaStore::Reopen): commits are taken again, the next follows the store's applied index.
  virtual void Recovered() {}
  // OK once a snapshot taken now holds everything acknowledged before. Free for a local journal.
  virtual void ReadBarrier(absl::AnyInvocable<void(absl::Status)> done) = 0;
};

}  // namespace cairn::namenode
