#include "datanode/storage/volume.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "common/log.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kInUse = absl::Milliseconds(50);  // After its last use a disk counts as busy.
constexpr double kNearlyFull = 0.9;                        // Then writers need the space more than the time.
constexpr absl::Duration kRefreshInterval = absl::Seconds(10);
// Less room than one packet: the volume says that it is full before a writer has to find out.
constexpr uint64_t kLeastRoom = 1 << 20;

uint64_t Less(uint64_t from, uint64_t what) { return from > what ? from - what : 0; }

// A volume whose own entry a power cut takes away would lose every replica in it.
absl::Status MakeDirectoriesDurably(LocalFileSystem& files, const std::string& path) {
  std::vector<std::string> parents;
  for (std::string made = path; made.size() > 1;) {
    const size_t slash = made.rfind('/');
    made = slash == std::string::npos ? "." : slash == 0 ? "/" : made.substr(0, slash);
    parents.push_back(made);
    ASSIGN_OR_RETURN(const bool exists, files.Exists(made));
    if (exists || made == ".") break;
  }
  RETURN_IF_ERROR(files.MakeDirectories(path));
  for (const std::string& parent : parents) RETURN_IF_ERROR(files.SyncDirectory(parent));
  return absl::OkStatus();
}

constexpr char kProbeName[] = "probe";

bool IsOurs(const std::string& name) {
  return name.starts_with(kProbeName) || name == "lost+found" || name.ends_with("lock") || name.ends_with("LOCK");
}

}  // namespace

Volume::Volume(Env* env, EventLog* events, VolumeOptions options)
    : env_(env),
      events_(events),
      options_(std::move(options)),
      directory_made_(65536),
      directory_durable_(65536),
      first_level_durable_(256),
      disk_(env->executors().NewExecutor(fmt::format("disk-{}", options_.index))) {
  deleter_ = std::make_unique<Deleter>(
      env, fmt::format("deleter-{}", options_.index), options_.deleter,
      [this](const Deleter::File& file) { IgnoreError(Remove(file), "the volume has failed, and says so"); },
      [this] {
        if (fullness() > kNearlyFull) return false;
        const int64_t now = absl::ToInt64Nanoseconds(env_->clock().Now().since_start());
        if (now - used_at_ns_.load(std::memory_order_relaxed) < absl::ToInt64Nanoseconds(kInUse)) return true;
        MutexLock lock(ending_mu_);
        return !ending_ && disk_->QueueDepth() > 0;
      });
}

// The disk executor ends before the deleter, since what it drops may still hand files over: then nobody may ask it how busy it is. Neither
// is reset here, which would clear its pointer while the tasks that end use it.
Volume::~Volume() {
  MutexLock lock(ending_mu_);
  ending_ = true;
}

absl::StatusOr<std::unique_ptr<Volume>> Volume::Open(Env* env, EventLog* events, VolumeOptions options, const VersionRecord& fresh) {
  std::unique_ptr<Volume> volume(new Volume(env, events, std::move(options)));
  RETURN_IF_ERROR(Annotate(volume->OpenDirectory(fresh), fmt::format("data directory {}", volume->directory())));
  return volume;
}

absl::Status Volume::OpenDirectory(const VersionRecord& fresh) {
  LocalFileSystem& files = env_->files();
  const std::string version_path = directory() + "/VERSION";
  ASSIGN_OR_RETURN(const bool exists, files.Exists(directory()));
  if (!exists) {
    if (!options_.format_empty) return MakeError(ErrorKind::kNotFound, "does not exist; is its disk mounted?");
    RETURN_IF_ERROR(MakeDirectoriesDurably(files, directory()));
  }
  ASSIGN_OR_RETURN(lock_, files.Lock(directory()));
  ASSIGN_OR_RETURN(const bool formatted, files.Exists(version_path));
  if (!formatted) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory()));
    const auto foreign = std::find_if(names.begin(), names.end(), [](const std::string& name) { return !IsOurs(name); });
    // A cut-off format leaves these two; they hold nothing before VERSION is there.
    const bool half_made = foreign != names.end() && (*foreign == "blocks" || *foreign == "recycle" || foreign->starts_with("VERSION"));
    if (foreign != names.end() && !half_made) {
      return MakeError(
          ErrorKind::kInvalidArgument,
          fmt::format("has no VERSION but holds \"{}\": not a volume of Cairn, and only an empty directory is made one", *foreign));
    }
    if (!options_.format_empty) {
      return MakeError(ErrorKind::kInvalidArgument, "is empty, and making new volumes is not allowed here; is its disk mounted?");
    }
    RETURN_IF_ERROR(Format(fresh));
  }
  ASSIGN_OR_RETURN(const std::string json, files.ReadWhole(version_path));
  ASSIGN_OR_RETURN(version_, DecodeVersion(json));
  storage_uuid_ = version_.storage_uuid;
  distrusted_.store(version_.distrust, std::memory_order_release);
  // Finds out now, and not at the first write, that the disk is read-only.
  RETURN_IF_ERROR(Annotate(WriteVersion(version_), "cannot be written"));
  RETURN_IF_ERROR(RemoveLeftoverProbes());
  return RefreshSpace();
}

