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
  // No boot has an id of zeros: a slot of any other, or of this one, is then of an earlier boot for ever.
  Scan(Volume* volume, const BootId& boot_id, const std::string& pool_id, const std::atomic<bool>* stop)
      : volume_(volume),
        stop_(stop),
        distrust_(volume->distrusted()),
        boot_id_(distrust_ ? BootId{std::string(boot_id.bytes.size(), '\0')} : boot_id),
        pool_id_(pool_id) {}

  ScanResult Run() {
    result_.status = ScanTree();
    if (result_.status.ok() && distrust_) result_.status = volume_->SetDistrusted(false);
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
        for (const std::string& name : names) {
          if (stop_ != nullptr && stop_->load(std::memory_order_acquire)) return MakeError(ErrorKind::kCancelled, "the DataNode stops");
          RETURN_IF_ERROR(ScanFile(directory + "/" + name, name));
        }
      }
    }
    return RemoveMoving();
  }

  absl::Status RemoveMoving() {
    ASSIGN_OR_RETURN(const bool any, files().Exists(volume_->MovingDirectory()));
    if (!any) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<std::string> names, files().List(volume_->MovingDirectory()));
    for (const std::string& name : names) {
      ++result_.removed;
      RETURN_IF_ERROR(files().Remove(volume_->MovingDirectory() + "/" + name));
    }
    return absl::OkStatus();
  }

  // What a file turned out to be.
  struct Judged {
    std::unique_ptr<ReplicaFile> file;
    LoadedReplica loaded;
    std::string foreign;  // Not empty: why it is no replica of ours.
    bool blank = false;   // Then: nothing at all.
  };

  absl::Status ScanFile(const std::string& path, const std::string& name) {
    const std::optional<BlockId> id = IdOf(name);
    if (!id || volume_->PathOf(*id) != path) return Quarantine(path, name, "no replica's name or place");
    if (distrust_) RETURN_IF_ERROR(LetGoOfPages(path));
    absl::StatusOr<Judged> judged = Judge(path, *id);
    if (!judged.ok()) judged = Judge(path, *id);  // What may have been a moment's trouble is looked at twice,
    if (!judged.ok()) {
      // and a replica is not blamed for its disk.
      RETURN_IF_ERROR(Annotate(volume_->Probe(), fmt::format("after {} could not be read", path)));
      judged = JudgeUnreadable(path, *id, std::string(judged.status().message()));
    }
    RETURN_IF_ERROR(judged.status());
    if (judged->foreign.empty()) return Keep(*judged->file, *id, judged->loaded);
    if (!judged->blank) return Quarantine(path, name, judged->foreign);
    ++result_.removed;
    return files().Remove(path);
  }

  // An error: it cannot be read just now.
  absl::StatusOr<Judged> Judge(const std::string& path, BlockId id) {
    Judged judged;
    absl::StatusOr<std::unique_ptr<ReplicaFile>> file = ReplicaFile::Open(files(), path, LocalFileSystem::OpenMode::kReadWrite, boot_id_);
    if (const ErrorKind kind = KindOf(file.status()); kind == ErrorKind::kCorruptMetadata || kind == ErrorKind::kUnsupported) {
      return BlankOrForeign(path, std::string(file.status().message()));
    }
    RETURN_IF_ERROR(file.status());
    judged.file = *std::move(file);
    judged.foreign = WhyForeign(judged.file->header(), id);
    if (!judged.foreign.empty()) return judged;
    absl::StatusOr<LoadedReplica> loaded = LoadReplica(*judged.file, boot_id_);
    if (KindOf(loaded.status()) == ErrorKind::kCorruptMetadata) return BlankOrForeign(path, std::string(loaded.status().message()));
    RETURN_IF_ERROR(loaded.status());
    judged.loaded = *loaded;
    return judged;
  }

  // Its newest slot says what it was; that it is corrupt is said again by whoever next reads it.
  absl::StatusOr<Judged> JudgeUnreadable(const std::string& path, BlockId id, std::string why) {
    Judged judged;
    absl::StatusOr<std::unique_ptr<ReplicaFile>> file = ReplicaFile::Open(files(), path, LocalFileSystem::OpenMode::kRead, boot_id_);
    const std::vector<ReplicaSlot> slots = file.ok() ? (*file)->ValidSlots() : std::vector<ReplicaSlot>();
    if (slots.empty() || !WhyForeign((*file)->header(), id).empty()) {
      judged.foreign = std::move(why);
      return judged;
    }
    judged.file = *std::move(file);
    const ReplicaSlot& newest = slots.front();
    const bool temporary = newest.state == ReplicaState::kTemporary;
    const bool finalized = newest.state == ReplicaState::kFinalized;
    judged.loaded.state = temporary ? ReplicaState::kTemporary : finalized ? ReplicaState::kFinalized : ReplicaState::kRwr;
    judged.loaded.stamp = newest.stamp;
    judged.loaded.length = newest.length;
    judged.loaded.partial_checksum = newest.partial_checksum;
    judged.loaded.corrupt = true;
    return judged;
  }

  std::string WhyForeign(const ReplicaHeader& header, BlockId id) const {
    if (header.id != id) return fmt::format("holds block {}", header.id.value());
    if (header.pool_id != pool_id_) return "is of another pool";
    return "";
  }

  absl::StatusOr<Judged> BlankOrForeign(const std::string& path, std::string why) {
    Judged judged;
    ASSIGN_OR_RETURN(judged.blank, ReplicaFile::IsBlank(files(), path));
    judged.foreign = std::move(why);
    return judged;
  }

  // So that what is read of it is what its disk has. What is still to be written is written first. An error of an earlier write that nobody
  // has seen yet is told to one sync, the first, and what it lost is then found missing; one that fails after that says that the disk does
  // not work.
  absl::Status LetGoOfPages(const std::string& path) {
    const absl::StatusOr<std::unique_ptr<File>> file = files().Open(path, LocalFileSystem::OpenMode::kReadWrite);
    if (!file.ok()) return absl::OkStatus();  // Whoever reads it finds out.
    if (!(*file)->Sync().ok()) RETURN_IF_ERROR((*file)->Sync());
    (*file)->WriteBehind(0, 0, /*drop=*/true);
    return absl::OkStatus();
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
    if (distrust_ && loaded.state == ReplicaState::kRwr && !loaded.corrupt) {
      // The slots say otherwise than the disk, and are of this boot: without one of none, the next start would call it corrupt, or sure.
      RETURN_IF_ERROR(file.WriteDurableSlot({.stamp = loaded.stamp,
                                             .length = loaded.length,
                                             .state = ReplicaState::kRbw,
                                             .flags = 0,
                                             .partial_checksum = loaded.partial_checksum}));
      RETURN_IF_ERROR(file.Sync());
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

  absl::Status Quarantine(const std::string& path, const std::string& name, const std::string& why) {
    ++result_.quarantined_count;
    if (result_.quarantined.size() < ScanResult::kMaxNamed) result_.quarantined.push_back(fmt::format("{}: {}", path, why));
    RETURN_IF_ERROR(files().MakeDirectories(volume_->QuarantineDirectory()));
    return files().Rename(path, volume_->QuarantineDirectory() + "/" + name);
  }

  Volume* const volume_;
  const std::atomic<bool>* const stop_;
  const bool distrust_;
  const BootId boot_id_;
  const std::string pool_id_;
  ScanResult result_;
};

}  // namespace

ScanResult ScanVolume(Volume* volume, const BootId& boot_id, const std::string& pool_id, const std::atomic<bool>* stop) {
  return Scan(volume, boot_id, pool_id, stop).Run();
}

}  // namespace cairn::datanode
