#include "namenode/journal/local_journal.h"

#include <utility>

#include "common/fault_points.h"
#include "common/status.h"

namespace cairn::namenode {

void LocalJournal::Commit(EffectBatch batch, absl::AnyInvocable<void(absl::Status)> done) {
  if (poison_.ok()) {
    poison_ = FaultPoint("local_journal.before_commit");
    if (poison_.ok()) poison_ = Annotate(store_->Write(batch, sync_), "commit to the local journal");
    done(poison_);
  } else {
    done(Annotate(poison_, "refused after an earlier failure"));
  }
}

void LocalJournal::ReadBarrier(absl::AnyInvocable<void(absl::Status)> done) {
  // The writer publishes a snapshot before it acknowledges: the newest one holds everything.
  done(absl::OkStatus());
}

}  // namespace cairn::namenode
