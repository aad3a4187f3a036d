#include "common/env/file_system.h"

#include "common/error.h"
#include "common/status.h"

namespace cairn {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::StatusOr<std::string> LocalFileSystem::ReadWhole(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, Open(path, OpenMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::string content(size, '\0');
  ASSIGN_OR_RETURN(const size_t read, file->ReadAt(0, content));
  content.resize(read);
  return content;
}

absl::Status LocalFileSystem::WriteWhole(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".tmp";
  // One left by a crash of an earlier writer means nothing.
  if (absl::Status removed = Remove(temporary); !removed.ok() && KindOf(removed) != ErrorKind::kNotFound) return removed;
  {
    ASSIGN_OR_RETURN(std::unique_ptr<File> file, Open(temporary, OpenMode::kCreateNew));
    RETURN_IF_ERROR(file->WriteAt(0, content));
    RETURN_IF_ERROR(file->Sync());  // Before the rename, which could otherwise survive a power cut that the content does not.
  }
  RETURN_IF_ERROR(Rename(temporary, path));
  return SyncDirectory(ParentOf(path));
}

}  // namespace cairn
