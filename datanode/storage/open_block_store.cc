#include "datanode/storage/open_block_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "common/api/datanode_namenode.h"
#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "datanode/storage/file_block_store.h"

namespace cairn::datanode {
namespace {

constexpr uint64_t kIdsWrittenEvery = 1 << 16;

// One volume's record against the node's; merges the figures.
absl::Status Join(VersionRecord& node, const VersionRecord& record, const std::string& directory, const std::string& wanted_cluster) {
  if (record.datanode_uuid != node.datanode_uuid) {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("data directory {} is of DataNode {}, those before it are of {}: each DataNode has its own directories; "
                                 "take out of dfs.datanode.data.dir what does not belong there",
                                 directory, record.datanode_uuid, node.datanode_uuid));
  }
  const std::string& cluster = wanted_cluster.empty() ? node.cluster_id : wanted_cluster;
  if (!record.cluster_id.empty() && !cluster.empty() && record.cluster_id != cluster) {
    return MakeError(
        ErrorKind::kInvalidArgument,
        fmt::format("data directory {} is of cluster {}, not of {}: give another directory, or empty this one if its data is not needed",
                    directory, record.cluster_id, cluster));
  }
  if (node.cluster_id.empty()) {
    node.cluster_id = record.cluster_id;
    node.pool_id = record.pool_id;
  }
  node.highest_epoch = std::max(node.highest_epoch, record.highest_epoch);
  node.highest_block_id = std::max(node.highest_block_id, record.highest_block_id);
  node.highest_generation_stamp = std::max(node.highest_generation_stamp, record.highest_generation_stamp);
  return absl::OkStatus();
}

// What the directories that are volumes already say of the node, before any is made or locked: directories that do not belong together
// are refused before anything is written into one of them.
absl::StatusOr<VersionRecord> Peek(const BlockStoreOptions& options, Env* env) {
  VersionRecord node;
  for (const std::string& directory : options.directories) {
    const absl::StatusOr<std::string> json = env->files().ReadWhole(directory + "/VERSION");
    if (!json.ok()) continue;
    const absl::StatusOr<VersionRecord> record = DecodeVersion(*json);
    if (!record.ok()) continue;
    if (node.datanode_uuid.empty()) node.datanode_uuid = record->datanode_uuid;
    RETURN_IF_ERROR(Join(node, *record, directory, options.cluster_id));
  }
  return node;
}

// For a directory that cannot be used, when no more may be.
absl::Status TooManyFailed(const BlockStoreOptions& options, size_t failed, const absl::Status& last) {
  return Annotate(last,
                  fmt::format("{} of {} data directories cannot be used, and dfs.datanode.failed.volumes.tolerated is {}; mend it, or "
                              "take it out of dfs.datanode.data.dir",
                              failed, options.directories.size(), options.tolerated_failed_volumes));
}

VolumeOptions OptionsOf(const BlockStoreOptions& options, const std::string& directory, size_t index) {
  return {.directory = directory,
          .index = index,
          .reserved_bytes = options.reserved_bytes,
          .format_empty = options.format_empty,
          .deleter = options.deleter};
}

void LogScan(const std::string& directory, const ScanResult& scan) {
  log::Info("{}: {} replicas, {} unfinished, {} corrupt, {} files quarantined, {} leftovers removed", directory, scan.replicas,
            scan.unfinished, scan.corrupt, scan.quarantined_count, scan.removed);
}

// Those that would have to be read from the disk before they are believed, for the keeper to bring back; how many. Not if there is nothing
// else to serve, or nobody to bring them back.
size_t KeepDistrustedAway(const BlockStoreOptions& options, const std::vector<std::unique_ptr<Volume>>& volumes) {
  const auto distrusted = [](const std::unique_ptr<Volume>& volume) { return volume->distrusted(); };
  if (options.keeper.check_interval == absl::InfiniteDuration() || std::all_of(volumes.begin(), volumes.end(), distrusted)) return 0;
  size_t away = 0;
  for (const std::unique_ptr<Volume>& volume : volumes) {
    if (!volume->distrusted()) continue;
    volume->KeepAway("it had failed, and is read from its disk before it serves");
    ++away;
  }
  return away;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Volume>> OpenVolume(const BlockStoreOptions& options, Env* env, EventLog* events, VersionRecord node,
                                                   const std::string& directory, size_t index, bool distrust,
                                                   const std::atomic<bool>* stop) {
  // Before anything is written into it.
  if (const absl::StatusOr<std::string> json = env->files().ReadWhole(directory + "/VERSION"); json.ok()) {
    ASSIGN_OR_RETURN(const VersionRecord record, DecodeVersion(*json));
    RETURN_IF_ERROR(Join(node, record, directory, node.cluster_id));
  }
  node.storage_uuid = env->NewRandom().Uuid();
  ASSIGN_OR_RETURN(std::unique_ptr<Volume> volume, Volume::Open(env, events, OptionsOf(options, directory, index), node));
  // Before anything is believed: should this process end in the middle, the next one must not believe it either.
  if (distrust) RETURN_IF_ERROR(Annotate(volume->SetDistrusted(true), fmt::format("data directory {}", directory)));
  const ScanResult scan = ScanVolume(volume.get(), env->boot_id(), node.pool_id, stop);
  if (!scan.status.ok()) {
    if (!volume->distrusted() && KindOf(scan.status) != ErrorKind::kCancelled) IgnoreError(volume->SetDistrusted(true), "it is not served");
    return Annotate(scan.status, fmt::format("scanning data directory {}", directory));
  }
  LogScan(directory, scan);
  return volume;
}

absl::Status CheckDirectories(const std::vector<std::string>& directories) {
  for (auto at = directories.begin(); at != directories.end(); ++at) {
    if (std::find(directories.begin(), at, *at) == at) continue;
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("dfs.datanode.data.dir names {} twice: each directory is one volume", *at));
  }
  return absl::OkStatus();
}

absl::StatusOr<OpenedBlockStore> OpenBlockStore(const BlockStoreOptions& options, Env* env, EventLog* events) {
  if (options.directories.empty()) return MakeError(ErrorKind::kInvalidArgument, "dfs.datanode.data.dir names no directory");
  RETURN_IF_ERROR(CheckDirectories(options.directories));
  if (options.max_block_bytes == 0 || options.max_block_bytes > kMaxCapacity) {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("cairn.block.max-size is {}, must be 1 to {}", options.max_block_bytes, kMaxCapacity));
  }
  Random random = env->NewRandom();
  ASSIGN_OR_RETURN(VersionRecord node, Peek(options, env));
  if (node.datanode_uuid.empty()) node.datanode_uuid = random.Uuid();

