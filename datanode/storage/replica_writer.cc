#include "datanode/storage/replica_writer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "common/status.h"
#include "datanode/storage/packet_checksums.h"

namespace cairn::datanode {

FileReplicaWriter::FileReplicaWriter(Volume* volume, CreationGate* gate, std::unique_ptr<ReplicaFile> file,
                                     std::shared_ptr<WriterLink> link, const Start& start)
    : volume_(volume),
      gate_(gate),
      file_(std::move(file)),
      link_(std::move(link)),
      id_(start.id),
      received_(start.received),
      stamp_(start.stamp),
      state_(start.state),
      partial_checksum_(start.partial_checksum),
      reservation_(start.expected_bytes) {}

FileReplicaWriter::~FileReplicaWriter() {
  ReleaseReservation(0);
  if (finalized_ || state_ != ReplicaState::kTemporary) return;
  // A transfer that came to nothing. Nobody was told of it, and a next try must find the way free.
  Deleter::File gone;
  {
    MutexLock lock(volume_->shard().mu);
    const ReplicaRecord* record = FindLocked();
    if (record == nullptr) return;
    gone = {.id = id_, .stamp = record->stamp(), .length = record->length(), .used_bytes = record->used_bytes()};
    volume_->shard().replicas.erase(id_);
  }
  volume_->CountReplica(-1);
  gate_->Count(-1);
  volume_->deleter().Add(gone);
}

ReplicaRecord* FileReplicaWriter::FindLocked() const {
  if (link_->revoked()) return nullptr;
  const auto found = volume_->shard().replicas.find(id_);
  if (found == volume_->shard().replicas.end()) return nullptr;
  const OpenReplica* open = found->second.open();
  return open != nullptr && open->writer == link_ ? &found->second : nullptr;
}

ReplicaDescription FileReplicaWriter::Describe() const {
  MutexLock lock(volume_->shard().mu);
  ReplicaDescription description;
  description.id = id_;
  description.storage_uuid = volume_->storage_uuid();
  if (const ReplicaRecord* record = FindLocked()) {
    description.stamp = record->stamp();
    description.state = record->state();
    description.length = record->length();
    description.visible_length = record->open()->visible_length;
    description.corrupt = record->corrupt();
    description.sure = record->sure();
  }
  return description;
}

absl::Status FileReplicaWriter::CheckUsable() const {
  if (finalized_) return MakeError(ErrorKind::kInvalidArgument, fmt::format("block {} is finalized", id_.value()));
  if (link_->revoked()) {
    return MakeError(ErrorKind::kCancelled,
                     fmt::format("block {} at stamp {} is no longer this writer's: recovered, deleted, or its volume failed", id_.value(),
                                 stamp_.value()));
  }
  return absl::OkStatus();
}

absl::Status FileReplicaWriter::DiskTrouble(absl::Status status) {
  if (status.ok()) return status;
  if (KindOf(status) == ErrorKind::kDiskFull) {
    volume_->NoteFull();
  } else {
    volume_->Fail(status);
  }
  return Annotate(status, fmt::format("block {}", id_.value()));
}

void FileReplicaWriter::ReleaseReservation(uint64_t down_to) {
  if (reservation_ <= down_to) return;
  volume_->Unreserve(reservation_ - down_to);
  reservation_ = down_to;
}

absl::Status FileReplicaWriter::Write(const PacketToWrite& packet) {
  RETURN_IF_ERROR(CheckUsable());
  const uint64_t end = packet.offset + packet.data.size();
  const uint64_t before = received();
  if (packet.offset > before || end < packet.offset) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("block {}: packet [{}, {}) leaves a gap, {} bytes were received", id_.value(),
                                                              packet.offset, end, before));
  }
  if (end > capacity()) {
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.message =
        fmt::format("block {}: packet [{}, {}) exceeds the replica's capacity of {} bytes", id_.value(), packet.offset, end, capacity());
    error.reason = "BLOCK_TOO_LARGE";
    error.block_id = id_.value();
    error.limit = static_cast<int64_t>(capacity());
    error.key = "cairn.block.max-size";
    return MakeError(std::move(error));
  }
  if (end > before) RETURN_IF_ERROR(Store(packet));
  return packet.sync ? Sync() : absl::OkStatus();
}

