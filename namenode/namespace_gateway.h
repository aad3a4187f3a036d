#pragma once

#include <functional>

#include "namenode/namespace_access.h"
#include "namenode/replicas/replica_plane.h"

namespace cairn::namenode {

// The namespace as the replica plane sees it. Thread-safe.
class NamespaceGateway : public NamespaceForReplicas {
 public:
  explicit NamespaceGateway(NamespaceAccess* space) : space_(space) {}  // `space` outlives this.

  std::shared_ptr<const ReadView> Snapshot() const override { return space_->Snapshot(); }
  void RegisterStorages(std::string datanode_uuid, std::vector<std::string> storage_uuids,
                        absl::AnyInvocable<void(absl::StatusOr<std::vector<StorageNumber>>)> done) override;
  void StartBlockRecovery(InodeId inode, BlockId block, absl::AnyInvocable<void(absl::StatusOr<v1::BlockRecord>)> done) override;
  void CommitBlockRecovery(v1::Mutation::CommitBlockRecovery found, absl::AnyInvocable<void(absl::Status)> done) override;
  void SetNodeAdmin(NodeAdminChange change, absl::AnyInvocable<void(absl::Status)> done) override;
  // Raises the counters and keeps, in the same mutation, that unknown replicas must not be deleted (kMetaKeepUnknownReplicas).
  void OnRolledBack(uint64_t at_least_block_id, uint64_t at_least_generation_stamp) override;

 private:
  NamespaceAccess* space_;
};

// Whether a rolled-back namespace was noticed and no operator has confirmed since: ReplicaPlane::Options::keep_unknown_replicas.
absl::StatusOr<bool> KeepsUnknownReplicas(const ReadView& view);

// The writer's observer: tells the replica plane which blocks each batch changed and freed, and calls `on_detached` when there may be new
// work for the reclaimer, `on_replication` when there may be some for the spreader. `replicas` outlives the writer.
NamespaceWriter::Observer ObserveCommits(ReplicaPlane* replicas, std::function<void()> on_detached,
                                         std::function<void()> on_replication = nullptr);

}  // namespace cairn::namenode
