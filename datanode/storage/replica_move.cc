#include "datanode/storage/replica_move.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/crc32c.h"
#include "common/error.h"
#include "common/status.h"
#include "datanode/storage/replica_load.h"

namespace cairn::datanode {

ReplicaMove::ReplicaMove(Volume* from, Volume* to, const Replica& replica)
    : from_(from), to_(to), use_(to), replica_(replica), path_(fmt::format("{}/{}", to->MovingDirectory(), Volume::NameOf(replica.id))) {}

ReplicaMove::~ReplicaMove() {
  if (stage_ == Stage::kStays) return;
  copy_.reset();
  to_->Adjust(-static_cast<int64_t>(grown_bytes_));
  if (stage_ == Stage::kNew) return;
  LocalFileSystem& files = to_->env()->files();
  if (stage_ != Stage::kInPlace) {
    IgnoreError(files.Remove(path_), "the next start removes it");
  } else if (!to_->failed()) {  // Else whoever reads the volume next decides, who may have no other.
    IgnoreError(files.Remove(to_->PathOf(replica_.id)), "the next start finds two of them, and keeps one");
  }
}

absl::Status ReplicaMove::OfTarget(absl::Status status) {
  fault_of_target_ = !status.ok();
  return status;
}

absl::Status ReplicaMove::Open() {
  LocalFileSystem& files = from_->env()->files();
  if (!to_->deleter().Has(replica_.id)) RETURN_IF_ERROR(CheckPlaceIsFree());
  const BootId boot_id = from_->env()->boot_id();
  ASSIGN_OR_RETURN(source_, ReplicaFile::Open(files, from_->PathOf(replica_.id), LocalFileSystem::OpenMode::kRead, boot_id));
  const std::vector<ReplicaSlot> slots = source_->ValidSlots();
  const bool speak = !slots.empty() && slots.front().state == ReplicaState::kFinalized && slots.front().stamp == replica_.stamp &&
                     slots.front().length == replica_.length && source_->header().id == replica_.id;
  if (!speak) return MakeError(ErrorKind::kChecksum, fmt::format("{}: its slots do not speak of it", source_->path()));
  partial_checksum_ = slots.front().partial_checksum;
  // No fault: what is promised to writers is theirs.
  if (!to_->TryGrow(replica_.used_bytes, 0)) return to_->FullError(fmt::format("block {}", replica_.id.value()));
  grown_bytes_ = replica_.used_bytes;
  stage_ = Stage::kCopying;
  RETURN_IF_ERROR(OfTarget(files.MakeDirectories(to_->MovingDirectory())));
  if (const absl::Status removed = files.Remove(path_); !removed.ok() && KindOf(removed) != ErrorKind::kNotFound) return OfTarget(removed);
  // Until it is complete it is nobody's business.
  absl::StatusOr<std::unique_ptr<ReplicaFile>> made =
      ReplicaFile::Create(files, path_, source_->header(), replica_.stamp, ReplicaState::kTemporary, boot_id);
  RETURN_IF_ERROR(OfTarget(made.status()));
  copy_ = *std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ReplicaMove::CopyPiece(size_t piece_bytes) {
  fault_of_target_ = false;
  if (stage_ == Stage::kNew) RETURN_IF_ERROR(Open());
  const uint32_t chunk = source_->header().bytes_per_checksum;
  const uint64_t whole = replica_.length - replica_.length % chunk;
  const uint64_t begin = at_;
  if (begin < whole) {
    const uint64_t piece = std::max<uint64_t>(1, piece_bytes / chunk) * chunk;
    ASSIGN_OR_RETURN(at_, CopyChunks(begin, std::min(whole, begin + piece)));
    if (at_ < whole) return at_ - begin;
  }
  RETURN_IF_ERROR(CopyPartialChunk());
  RETURN_IF_ERROR(Complete());
  stage_ = Stage::kCopied;
  return replica_.length - begin;
}

absl::StatusOr<uint64_t> ReplicaMove::CopyChunks(uint64_t from, uint64_t end) {
  const ReplicaHeader& header = source_->header();
  std::string data(end - from, '\0');
  ASSIGN_OR_RETURN(const size_t got, source_->ReadData(from, data));
  if (got != data.size()) return MakeError(ErrorKind::kChecksum, fmt::format("{} ends at byte {}", source_->path(), from + got));
  ASSIGN_OR_RETURN(const std::string checksums,
                   source_->ReadChecksums(from / header.bytes_per_checksum, (end - from) / header.bytes_per_checksum));
  RETURN_IF_ERROR(Annotate(VerifyChunkChecksums(header.checksum_type, header.bytes_per_checksum, data, checksums), source_->path()));
  RETURN_IF_ERROR(OfTarget(copy_->WriteData(from, data)));
  RETURN_IF_ERROR(OfTarget(copy_->WriteChecksums(from / header.bytes_per_checksum, checksums)));
  source_->file()->WriteBehind(source_->data_offset() + from, end - from, /*drop=*/true);
  copy_->file()->WriteBehind(copy_->data_offset() + from, end - from, /*drop=*/false);
  return end;
}

absl::Status ReplicaMove::CopyPartialChunk() {
  const uint64_t bytes = replica_.length % source_->header().bytes_per_checksum;
  if (bytes == 0) return absl::OkStatus();
  const uint64_t from = replica_.length - bytes;
  std::string data(bytes, '\0');
  ASSIGN_OR_RETURN(const size_t got, source_->ReadData(from, data));
  if (got != bytes || ChunkChecksum(source_->header().checksum_type, data) != partial_checksum_) {
    return MakeError(ErrorKind::kChecksum, fmt::format("{}: its last partial chunk does not verify", source_->path()));
  }
  return OfTarget(copy_->WriteData(from, data));
}

// As a close that is synced.
absl::Status ReplicaMove::Complete() {
  ReplicaFile::SlotContent content{.stamp = replica_.stamp,
                                   .length = replica_.length,
                                   .state = ReplicaState::kFinalized,
                                   .flags = 0,
                                   .partial_checksum = partial_checksum_};
  RETURN_IF_ERROR(OfTarget(copy_->WriteDurableSlot(content)));
  RETURN_IF_ERROR(OfTarget(copy_->Sync()));
  content.flags = kSlotSynced;
  RETURN_IF_ERROR(OfTarget(copy_->WriteProgressSlot(content)));
  copy_->file()->WriteBehind(0, 0, /*drop=*/true);
  return absl::OkStatus();
}

absl::Status ReplicaMove::CheckPlaceIsFree() {
  const std::string path = to_->PathOf(replica_.id);
  const absl::StatusOr<bool> taken = to_->env()->files().Exists(path);
  RETURN_IF_ERROR(OfTarget(taken.status()));
  // The next start's scan judges it.
  if (*taken) return MakeError(ErrorKind::kAlreadyExists, fmt::format("{}: there is a file that the map does not know", path));
  return absl::OkStatus();
}

absl::Status ReplicaMove::TakePlace() {
  fault_of_target_ = false;
  copy_.reset();
  source_.reset();
  RETURN_IF_ERROR(OfTarget(to_->MakeDirectoryOf(replica_.id)));
  RETURN_IF_ERROR(CheckPlaceIsFree());
  RETURN_IF_ERROR(OfTarget(to_->env()->files().Rename(path_, to_->PathOf(replica_.id))));
  stage_ = Stage::kInPlace;
  return OfTarget(to_->SyncDirectoryOf(replica_.id));
}

}  // namespace cairn::datanode