absl::Status Volume::RemoveLeftoverProbes() {
  LocalFileSystem& files = env_->files();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory()));
  for (const std::string& name : names)
    if (name.starts_with(kProbeName)) RETURN_IF_ERROR(files.Remove(directory() + "/" + name));
  return absl::OkStatus();
}

absl::Status Volume::Format(const VersionRecord& fresh) {
  LocalFileSystem& files = env_->files();
  RETURN_IF_ERROR(files.MakeDirectories(directory() + "/blocks"));
  RETURN_IF_ERROR(files.MakeDirectories(directory() + "/recycle"));
  RETURN_IF_ERROR(files.SyncDirectory(directory()));
  return files.WriteWhole(directory() + "/VERSION", EncodeVersion(fresh));
}

absl::StatusOr<VersionRecord> Volume::ReadOwnVersion() {
  ASSIGN_OR_RETURN(const std::string json, env_->files().ReadWhole(directory() + "/VERSION"));
  ASSIGN_OR_RETURN(VersionRecord record, DecodeVersion(json));
  if (record.storage_uuid != storage_uuid_) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("{} holds storage {} now", directory(), record.storage_uuid));
  }
  return record;
}

absl::Status Volume::ChangeVersion(absl::FunctionRef<void(VersionRecord*)> change) {
  {
    MutexLock lock(version_mu_);
    while (writing_version_) version_written_.Wait(version_mu_);
    writing_version_ = true;
  }
  // Where the disk was mounted there may be an empty directory by now: with our VERSION in it, it would pass for the disk.
  absl::StatusOr<VersionRecord> record = ReadOwnVersion();
  absl::Status written = record.status();
  if (record.ok()) {
    change(&*record);
    written = env_->files().WriteWhole(directory() + "/VERSION", EncodeVersion(*record));
  }
  MutexLock lock(version_mu_);
  writing_version_ = false;
  version_written_.NotifyOne();
  return written;
}

absl::Status Volume::WriteVersion(VersionRecord record) {
  record.storage_uuid = storage_uuid_;
  return ChangeVersion([&](VersionRecord* written) {
    *written = std::move(record);
    written->distrust = distrusted();
  });
}

absl::Status Volume::SetDistrusted(bool distrusted) {
  if (distrusted) distrusted_.store(true, std::memory_order_release);
  RETURN_IF_ERROR(ChangeVersion([distrusted](VersionRecord* written) { written->distrust = distrusted; }));
  distrusted_.store(distrusted, std::memory_order_release);
  return absl::OkStatus();
}

std::string Volume::DirectoryOf(BlockId id) const { return fmt::format("{}/blocks/{}/{}", directory(), FirstLevel(id), SecondLevel(id)); }

std::string Volume::NameOf(BlockId id) { return fmt::format("blk_{}", id.value()); }

std::string Volume::PathOf(BlockId id) const { return fmt::format("{}/{}", DirectoryOf(id), NameOf(id)); }

absl::Status Volume::MakeDirectoryOf(BlockId id) {
  const size_t index = FirstLevel(id) << 8 | SecondLevel(id);
  if (directory_made_[index]) return absl::OkStatus();
  RETURN_IF_ERROR(env_->files().MakeDirectories(DirectoryOf(id)));
  directory_made_[index] = true;
  return absl::OkStatus();
}

absl::Status Volume::SyncDirectoryOf(BlockId id) {
  RETURN_IF_ERROR(FaultPoint("volume.before_directory_sync"));
  LocalFileSystem& files = env_->files();
  RETURN_IF_ERROR(files.SyncDirectory(DirectoryOf(id)));
  const size_t index = FirstLevel(id) << 8 | SecondLevel(id);
  if (!directory_durable_[index]) {
    RETURN_IF_ERROR(files.SyncDirectory(fmt::format("{}/blocks/{}", directory(), FirstLevel(id))));
    if (!first_level_durable_[FirstLevel(id)]) {
      RETURN_IF_ERROR(files.SyncDirectory(directory() + "/blocks"));
      first_level_durable_[FirstLevel(id)] = true;
    }
    directory_durable_[index] = true;
  }
  return absl::OkStatus();
}

