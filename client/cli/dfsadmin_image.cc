#include "client/cli/dfsadmin_image.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "common/crc32c.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kChunkBytes = 1 << 20;

absl::Status Errno(const std::string& what) {
  return absl::InternalError(fmt::format("{}: {}", what, std::error_code(errno, std::generic_category()).message()));
}

int Failed(Shell* shell, const std::string& verb, const absl::Status& status) {
  *shell->err << fmt::format("{}: {}\n", verb, std::string(status.message()));
  return kFailure;
}

// A file being written; synced by Finish.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {}
  ~NewFile() {
    if (fd_ >= 0) close(fd_);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  absl::Status Write(std::string_view bytes) {
    if (fd_ < 0) return Errno(path_);
    while (!bytes.empty()) {
      const ssize_t count = write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Errno(path_);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return absl::OkStatus();
  }
  absl::Status Finish() {
    if (fd_ < 0 || fsync(fd_) != 0) return Errno(path_);
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const int fd_;
};

absl::Status SyncDirectory(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Errno(path.string());
  const bool synced = fsync(fd) == 0;
  const absl::Status status = synced ? absl::OkStatus() : Errno(path.string());
  close(fd);
  return status;
}

absl::Status FetchFile(const AskImage& ask, const Shell& shell, const std::string& image, const v1::GetImageResponse::File& file,
                       const fs::path& path) {
  NewFile out(path.string());
  RETURN_IF_ERROR(out.Write(""));
  for (uint64_t offset = 0; offset < file.size_bytes();) {
    if (shell.Interrupted()) return MakeError(ErrorKind::kCancelled, "interrupted; nothing is left behind");
    v1::ReadImageRequest request;
    request.set_name(image);
    request.set_file(file.name());
    request.set_offset(offset);
    request.set_length(std::min(kChunkBytes, file.size_bytes() - offset));
    ASSIGN_OR_RETURN(const v1::ReadImageResponse chunk, ask.read(request));
    if (chunk.data().empty())
      return MakeError(ErrorKind::kChecksum, fmt::format("{}: ended after {} of {} bytes", file.name(), offset, file.size_bytes()));
    if (Crc32c({chunk.data().data(), chunk.data().size()}) != chunk.crc32c())
      return MakeError(ErrorKind::kChecksum, fmt::format("{}: bytes from {} arrived damaged", file.name(), offset));
    RETURN_IF_ERROR(out.Write(chunk.data()));
    offset += chunk.data().size();
  }
  return out.Finish();
}

// A name below the image's directory, and nothing else.
bool IsProperName(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const fs::path& part : path)
    if (part == ".." || part == "." || part.empty()) return false;
  return true;
}

absl::StatusOr<uint64_t> FetchInto(const AskImage& ask, const Shell& shell, const v1::GetImageResponse& image, const fs::path& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const v1::GetImageResponse::File& file : image.files()) {
    if (!IsProperName(file.name())) return MakeError(ErrorKind::kInvalidArgument, fmt::format("'{}' is no name of a file", file.name()));
    const fs::path path = directory / file.name();
    fs::create_directories(path.parent_path(), error);
    if (error) return absl::InternalError(fmt::format("{}: {}", path.parent_path().string(), error.message()));
    RETURN_IF_ERROR(FetchFile(ask, shell, image.name(), file, path));
    bytes += file.size_bytes();
  }
  RETURN_IF_ERROR(SyncDirectory(directory / "namespace"));
  RETURN_IF_ERROR(SyncDirectory(directory));
  return bytes;
}

