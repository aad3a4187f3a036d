#include "namenode/checkpoints.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "common/status.h"

namespace cairn::namenode {
namespace {

constexpr std::string_view kMaking = ".making";

// A file, or a directory with all that is in it.
absl::Status RemoveTree(const std::string& path, LocalFileSystem& files) {
  if (const auto names = files.List(path); names.ok())
    for (const std::string& name : *names) RETURN_IF_ERROR(RemoveTree(path + "/" + name, files));
  return files.Remove(path);
}

// A name of one entry, which leads nowhere else.
bool IsEntryName(std::string_view name) { return !name.empty() && name.find('/') == std::string_view::npos && name[0] != '.'; }

}  // namespace

void Checkpoints::Save(Done<Saved> done) {
  executor_->Post([this, done = std::move(done)]() mutable { done(SaveNow()); });
}

void Checkpoints::Describe(std::string name, Done<Image> done) {
  executor_->Post([this, name = std::move(name), done = std::move(done)]() mutable { done(DescribeNow(name)); });
}

void Checkpoints::Read(std::string name, std::string file, uint64_t offset, uint64_t length, Done<std::string> done) {
  executor_->Post([this, name = std::move(name), file = std::move(file), offset, length, done = std::move(done)]() mutable {
    done(ReadNow(name, file, offset, length));
  });
}

absl::StatusOr<std::vector<std::string>> Checkpoints::Names() {
  LocalFileSystem& files = env_->files();
  ASSIGN_OR_RETURN(const bool exists, files.Exists(root()));
  if (!exists) return std::vector<std::string>();
  ASSIGN_OR_RETURN(std::vector<std::string> names, files.List(root()));  // By name, which is by time.
  std::erase_if(names, [](const std::string& name) { return name.ends_with(kMaking) || !IsEntryName(name); });
  return names;
}

absl::Status Checkpoints::RemoveOld() {
  LocalFileSystem& files = env_->files();
  ASSIGN_OR_RETURN(const std::vector<std::string> all, files.List(root()));
  for (const std::string& name : all)
    if (name.ends_with(kMaking)) RETURN_IF_ERROR(RemoveTree(root() + "/" + name, files));
  ASSIGN_OR_RETURN(std::vector<std::string> names, Names());
  for (size_t i = 0; i + std::max<size_t>(options_.kept, 1) < names.size(); ++i) {
    // Renamed first, so that what is half removed is not taken for a checkpoint.
    const std::string going = root() + "/" + names[i] + std::string(kMaking);
    RETURN_IF_ERROR(files.Rename(root() + "/" + names[i], going));
    RETURN_IF_ERROR(RemoveTree(going, files));
  }
  return absl::OkStatus();
}

absl::StatusOr<Checkpoints::Saved> Checkpoints::SaveNow() {
  LocalFileSystem& files = env_->files();
  const SteadyTime begun = env_->clock().Now();
  RETURN_IF_ERROR(files.MakeDirectories(root()));
  RETURN_IF_ERROR(RemoveOld());
  Saved saved;
  saved.applied_index = directory_->store().applied_index();
  saved.name =
      fmt::format("{}-{:012}", absl::FormatTime("%Y%m%dT%H%M%E3SZ", env_->clock().WallNow(), absl::UTCTimeZone()), saved.applied_index);
  saved.path = root() + "/" + saved.name;
  const std::string making = saved.path + std::string(kMaking);
  const auto make = [&]() -> absl::Status {
    RETURN_IF_ERROR(files.MakeDirectories(making));
    RETURN_IF_ERROR(directory_->store().Checkpoint(making + "/namespace"));
    RETURN_IF_ERROR(directory_->WriteCheckpointVersion(making, saved.name));
    RETURN_IF_ERROR(FaultPoint("checkpoints.before_rename"));
    RETURN_IF_ERROR(files.SyncDirectory(making));
    RETURN_IF_ERROR(files.Rename(making, saved.path));
    return files.SyncDirectory(root());
  };
  if (const absl::Status made = make(); !made.ok()) {
    IgnoreError(RemoveTree(making, files), "the next one removes it");
    return Annotate(made, fmt::format("checkpoint {}", saved.path));
  }
  saved.took = env_->clock().Now() - begun;
  spdlog::info("checkpoint {} was made in {}", saved.path, absl::FormatDuration(saved.took));
  IgnoreError(RemoveOld(), "the next one tries again");
  return saved;
}

absl::StatusOr<Checkpoints::Image> Checkpoints::DescribeNow(const std::string& name) {
  LocalFileSystem& files = env_->files();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  if (names.empty())
    return MakeError(ErrorKind::kNotFound, fmt::format("{} holds no checkpoint; make one: dfsadmin -saveNamespace", root()));
  Image image;
  image.name = name.empty() ? names.back() : name;
  if (std::find(names.begin(), names.end(), image.name) == names.end())
    return MakeError(ErrorKind::kNotFound, fmt::format("{} holds no checkpoint {}", root(), image.name));
  ASSIGN_OR_RETURN(const std::vector<std::string> tables, files.List(root() + "/" + image.name + "/namespace"));
  image.files.push_back({"VERSION", 0});
  for (const std::string& table : tables) image.files.push_back({"namespace/" + table, 0});
  for (ImageFile& file : image.files) {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> opened,
                     files.Open(root() + "/" + image.name + "/" + file.name, LocalFileSystem::OpenMode::kRead));
    ASSIGN_OR_RETURN(file.size_bytes, opened->Size());
  }
  return image;
}

absl::StatusOr<std::string> Checkpoints::ReadNow(const std::string& name, const std::string& file, uint64_t offset, uint64_t length) {
  constexpr std::string_view kFolder = "namespace/";
  const bool table = file.starts_with(kFolder) && IsEntryName(std::string_view(file).substr(kFolder.size()));
  if (!IsEntryName(name) || name.ends_with(kMaking) || (file != "VERSION" && !table))
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("'{}/{}' is no file of a checkpoint", name, file));
  ASSIGN_OR_RETURN(const std::unique_ptr<File> opened,
                   env_->files().Open(root() + "/" + name + "/" + file, LocalFileSystem::OpenMode::kRead));
  std::string bytes(std::min(length, kMostReadBytes), '\0');
  ASSIGN_OR_RETURN(const size_t count, opened->ReadAt(offset, bytes));
  bytes.resize(count);
  return bytes;
}

}  // namespace cairn::namenode
