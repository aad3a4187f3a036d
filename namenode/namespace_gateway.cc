#include "namenode/namespace_gateway.h"

#include <map>
#include <utility>

#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "namenode/namespace/datanode_rows.h"
#include "namenode/namespace/records.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

// Numbers of the storages asked for, in order; fewer if one is new or was another node's.
absl::StatusOr<std::vector<StorageNumber>> KnownStorages(const ReadView& view, const v1::Mutation::RegisterStorages& asked) {
  std::map<std::string, StorageNumber> known;
  ASSIGN_OR_RETURN(const auto storages, RegisteredStorages(view));
  for (const auto& [number, record] : storages)
    if (record.datanode_uuid() == asked.datanode_uuid()) known.emplace(record.storage_uuid(), number);
  std::vector<StorageNumber> numbers;
  for (const std::string& uuid : asked.storage_uuids())
    if (const auto found = known.find(uuid); found != known.end()) numbers.push_back(found->second);
  return numbers;
}

}  // namespace

void NamespaceGateway::RegisterStorages(std::string datanode_uuid, std::vector<std::string> storage_uuids,
                                        absl::AnyInvocable<void(absl::StatusOr<std::vector<StorageNumber>>)> done) {
  v1::Mutation mutation;
  v1::Mutation::RegisterStorages& op = *mutation.mutable_register_storages();
  op.set_datanode_uuid(std::move(datanode_uuid));
  for (std::string& uuid : storage_uuids) op.add_storage_uuids(std::move(uuid));
  v1::Mutation::RegisterStorages asked = op;
  space_->Submit(std::move(mutation), [space = space_, asked = std::move(asked),
                                       done = std::move(done)](absl::StatusOr<v1::MutationResult> result) mutable {
    // A NameNode that takes no changes still takes its DataNodes back, so that reads go on.
    if (KindOf(result.status()) == ErrorKind::kReadOnly) {
      absl::StatusOr<std::vector<StorageNumber>> known = KnownStorages(*space->Snapshot(), asked);
      return done(known.ok() && known->size() == static_cast<size_t>(asked.storage_uuids_size()) ? std::move(known) : result.status());
    }
    if (!result.ok()) return done(result.status());
    std::vector<StorageNumber> numbers;
    for (const uint32_t number : result->storage_numbers()) numbers.emplace_back(number);
    done(std::move(numbers));
  });
}

void NamespaceGateway::StartBlockRecovery(InodeId inode, BlockId block, absl::AnyInvocable<void(absl::StatusOr<v1::BlockRecord>)> done) {
  v1::Mutation mutation;
  mutation.mutable_start_block_recovery()->set_inode_id(inode.value());
  mutation.mutable_start_block_recovery()->set_block_id(block.value());
  space_->Submit(std::move(mutation), [done = std::move(done)](absl::StatusOr<v1::MutationResult> result) mutable {
    if (!result.ok()) return done(result.status());
    done(std::move(*result->mutable_block_record()));
  });
}

void NamespaceGateway::CommitBlockRecovery(v1::Mutation::CommitBlockRecovery found, absl::AnyInvocable<void(absl::Status)> done) {
  v1::Mutation mutation;
  *mutation.mutable_commit_block_recovery() = std::move(found);
  space_->Submit(std::move(mutation), [done = std::move(done)](const absl::StatusOr<v1::MutationResult>& result) mutable {
    if (result.ok() && !result->path().empty())
      log::Info("{}: its last block was recovered, {} bytes; the file is closed", result->path(), result->inode().length_bytes());
    done(result.status());
  });
}

void NamespaceGateway::SetNodeAdmin(NodeAdminChange change, absl::AnyInvocable<void(absl::Status)> done) {
  v1::Mutation mutation;
  v1::Mutation::SetMeta& op = *mutation.mutable_set_meta();
  op.set_name(std::string(kMetaNodeAdminPrefix) + change.datanode_uuid);
  if (change.record.state() == v1::NODE_NORMAL) {
    op.set_remove(true);
  } else {
    op.set_value(change.record.SerializeAsString());
  }
  op.set_compare(true);
  op.set_expected(std::move(change.before));
  for (const std::string& uuid : change.replaced) op.add_also_remove(std::string(kMetaNodeAdminPrefix) + uuid);
  space_->Submit(std::move(mutation),
                 [done = std::move(done)](const absl::StatusOr<v1::MutationResult>& result) mutable { done(result.status()); });
}

void NamespaceGateway::OnRolledBack(uint64_t at_least_block_id, uint64_t at_least_generation_stamp) {
  v1::Mutation mutation;
  v1::Mutation::SetMeta& op = *mutation.mutable_set_meta();
  op.set_name(std::string(kMetaKeepUnknownReplicas));
  op.set_value("1");
  op.set_at_least_block_id(at_least_block_id);
  op.set_at_least_generation_stamp(at_least_generation_stamp);
  space_->Submit(std::move(mutation), [](const absl::StatusOr<v1::MutationResult>& result) {
    IgnoreError(result.status(), "the next heartbeat that states a higher id asks again");
  });
}

absl::StatusOr<bool> KeepsUnknownReplicas(const ReadView& view) {
  ASSIGN_OR_RETURN(const std::optional<std::string> value, view.Get(Family::kMeta, kMetaKeepUnknownReplicas));
  return value == "1";
}

NamespaceWriter::Observer ObserveCommits(ReplicaPlane* replicas, std::function<void()> on_detached, std::function<void()> on_replication) {
  return [replicas, on_detached = std::move(on_detached),
          on_replication = std::move(on_replication)](const std::vector<NamespaceWriter::Applied>& batch) {
    std::vector<BlockId> changed;
    std::vector<v1::FreedBlock> freed;
    bool detached = false;
    bool replication = false;
    for (const NamespaceWriter::Applied& applied : batch) {
      for (const uint64_t id : applied.result->changed_blocks()) changed.emplace_back(id);
      freed.insert(freed.end(), applied.result->freed().begin(), applied.result->freed().end());
      const v1::Mutation& mutation = *applied.mutation;
      detached |= mutation.has_delete_() || mutation.has_delete_many() || mutation.create().overwrite() || mutation.rename().overwrite() ||
                  applied.result->deleted();
      replication |= mutation.has_set_replication();
    }
    if (!changed.empty()) replicas->OnBlocksChanged(changed);
    if (!freed.empty()) replicas->OnBlocksFreed(freed);
    if (detached && on_detached) on_detached();
    if (replication && on_replication) on_replication();
  };
}

}  // namespace cairn::namenode
