#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/executor.h"
#include "common/ids.h"
#include "namenode/namespace_access.h"

namespace cairn::namenode {

// Notices writers that fell silent, and closes their files.
//
// Renewals are soft: the last one of each holder, on the monotonic clock, in memory. A new NameNode knows of none and grants everyone a
// full period from its start.
//
// A holder renews often enough for the soft limit that it was told of last, and knows nothing of a shorter one until its next renewal is
// answered. So nobody is judged by a limit that he has not said he goes by: a renewal says below what its holder's silences stay, the
// answer names the present limit, and until the holder has said otherwise the longer of the two counts for it, for the hard limit too.
// Who has said nothing yet, or never does, is taken to stay below unsaid_limit.
//
// Every check_interval the `lease` rows are walked, a page at a time; the files of a holder that was silent for
// hard_limit, and after soft_limit those that it wanted deleted rather than closed, are given to ExpireLease with the age that was
// observed. Files whose last block is being recovered have the NameNode for their holder: the walk only counts them, and names these
// blocks to `on_recovering`, so that none is forgotten.
//
// Thread-safe.
class LeaseMonitor {
 public:
  struct Options {
    absl::Duration hard_limit = absl::Minutes(20);
    absl::Duration soft_limit = absl::Seconds(60);
    absl::Duration unsaid_limit = absl::Seconds(60);
    absl::Duration check_interval = absl::Seconds(5);
    size_t rows_per_page = 1000;
    size_t max_holders = 1 << 20;  // Renewals of more are refused with kBusy.
  };
  struct Stats {
    size_t holders = 0;       // That have renewed within hard_limit.
    uint64_t leases = 0;      // Rows seen by the last whole walk.
    uint64_t expired = 0;     // Files taken from silent holders, ever.
    uint64_t deleted = 0;     // Of these: deleted, as their writers had wanted.
    uint64_t recovering = 0;  // Files whose last block is being recovered: seen by the last whole walk.
  };

  // Reads on `executor`, which may block. Pointers outlive the callback of Stop.
  LeaseMonitor(Options options, NamespaceAccess* space, Executor* executor);
  ~LeaseMonitor();
  LeaseMonitor(const LeaseMonitor&) = delete;
  LeaseMonitor& operator=(const LeaseMonitor&) = delete;

  // Before Start. Called on the executor.
  void SetOnRecovering(absl::AnyInvocable<void(std::vector<BlockId>)> on_recovering);
  void Start();
  // Instead of those in options, for pages of the walk that begin from now on.
  void SetLimits(absl::Duration soft_limit, absl::Duration hard_limit);
  // The holder is alive. `renews_within`: what it says of its silences; zero: nothing. The limit to tell it. Cheap; does not block.
  absl::StatusOr<absl::Duration> Renew(const std::string& holder, absl::Duration renews_within = absl::ZeroDuration());
  struct Silence {
    absl::Duration idle;        // As far as this NameNode can know.
    absl::Duration soft_limit;  // That counts for this holder.
  };
  Silence SilenceOf(std::string_view holder) const;
  Stats stats() const;
  // Submits nothing more, then calls `then` on the executor, when nothing is under way. The writer must still run.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::namenode
