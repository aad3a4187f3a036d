// Replicas that a new pipeline takes over, that are opened again for an append, and that a block recovery brings into step.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "datanode/storage/file_block_store.h"
#include "datanode/storage/replica_load.h"
#include "datanode/storage/replica_refusals.h"

namespace cairn::datanode {
namespace {

absl::Status Unspoken(BlockId id, const ReplicaFile& file, uint64_t length) {
  return MakeError(ErrorKind::kChecksum,
                   fmt::format("block {}: the newest slot of {} does not speak of its {} bytes", id.value(), file.path(), length));
}

}  // namespace

absl::StatusOr<std::shared_ptr<FileReplicaWriter>> FileBlockStore::Recover(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp,
                                                                           uint64_t min_bytes, uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const Found found, FindToChange(id));
  const bool accept_older = AcceptsOlderStamps();
  Volume* volume = found.volume;
  auto link = std::make_shared<WriterLink>();
  std::shared_ptr<WriterLink> before;
  FileReplicaWriter::Start start{
      .id = id, .stamp = {}, .state = ReplicaState::kRbw, .received = 0, .partial_checksum = 0, .expected_bytes = 0};
  {
    MutexLock lock(volume->shard().mu);
    const auto at = volume->shard().replicas.find(id);
    if (at == volume->shard().replicas.end()) return ReplicaNotFound(id);
    ReplicaRecord& record = at->second;
    const bool writable = record.state() == ReplicaState::kRbw || (record.state() == ReplicaState::kRwr && record.sure());
    if (!writable || record.open() == nullptr) {
      return MakeError(ErrorKind::kReplicaNotFound, fmt::format("block {}: our replica is not being written (state {}, {})", id.value(),
                                                                static_cast<int>(record.state()), record.sure() ? "sure" : "not sure"));
    }
    if (record.corrupt()) return MakeError(ErrorKind::kChecksum, fmt::format("block {}: our replica is corrupt", id.value()));
    if ((record.stamp() < stamp && !accept_older) || record.stamp() > new_stamp) {
      return StaleReplica(id, record.stamp(), stamp, fmt::format(" to {}", new_stamp.value()));
    }
    if (record.length() < min_bytes || record.length() > max_bytes) {
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("block {}: our replica has {} bytes, asked for {} to {}", id.value(),
                                                                record.length(), min_bytes, max_bytes));
    }
    before = std::exchange(record.open()->writer, link);
    if (before != nullptr) before->Revoke();
    record.set_state(ReplicaState::kRbw);
    start.stamp = record.stamp();
    start.received = record.length();
    start.partial_checksum = record.open()->partial_checksum;
  }
  if (before != nullptr) before->Stop();
  absl::StatusOr<std::unique_ptr<ReplicaFile>> file =
      ReplicaFile::Open(env_->files(), volume->PathOf(id), LocalFileSystem::OpenMode::kReadWrite, boot_id_);
  RETURN_IF_ERROR(file.status());
  auto writer = std::make_shared<FileReplicaWriter>(volume, &gate_, *std::move(file), link, start);
  RETURN_IF_ERROR(writer->ChangeStamp(new_stamp));
  return writer;
}

absl::StatusOr<std::shared_ptr<ReplicaWriter>> FileBlockStore::RecoverRbw(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp,
                                                                          uint64_t min_bytes, uint64_t max_bytes) {
  ASSIGN_OR_RETURN(std::shared_ptr<FileReplicaWriter> writer, Recover(id, stamp, new_stamp, min_bytes, max_bytes));
  return std::shared_ptr<ReplicaWriter>(std::move(writer));
}

absl::Status FileBlockStore::RecoverClose(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp, uint64_t length, bool sync) {
  ASSIGN_OR_RETURN(const Found found, FindToChange(id));
  if (found.description.state != ReplicaState::kFinalized) {
    ASSIGN_OR_RETURN(const std::shared_ptr<FileReplicaWriter> writer, Recover(id, stamp, new_stamp, length, length));
    return writer->Finalize(length, sync);
  }
  if ((found.description.stamp < stamp && !AcceptsOlderStamps()) || found.description.stamp > new_stamp) {
    return StaleReplica(id, found.description.stamp, stamp, fmt::format(" to {}", new_stamp.value()));
  }
  if (found.description.length != length) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("block {}: our finalized replica has {} bytes, asked to close at {}",
                                                              id.value(), found.description.length, length));
  }
  return RestampFinalized(found, new_stamp);
}

