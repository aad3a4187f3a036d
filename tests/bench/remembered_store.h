#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "datanode/storage/block_store.h"
#include "datanode/storage/event_log.h"
#include "datanode/storage/node_identity.h"

namespace cairn::bench {

// One storage whose replicas are only remembered: blocks of one length whose ids and stamps follow one another, as nn_fill makes them. It
// says of them on the report stream what a store with files would say, and an invalidation is done at once; it takes no writes and serves
// no reads. A bit a replica, so that a million cost nothing. Thread-safe.
class RememberedStore final : public datanode::BlockStore, public datanode::NodeIdentity {
 public:
  struct Replicas {
    BlockId first;
    GenerationStamp first_stamp;
    uint64_t count = 0;
    uint64_t length = 0;
  };
  RememberedStore(std::string datanode_uuid, std::string storage_uuid, Replicas replicas);

  // Where events go from now on; it outlives this, or the next call.
  void SetEvents(datanode::EventLog* events) ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t ranges() const ABSL_LOCKS_EXCLUDED(mu_);  // Stated so far, in walks and expansions.

  void Invalidate(const std::string& storage_uuid, BlockId id, GenerationStamp stamp, uint64_t command_id,
                  const absl::AnyInvocable<bool() const>& voided) override;
  void MarkEpoch(Epoch epoch) override;
  uint64_t WalkStep(const std::string& storage_uuid, uint64_t end_id, uint64_t walk) override;
  void ExpandRange(const std::string& storage_uuid, uint64_t first_id, uint64_t end_id, uint64_t walk) override;
  std::vector<v1::StorageStatistics> Statistics() override;
  size_t replica_count() const override;
  uint64_t pending_deletion_blocks() const override { return 0; }
  uint64_t pending_deletion_bytes() const override { return 0; }
  absl::Duration oldest_pending_deletion() const override { return absl::ZeroDuration(); }
  DiskQueue disk_queue() const override { return {}; }
  std::optional<datanode::ReplicaDescription> Describe(BlockId) override { return std::nullopt; }

  datanode::VersionRecord Get() const override;
  absl::Status AdoptCluster(std::string cluster_id, std::string pool_id) override;
  absl::Status RememberEpoch(Epoch epoch) override;
  absl::Status RememberIds(BlockId, GenerationStamp) override { return absl::OkStatus(); }

  absl::StatusOr<Placement> Place(const CreateOptions&) override { return NotHere(); }
  absl::StatusOr<std::shared_ptr<datanode::ReplicaWriter>> CreateRbw(const Placement&, BlockId, GenerationStamp,
                                                                     const CreateOptions&) override {
    return NotHere();
  }
  absl::StatusOr<std::shared_ptr<datanode::ReplicaWriter>> CreateTemporary(const Placement&, BlockId, GenerationStamp,
                                                                           const CreateOptions&) override {
    return NotHere();
  }
  absl::StatusOr<Executor*> DiskOf(BlockId) override { return NotHere(); }
  absl::StatusOr<std::shared_ptr<datanode::ReplicaWriter>> RecoverRbw(BlockId, GenerationStamp, GenerationStamp, uint64_t,
                                                                      uint64_t) override {
    return NotHere();
  }
  absl::Status RecoverClose(BlockId, GenerationStamp, GenerationStamp, uint64_t, bool) override { return NotHere(); }
  absl::StatusOr<std::shared_ptr<datanode::ReplicaWriter>> ReopenForAppend(BlockId, GenerationStamp, GenerationStamp, uint64_t,
                                                                           bool) override {
    return NotHere();
  }
  absl::StatusOr<Executor*> DiskOfStorage(const std::string&) override { return NotHere(); }
  absl::StatusOr<bool> HasQuarantined(BlockId, const std::string&) override { return NotHere(); }
  absl::StatusOr<datanode::ReplicaDescription> InitReplicaRecovery(BlockId, GenerationStamp) override { return NotHere(); }
  absl::StatusOr<std::string> UpdateReplicaUnderRecovery(BlockId, GenerationStamp, uint64_t) override { return NotHere(); }
  absl::StatusOr<std::shared_ptr<datanode::ReplicaReader>> OpenForRead(BlockId, GenerationStamp) override { return NotHere(); }
  absl::Status Verify(BlockId, GenerationStamp) override { return NotHere(); }

 private:
  static absl::Status NotHere() { return absl::UnimplementedError("this DataNode is simulated and has no bytes"); }
  // Replicas below an id, from the first on: those of places [0, PlaceOf(id)).
  uint64_t PlaceOf(uint64_t id) const;
  uint64_t IdAt(uint64_t place) const;
  v1::ReplicaEntry EntryAt(uint64_t place) const;
  v1::ReportEvent NewEvent(v1::ReportEventType type) const;
  uint64_t StateRange(uint64_t lowest, uint64_t end_id, uint64_t walk, bool expanded) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string storage_uuid_;
  const Replicas replicas_;
  mutable Mutex mu_;
  datanode::EventLog* events_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::vector<bool> held_ ABSL_GUARDED_BY(mu_);
  size_t count_ ABSL_GUARDED_BY(mu_);
  uint64_t ranges_ ABSL_GUARDED_BY(mu_) = 0;
  datanode::VersionRecord identity_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::bench
