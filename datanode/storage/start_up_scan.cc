#include "datanode/storage/start_up_scan.h"

#include <optional>

#include <fmt/format.h>
#include "absl/strings/numbers.h"

#include "common/error.h"
#include "common/status.h"
#include "datanode/storage/replica_load.h"

namespace cairn::datanode {
namespace {

std::optional<BlockId> IdOf(const std::string& name) {
  uint64_t id = 0;
  if (!name.starts_with("blk_") || !absl::SimpleAtoi(name.substr(4), &id) || name != Volume::NameOf(BlockId(id))) return std::nullopt;
  return BlockId(id);
}

class Scan {
 public:
  Scan(Volume* volume, const BootId& boot_id, const std::string& pool_id) : volume_(volume), boot_id_(boot_id), pool_id_(pool_id) {}

  ScanResult Run() {
    result_.status = ScanTree();
    return std::move(result_);
  }

 private:
  LocalFileSystem& files() { return volume_->env()->files(); }

  absl::Status ScanTree() {
    const std::string root = volume_->directory() + "/blocks";
    ASSIGN_OR_RETURN(const std::vector<std::string> first_level, files().List(root));
    for (const std::string& first : first_level) {
      ASSIGN_OR_RETURN(const std::vector<std::string> second_level, files().List(root + "/" + first));
      for (const std::string& second : second_level) {
        const std::string directory = fmt::format("{}/{}/{}", root, first, second);
        ASSIGN_OR_RETURN(const std::vector<std::string> names, files().List(directory));
        for (const std::string& name : names) RETURN_IF_ERROR(ScanFile(directory + "/" + name, name));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ScanFile(const std::string& path, const std::string& name) {
    const std::optional<BlockId> id = IdOf(name);
    if (!id || volume_->PathOf(*id) != path) return Quarantine(path, name, "no replica's name or place");
    absl::StatusOr<std::unique_ptr<ReplicaFile>> file = ReplicaFile::Open(files(), path, LocalFileSystem::OpenMode::kReadWrite, boot_id_);
    if (const ErrorKind kind = KindOf(file.status()); kind == ErrorKind::kCorruptMetadata || kind == ErrorKind::kUnsupported) {
      return BlankOrQuarantine(path, name, std::string(file.status().message()));
    }
    RETURN_IF_ERROR(file.status());
    if ((*file)->header().id != *id) return Quarantine(path, name, fmt::format("holds block {}", (*file)->header().id.value()));
    if ((*file)->header().pool_id != pool_id_) return Quarantine(path, name, "is of another pool");
    absl::StatusOr<LoadedReplica> loaded = LoadReplica(**file, boot_id_);
    if (KindOf(loaded.status()) == ErrorKind::kCorruptMetadata)
      return BlankOrQuarantine(path, name, std::string(loaded.status().message()));
    RETURN_IF_ERROR(loaded.status());
    return Keep(**file, *id, *loaded);
  }

  absl::Status Keep(ReplicaFile& file, BlockId id, const LoadedReplica& loaded) {
    if (loaded.state == ReplicaState::kTemporary) {
      ++result_.removed;
      return files().Remove(file.path());
    }
    if (loaded.cut) RETURN_IF_ERROR(file.FinishCut(loaded.length));
    if (loaded.newly_verified) {
      RETURN_IF_ERROR(file.WriteProgressSlot({.stamp = loaded.stamp,
                                              .length = loaded.length,
                                              .state = loaded.state,
                                              .flags = kSlotSynced,
                                              .partial_checksum = loaded.partial_checksum}));
    }
    ReplicaRecord record(loaded.stamp, loaded.state, loaded.length, file.header().bytes_per_checksum);
    record.set_sure(loaded.sure);
    record.set_corrupt(loaded.corrupt);
    if (loaded.state != ReplicaState::kFinalized) {
      auto open = std::make_unique<OpenReplica>();
      open->visible_length = loaded.length;
      open->partial_checksum = loaded.partial_checksum;
      record.set_open(std::move(open));
      ++result_.unfinished;
    }
    if (loaded.corrupt) ++result_.corrupt;
    ++result_.replicas;
    volume_->Adjust(static_cast<int64_t>(record.used_bytes()));
    volume_->CountReplica(1);
    MutexLock lock(volume_->shard().mu);
    volume_->shard().replicas.insert_or_assign(id, std::move(record));
    return absl::OkStatus();
  }

  absl::Status BlankOrQuarantine(const std::string& path, const std::string& name, const std::string& why) {
    ASSIGN_OR_RETURN(const bool blank, ReplicaFile::IsBlank(files(), path));
    if (!blank) return Quarantine(path, name, why);
    ++result_.removed;
    return files().Remove(path);
  }

  absl::Status Quarantine(const std::string& path, const std::string& name, const std::string& why) {
    ++result_.quarantined_count;
    if (result_.quarantined.size() < ScanResult::kMaxNamed) result_.quarantined.push_back(fmt::format("{}: {}", path, why));
    RETURN_IF_ERROR(files().MakeDirectories(volume_->QuarantineDirectory()));
    return files().Rename(path, volume_->QuarantineDirectory() + "/" + name);
  }

  Volume* const volume_;
  const BootId boot_id_;
  const std::string pool_id_;
  ScanResult result_;
};

}  // namespace

ScanResult ScanVolume(Volume* volume, const BootId& boot_id, const std::string& pool_id) { return Scan(volume, boot_id, pool_id).Run(); }

}  // namespace cairn::datanode
