#include "datanode/storage/replica_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "datanode/storage/replica_load.h"

namespace cairn::datanode {

absl::StatusOr<std::shared_ptr<ReplicaReader>> FileReplicaReader::Open(Volume* volume, const BootId& boot_id,
                                                                       ReplicaDescription description, uint32_t received_checksum) {
  ASSIGN_OR_RETURN(std::unique_ptr<ReplicaFile> file,
                   ReplicaFile::Open(volume->env()->files(), volume->PathOf(description.id), LocalFileSystem::OpenMode::kRead, boot_id));
  if (file->header().id != description.id) {
    return MakeError(ErrorKind::kChecksum, fmt::format("{} holds block {}", file->path(), file->header().id.value()));
  }
  std::shared_ptr<FileReplicaReader> reader(new FileReplicaReader(volume, std::move(file), std::move(description)));
  RETURN_IF_ERROR(reader->TakePartialChecksum(received_checksum));
  return std::shared_ptr<ReplicaReader>(std::move(reader));
}

absl::Status FileReplicaReader::TakePartialChecksum(uint32_t received_checksum) {
  const uint32_t chunk = bytes_per_checksum();
  const uint64_t visible = length();
  const uint64_t received = description_.length;
  if (visible % chunk == 0) return absl::OkStatus();
  if (description_.state == ReplicaState::kFinalized) {
    for (const ReplicaSlot& slot : file_->ValidSlots()) {
      if (slot.length != visible) continue;
      partial_checksum_ = slot.partial_checksum;
      return absl::OkStatus();
    }
    return MakeError(ErrorKind::kChecksum, fmt::format("{}: no slot speaks of its {} bytes", file_->path(), visible));
  }
  // More may be received than may be seen. The bytes below `received` never change any more, so the checksum of the longer piece, which is
  // known, proves the shorter one, whose checksum is not.
  ASSIGN_OR_RETURN(partial_checksum_, PartialChecksumAt(*file_, received, received_checksum, visible));
  return absl::OkStatus();
}

absl::StatusOr<std::string> FileReplicaReader::ReadChecksums(uint64_t first_chunk, uint64_t count) {
  volume_->NoteUse(volume_->env()->clock().Now());
  const uint64_t chunks = ChunkCount(length(), bytes_per_checksum());
  if (first_chunk > chunks || count > chunks - first_chunk) {
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("{}: checksums of chunks [{}, {}), it has {}", file_->path(), first_chunk, first_chunk + count, chunks));
  }
  const bool with_partial = count > 0 && first_chunk + count == chunks && length() % bytes_per_checksum() != 0;
  ASSIGN_OR_RETURN(std::string checksums, file_->ReadChecksums(first_chunk, count - (with_partial ? 1 : 0)));
  if (with_partial) {
    checksums.resize(checksums.size() + 4);
    StoreChunkChecksum(partial_checksum_, checksums.data() + checksums.size() - 4);
  }
  return checksums;
}

absl::StatusOr<size_t> FileReplicaReader::ReadData(uint64_t offset, std::span<char> into) {
  if (offset >= length()) return size_t{0};
  return file_->ReadData(offset, into.first(std::min<uint64_t>(into.size(), length() - offset)));
}

}  // namespace cairn::datanode