int FetchImage(const AskImage& ask, Shell* shell, const Arguments& arguments) {
  const fs::path target(arguments.values[0]);
  std::error_code error;
  if (!fs::is_directory(target, error))
    return Failed(shell, "fetchImage", absl::NotFoundError(fmt::format("`{}': No such directory", target.string())));
  const absl::StatusOr<v1::GetImageResponse> image = ask.get(v1::GetImageRequest());
  if (!image.ok()) return Failed(shell, "fetchImage", image.status());
  if (!IsProperName(image->name()) || image->name().find('/') != std::string::npos)
    return Failed(shell, "fetchImage", absl::InvalidArgumentError(fmt::format("'{}' is no name of a checkpoint", image->name())));
  const fs::path whole = target / image->name();
  if (fs::exists(whole, error))
    return Failed(shell, "fetchImage", absl::AlreadyExistsError(fmt::format("`{}': File exists", whole.string())));
  const fs::path part = target / ("." + image->name() + ".part");
  fs::remove_all(part, error);  // Of an attempt that was killed.
  fs::create_directory(part, error);
  if (error) return Failed(shell, "fetchImage", absl::InternalError(fmt::format("{}: {}", part.string(), error.message())));
  absl::StatusOr<uint64_t> bytes = FetchInto(ask, *shell, *image, part);
  if (bytes.ok()) {
    fs::rename(part, whole, error);
    if (error) bytes = absl::InternalError(fmt::format("{}: {}", whole.string(), error.message()));
  }
  if (bytes.ok() && !SyncDirectory(target).ok()) bytes = SyncDirectory(target);
  if (!bytes.ok()) {
    fs::remove_all(part, error);
    return Failed(shell, "fetchImage", bytes.status());
  }
  *shell->out << fmt::format("{}: {} files, {} bytes\n", whole.string(), image->files_size(), *bytes);
  return kSuccess;
}

int SaveNamespace(const AskImage& ask, Shell* shell) {
  const absl::StatusOr<v1::SaveNamespaceResponse> saved = ask.save(v1::SaveNamespaceRequest());
  if (!saved.ok()) return Failed(shell, "saveNamespace", saved.status());
  *shell->out << fmt::format("Save namespace successful: {} (batch {}) in {:.1f} ms\n", saved->path(), saved->applied_index(),
                             static_cast<double>(saved->took_us()) / 1000);
  return kSuccess;
}

int ConfirmRollback(const AskImage& ask, Shell* shell) {
  const absl::StatusOr<v1::ConfirmRollbackResponse> confirmed = ask.confirm(v1::ConfirmRollbackRequest());
  if (!confirmed.ok()) return Failed(shell, "confirmRollback", confirmed.status());
  if (!confirmed->was_kept()) {
    *shell->out << "Nothing to confirm: the namespace was not rolled back\n";
  } else {
    *shell->out << fmt::format("Confirmed: {} blocks that the namespace does not know are deleted from now on\n",
                               confirmed->unknown_blocks());
  }
  return kSuccess;
}

}  // namespace

std::vector<Verb> ImageVerbs(const AskImage& ask) {
  std::vector<Verb> verbs(3);
  verbs[0].name = "saveNamespace";
  verbs[0].help =
      "Makes a checkpoint of the namespace beside it, in milliseconds, and says where. Changes go on meanwhile. For superusers.";
  verbs[0].most = 0;
  verbs[0].run = [ask](Shell* shell, const Arguments&) { return SaveNamespace(ask, shell); };
  verbs[1].name = "fetchImage";
  verbs[1].synopsis = "<local directory>";
  verbs[1].help = "Downloads the newest checkpoint of the namespace into a directory of its name below this one. For superusers.";
  verbs[1].least = verbs[1].most = 1;
  verbs[1].run = [ask](Shell* shell, const Arguments& arguments) { return FetchImage(ask, shell, arguments); };
  verbs[2].name = "confirmRollback";
  verbs[2].help =
      "After a restored backup: replicas that the namespace does not know, kept until now, may be deleted. What was written after the "
      "backup "
      "cannot be brought back any more. For superusers.";
  verbs[2].most = 0;
  verbs[2].run = [ask](Shell* shell, const Arguments&) { return ConfirmRollback(ask, shell); };
  return verbs;
}

}  // namespace cairn::cli
