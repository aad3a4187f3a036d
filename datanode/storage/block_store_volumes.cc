// Volumes that come and go while a node runs.

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "datanode/storage/file_block_store.h"
#include "datanode/storage/volume_keeper.h"
#include "datanode/storage/volume_mover.h"

namespace cairn::datanode {
namespace {

constexpr size_t kComparedAtATime = 1024;  // What writers and readers of the other volume wait for.

}  // namespace

void FileBlockStore::SetVolumeObserver(VolumeObserver observer) {
  MutexLock lock(change_mu_);
  observer_ = std::move(observer);
}

void FileBlockStore::ChangeVolumes(std::vector<std::string> directories, std::function<void(absl::Status)> done) {
  keeper_->Change(std::move(directories), std::move(done));
}

void FileBlockStore::StartKeeping() {
  BlockStoreOptions options;
  {
    MutexLock lock(change_mu_);
    options = options_;
  }
  keeper_ = std::make_unique<VolumeKeeper>(env_, options.keeper, options.directories, this);
  mover_ = std::make_unique<VolumeMover>(
      env_, options.mover, [this](BlockId id, GenerationStamp stamp) { return VerifyFromScanner(id, stamp); }, this);
}

void FileBlockStore::SetPace(const DeleterOptions& deleter, const ScannerOptions& scanner, const VolumeMoverOptions& mover) {
  mover_->SetOptions(mover);
  for (Volume* volume : volumes_) volume->deleter().SetOptions(deleter);
  MutexLock lock(change_mu_);
  options_.deleter = deleter;
  options_.scanner = scanner;
  options_.mover = mover;
  for (const auto& [volume, running] : scanners_) running->SetOptions(scanner);
}

void FileBlockStore::StartScanner(Volume* volume) {
  MutexLock lock(change_mu_);
  const auto verify = [this](BlockId id, GenerationStamp stamp) { return VerifyFromScanner(id, stamp); };
  scanners_.emplace_back(volume,
                         std::make_unique<Scanner>(env_, fmt::format("scanner-{}", scanners_.size()), options_.scanner, verify, volume));
}

absl::StatusOr<std::unique_ptr<Volume>> FileBlockStore::OpenAnother(const std::string& directory, bool format_empty, bool distrust) {
  if (!volumes_.HasRoom()) {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("data directory {} is left out: of {} volumes at a time, and {} since its start, this process has had all "
                                 "that it may; restart it",
                                 directory, VolumeSet::kMost, VolumeSet::kMostEver));
  }
  BlockStoreOptions options;
  {
    MutexLock lock(change_mu_);
    options = options_;
  }
  options.format_empty = options.format_empty && format_empty;
  return OpenVolume(options, env_, events_, Get(), directory, volumes_.ever(), distrust, &closing_);
}

bool FileBlockStore::IsSettled(const std::string& directory) const {
  const Volume* const last = volumes_.LastOf(directory);
  return last == nullptr || !last->failed() || last->settled();
}

absl::Status FileBlockStore::CheckSettled(const std::string& directory) const {
  if (IsSettled(directory)) return absl::OkStatus();
  return MakeError(
      ErrorKind::kBusy,
      fmt::format("data directory {}: its disk has not answered what was asked of it before it failed or was taken out", directory));
}

absl::Status FileBlockStore::AddVolume(const std::string& directory, bool format_empty) {
  RETURN_IF_ERROR(CheckSettled(directory));
  // If its mark could not be written when it failed, this process still knows.
  const Volume* const before = volumes_.LastOf(directory);
  ASSIGN_OR_RETURN(std::unique_ptr<Volume> volume, OpenAnother(directory, format_empty, before != nullptr && before->distrusted()));
  if (VolumeOf(volume->storage_uuid()) != nullptr) {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("data directory {} is a copy of one that is here already: storage {}", directory, volume->storage_uuid()));
  }
  Publish(std::move(volume));
  return absl::OkStatus();
}

