#include "namenode/namenode_directory.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>

#include "absl/strings/escaping.h"
#include "cairn/namespace.pb.h"
#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace/apply.h"
#include "namenode/namespace/records.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

constexpr size_t kPoolIdBytes = 16;

// What a restored backup adds to the counters: more than can have been given out since it was made, and room for millions of restores.
constexpr std::array kRestoreJumps = {std::pair{kMetaNextBlockId, uint64_t{1} << 40},
                                      std::pair{kMetaNextGenerationStamp, uint64_t{1} << 36},
                                      std::pair{kMetaNextInodeId, uint64_t{1} << 36}};
const absl::Time kEpochMinutesSince = absl::FromUnixSeconds(1'577'836'800);  // 2020.

std::string VersionPath(const std::string& directory) { return directory + "/VERSION"; }

std::string ParentOf(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  const size_t slash = last == std::string::npos ? 0 : path.rfind('/', last);
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status CheckEmpty(const std::string& directory, Env* env) {
  ASSIGN_OR_RETURN(const bool exists, env->files().Exists(directory));
  if (!exists) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<std::string> names, env->files().List(directory));
  std::erase(names, "lost+found");  // Of a fresh ext4.
  if (names.empty()) return absl::OkStatus();
  const bool formatted = std::find(names.begin(), names.end(), "VERSION") != names.end();
  return MakeError(ErrorKind::kNotEmpty,
                   fmt::format("{}: {} (\"{}\" and {} more entries); only an empty directory is formatted", directory,
                               formatted ? "holds a cluster already" : "is not empty", absl::CHexEscape(names.front()), names.size() - 1));
}

std::string VersionJson(const v1::NamenodeVersion& version) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(version, &json, options);
  static_cast<void>(status);  // Cannot fail: no Any inside.
  return json;
}

absl::StatusOr<v1::NamenodeVersion> ReadVersion(const std::string& directory, Env* env) {
  const std::string path = VersionPath(directory);
  ASSIGN_OR_RETURN(const std::string json, env->files().ReadWhole(path));
  v1::NamenodeVersion version;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // A newer layout may have more; its number is what has to be read.
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &version, options);
  if (!parsed.ok())
    return MakeError(ErrorKind::kCorruptMetadata,
                     fmt::format("{}: not the JSON of a NameNode directory: {}", path, absl::CHexEscape(parsed.ToString())));
  if (version.layout() > kNamenodeLayout)
    return MakeError(ErrorKind::kUnsupported,
                     fmt::format("{}: layout {} is newer than {}, the newest this program knows; start the version "
                                 "that wrote it",
                                 path, version.layout(), kNamenodeLayout));
  const std::string pool_id = absl::HexStringToBytes(version.pool_id());
  if (version.layout() == 0 || version.cluster_id().empty() || version.pool_id().size() != 2 * kPoolIdBytes ||
      absl::BytesToHexString(pool_id) != version.pool_id())
    return MakeError(ErrorKind::kCorruptMetadata, fmt::format("{}: layout, cluster_id or pool_id is missing or malformed", path));
  version.set_pool_id(pool_id);
  return version;
}

}  // namespace

absl::Status NamenodeDirectory::Format(const std::string& directory, const FormatOptions& options, Env* env) {
  LocalFileSystem& files = env->files();
  RETURN_IF_ERROR(CheckEmpty(directory, env));
  RETURN_IF_ERROR(files.MakeDirectories(directory));
  ASSIGN_OR_RETURN(const std::unique_ptr<DirectoryLock> lock, files.Lock(directory));
  RETURN_IF_ERROR(files.MakeDirectories(directory + "/namespace"));
  RETURN_IF_ERROR(files.MakeDirectories(directory + "/replicas"));
  RETURN_IF_ERROR(files.SyncDirectory(directory));
  RETURN_IF_ERROR(files.SyncDirectory(ParentOf(directory)));

  Random random = env->NewRandom();
  const std::string cluster_id = options.cluster_id.empty() ? random.Uuid() : options.cluster_id;
  const std::string pool_id = random.Bytes(kPoolIdBytes);
  MetaStore::Options store_options;
  store_options.directory = directory + "/namespace";
  // Nothing is flushed in the background of so short a life: these options suit production and simulation.
  store_options.simulated = true;
  RETURN_IF_ERROR(MetaStore::Create(store_options, env));
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<MetaStore> store, MetaStore::Open(store_options, env));
    const std::unique_ptr<StoreTransaction> txn = store->NewTransaction();
    const std::string owner = options.owner.empty() ? env->UserName() : options.owner;
    WriteEmptyNamespace(cluster_id, pool_id, owner, options.group, absl::ToUnixMillis(env->clock().WallNow()), *txn);
    RETURN_IF_ERROR(store->Write(txn->TakeEffects(), /*sync=*/true));
  }
  v1::NamenodeVersion version;
  version.set_layout(kNamenodeLayout);
  version.set_cluster_id(cluster_id);
  version.set_pool_id(absl::BytesToHexString(pool_id));
  return files.WriteWhole(VersionPath(directory), VersionJson(version));
}