absl::Status FileReplicaWriter::Store(const PacketToWrite& packet) {
  const uint32_t chunk = bytes_per_checksum();
  const uint64_t before = received();
  const uint64_t end = packet.offset + packet.data.size();
  const auto read_partial = [this, before, chunk]() -> absl::StatusOr<std::string> {
    std::string bytes(before % chunk, '\0');
    ASSIGN_OR_RETURN(const size_t got, file_->ReadData(before - before % chunk, bytes));
    bytes.resize(got);
    return bytes;
  };
  absl::StatusOr<ChecksumPlan> plan = PlanChecksums(checksum_type(), chunk, {.received = before, .partial_checksum = partial_checksum_},
                                                    packet.offset, packet.data, packet.checksums, packet.verify, read_partial);
  if (!plan.ok()) return Annotate(plan.status(), fmt::format("block {}", id_.value()));

  const uint64_t growth = UsedBytes(end, chunk) - UsedBytes(before, chunk);
  if (!volume_->TryGrow(growth, reservation_)) return volume_->FullError(fmt::format("block {} at byte {}", id_.value(), before));
  ReleaseReservation(reservation_ > growth ? reservation_ - growth : 0);

  // Data, then its checksums, then the slot that vouches for a partial chunk: whatever a crash leaves of them verifies only if all is
  // there.
  absl::Status stored =
      Timed(&volume_->write_latency(), [&] { return file_->WriteData(before, packet.data.subspan(before - packet.offset)); });
  if (stored.ok() && !plan->entries.empty()) stored = file_->WriteChecksums(plan->first_chunk, plan->entries);
  if (stored.ok() && end % chunk != 0) {
    stored =
        file_->WriteProgressSlot({.stamp = stamp_, .length = end, .state = state_, .flags = 0, .partial_checksum = plan->partial_checksum});
  }
  if (!stored.ok()) {
    volume_->Adjust(-static_cast<int64_t>(growth));
    return DiskTrouble(stored);
  }
  {
    MutexLock lock(volume_->shard().mu);
    ReplicaRecord* record = FindLocked();
    if (record == nullptr) {
      // Dropped meanwhile: its deleter gives back what the record said.
      volume_->Adjust(-static_cast<int64_t>(growth));
    } else {
      record->set_length(end);
      record->open()->partial_checksum = plan->partial_checksum;
    }
  }
  RETURN_IF_ERROR(CheckUsable());
  partial_checksum_ = plan->partial_checksum;
  received_.store(end, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status FileReplicaWriter::SyncDirectoryOnce() {
  if (directory_synced_) return absl::OkStatus();
  RETURN_IF_ERROR(volume_->SyncDirectoryOf(id_));
  directory_synced_ = true;
  return absl::OkStatus();
}

absl::Status FileReplicaWriter::MakeDurable(ReplicaState state, uint8_t flags) {
  RETURN_IF_ERROR(file_->WriteDurableSlot(
      {.stamp = stamp_, .length = received(), .state = state, .flags = flags, .partial_checksum = partial_checksum_}));
  RETURN_IF_ERROR(SyncFile());
  return SyncDirectoryOnce();
}

absl::Status FileReplicaWriter::Timed(DiskLatency* latency, absl::FunctionRef<absl::Status()> work) {
  const Clock& clock = volume_->env()->clock();
  const SteadyTime begin = clock.Now();
  absl::Status done = work();
  const SteadyTime end = clock.Now();
  latency->Note(end - begin, end);
  volume_->NoteUse(end);
  return done;
}

absl::Status FileReplicaWriter::SyncFile() {
  return Timed(&volume_->sync_latency(), [this] { return file_->Sync(); });
}

absl::Status FileReplicaWriter::Sync() {
  RETURN_IF_ERROR(CheckUsable());
  RETURN_IF_ERROR(DiskTrouble(MakeDurable(state_, 0)));
  return CheckUsable();
}

void FileReplicaWriter::SetVisibleLength(uint64_t length) {
  MutexLock lock(volume_->shard().mu);
  ReplicaRecord* record = FindLocked();
  if (record == nullptr) return;
  OpenReplica* open = record->open();
  open->visible_length = std::max(open->visible_length, std::min(length, record->length()));
}

absl::Status FileReplicaWriter::Finalize(uint64_t length, bool sync) {
  RETURN_IF_ERROR(CheckUsable());
  if (length != received()) {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("block {}: asked to finalize at {} bytes, {} were received", id_.value(), length, received()));
  }
  // Armed, this is the mistake of acknowledging a close before it is on disk; tests show that they would find it.
  const bool skip_sync = !FaultPoint("datanode.finalize.skip_sync").ok();
  const ReplicaFile::SlotContent content{
      .stamp = stamp_, .length = length, .state = ReplicaState::kFinalized, .flags = 0, .partial_checksum = partial_checksum_};
  absl::Status done = file_->WriteDurableSlot(content);
  if (done.ok() && sync && !skip_sync) {
    done = SyncFile();
    if (done.ok()) done = SyncDirectoryOnce();
    if (done.ok()) done = FaultPoint("replica_file.before_synced_mark");
    // Unsynced: if it is lost, the replica is read once more after the next boot, nothing worse.
    ReplicaFile::SlotContent marked = content;
    marked.flags = kSlotSynced;
    if (done.ok()) done = file_->WriteProgressSlot(marked);
  }
  RETURN_IF_ERROR(DiskTrouble(done));
  {
    MutexLock lock(volume_->shard().mu);
    if (ReplicaRecord* record = FindLocked()) {
      record->set_state(ReplicaState::kFinalized);
      record->set_sure(true);
      record->set_open(nullptr);
      volume_->events().Append(volume_->EventOf(v1::REPLICA_FINALIZED, id_, *record));
      finalized_ = true;
    }
  }
  if (!finalized_) return CheckUsable();
  ReleaseReservation(0);
  return absl::OkStatus();
}

absl::Status FileReplicaWriter::ConvertToRbw() {
  RETURN_IF_ERROR(CheckUsable());
  if (state_ == ReplicaState::kRbw) return absl::OkStatus();
  RETURN_IF_ERROR(DiskTrouble(MakeDurable(ReplicaState::kRbw, 0)));
  MutexLock lock(volume_->shard().mu);
  ReplicaRecord* record = FindLocked();
  if (record == nullptr) return CheckUsable();
  state_ = ReplicaState::kRbw;
  record->set_state(ReplicaState::kRbw);
  volume_->events().Append(volume_->EventOf(v1::RBW_CREATED, id_, *record));
  return absl::OkStatus();
}

absl::Status FileReplicaWriter::ChangeStamp(GenerationStamp stamp) {
  RETURN_IF_ERROR(CheckUsable());
  const GenerationStamp before = std::exchange(stamp_, stamp);
  if (const absl::Status durable = MakeDurable(state_, 0); !durable.ok()) {
    stamp_ = before;
    return DiskTrouble(durable);
  }
  MutexLock lock(volume_->shard().mu);
  ReplicaRecord* record = FindLocked();
  if (record == nullptr) return CheckUsable();
  record->set_stamp(stamp);
  volume_->events().Append(volume_->EventOf(v1::STAMP_CHANGED, id_, *record));
  return absl::OkStatus();
}

}  // namespace cairn::datanode