void FileBlockStore::Publish(std::unique_ptr<Volume> volume) {
  Volume* const added = volume.get();
  DropWorseCopies(added);
  {
    MutexLock lock(added->shard().mu);
    gate_.Count(static_cast<int64_t>(added->shard().replicas.size()));
  }
  {
    // Whoever does not find it says that it has failed: under this lock, so that it is numbered before.
    MutexLock lock(change_mu_);
    {
      MutexLock shard_lock(added->shard().mu);
      if (!added->failed()) events_->AppendState(added->storage_uuid(), v1::HEALTHY);  // Its deleter is at work already.
    }
    removed_.erase(added->storage_uuid());
    CAIRN_CHECK(volumes_.Add(std::move(volume)), "a volume was opened that there is no room for");
  }
  StartScanner(added);
  log::Info("volume {} serves: storage {}", added->directory(), added->storage_uuid());
  MutexLock lock(change_mu_);  // Held: once it has been taken away, nobody is told any more.
  if (observer_) observer_(added->storage_uuid());
}

// A block may have been copied to another volume here while this one was away: the copy that is reported stays.
void FileBlockStore::DropWorseCopies(Volume* added) {
  for (Volume* other : volumes_) {
    std::optional<BlockId> from = BlockId(0);
    while (from) {
      for (const Deleter::File& file : TakeWorseCopies(added, other, &from)) {
        added->CountReplica(-1);
        added->deleter().Add(file);
      }
    }
  }
}

std::vector<Deleter::File> FileBlockStore::TakeWorseCopies(Volume* added, Volume* other, std::optional<BlockId>* from) {
  std::vector<Deleter::File> worse;
  MutexLock lock_added(added->shard().mu);
  MutexLock lock_other(other->shard().mu);
  ReplicaIndex& replicas = added->shard().replicas;
  auto at = replicas.lower_bound(**from);
  from->reset();
  if (other->failed()) return worse;  // Asked under the lock: what it holds no longer counts.
  for (size_t compared = 0; at != replicas.end(); ++compared) {
    if (compared == kComparedAtATime) {
      *from = at->first;
      break;
    }
    const auto twin = other->shard().replicas.find(at->first);
    // One that is still on its way here may never arrive.
    if (twin == other->shard().replicas.end() || !twin->second.reported() || !Better(twin->second, at->second)) {
      ++at;
      continue;
    }
    const ReplicaRecord& record = at->second;
    worse.push_back({.id = at->first, .stamp = record.stamp(), .length = record.length(), .used_bytes = record.used_bytes()});
    at = replicas.erase(at);
  }
  return worse;
}

void FileBlockStore::RemoveVolume(Volume* volume) {
  size_t replicas = 0;
  {
    MutexLock lock(volume->shard().mu);
    replicas = volume->shard().replicas.size();
  }
  gate_.Count(-static_cast<int64_t>(replicas));
  {
    MutexLock lock(change_mu_);
    removed_.insert(volume->storage_uuid());
  }
  volume->Retire(/*removed=*/true);
  log::Info("volume {} is taken out: storage {} with {} replicas", volume->directory(), volume->storage_uuid(), replicas);
}

absl::Status FileBlockStore::BringBack(Volume* failed) {
  const std::string directory = failed->directory();
  RETURN_IF_ERROR(CheckSettled(directory));
  failed->ReleaseDirectory();
  // If it has gone again, the failed one stands in for it until it comes for good. An empty directory is a disk that is not mounted.
  ASSIGN_OR_RETURN(std::unique_ptr<Volume> volume, OpenAnother(directory, /*format_empty=*/false, /*distrust=*/true));
  if (volume->storage_uuid() != failed->storage_uuid()) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("data directory {} holds storage {} now, it held {}", directory,
                                                              volume->storage_uuid(), failed->storage_uuid()));
  }
  {
    MutexLock lock(failed->shard().mu);
    gate_.Count(-static_cast<int64_t>(failed->shard().replicas.size()));
  }
  failed->Retire(/*removed=*/false);
  relocations_.fetch_add(1, std::memory_order_acq_rel);
  Publish(std::move(volume));
  return absl::OkStatus();
}

}  // namespace cairn::datanode
