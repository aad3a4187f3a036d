#include "datanode/storage/file_block_store.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "common/check.h"
#include "common/error.h"
#include "common/status.h"
#include "datanode/storage/replica_load.h"
#include "datanode/storage/replica_reader.h"
#include "datanode/storage/replica_refusals.h"
#include "datanode/storage/volume_choice.h"
#include "datanode/storage/volume_keeper.h"
#include "datanode/storage/volume_mover.h"

namespace cairn::datanode {
namespace {

absl::Status VolumeFailed(const Volume& volume) {
  Error error;
  error.kind = ErrorKind::kDiskFull;  // For the caller it is the same: another place is needed.
  error.message = fmt::format("volume {} has failed: {}", volume.directory(), volume.failure());
  error.reason = "VOLUME_FAILED";
  return MakeError(std::move(error));
}

absl::Status CorruptError(const Volume& volume, BlockId id, const std::string& why) {
  return MakeError(ErrorKind::kChecksum, fmt::format("block {}: {}: {}", id.value(), volume.PathOf(id), why));
}

}  // namespace

FileBlockStore::FileBlockStore(Env* env, EventLog* events, const BlockStoreOptions& options, std::vector<std::unique_ptr<Volume>> volumes,
                               VersionRecord identity)
    : env_(env),
      events_(events),
      max_block_bytes_(options.max_block_bytes),
      max_slow_excluded_(options.max_slow_excluded),
      boot_id_(env->boot_id()),
      gate_(options.max_replicas),
      options_(options),
      random_(env->NewRandom()),
      identity_(identity),
      written_(std::move(identity)) {
  for (std::unique_ptr<Volume>& volume : volumes) CAIRN_CHECK(volumes_.Add(std::move(volume)), "more data directories than volumes may be");
  for (Volume* volume : volumes_)
    if (!volume->failed()) StartScanner(volume);
}

FileBlockStore::~FileBlockStore() {
  closing_.store(true, std::memory_order_release);
  mover_.reset();
  keeper_.reset();
  std::vector<std::pair<Volume*, std::unique_ptr<Scanner>>> scanners;
  {
    MutexLock lock(change_mu_);
    scanners.swap(scanners_);
  }
}

Volume* FileBlockStore::VolumeOf(const std::string& storage_uuid) const {
  for (const auto& volume : volumes_) {
    if (volume->storage_uuid() == storage_uuid) return volume;
  }
  return nullptr;
}

// The newest copy, should an older one's file have been found on another volume after a crash: its deletion was under way. One that counts
// comes before one of a volume that has failed, and a whole one before one that is still on its way here.
std::optional<FileBlockStore::Found> FileBlockStore::FindOnce(BlockId id) const {
  std::optional<Found> best;
  std::tuple<bool, bool, GenerationStamp> best_rank;
  for (const auto& volume : volumes_) {
    MutexLock lock(volume->shard().mu);
    const auto found = volume->shard().replicas.find(id);
    if (found == volume->shard().replicas.end()) continue;
    const ReplicaRecord& record = found->second;
    const std::tuple<bool, bool, GenerationStamp> rank(!volume->failed(), record.reported(), record.stamp());
    if (best && rank <= best_rank) continue;
    const OpenReplica* open = record.open();
    Found result;
    result.volume = volume;
    result.description = {.id = id,
                          .stamp = record.stamp(),
                          .state = record.state(),
                          .length = record.length(),
                          .visible_length = open == nullptr ? record.length() : open->visible_length,
                          .corrupt = record.corrupt(),
                          .sure = record.sure(),
                          .storage_uuid = volume->storage_uuid()};
    if (open != nullptr) {
      result.partial_checksum = open->partial_checksum;
      result.recovery_id = open->recovery_id;
    }
    best = std::move(result);
    best_rank = rank;
  }
  return best;
}

// One that was moved to a volume that had been looked at, before the one that it came from was, is not missing.
std::optional<FileBlockStore::Found> FileBlockStore::Find(BlockId id) const {
  for (;;) {
    const uint64_t before = relocations_.load(std::memory_order_acquire);
    std::optional<Found> found = FindOnce(id);
    if (relocations_.load(std::memory_order_acquire) == before) return found;
  }
}

absl::StatusOr<FileBlockStore::Found> FileBlockStore::FindToChange(BlockId id) const {
  ASSIGN_OR_RETURN(Found found, FindHealthy(id));
  if (relocations_.load(std::memory_order_acquire) > 0 && !found.volume->disk()->IsCurrent()) {
    return MakeError(ErrorKind::kBusy, fmt::format("block {}: our replica has just come to {}", id.value(), found.volume->directory()));
  }
  return found;
}

absl::StatusOr<FileBlockStore::Found> FileBlockStore::FindHealthy(BlockId id) const {
  std::optional<Found> found = Find(id);
  if (!found) return ReplicaNotFound(id);
  if (found->volume->failed()) {
    return MakeError(ErrorKind::kReplicaNotFound, fmt::format("block {}: volume {} has failed", id.value(), found->volume->directory()));
  }
  return *std::move(found);
}

absl::StatusOr<BlockStore::Placement> FileBlockStore::Place(const CreateOptions& options) {
  if (gate_.Full()) {
    Error error;
    error.kind = ErrorKind::kDiskFull;
    error.message = fmt::format("this DataNode holds {} replicas, as many as it may", gate_.count());
    error.reason = "TOO_MANY_REPLICAS";
    error.limit = static_cast<int64_t>(gate_.max_replicas());
    error.key = "cairn.datanode.replicas.max";
    return MakeError(std::move(error));
  }
  const uint64_t needed = std::max<uint64_t>(options.expected_bytes, 1) + 2 * kHeaderPageBytes;
  std::vector<VolumeChoice> choices;
  for (Volume* volume : volumes_) {
    const uint64_t remaining = volume->remaining_bytes();
    if (remaining < needed || volume->leaving()) continue;
    choices.push_back({.volume = volume, .free_bytes = remaining, .fullness = volume->fullness(), .queued = volume->disk()->QueueDepth()});
  }
  if (choices.size() > 1 && max_slow_excluded_ > 0) {
    std::map<const Volume*, double> slow = SlowVolumes();
    for (VolumeChoice& choice : choices) choice.times_as_slow = slow[choice.volume];
    ExcludeSlow(&choices, max_slow_excluded_);
  }
  for (const VolumeChoice& choice : choices) {
    Volume* const volume = choice.volume;
    if (volume->storage_uuid() == options.storage_uuid) return Placement{.storage_uuid = volume->storage_uuid(), .disk = volume->disk()};
  }
  Volume* best = nullptr;
  {
    MutexLock lock(change_mu_);
    best = ChooseVolume(choices, &random_);
  }
  if (best == nullptr) {
    std::string figures;
    for (Volume* volume : volumes_)
      figures += fmt::format("; {}: {}", volume->directory(),
                             volume->failed() ? "failed" : fmt::format("{} bytes left", volume->remaining_bytes()));
    Error error;
    error.kind = ErrorKind::kDiskFull;
    error.message = fmt::format("no volume has room for {} bytes{}", needed, figures);
    error.reason = "NO_SPACE";
    error.key = "dfs.datanode.du.reserved";
    return MakeError(std::move(error));
  }
  return Placement{.storage_uuid = best->storage_uuid(), .disk = best->disk()};
}

absl::StatusOr<std::shared_ptr<ReplicaWriter>> FileBlockStore::CreateRbw(const Placement& placement, BlockId id, GenerationStamp stamp,
                                                                         const CreateOptions& options) {
  return Create(placement, id, stamp, ReplicaState::kRbw, options);
}

absl::StatusOr<std::shared_ptr<ReplicaWriter>> FileBlockStore::CreateTemporary(const Placement& placement, BlockId id,
                                                                               GenerationStamp stamp, const CreateOptions& options) {
  return Create(placement, id, stamp, ReplicaState::kTemporary, options);
}

absl::Status FileBlockStore::MakeRoomFor(Volume* volume, BlockId id, GenerationStamp stamp) {
  // What a volume that has failed holds does not count, and a block that is copied here to make up for it is welcome.
  if (const std::optional<Found> found = Find(id); found && !found->volume->failed()) {
    const ReplicaDescription& ours = found->description;
    if (ours.state == ReplicaState::kFinalized || ours.stamp >= stamp) {
      return MakeError(ErrorKind::kAlreadyExists,
                       fmt::format("block {}: a replica with stamp {} and {} bytes is here already, asked for stamp {}", id.value(),
                                   ours.stamp.value(), ours.length, stamp.value()));
    }
    if (const std::optional<Deleter::File> gone = Drop(found->volume, id, ours.stamp, nullptr, std::nullopt)) {
      found->volume->deleter().Add(*gone);
    }
  }
  Deleter::File waiting;
  switch (volume->deleter().TryClaim(id, &waiting)) {
    case Deleter::Claim::kNone: return absl::OkStatus();
    case Deleter::Claim::kTaken: return volume->Remove(waiting);
    case Deleter::Claim::kBeingRemoved: break;
  }
  return MakeError(ErrorKind::kBusy, fmt::format("block {}: an old replica is being deleted just now", id.value()));
}

absl::StatusOr<std::shared_ptr<ReplicaWriter>> FileBlockStore::Create(const Placement& placement, BlockId id, GenerationStamp stamp,
                                                                      ReplicaState state, const CreateOptions& options) {
  Volume* volume = VolumeOf(placement.storage_uuid);
  if (volume == nullptr) return MakeError(ErrorKind::kDiskFull, fmt::format("no storage {} here", placement.storage_uuid));
  if (volume->failed() || volume->disk() != placement.disk) return VolumeFailed(*volume);  // Or has come back since it was chosen.
  ReplicaHeader header{.checksum_type = options.checksum == ChecksumType::kNull ? ChecksumType::kCrc32c : options.checksum,
                       .bytes_per_checksum = options.bytes_per_checksum,
                       .capacity = options.capacity == 0 ? max_block_bytes_ : options.capacity,
                       .pool_id = Get().pool_id,
                       .id = id};
  if (header.pool_id.empty()) return MakeError(ErrorKind::kUnregistered, "this DataNode has not registered with a cluster yet");
  RETURN_IF_ERROR(CheckHeader(header));
  const std::optional<CreationGate::Pass> pass = gate_.TryEnter(id);
  if (!pass) return MakeError(ErrorKind::kAlreadyExists, fmt::format("block {} is being created just now", id.value()));
  RETURN_IF_ERROR(MakeRoomFor(volume, id, stamp));
  volume->MaybeRefreshSpace();

  const uint64_t used = UsedBytes(0, header.bytes_per_checksum);
  if (!volume->TryGrow(used, 0)) return volume->FullError(fmt::format("block {}", id.value()));
  const absl::Status directory = volume->MakeDirectoryOf(id);
  absl::StatusOr<std::unique_ptr<ReplicaFile>> file(directory.ok() ? absl::UnknownError("not made yet") : directory);
  if (directory.ok()) file = ReplicaFile::Create(env_->files(), volume->PathOf(id), header, stamp, state, boot_id_);
  if (!file.ok()) {
    volume->Adjust(-static_cast<int64_t>(used));
    const ErrorKind kind = KindOf(file.status());
    if (kind == ErrorKind::kAlreadyExists) return file.status();  // A file that the map does not know: the next start's scan judges it.
    if (kind == ErrorKind::kDiskFull) {
      volume->NoteFull();
      IgnoreError(env_->files().Remove(volume->PathOf(id)), "the next start's scan removes what is left");
    } else {
      volume->Fail(file.status());
    }
    return file.status();
  }

  auto link = std::make_shared<WriterLink>();
  const uint64_t reservation = std::min(options.expected_bytes, header.capacity);
  volume->Reserve(reservation);
  auto writer = std::make_shared<FileReplicaWriter>(
      volume, &gate_, *std::move(file), link,
      FileReplicaWriter::Start{
          .id = id, .stamp = stamp, .state = state, .received = 0, .partial_checksum = 0, .expected_bytes = reservation});
  ReplicaRecord record(stamp, state, 0, header.bytes_per_checksum);
  auto open = std::make_unique<OpenReplica>();
  open->writer = link;
  record.set_open(std::move(open));
  {
    MutexLock lock(volume->shard().mu);
    if (!volume->failed()) {
      if (record.reported()) volume->events().Append(volume->EventOf(v1::RBW_CREATED, id, record));
      volume->shard().replicas.insert_or_assign(id, std::move(record));
    } else {
      link->Revoke();
    }
  }
  if (link->revoked()) return VolumeFailed(*volume);
  volume->CountReplica(1);
  gate_.Count(1);
  return std::shared_ptr<ReplicaWriter>(std::move(writer));
}

absl::StatusOr<Executor*> FileBlockStore::DiskOf(BlockId id) {
  ASSIGN_OR_RETURN(const Found found, FindHealthy(id));
  return found.volume->disk();
}

absl::StatusOr<std::shared_ptr<ReplicaReader>> FileBlockStore::OpenForRead(BlockId id, GenerationStamp at_least) {
  const uint64_t before = relocations_.load(std::memory_order_acquire);
  absl::StatusOr<std::shared_ptr<ReplicaReader>> reader = OpenWhereItIs(id, at_least);
  // It may have been moved between the look and the opening.
  if (reader.ok() || relocations_.load(std::memory_order_acquire) == before) return reader;
  return OpenWhereItIs(id, at_least);
}

absl::StatusOr<std::shared_ptr<ReplicaReader>> FileBlockStore::OpenWhereItIs(BlockId id, GenerationStamp at_least) {
  ASSIGN_OR_RETURN(const Found found, FindHealthy(id));
  const ReplicaDescription& ours = found.description;
  if (ours.state == ReplicaState::kTemporary) return ReplicaNotFound(id);
  if (ours.stamp < at_least && !AcceptsOlderStamps()) return StaleReplica(id, ours.stamp, at_least, " or newer");
  if (ours.corrupt) return MakeError(ErrorKind::kChecksum, fmt::format("block {}: our replica is known to be corrupt", id.value()));
  return FileReplicaReader::Open(found.volume, boot_id_, ours, found.partial_checksum);
}

std::optional<ReplicaDescription> FileBlockStore::Describe(BlockId id) {
  std::optional<Found> found = Find(id);
  if (!found) return std::nullopt;
  return std::move(found->description);
}

std::optional<Deleter::File> FileBlockStore::Drop(Volume* volume, BlockId id, GenerationStamp stamp,
                                                  const absl::AnyInvocable<bool() const>* voided, std::optional<uint64_t> command_id) {
  std::shared_ptr<WriterLink> writer;
  std::optional<Deleter::File> dropped;
  {
    MutexLock lock(volume->shard().mu);
    const auto at = volume->shard().replicas.find(id);
    const bool exact = at != volume->shard().replicas.end() && at->second.stamp() == stamp && !volume->failed();
    if (!exact || (voided != nullptr && (*voided)())) {
      if (command_id) {
        v1::ReportEvent kept = volume->EventOf(v1::KEPT, id, ReplicaRecord(stamp, ReplicaState::kFinalized, 0, kMinBytesPerChecksum));
        kept.set_command_id(*command_id);
        volume->events().Append(std::move(kept));
      }
      return std::nullopt;
    }
    const ReplicaRecord& record = at->second;
    if (record.open() != nullptr && record.open()->writer != nullptr) {
      writer = record.open()->writer;
      writer->Revoke();
    }
    dropped = Deleter::File{.id = id, .stamp = stamp, .length = record.length(), .used_bytes = record.used_bytes()};
    v1::ReportEvent event = volume->EventOf(v1::DROPPED, id, record);
    if (command_id) event.set_command_id(*command_id);
    volume->events().Append(std::move(event));
    volume->shard().replicas.erase(at);
  }
  volume->CountReplica(-1);
  gate_.Count(-1);
  if (writer != nullptr) writer->Stop();
  return dropped;
}

void FileBlockStore::Invalidate(const std::string& storage_uuid, BlockId id, GenerationStamp stamp, uint64_t command_id,
                                const absl::AnyInvocable<bool() const>& voided) {
  Volume* volume = VolumeOf(storage_uuid);
  if (volume == nullptr) {
    v1::ReportEvent kept;
    kept.set_type(v1::KEPT);
    kept.set_storage_uuid(storage_uuid);
    kept.mutable_replica()->set_block_id(id.value());
    kept.mutable_replica()->set_generation_stamp(stamp.value());
    kept.set_command_id(command_id);
    events_->Append(std::move(kept));
    return;
  }
  const std::optional<Deleter::File> dropped = Drop(volume, id, stamp, &voided, command_id);
  if (dropped) volume->deleter().Add(*dropped);
}

absl::Status FileBlockStore::Verify(BlockId id, GenerationStamp stamp) {
  ASSIGN_OR_RETURN(const std::optional<Fault> fault, FindFault(id, stamp));
  return fault ? MarkCorrupt(fault->found, fault->why) : absl::OkStatus();
}

absl::Status FileBlockStore::VerifyFromScanner(BlockId id, GenerationStamp stamp) {
  ASSIGN_OR_RETURN(std::optional<Fault> fault, FindFault(id, stamp));
  if (!fault) return absl::OkStatus();
  absl::Status corrupt = CorruptError(*fault->found.volume, id, fault->why);
  Executor* const disk = fault->found.volume->disk();
  disk->Post([this, fault = *std::move(fault)] { IgnoreError(MarkCorrupt(fault.found, fault.why), "the scanner has been told"); });
  return corrupt;
}

absl::StatusOr<std::optional<FileBlockStore::Fault>> FileBlockStore::FindFault(BlockId id, GenerationStamp stamp) {
  ASSIGN_OR_RETURN(const Found found, FindHealthy(id));
  const ReplicaDescription& ours = found.description;
  if (ours.stamp != stamp) return StaleReplica(id, ours.stamp, stamp, "");
  // One that is being written is looked at when a node downstream found that what came through here was bad.
  const bool finalized = ours.state == ReplicaState::kFinalized;
  if (!finalized && ours.state != ReplicaState::kRbw) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("block {} is neither finalized nor being written", id.value()));
  }
  if (ours.corrupt) return MakeError(ErrorKind::kChecksum, fmt::format("block {} is known to be corrupt", id.value()));
  absl::StatusOr<std::string> wrong = WhatIsWrong(found);
  if (wrong.ok() && wrong->empty()) return std::nullopt;
  // What may have been a moment's trouble is looked at twice, and a replica is not blamed for its disk.
  wrong = WhatIsWrong(found);
  if (wrong.ok() && wrong->empty()) return std::nullopt;
  const std::optional<Found> now = Find(id);
  if (!now || now->volume != found.volume || now->description.stamp != ours.stamp || now->description.state != ours.state) {
    return ReplicaNotFound(id);  // Deleted or changed meanwhile.
  }
  if (!wrong.ok()) {
    if (const absl::Status probed = found.volume->Probe(); !probed.ok()) {
      found.volume->Fail(Annotate(probed, fmt::format("after a replica could not be read: {}", std::string(wrong.status().message()))));
      return Annotate(wrong.status(), fmt::format("block {}", id.value()));
    }
    return Fault{found, std::string(wrong.status().message())};
  }
  return Fault{found, *std::move(wrong)};
}

