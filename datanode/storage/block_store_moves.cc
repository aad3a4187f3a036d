// Replicas that go from one volume of this node to another.

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "datanode/storage/file_block_store.h"
#include "datanode/storage/replica_move.h"
#include "datanode/storage/volume_mover.h"

namespace cairn::datanode {

void FileBlockStore::NoteRegistered(const std::vector<std::string>& storage_uuids) {
  bool more = false;
  for (Volume* volume : volumes_)
    if (std::find(storage_uuids.begin(), storage_uuids.end(), volume->storage_uuid()) != storage_uuids.end()) more |= volume->SetKnown();
  if (more) mover_->LookAgain();
}

BlockStore::VolumeMoves FileBlockStore::volume_moves() const { return mover_->moves(); }

// On the executor of the volume that it comes from, as are all calls that change the replica there: none of them is in the middle. Only
// deletions come in between, and they are seen under the lock.
absl::Status FileBlockStore::InstallMoved(ReplicaMove* move) {
  Volume* const from = move->from();
  Volume* const to = move->to();
  const ReplicaMove::Replica& replica = move->replica();
  const auto changed = [&replica] {
    return MakeError(ErrorKind::kCancelled, fmt::format("block {} has changed meanwhile", replica.id.value()));
  };
  const std::optional<CreationGate::Pass> pass = gate_.TryEnter(replica.id);
  if (!pass) return changed();
  const std::optional<Found> found = Find(replica.id);
  if (!found || found->volume != from || found->description.stamp != replica.stamp) return changed();
  Deleter::File waiting;
  switch (to->deleter().TryClaim(replica.id, &waiting)) {
    case Deleter::Claim::kNone: break;
    case Deleter::Claim::kTaken: RETURN_IF_ERROR(to->Remove(waiting)); break;
    case Deleter::Claim::kBeingRemoved: return changed();  // Tried again on the next round.
  }
  RETURN_IF_ERROR(move->TakePlace());
  {
    // Nobody else takes the locks of two volumes that are both in use: no order has to be kept.
    MutexLock lock_from(from->shard().mu);
    MutexLock lock_to(to->shard().mu);
    ReplicaIndex& there = from->shard().replicas;
    const auto at = there.find(replica.id);
    const bool same = at != there.end() && at->second.in_digest() && at->second.stamp() == replica.stamp &&
                      at->second.length() == replica.length && at->second.open() == nullptr;
    if (!same || from->failed() || to->failed() || to->leaving()) return changed();
    v1::ReportEvent arrived = to->EventOf(v1::REPLICA_FINALIZED, replica.id, at->second);
    v1::ReportEvent left = from->EventOf(v1::DROPPED, replica.id, at->second);
    to->shard().replicas.insert_or_assign(replica.id, std::move(at->second));
    there.erase(at);
    // In one message, so that the NameNode never sees none of them, and never both.
    events_->AppendTogether(std::move(arrived), std::move(left));
    relocations_.fetch_add(1, std::memory_order_acq_rel);
    move->Stay();
  }
  from->CountReplica(-1);
  to->CountReplica(1);
  from->deleter().Add(replica);
  return absl::OkStatus();
}

}  // namespace cairn::datanode