absl::Status FileBlockStore::RestampFinalized(const Found& found, GenerationStamp new_stamp) {
  const BlockId id = found.description.id;
  Volume* volume = found.volume;
  ASSIGN_OR_RETURN(const std::unique_ptr<ReplicaFile> file,
                   ReplicaFile::Open(env_->files(), volume->PathOf(id), LocalFileSystem::OpenMode::kReadWrite, boot_id_));
  const std::vector<ReplicaSlot> slots = file->ValidSlots();
  if (slots.empty() || slots.front().length != found.description.length) {
    return MakeError(ErrorKind::kChecksum, fmt::format("block {}: the slots of {} do not speak of it", id.value(), file->path()));
  }
  ReplicaFile::SlotContent content{.stamp = new_stamp,
                                   .length = found.description.length,
                                   .state = ReplicaState::kFinalized,
                                   .flags = 0,
                                   .partial_checksum = slots.front().partial_checksum};
  absl::Status done = file->WriteDurableSlot(content);
  if (done.ok()) done = file->Sync();
  if (done.ok()) done = volume->SyncDirectoryOf(id);
  content.flags = kSlotSynced;
  if (done.ok()) done = file->WriteProgressSlot(content);
  if (!done.ok()) {
    volume->Fail(done);
    return done;
  }
  MutexLock lock(volume->shard().mu);
  const auto at = volume->shard().replicas.find(id);
  if (at == volume->shard().replicas.end() || at->second.stamp() != found.description.stamp) return ReplicaNotFound(id);
  at->second.set_stamp(new_stamp);
  volume->events().Append(volume->EventOf(v1::STAMP_CHANGED, id, at->second));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ReplicaWriter>> FileBlockStore::ReopenForAppend(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp,
                                                                               uint64_t length, bool recovery) {
  ASSIGN_OR_RETURN(const Found found, FindToChange(id));
  const ReplicaDescription& ours = found.description;
  if (ours.state != ReplicaState::kFinalized) {
    if (recovery) return RecoverRbw(id, stamp, new_stamp, length, length);
    return MakeError(ErrorKind::kReplicaNotFound, fmt::format("block {}: our replica is not finalized (state {}): no append to it",
                                                              id.value(), static_cast<int>(ours.state)));
  }
  if (ours.corrupt) return MakeError(ErrorKind::kChecksum, fmt::format("block {}: our replica is corrupt", id.value()));
  const bool too_old = ours.stamp < stamp && !AcceptsOlderStamps();
  if (too_old || ours.stamp > new_stamp || (!recovery && ours.stamp > stamp)) {
    return StaleReplica(id, ours.stamp, stamp, recovery ? fmt::format(" to {}", new_stamp.value()) : "");
  }
  if (ours.length != length) {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("block {}: our finalized replica has {} bytes, asked to append at {}", id.value(), ours.length, length));
  }
  Volume* volume = found.volume;
  ASSIGN_OR_RETURN(std::unique_ptr<ReplicaFile> file,
                   ReplicaFile::Open(env_->files(), volume->PathOf(id), LocalFileSystem::OpenMode::kReadWrite, boot_id_));
  const std::vector<ReplicaSlot> slots = file->ValidSlots();
  if (slots.empty() || slots.front().length != length) return MarkCorrupt(found, "its slots do not speak of it");
  if (length >= file->header().capacity) {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("block {}: our replica is full at {} bytes", id.value(), file->header().capacity));
  }
  // Its last bytes are proved while nobody has continued their checksum, which would bless what rotted.
  const uint32_t partial_checksum = slots.front().partial_checksum;
  ASSIGN_OR_RETURN(const bool verifies, VerifyPartialChunk(*file, length, partial_checksum));
  if (!verifies) return MarkCorrupt(found, "its last partial chunk does not match its checksum");
  absl::Status done = file->WriteDurableSlot(
      {.stamp = new_stamp, .length = length, .state = ReplicaState::kRbw, .flags = 0, .partial_checksum = partial_checksum});
  if (done.ok()) done = file->Sync();
  if (done.ok()) done = volume->SyncDirectoryOf(id);
  if (!done.ok()) {
    volume->Fail(done);
    return done;
  }
  auto link = std::make_shared<WriterLink>();
  auto open = std::make_unique<OpenReplica>();
  open->visible_length = length;
  open->partial_checksum = partial_checksum;
  open->writer = link;
  {
    MutexLock lock(volume->shard().mu);
    const auto at = volume->shard().replicas.find(id);
    if (volume->failed() || at == volume->shard().replicas.end() || at->second.stamp() != ours.stamp) return ReplicaNotFound(id);
    at->second.set_stamp(new_stamp);
    at->second.set_state(ReplicaState::kRbw);
    at->second.set_sure(true);
    at->second.set_open(std::move(open));
    volume->events().Append(volume->EventOf(v1::STAMP_CHANGED, id, at->second));
  }
  return std::shared_ptr<ReplicaWriter>(std::make_shared<FileReplicaWriter>(volume, &gate_, std::move(file), link,
                                                                            FileReplicaWriter::Start{.id = id,
                                                                                                     .stamp = new_stamp,
                                                                                                     .state = ReplicaState::kRbw,
                                                                                                     .received = length,
                                                                                                     .partial_checksum = partial_checksum,
                                                                                                     .expected_bytes = 0}));
}

