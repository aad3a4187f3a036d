#include "client/src/trash.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/src/path.h"
#include "common/error.h"
#include "common/status.h"
#include "common/trash.h"

namespace cairn::client {
namespace {

constexpr uint32_t kTrashMode = 0700;  // What was removed is nobody else's business.
constexpr int kAttempts = 1000;

bool IsAtOrBelow(const std::string& path, const std::string& directory) {
  return directory == "/" || path == directory || path.starts_with(directory + "/");
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Trash::Trash(FileSystem* files, std::string user) : files_(files), home_(HomeOf(user)), root_(TrashOf(user)) {}

absl::StatusOr<std::string> Trash::Move(const std::string& typed, absl::Time now) {
  ASSIGN_OR_RETURN(const std::string path, CleanPath(typed));
  RETURN_IF_ERROR(files_->GetFileStatus(path).status());
  if (IsAtOrBelow(path, root_)) return std::string();
  if (IsAtOrBelow(home_, path)) {
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.reason = "CONTAINS_TRASH";
    error.path = path;
    error.message = fmt::format("Cannot move \"{}\" to the trash, as it contains the trash", path);
    return MakeError(std::move(error));
  }
  const std::string current = fmt::format("{}/{}", root_, kTrashCurrent);
  std::string directory = path.rfind('/') == 0 ? current : current + ParentOf(path);
  const std::string name = path.substr(path.rfind('/') + 1);
  RETURN_IF_ERROR(MakeRoom(&directory, now));
  std::string target = directory + "/" + name;
  for (int64_t attempt = 0;; ++attempt) {
    absl::Status moved = files_->Rename(path, target, /*overwrite=*/false);
    if (moved.ok()) return target;
    if (KindOf(moved) != ErrorKind::kAlreadyExists || attempt == kAttempts) return moved;
    target = fmt::format("{}/{}{}", directory, name, absl::ToUnixMillis(now) + attempt);
  }
}

absl::Status Trash::MakeRoom(std::string* directory, absl::Time now) {
  // The home is as any other directory; only the trash in it is closed to others.
  RETURN_IF_ERROR(files_->MakeDirectories(home_));
  for (int attempt = 0;; ++attempt) {
    const absl::Status made = files_->MakeDirectories(*directory, kTrashMode);
    const ErrorKind kind = KindOf(made);
    if ((kind != ErrorKind::kAlreadyExists && kind != ErrorKind::kNotDirectory) || attempt == kAttempts) return made;
    // Which of the names on the way is a file's?
    size_t end = root_.size();
    for (;;) {
      end = directory->find('/', end + 1);
      const std::string above = directory->substr(0, end);
      const absl::StatusOr<FileStatus> status = files_->GetFileStatus(above);
      if (!status.ok()) return made;
      if (!status->is_directory) break;
      if (end == std::string::npos) return made;
    }
    directory->insert(end == std::string::npos ? directory->size() : end, std::to_string(absl::ToUnixMillis(now) + attempt));
  }
}

absl::StatusOr<ExpungedTrash> Trash::Expunge(absl::Time now, absl::Duration interval, bool immediately) {
  ExpungedTrash expunged;
  if (immediately) {
    ASSIGN_OR_RETURN(expunged.made, MakeCheckpoint(now));
    ASSIGN_OR_RETURN(expunged.deleted, DeleteCheckpoints(absl::InfiniteFuture()));
  } else {
    ASSIGN_OR_RETURN(expunged.deleted, DeleteCheckpoints(now - interval));
    ASSIGN_OR_RETURN(expunged.made, MakeCheckpoint(now));
  }
  return expunged;
}

absl::StatusOr<std::string> Trash::MakeCheckpoint(absl::Time now) {
  const std::string current = fmt::format("{}/{}", root_, kTrashCurrent);
  ASSIGN_OR_RETURN(const bool exists, files_->Exists(current));
  if (!exists) return std::string();
  for (int attempt = 0;; ++attempt) {
    std::string checkpoint = fmt::format("{}/{}", root_, TrashCheckpointName(now, attempt));
    absl::Status moved = files_->Rename(current, checkpoint, /*overwrite=*/false);
    if (moved.ok()) return checkpoint;
    if (KindOf(moved) != ErrorKind::kAlreadyExists || attempt == kAttempts)
      return Annotate(moved, fmt::format("Failed to checkpoint trash: {}", checkpoint));
  }
}

absl::StatusOr<std::vector<std::string>> Trash::DeleteCheckpoints(absl::Time before) {
  std::vector<std::string> deleted;
  const absl::StatusOr<std::vector<FileStatus>> entries = files_->List(root_);
  if (KindOf(entries.status()) == ErrorKind::kNotFound) return deleted;
  RETURN_IF_ERROR(entries.status());
  for (const FileStatus& entry : *entries) {
    const std::optional<absl::Time> made = TrashCheckpointTime(entry.path.substr(entry.path.rfind('/') + 1));
    if (!made || *made >= before) continue;
    ASSIGN_OR_RETURN(const bool was_there, files_->Delete(entry.path, /*recursive=*/true));
    if (was_there) deleted.push_back(entry.path);
  }
  return deleted;
}

}  // namespace cairn::client