// Empty if nothing is. An error: it could not be read, and that may be over soon, or be all of its disk.
absl::StatusOr<std::string> FileBlockStore::WhatIsWrong(const Found& found) {
  const ReplicaDescription& ours = found.description;
  const bool finalized = ours.state == ReplicaState::kFinalized;
  absl::StatusOr<std::unique_ptr<ReplicaFile>> file =
      ReplicaFile::Open(env_->files(), found.volume->PathOf(ours.id), LocalFileSystem::OpenMode::kRead, boot_id_);
  if (KindOf(file.status()) == ErrorKind::kCorruptMetadata) return std::string(file.status().message());
  RETURN_IF_ERROR(file.status());
  const std::vector<ReplicaSlot> slots = (*file)->ValidSlots();
  if (slots.empty() || (finalized && slots.front().length != ours.length)) return std::string("its slots do not speak of it");
  const uint32_t partial_checksum = finalized ? slots.front().partial_checksum : found.partial_checksum;
  const uint64_t whole = ours.length - ours.length % (*file)->header().bytes_per_checksum;
  ASSIGN_OR_RETURN(const uint64_t verified, VerifyWholeChunks(**file, 0, whole));
  if (verified != whole) return fmt::format("the chunk at byte {} does not match its checksum", verified);
  ASSIGN_OR_RETURN(const bool partial, VerifyPartialChunk(**file, ours.length, partial_checksum));
  return std::string(partial ? "" : "its last partial chunk does not match its checksum");
}