absl::StatusOr<Executor*> FileBlockStore::DiskOfStorage(const std::string& storage_uuid) {
  Volume* volume = VolumeOf(storage_uuid);
  if (volume == nullptr) return MakeError(ErrorKind::kReplicaNotFound, fmt::format("no storage {} here", storage_uuid));
  if (volume->failed()) {
    return MakeError(ErrorKind::kReplicaNotFound, fmt::format("storage {}: volume {} has failed", storage_uuid, volume->directory()));
  }
  return volume->disk();
}

absl::StatusOr<bool> FileBlockStore::HasQuarantined(BlockId id, const std::string& storage_uuid) {
  Volume* volume = VolumeOf(storage_uuid);
  if (volume == nullptr) return MakeError(ErrorKind::kReplicaNotFound, fmt::format("no storage {} here", storage_uuid));
  return volume->env()->files().Exists(volume->QuarantinedPathOf(id));
}

absl::StatusOr<ReplicaDescription> FileBlockStore::InitReplicaRecovery(BlockId id, GenerationStamp recovery_id) {
  ASSIGN_OR_RETURN(const Found found, FindToChange(id));
  Volume* volume = found.volume;
  if (found.description.state == ReplicaState::kTemporary) return ReplicaNotFound(id);  // Of no pipeline: nobody was told of its bytes.
  uint32_t finalized_checksum = 0;
  if (found.description.state == ReplicaState::kFinalized && !found.description.corrupt) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ReplicaFile> file,
                     ReplicaFile::Open(env_->files(), volume->PathOf(id), LocalFileSystem::OpenMode::kRead, boot_id_));
    const std::vector<ReplicaSlot> slots = file->ValidSlots();
    if (slots.empty() || slots.front().length != found.description.length) return Unspoken(id, *file, found.description.length);
    finalized_checksum = slots.front().partial_checksum;
  }
  std::shared_ptr<WriterLink> writer;
  ReplicaDescription described = found.description;
  {
    MutexLock lock(volume->shard().mu);
    const auto at = volume->shard().replicas.find(id);
    if (at == volume->shard().replicas.end()) return ReplicaNotFound(id);
    ReplicaRecord& record = at->second;
    if (record.stamp() >= recovery_id) {
      return MakeError(ErrorKind::kStaleGeneration, fmt::format("block {}: our replica has stamp {}, recovery {} is older", id.value(),
                                                                record.stamp().value(), recovery_id.value()));
    }
    if (record.state() == ReplicaState::kRur) {
      if (record.open()->recovery_id >= recovery_id) {
        return MakeError(ErrorKind::kStaleGeneration, fmt::format("block {}: recovery {} has been here, {} is older or the same",
                                                                  id.value(), record.open()->recovery_id.value(), recovery_id.value()));
      }
    } else {
      if (record.open() == nullptr) {
        auto open = std::make_unique<OpenReplica>();
        open->visible_length = record.length();
        open->partial_checksum = finalized_checksum;
        record.set_open(std::move(open));
      }
      record.open()->state_before = record.state();
      writer = std::exchange(record.open()->writer, nullptr);
      if (writer != nullptr) writer->Revoke();
      record.set_state(ReplicaState::kRur);
    }
    record.open()->recovery_id = recovery_id;
    described.state = record.open()->state_before;
    described.length = record.length();
    described.stamp = record.stamp();
    described.visible_length = record.open()->visible_length;
  }
  if (writer != nullptr) writer->Stop();
  return described;
}