absl::StatusOr<std::unique_ptr<NamenodeDirectory>> NamenodeDirectory::Open(const std::string& directory, MetaStore::Options store_options,
                                                                           Env* env, DiskReserve* reserve) {
  ASSIGN_OR_RETURN(const bool formatted, env->files().Exists(VersionPath(directory)));
  if (!formatted)
    return MakeError(ErrorKind::kNotFound,
                     fmt::format("{}: not formatted (no VERSION file). If its disk should be mounted there, mount it; to "
                                 "make a new, empty cluster run: cairn-namenode --format",
                                 directory));
  std::unique_ptr<NamenodeDirectory> opened(new NamenodeDirectory);
  opened->directory_ = directory;
  opened->env_ = env;
  ASSIGN_OR_RETURN(opened->lock_, env->files().Lock(directory));
  ASSIGN_OR_RETURN(const v1::NamenodeVersion version, ReadVersion(directory, env));
  opened->cluster_id_ = version.cluster_id();
  opened->pool_id_ = version.pool_id();
  store_options.directory = directory + "/namespace";
  if (reserve != nullptr) {
    ASSIGN_OR_RETURN(store_options.scarce_space, reserve->GiveUpIfFull());
  }
  const bool restored = !version.checkpoint().empty();
  absl::Status begun = opened->OpenStore(store_options, restored);
  // A long log may need more than the reserve: what is recovered from it goes to tables, unless space is scarce.
  if (KindOf(begun) == ErrorKind::kDiskFull && reserve != nullptr && !store_options.scarce_space) {
    RETURN_IF_ERROR(reserve->GiveUpFor(begun));
    store_options.scarce_space = true;
    begun = opened->OpenStore(store_options, restored);
  }
  RETURN_IF_ERROR(begun);
  // And who begins after this writes, too.
  if (reserve != nullptr) RETURN_IF_ERROR(reserve->GiveUpIfFull().status());
  if (restored) {
    spdlog::warn("{}: this is the restored checkpoint {}: replicas that it does not know are kept until `cairn dfsadmin -confirmRollback`",
                 directory, version.checkpoint());
    RETURN_IF_ERROR(opened->WriteCheckpointVersion(directory, ""));
  }
  return opened;
}

absl::Status NamenodeDirectory::OpenStore(const MetaStore::Options& options, bool restored) {
  store_.reset();  // Of a try that failed.
  ASSIGN_OR_RETURN(store_, MetaStore::Open(options, env_));
  RETURN_IF_ERROR(CheckIdentity());
  return TakeNextEpoch(restored);
}

absl::Status NamenodeDirectory::CheckIdentity() const {
  const std::shared_ptr<const ReadView> view = store_->Snapshot();
  ASSIGN_OR_RETURN(const std::optional<std::string> cluster_id, view->Get(Family::kMeta, kMetaClusterId));
  ASSIGN_OR_RETURN(const std::optional<std::string> pool_id, view->Get(Family::kMeta, kMetaPoolId));
  if (cluster_id == cluster_id_ && pool_id == pool_id_) return absl::OkStatus();
  return MakeError(ErrorKind::kCorruptMetadata,
                   fmt::format("{}: VERSION is of cluster {}, but namespace/ is of cluster {}: they do not belong "
                               "together",
                               directory_, cluster_id_, cluster_id.value_or("(none)")));
}

absl::Status NamenodeDirectory::WriteCheckpointVersion(const std::string& directory, const std::string& checkpoint) const {
  v1::NamenodeVersion version;
  version.set_layout(kNamenodeLayout);
  version.set_cluster_id(cluster_id_);
  version.set_pool_id(absl::BytesToHexString(pool_id_));
  version.set_checkpoint(checkpoint);
  return env_->files().WriteWhole(VersionPath(directory), VersionJson(version));
}

absl::Status NamenodeDirectory::TakeNextEpoch(bool restored) {
  const std::unique_ptr<StoreTransaction> txn = store_->NewTransaction();
  ASSIGN_OR_RETURN(const std::optional<std::string> row, txn->Get(Family::kMeta, kMetaEpoch));
  const std::optional<uint64_t> last = row ? DecodeU64(*row) : 0;
  if (!last) return MakeError(ErrorKind::kCorruptMetadata, fmt::format("{}: the epoch in `meta` is malformed", directory_));
  epoch_ = Epoch(*last + 1);
  if (restored) {
    // DataNodes obey no epoch below one that they have met. Minutes go ahead of any number of starts since the backup; and of those of an
    // earlier restore of the same one.
    const int64_t minutes = absl::ToInt64Minutes(env_->clock().WallNow() - kEpochMinutesSince);
    epoch_ = std::max(epoch_, Epoch(static_cast<uint64_t>(std::max<int64_t>(minutes, 0))));
    for (const auto& [name, jump] : kRestoreJumps) {
      ASSIGN_OR_RETURN(const uint64_t next, GetNumber(*txn, name));
      PutNumber(*txn, name, next + jump);
    }
    txn->Put(Family::kMeta, kMetaKeepUnknownReplicas, "1");
  }
  txn->Put(Family::kMeta, kMetaEpoch, EncodeU64(epoch_.value()));
  RETURN_IF_ERROR(
      Annotate(store_->Write(txn->TakeEffects(), /*sync=*/true), fmt::format("{}: taking epoch {}", directory_, epoch_.value())));
  store_->Publish();
  return absl::OkStatus();
}

}  // namespace cairn::namenode