absl::Status FileBlockStore::MarkCorrupt(const Found& found, const std::string& why) {
  const BlockId id = found.description.id;
  Volume* volume = found.volume;
  const absl::Status corrupt = CorruptError(*volume, id, why);
  // One that is being written loses its writer first, which would go on with slots that know nothing of the flag.
  std::shared_ptr<WriterLink> writer;
  {
    MutexLock lock(volume->shard().mu);
    const auto at = volume->shard().replicas.find(id);
    // Deleted, appended to or recovered since it was read: what is there now nobody has judged.
    const bool same = at != volume->shard().replicas.end() && at->second.stamp() == found.description.stamp &&
                      at->second.state() == found.description.state && !at->second.corrupt() && !volume->failed();
    if (!same) return corrupt;
    if (at->second.open() != nullptr) writer = at->second.open()->writer;
    if (writer != nullptr) writer->Revoke();
  }
  if (writer != nullptr) writer->Stop();
  // A file whose header is gone takes no flag; the next start quarantines it.
  absl::StatusOr<std::unique_ptr<ReplicaFile>> file =
      ReplicaFile::Open(env_->files(), volume->PathOf(id), LocalFileSystem::OpenMode::kReadWrite, boot_id_);
  if (file.ok()) {
    const std::vector<ReplicaSlot> slots = (*file)->ValidSlots();
    absl::Status flagged = (*file)->WriteDurableSlot({.stamp = found.description.stamp,
                                                      .length = found.description.length,
                                                      .state = found.description.state,
                                                      .flags = kSlotCorrupt,
                                                      .partial_checksum = slots.empty() ? 0 : slots.front().partial_checksum});
    if (flagged.ok()) flagged = (*file)->Sync();
    if (!flagged.ok()) {
      volume->Fail(flagged);
      return corrupt;
    }
  }
  MutexLock lock(volume->shard().mu);
  const auto at = volume->shard().replicas.find(id);
  if (at == volume->shard().replicas.end() || at->second.stamp() != found.description.stamp) return corrupt;
  at->second.set_corrupt(true);
  volume->events().Append(volume->EventOf(v1::CORRUPT, id, at->second));
  return corrupt;
}