void Volume::Fail(const absl::Status& why) {
  const auto writers = NoteFailure(std::string(why.message()));
  if (!writers) {
    // Or it had been retired while it was well, and what was still under way there fails now: nobody has marked it then.
    if (!distrusted()) IgnoreError(SetDistrusted(true), "it is not served, and remembers it");
    return;
  }
  log::Error("volume {} has failed, its replicas no longer count: {}", directory(), std::string(why.message()));
  for (const auto& writer : *writers) writer->Stop();
  WatchExecutorsEnd();
  IgnoreError(SetDistrusted(true), "before it may come back it is tried again");
}

void Volume::KeepAway(const std::string& why) {
  if (!NoteFailure(why)) return;  // There are no writers yet.
  log::Warning("volume {} is left out for now: {}", directory(), why);
  WatchExecutorsEnd();
}

void Volume::WatchExecutorsEnd() {
  MutexLock lock(ending_mu_);
  if (ending_ || std::exchange(end_watched_, true)) return;
  const auto ended = [this] { ended_executors_.fetch_add(1, std::memory_order_acq_rel); };
  disk_->Post(ended);
  deleter_->Post(ended);
}

std::vector<std::shared_ptr<WriterLink>> Volume::RevokeWriters() {
  std::vector<std::shared_ptr<WriterLink>> writers;
  for (const auto& [id, record] : shard_.replicas) {
    if (record.open() == nullptr || record.open()->writer == nullptr) continue;
    record.open()->writer->Revoke();
    writers.push_back(record.open()->writer);
  }
  return writers;
}

std::optional<std::vector<std::shared_ptr<WriterLink>>> Volume::NoteFailure(std::string why) {
  std::vector<std::shared_ptr<WriterLink>> writers;
  {
    MutexLock lock(shard_.mu);
    if (failed_.exchange(true, std::memory_order_acq_rel)) return std::nullopt;
    events_->AppendState(storage_uuid_, v1::FAILED);
    writers = RevokeWriters();
  }
  MutexLock lock(failure_mu_);
  failure_ = std::move(why);
  return writers;
}

absl::Status Volume::Probe() {
  LocalFileSystem& files = env_->files();
  // An unmounted disk leaves an empty directory that can be written very well.
  RETURN_IF_ERROR(ReadOwnVersion().status());
  // A name of its own: the scan, a verification and the keeper may all ask at once.
  const std::string path = fmt::format("{}/{}-{}", directory(), kProbeName, probes_.fetch_add(1, std::memory_order_relaxed));
  const std::string content = fmt::format("{}\n", absl::ToUnixNanos(env_->clock().WallNow()));
  RETURN_IF_ERROR(files.WriteWhole(path, content));
  ASSIGN_OR_RETURN(const std::string read, files.ReadWhole(path));
  RETURN_IF_ERROR(files.Remove(path));
  RETURN_IF_ERROR(files.List(directory() + "/blocks").status());
  if (read != content) return MakeError(ErrorKind::kChecksum, fmt::format("{} does not read as it was written", path));
  return absl::OkStatus();
}

void Volume::Retire(bool removed) {
  std::vector<std::shared_ptr<WriterLink>> writers;
  {
    MutexLock lock(shard_.mu);
    failed_.store(true, std::memory_order_release);
    retired_.store(true, std::memory_order_release);
    if (removed) removed_.store(true, std::memory_order_release);
    writers = RevokeWriters();
    shard_.replicas.clear();
    if (removed) events_->AppendState(storage_uuid_, v1::REMOVED);
  }
  for (const auto& writer : writers) writer->Stop();
  WatchExecutorsEnd();
  lock_.reset();
}

size_t Volume::CountWriters() {
  MutexLock lock(shard_.mu);
  size_t writers = 0;
  for (const auto& [id, record] : shard_.replicas)
    writers += record.open() != nullptr && record.open()->writer != nullptr && !record.open()->writer->revoked() ? 1 : 0;
  return writers;
}

double Volume::fullness() const {
  const uint64_t used = used_bytes();
  const uint64_t all = used + remaining_bytes();
  return all == 0 ? 1 : static_cast<double>(used) / static_cast<double>(all);
}

std::string Volume::failure() const {
  MutexLock lock(failure_mu_);
  return failure_;
}

bool Volume::TryGrow(uint64_t bytes, uint64_t own_reservation) {
  if (bytes > remaining_bytes() + own_reservation) return false;
  Adjust(static_cast<int64_t>(bytes));
  return true;
}

void Volume::NoteFull() { full_.store(true, std::memory_order_relaxed); }

absl::Status Volume::RefreshSpace() {
  ASSIGN_OR_RETURN(const LocalFileSystem::Space space, env_->files().SpaceOf(directory()));
  used_when_asked_.store(used_bytes(), std::memory_order_relaxed);
  capacity_.store(space.capacity_bytes, std::memory_order_relaxed);
  available_.store(space.available_bytes, std::memory_order_relaxed);
  if (space.available_bytes > kLeastRoom) full_.store(false, std::memory_order_relaxed);
  return absl::OkStatus();
}

