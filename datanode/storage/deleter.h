#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "common/env/env.h"
#include "common/env/yielding.h"
#include "common/ids.h"
#include "common/mutex.h"

namespace cairn::datanode {

struct DeleterOptions {
  double unlinks_per_second = 2000;
  double bytes_per_second = 4.0 * (1 << 30);
  // While the disk is used by others: after each unlink it stands back in proportion to what that one took, but never for longer than
  // `longest_yield`. cairn.datanode.delete.busy-percent, cairn.datanode.delete.patience.
  Yielding yielding = {.share = 0.25, .patience = absl::Minutes(1), .most = 0.5};
  absl::Duration longest_yield = absl::Milliseconds(200);

  absl::Duration YieldAfter(absl::Duration unlink, absl::Duration oldest) const;
};

// Unlinks the files of replicas that are gone from the map, on an executor of its own, so that a deletion of any size is invisible to
// lanes, reports, closes and reads: nobody ever waits for it. Paced by bytes and by unlinks; it yields while the volume is in use, and its
// thread gives way to all others. Its backlog is bounded by the replica map, whose entries it takes over; the command lane takes no more of
// them while it is long (CommandLane).
//
// What is not yet unlinked when the process ends is found by the next start's scan and reported again; it is garbage still.
// Thread-safe; the destructor waits for the unlink under way.
class Deleter {
 public:
  struct File {
    BlockId id;
    GenerationStamp stamp;
    uint64_t length = 0;
    uint64_t used_bytes = 0;
  };
  // `remove` unlinks one file (blocks; on the deleter's executor) and then tells of it; `busy` says whether others use the disk and would
  // rather have the time than the space.
  Deleter(Env* env, const std::string& thread_name, DeleterOptions options, absl::AnyInvocable<void(const File&)> remove,
          absl::AnyInvocable<bool() const> busy);
  ~Deleter();

  void SetOptions(const DeleterOptions& options) ABSL_LOCKS_EXCLUDED(mu_);  // From the next file on.
  void Add(const File& file) ABSL_LOCKS_EXCLUDED(mu_);
  void Post(Task task) { executor_->Post(std::move(task)); }  // Behind the unlink under way.
  enum class Claim { kNone, kTaken, kBeingRemoved };
  // Takes the file of `id` back, if it waits here, for one who wants to make another of that name and removes this one itself.
  Claim TryClaim(BlockId id, File* file) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether its file waits here, or is being unlinked.
  bool Has(BlockId id) const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t pending_blocks() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t pending_bytes() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Duration oldest_age() const ABSL_LOCKS_EXCLUDED(mu_);  // Of the pending; zero when there is none.

 private:
  void ScheduleLocked(SteadyTime when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Step() ABSL_LOCKS_EXCLUDED(mu_);

  DeleterOptions options_ ABSL_GUARDED_BY(mu_);
  absl::AnyInvocable<void(const File&)> remove_;  // Of the executor.
  const absl::AnyInvocable<bool() const> busy_;
  bool delayed_ = false;                                // Of the executor: a fault point's delay has just passed.
  SteadyTime yielding_since_ = SteadyTime::Infinite();  // Of the executor.
  absl::Duration yield_ = absl::Milliseconds(1);        // Of the executor: how long the next unlink gives way.
  mutable Mutex mu_;
  struct Waiting {
    BlockId id;
    SteadyTime since;
  };
  std::deque<Waiting> order_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<BlockId, File> files_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  BlockId removing_ ABSL_GUARDED_BY(mu_);
  uint64_t removing_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  SteadyTime removing_since_ ABSL_GUARDED_BY(mu_);
  bool scheduled_ ABSL_GUARDED_BY(mu_) = false;
  SteadyTime not_before_ ABSL_GUARDED_BY(mu_);  // The pace.
  std::unique_ptr<Executor> executor_;          // Last: ends before what its tasks use.
};

}  // namespace cairn::datanode
