#include "client/cli/dfsadmin_image.h"

#include <filesystem>
#include <memory>
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

int Failed(Shell* shell, const std::string& verb, const absl::Status& status) {
  *shell->err << fmt::format("{}: {}\n", verb, std::string(status.message()));
  return kFailure;
}

absl::Status FetchFile(const AskImage& ask, const Shell& shell, const std::string& image, const v1::GetImageResponse::File& file,
                       LocalFileSystem* files, const fs::path& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> out, files->Open(path.string(), LocalFileSystem::OpenMode::kCreateNew));
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
    RETURN_IF_ERROR(out->WriteAt(offset, chunk.data()));
    offset += chunk.data().size();
  }
  return out->Sync();
}

// A name below the image's directory, and nothing else.
bool IsProperName(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const fs::path& part : path)
    if (part == ".." || part == "." || part.empty()) return false;
  return true;
}

absl::StatusOr<uint64_t> FetchInto(const AskImage& ask, const Shell& shell, const v1::GetImageResponse& image, LocalFileSystem* files,
                                   const fs::path& directory) {
  uint64_t bytes = 0;
  for (const v1::GetImageResponse::File& file : image.files()) {
    if (!IsProperName(file.name())) return MakeError(ErrorKind::kInvalidArgument, fmt::format("'{}' is no name of a file", file.name()));
    const fs::path path = directory / file.name();
    RETURN_IF_ERROR(files->MakeDirectories(path.parent_path().string()));
    RETURN_IF_ERROR(FetchFile(ask, shell, image.name(), file, files, path));
    bytes += file.size_bytes();
  }
  RETURN_IF_ERROR(files->SyncDirectory((directory / "namespace").string()));
  RETURN_IF_ERROR(files->SyncDirectory(directory.string()));
  return bytes;
}

int FetchImage(const AskImage& ask, LocalFileSystem* files, Shell* shell, const Arguments& arguments) {
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
  if (const absl::Status made = files->MakeDirectories(part.string()); !made.ok()) return Failed(shell, "fetchImage", made);
  absl::StatusOr<uint64_t> bytes = FetchInto(ask, *shell, *image, files, part);
  if (bytes.ok()) {
    absl::Status placed = files->Rename(part.string(), whole.string());
    if (placed.ok()) placed = files->SyncDirectory(target.string());
    if (!placed.ok()) bytes = placed;
  }
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

std::vector<Verb> ImageVerbs(const AskImage& ask, LocalFileSystem* files) {
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
  verbs[1].run = [ask, files](Shell* shell, const Arguments& arguments) { return FetchImage(ask, files, shell, arguments); };
  verbs[2].name = "confirmRollback";
  verbs[2].help =
      "After a restored backup: replicas that the namespace does not know, kept until now, may be deleted. What was written after the "
      "backup cannot be brought back any more. For superusers.";
  verbs[2].most = 0;
  verbs[2].run = [ask](Shell* shell, const Arguments&) { return ConfirmRollback(ask, shell); };
  return verbs;
}

}  // namespace cairn::cli