absl::StatusOr<std::string> FileBlockStore::UpdateReplicaUnderRecovery(BlockId id, GenerationStamp recovery_id, uint64_t length) {
  ASSIGN_OR_RETURN(const Found found, FindToChange(id));
  const ReplicaDescription& ours = found.description;
  Volume* volume = found.volume;
  if (ours.state == ReplicaState::kFinalized && ours.stamp == recovery_id && ours.length == length) return volume->storage_uuid();
  if (ours.state != ReplicaState::kRur || found.recovery_id != recovery_id) {
    return MakeError(ErrorKind::kReplicaNotFound,
                     fmt::format("block {}: our replica (state {}, stamp {}) is not under recovery {}", id.value(),
                                 static_cast<int>(ours.state), ours.stamp.value(), recovery_id.value()));
  }
  if (ours.corrupt) return MakeError(ErrorKind::kChecksum, fmt::format("block {}: our replica is corrupt", id.value()));
  if (length > ours.length) {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("block {}: our replica has {} bytes, cannot be recovered to {}", id.value(), ours.length, length));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ReplicaFile> file,
                   ReplicaFile::Open(env_->files(), volume->PathOf(id), LocalFileSystem::OpenMode::kReadWrite, boot_id_));
  const absl::StatusOr<uint32_t> partial_checksum = PartialChecksumAt(*file, ours.length, found.partial_checksum, length);
  if (KindOf(partial_checksum.status()) == ErrorKind::kChecksum) {
    return MarkCorrupt(found, std::string(partial_checksum.status().message()));
  }
  RETURN_IF_ERROR(partial_checksum.status());

  ReplicaFile::SlotContent content{
      .stamp = recovery_id, .length = length, .state = ReplicaState::kRur, .flags = 0, .partial_checksum = *partial_checksum};
  absl::Status done;
  // What a power cut left beyond the chunks that verify goes too: a later append must not find it again.
  if (length < ours.length || !ours.sure) done = file->Cut(content);
  content.state = ReplicaState::kFinalized;
  if (done.ok()) done = file->WriteDurableSlot(content);
  if (done.ok()) done = file->Sync();
  if (done.ok()) done = volume->SyncDirectoryOf(id);
  content.flags = kSlotSynced;
  if (done.ok()) done = file->WriteProgressSlot(content);
  if (!done.ok()) {
    if (KindOf(done) == ErrorKind::kDiskFull) {
      volume->NoteFull();
    } else {
      volume->Fail(done);
    }
    return Annotate(done, fmt::format("block {}", id.value()));
  }
  MutexLock lock(volume->shard().mu);
  const auto at = volume->shard().replicas.find(id);
  const bool still = at != volume->shard().replicas.end() && at->second.state() == ReplicaState::kRur && at->second.stamp() == ours.stamp &&
                     at->second.open()->recovery_id == recovery_id && !volume->failed();
  if (!still) return ReplicaNotFound(id);
  ReplicaRecord& record = at->second;
  const uint64_t used_before = record.used_bytes();
  record.set_stamp(recovery_id);
  record.set_length(length);
  record.set_state(ReplicaState::kFinalized);
  record.set_sure(true);
  record.set_open(nullptr);
  volume->Adjust(static_cast<int64_t>(record.used_bytes()) - static_cast<int64_t>(used_before));
  volume->events().Append(volume->EventOf(v1::REPLICA_FINALIZED, id, record));
  return volume->storage_uuid();
}

}  // namespace cairn::datanode