  OpenedBlockStore opened;
  std::vector<std::unique_ptr<Volume>> volumes;
  for (size_t i = 0; i < options.directories.size(); ++i) {
    VersionRecord fresh = node;
    fresh.storage_uuid = random.Uuid();
    absl::StatusOr<std::unique_ptr<Volume>> volume = Volume::Open(env, events, OptionsOf(options, options.directories[i], i), fresh);
    if (!volume.ok()) {
      opened.failures.push_back(std::string(volume.status().message()));
      if (opened.failures.size() > options.tolerated_failed_volumes) return TooManyFailed(options, opened.failures.size(), volume.status());
      continue;
    }
    RETURN_IF_ERROR(Join(node, (*volume)->version_at_open(), (*volume)->directory(), options.cluster_id));
    volumes.push_back(*std::move(volume));
  }
  if (volumes.empty())
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("no data directory can be used: {}", opened.failures.front()));

  opened.scans.resize(volumes.size());
  const size_t away = KeepDistrustedAway(options, volumes);
  std::atomic<size_t> running{volumes.size() - away};
  for (size_t i = 0; i < volumes.size(); ++i) {
    if (volumes[i]->failed()) continue;
    volumes[i]->disk()->Post([&, volume = volumes[i].get(), result = &opened.scans[i]] {
      *result = ScanVolume(volume, env->boot_id(), node.pool_id);
      running.fetch_sub(1, std::memory_order_acq_rel);
      env->Wake();
    });
  }
  const bool all_done = env->BlockUntil([&running] { return running.load(std::memory_order_acquire) == 0; }, SteadyTime::Infinite());
  if (!all_done) return absl::CancelledError("the scan of the data directories was cut off");
  absl::Status last;
  for (size_t i = 0; i < volumes.size(); ++i) {
    if (volumes[i]->failed()) continue;  // Not looked at yet.
    const ScanResult& scan = opened.scans[i];
    LogScan(volumes[i]->directory(), scan);
    for (const std::string& file : scan.quarantined) log::Warning("quarantined {}", file);
    if (scan.status.ok()) continue;
    last = Annotate(scan.status, fmt::format("scanning data directory {}", volumes[i]->directory()));
    opened.failures.push_back(std::string(last.message()));
    volumes[i]->Fail(last);  // Also if there will be no store: the next start must not believe it either.
  }
  if (!last.ok() && opened.failures.size() > options.tolerated_failed_volumes) return TooManyFailed(options, opened.failures.size(), last);
  node.storage_uuid.clear();
  auto store = std::make_unique<FileBlockStore>(env, events, options, std::move(volumes), node);
  store->SettleDuplicates();
  store->StartKeeping();
  opened.identity = store.get();
  opened.volumes = store.get();
  opened.store = std::move(store);
  return opened;
}

