#include "namenode/disk_reserve.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/status.h"

namespace cairn::namenode {
namespace {
constexpr uint64_t kPieceBytes = 1 << 20;
}  // namespace

absl::StatusOr<bool> DiskReserve::GiveUpIfFull() {
  if (bytes_ == 0) return false;
  whole_ = false;
  ASSIGN_OR_RETURN(const bool exists, files_->Exists(path_));
  if (exists) {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files_->Open(path_, LocalFileSystem::OpenMode::kRead));
    ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    whole_ = size == bytes_;
  }
  ASSIGN_OR_RETURN(const LocalFileSystem::Space space, files_->SpaceOf(directory_));
  if (space.available_bytes >= bytes_) return false;
  if (exists) {
    spdlog::critical("{} has {} bytes free: the NameNode starts on the {} bytes that it kept back for this, to serve reads", directory_,
                     space.available_bytes, bytes_);
    RETURN_IF_ERROR(files_->Remove(path_));
    whole_ = false;
  }
  return true;
}

absl::Status DiskReserve::GiveUpFor(const absl::Status& failure) {
  ASSIGN_OR_RETURN(const bool exists, files_->Exists(path_));
  spdlog::critical("{}: {}; the NameNode tries once more without writing tables{}, to serve reads", directory_,
                   std::string(failure.message()), exists ? fmt::format(", on the {} bytes that it kept back for this", bytes_) : "");
  whole_ = false;
  return exists ? files_->Remove(path_) : absl::OkStatus();
}

absl::Status DiskReserve::PutBack() {
  if (missing_bytes() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool exists, files_->Exists(path_));
  if (exists) RETURN_IF_ERROR(files_->Remove(path_));  // Of another size, or of an attempt that found no room.
  const auto write = [this]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files_->Open(path_, LocalFileSystem::OpenMode::kCreateNew));
    const std::vector<char> zeros(kPieceBytes);
    for (uint64_t offset = 0; offset < bytes_; offset += kPieceBytes)
      RETURN_IF_ERROR(file->WriteAt(offset, {zeros.data(), std::min<size_t>(kPieceBytes, bytes_ - offset)}));
    RETURN_IF_ERROR(file->Sync());
    return files_->SyncDirectory(directory_);
  };
  absl::Status written = write();
  if (!written.ok()) {
    IgnoreError(files_->Remove(path_), "the next attempt begins with that");
    return written;
  }
  whole_ = true;
  return absl::OkStatus();
}

}  // namespace cairn::namenode