std::vector<v1::StorageStatistics> FileBlockStore::Statistics() {
  std::vector<v1::StorageStatistics> all;
  for (const auto& volume : volumes_) {
    v1::StorageStatistics statistics = volume->Statistics();
    if (gate_.Full()) statistics.set_remaining_bytes(0);
    all.push_back(std::move(statistics));
  }
  MutexLock lock(change_mu_);
  for (const auto& [volume, scanner] : scanners_) {
    const auto found = std::find_if(all.begin(), all.end(), [uuid = volume->storage_uuid()](const v1::StorageStatistics& statistics) {
      return statistics.storage_uuid() == uuid;
    });
    if (found == all.end() || volume->retired()) continue;
    found->set_scanned_replicas(scanner->replicas());
    found->set_scanned_bytes(scanner->bytes());
    found->set_scan_errors(scanner->errors());
    const std::optional<absl::Duration> ended = scanner->since_last_round();
    found->set_last_scan_ms(ended ? absl::ToInt64Milliseconds(*ended) : -1);
  }
  return all;
}

uint64_t FileBlockStore::pending_deletion_blocks() const {
  uint64_t sum = 0;
  for (const auto& volume : volumes_) sum += volume->deleter().pending_blocks();
  return sum;
}

std::map<const Volume*, double> FileBlockStore::SlowVolumes() const {
  const SteadyTime now = env_->clock().Now();
  std::vector<Volume*> volumes;
  std::vector<DiskLatency::Figures> writes;
  std::vector<DiskLatency::Figures> syncs;
  for (Volume* volume : volumes_) {
    if (volume->failed()) continue;
    volumes.push_back(volume);
    writes.push_back(volume->write_latency().Get(now));
    syncs.push_back(volume->sync_latency().Get(now));
  }
  const std::vector<double> slow_writes = HowSlow(writes);
  const std::vector<double> slow_syncs = HowSlow(syncs);
  std::map<const Volume*, double> slow;
  for (size_t i = 0; i < volumes.size(); ++i) slow[volumes[i]] = std::max(slow_writes[i], slow_syncs[i]);
  return slow;
}

