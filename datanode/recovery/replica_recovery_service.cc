#include "datanode/recovery/replica_recovery_service.h"

#include <utility>

#include <fmt/format.h>

#include "common/block_token.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

v1::InitReplicaRecoveryResponse ToResponse(const ReplicaDescription& replica) {
  v1::InitReplicaRecoveryResponse response;
  response.set_found(true);
  response.mutable_replica()->set_id(replica.id.value());
  response.mutable_replica()->set_generation_stamp(replica.stamp.value());
  response.mutable_replica()->set_length_bytes(replica.length);
  response.set_state(static_cast<v1::ReplicaState>(replica.state));  // The numbers are the same.
  response.set_sure(replica.sure);
  response.set_corrupt(replica.corrupt);
  response.set_storage_uuid(replica.storage_uuid);
  return response;
}

v1::InitReplicaRecoveryResponse None(std::string storage_uuid) {
  v1::InitReplicaRecoveryResponse none;
  none.set_storage_uuid(std::move(storage_uuid));
  return none;
}

// Its file is in quarantine: no help, but nobody may say that there is no byte.
v1::InitReplicaRecoveryResponse PutAside(BlockId block, std::string storage_uuid) {
  v1::InitReplicaRecoveryResponse response = None(std::move(storage_uuid));
  response.set_found(true);
  response.set_corrupt(true);
  response.mutable_replica()->set_id(block.value());
  response.set_state(v1::RWR);
  return response;
}

}  // namespace

absl::Status ReplicaRecoveryService::Check(const std::string& token, BlockId block, GenerationStamp recovery_id) const {
  const std::string pool = pool_();
  if (pool.empty()) return MakeError(ErrorKind::kRetriable, "this DataNode has not registered with the NameNode yet");
  return tokens_->Check(token, pool, block, recovery_id, TokenMode::kWrite);
}

void ReplicaRecoveryService::InitReplicaRecovery(api::CallContext context, v1::InitReplicaRecoveryRequest request,
                                                 api::Done<v1::InitReplicaRecoveryResponse> done) {
  static_cast<void>(context);
  const BlockId block(request.block().id());
  const GenerationStamp recovery_id(request.recovery_id());
  if (absl::Status allowed = Check(request.token(), block, recovery_id); !allowed.ok()) return done(std::move(allowed));
  absl::StatusOr<Executor*> disk = store_->DiskOf(block);
  const bool absent = KindOf(disk.status()) == ErrorKind::kReplicaNotFound && !store_->Describe(block);
  if (absent) {
    // "I have none" is worth something only from the storage that was to have it.
    if (request.storage_uuid().empty()) return done(None(""));
    disk = store_->DiskOfStorage(request.storage_uuid());
    if (disk.ok()) {
      return (*disk)->Post([store = store_, block, storage_uuid = request.storage_uuid(), done = std::move(done)]() mutable {
        const absl::StatusOr<bool> quarantined = store->HasQuarantined(block, storage_uuid);
        if (!quarantined.ok()) return done(quarantined.status());
        done(*quarantined ? PutAside(block, std::move(storage_uuid)) : None(std::move(storage_uuid)));
      });
    }
  }
  if (!disk.ok()) return done(disk.status());
  (*disk)->Post([store = store_, block, recovery_id, storage_uuid = request.storage_uuid(), done = std::move(done)]() mutable {
    const absl::StatusOr<ReplicaDescription> replica = store->InitReplicaRecovery(block, recovery_id);
    if (replica.ok()) return done(ToResponse(*replica));
    if (KindOf(replica.status()) == ErrorKind::kReplicaNotFound && !store->Describe(block)) {  // Dropped meanwhile.
      return done(None(std::move(storage_uuid)));
    }
    done(replica.status());
  });
}

void ReplicaRecoveryService::UpdateReplicaUnderRecovery(api::CallContext context, v1::UpdateReplicaUnderRecoveryRequest request,
                                                        api::Done<v1::UpdateReplicaUnderRecoveryResponse> done) {
  static_cast<void>(context);
  const BlockId block(request.block().id());
  const GenerationStamp recovery_id(request.recovery_id());
  if (absl::Status allowed = Check(request.token(), block, recovery_id); !allowed.ok()) return done(std::move(allowed));
  const absl::StatusOr<Executor*> disk = store_->DiskOf(block);
  if (!disk.ok()) return done(disk.status());
  (*disk)->Post([store = store_, block, recovery_id, length = request.new_length_bytes(), done = std::move(done)]() mutable {
    absl::StatusOr<std::string> updated = store->UpdateReplicaUnderRecovery(block, recovery_id, length);
    if (!updated.ok()) return done(updated.status());
    v1::UpdateReplicaUnderRecoveryResponse response;
    response.set_storage_uuid(*std::move(updated));
    done(std::move(response));
  });
}

}  // namespace cairn::datanode