bool FileBlockStore::Better(const ReplicaRecord& a, const ReplicaRecord& b) {
  if (a.corrupt() != b.corrupt()) return !a.corrupt();
  if (a.stamp() != b.stamp()) return a.stamp() > b.stamp();
  if ((a.state() == ReplicaState::kFinalized) != (b.state() == ReplicaState::kFinalized)) return a.state() == ReplicaState::kFinalized;
  return a.length() >= b.length();
}

void FileBlockStore::SettleDuplicates() {
  std::vector<Volume*> volumes;
  std::vector<double> fullness;
  for (Volume* volume : volumes_) {
    volumes.push_back(volume);
    fullness.push_back(volume->fullness());
  }
  for (size_t i = 0; i < volumes.size(); ++i) {
    for (size_t j = i + 1; j < volumes.size(); ++j) {
      MutexLock lock_a(volumes[i]->shard().mu);
      MutexLock lock_b(volumes[j]->shard().mu);
      ReplicaIndex& a = volumes[i]->shard().replicas;
      ReplicaIndex& b = volumes[j]->shard().replicas;
      for (auto at = a.begin(); at != a.end();) {
        const auto twin = b.find(at->first);
        if (twin == b.end()) {
          ++at;
          continue;
        }
        // Of two that are as good the one on the emptier volume: it was moved there, and the other one's deletion was under way.
        const bool as_good = Better(twin->second, at->second);
        const bool keep_first = Better(at->second, twin->second) && !(as_good && fullness[j] < fullness[i]);
        const ReplicaRecord& worse = keep_first ? twin->second : at->second;
        Volume* holder = keep_first ? volumes[j] : volumes[i];
        holder->CountReplica(-1);
        holder->deleter().Add({.id = at->first, .stamp = worse.stamp(), .length = worse.length(), .used_bytes = worse.used_bytes()});
        if (keep_first) {
          b.erase(twin);
          ++at;
        } else {
          at = a.erase(at);
        }
      }
    }
  }
  for (const auto& volume : volumes_) {
    MutexLock lock(volume->shard().mu);
    gate_.Count(static_cast<int64_t>(volume->shard().replicas.size()));
  }
}

VersionRecord FileBlockStore::Get() const {
  MutexLock lock(identity_mu_);
  return identity_;
}

absl::Status FileBlockStore::WriteIdentity() {
  VersionRecord record;
  {
    MutexLock lock(identity_mu_);
    record = identity_;
  }
  absl::Status last = MakeError(ErrorKind::kDiskFull, "no volume is left that could remember it");
  bool any = false;
  for (const auto& volume : volumes_) {
    if (volume->failed()) continue;
    if (const absl::Status written = volume->WriteVersion(record); written.ok()) {
      any = true;
    } else {
      last = Annotate(written, fmt::format("writing VERSION of {}", volume->directory()));
      volume->Fail(last);
    }
  }
  if (!any) return last;
  MutexLock lock(identity_mu_);
  written_ = record;
  return absl::OkStatus();
}

absl::Status FileBlockStore::AdoptCluster(std::string cluster_id, std::string pool_id) {
  if (pool_id.size() != kPoolIdBytes) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("pool id of {} bytes, must be {}", pool_id.size(), kPoolIdBytes));
  }
  {
    MutexLock lock(identity_mu_);
    if (!identity_.cluster_id.empty()) {
      if (identity_.cluster_id == cluster_id && identity_.pool_id == pool_id) return absl::OkStatus();
      Error error;
      error.kind = ErrorKind::kInvalidArgument;
      error.reason = api::kOtherCluster;
      error.message = fmt::format("this DataNode is of cluster {}, the NameNode of {}", identity_.cluster_id, cluster_id);
      return MakeError(std::move(error));
    }
    identity_.cluster_id = std::move(cluster_id);
    identity_.pool_id = std::move(pool_id);
  }
  return WriteIdentity();
}

absl::Status FileBlockStore::RememberEpoch(Epoch epoch) {
  {
    MutexLock lock(identity_mu_);
    if (epoch.value() <= identity_.highest_epoch) return absl::OkStatus();
    identity_.highest_epoch = epoch.value();
  }
  return WriteIdentity();
}

absl::Status FileBlockStore::RememberIds(BlockId next_block, GenerationStamp next_stamp) {
  {
    MutexLock lock(identity_mu_);
    identity_.highest_block_id = std::max(identity_.highest_block_id, next_block.value());
    identity_.highest_generation_stamp = std::max(identity_.highest_generation_stamp, next_stamp.value());
    // Ids are given out in steps, so 2^16 blocks are more than 2^16 ids.
    if (identity_.highest_block_id < written_.highest_block_id + kIdsWrittenEvery * kBlockIdStep &&
        identity_.highest_generation_stamp < written_.highest_generation_stamp + kIdsWrittenEvery) {
      return absl::OkStatus();
    }
  }
  return WriteIdentity();
}

}  // namespace cairn::datanode