void Volume::MaybeRefreshSpace() {
  const SteadyTime now = env_->clock().Now();
  if (now < next_refresh_) return;
  next_refresh_ = now + kRefreshInterval;
  if (const absl::Status refreshed = RefreshSpace(); !refreshed.ok()) Fail(Annotate(refreshed, "asking for its space"));
}

void Volume::RefreshSpaceSoon() {
  if (failed() || refresh_posted_.exchange(true, std::memory_order_acq_rel)) return;  // A disk that hangs collects no more of them.
  disk_->Post([this] {
    refresh_posted_.store(false, std::memory_order_release);
    if (!failed()) MaybeRefreshSpace();
  });
}

uint64_t Volume::remaining_bytes() const {
  if (failed() || full()) return 0;
  return Less(RoomBytes(), reserved_.load(std::memory_order_relaxed));
}

uint64_t Volume::RoomBytes() const {
  const uint64_t used = used_bytes();
  const uint64_t asked = used_when_asked_.load(std::memory_order_relaxed);
  const uint64_t capacity = capacity_.load(std::memory_order_relaxed);
  // What the file system had free, less what we wrote since, plus what we deleted.
  const uint64_t available = used >= asked ? Less(available_.load(std::memory_order_relaxed), used - asked)
                                           : available_.load(std::memory_order_relaxed) + (asked - used);
  // Others on this disk live in the reserve; only what they have not used of it is still held back.
  const uint64_t others = Less(capacity, available + used);
  const uint64_t held_back = Less(options_.reserved_bytes, others);
  const uint64_t share = Less(Less(capacity, options_.reserved_bytes), used);
  return std::min(share, Less(available, held_back));
}

absl::Status Volume::FullError(const std::string& what) const {
  Error error;
  error.kind = ErrorKind::kDiskFull;
  error.message =
      fmt::format("{}: {} has {} bytes left for replicas ({} used, {} reserved for writers, {} kept free for others)", what, directory(),
                  remaining_bytes(), used_bytes(), reserved_.load(std::memory_order_relaxed), options_.reserved_bytes);
  error.reason = "NO_SPACE";
  error.key = "dfs.datanode.du.reserved";
  error.limit = static_cast<int64_t>(options_.reserved_bytes);
  return MakeError(std::move(error));
}

v1::StorageStatistics Volume::Statistics() const {
  v1::StorageStatistics statistics;
  statistics.set_storage_uuid(storage_uuid_);
  statistics.set_state(failed() ? v1::FAILED : v1::HEALTHY);
  statistics.set_capacity_bytes(Less(capacity_.load(std::memory_order_relaxed), options_.reserved_bytes));
  statistics.set_used_bytes(used_bytes());
  statistics.set_remaining_bytes(leaving() ? 0 : remaining_bytes());
  statistics.set_replicas(replicas_.load(std::memory_order_relaxed));
  statistics.set_directory(directory());
  statistics.set_read_only(!failed() && remaining_bytes() < kLeastRoom);
  if (failed()) statistics.set_failure(failure());
  statistics.set_pending_deletion_blocks(deleter_->pending_blocks());
  statistics.set_pending_deletion_bytes(deleter_->pending_bytes());
  statistics.set_queue_depth(static_cast<uint32_t>(disk_->QueueDepth()));
  statistics.set_last_scan_ms(-1);
  return statistics;
}

absl::Status Volume::Remove(const Deleter::File& file) {
  if (failed()) return MakeError(ErrorKind::kDiskFull, fmt::format("volume {} has failed: {}", directory(), failure()));
  absl::Status removed = env_->files().Remove(PathOf(file.id));
  if (!removed.ok() && KindOf(removed) != ErrorKind::kNotFound) {
    Fail(Annotate(removed, "deleting a replica"));
    return removed;
  }
  Adjust(-static_cast<int64_t>(file.used_bytes));
  events_->Append(EventOf(v1::DELETED, file.id, ReplicaRecord(file.stamp, ReplicaState::kFinalized, file.length, kMinBytesPerChecksum)));
  return absl::OkStatus();
}

v1::ReportEvent Volume::EventOf(v1::ReportEventType type, BlockId id, const ReplicaRecord& record) const {
  v1::ReportEvent event;
  event.set_type(type);
  event.set_storage_uuid(storage_uuid_);
  v1::ReplicaEntry* entry = event.mutable_replica();
  entry->set_block_id(id.value());
  entry->set_generation_stamp(record.stamp().value());
  entry->set_length_bytes(record.length());
  entry->set_state(static_cast<v1::ReplicaState>(record.state()));  // The numbers are the same.
  entry->set_corrupt(record.corrupt());
  return event;
}

}  // namespace cairn::datanode