std::vector<BlockStore::DiskSpeed> FileBlockStore::disk_speeds() const {
  const SteadyTime now = env_->clock().Now();
  const std::map<const Volume*, double> slow = SlowVolumes();
  std::vector<DiskSpeed> speeds;
  for (Volume* volume : volumes_) {
    const auto judged = slow.find(volume);
    if (judged == slow.end()) continue;
    speeds.push_back({.directory = volume->directory(),
                      .write = volume->write_latency().Get(now).average,
                      .sync = volume->sync_latency().Get(now).average,
                      .slow = judged->second > 0});
  }
  return speeds;
}

uint64_t FileBlockStore::deletion_backlog() const {
  std::optional<uint64_t> shortest;
  uint64_t working = 0;
  for (Volume* volume : volumes_) {
    if (volume->failed()) continue;
    const uint64_t pending = volume->deleter().pending_blocks();
    if (pending == 0 && volume->replicas() == 0) continue;  // A new disk: there is nothing that it could be told to delete.
    ++working;
    shortest = std::min(shortest.value_or(pending), pending);
  }
  return shortest.value_or(0) * working;
}

uint64_t FileBlockStore::pending_deletion_bytes() const {
  uint64_t sum = 0;
  for (const auto& volume : volumes_) sum += volume->deleter().pending_bytes();
  return sum;
}

absl::Duration FileBlockStore::oldest_pending_deletion() const {
  absl::Duration oldest = absl::ZeroDuration();
  for (const auto& volume : volumes_) oldest = std::max(oldest, volume->deleter().oldest_age());
  return oldest;
}

BlockStore::DiskQueue FileBlockStore::disk_queue() const {
  DiskQueue all;
  for (const auto& volume : volumes_) {
    all.depth += volume->disk()->QueueDepth();
    all.oldest_age = std::max(all.oldest_age, volume->disk()->OldestAge());
  }
  return all;
}

}  // namespace cairn::datanode
