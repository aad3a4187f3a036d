#include "client/cli/dfs_transfer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "cairn/errors.h"
#include "client/cli/format.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBytes = 1 << 20;

// The next bytes of what is copied; 0 at the end.
using Source = std::function<absl::StatusOr<size_t>(std::span<char>)>;

absl::Status Interrupted() { return MakeError(ErrorKind::kCancelled, "Interrupted"); }

absl::Status LocalError(const std::string& what) { return absl::InternalError(what); }

Source FromStream(std::ifstream* file, std::string name) {
  return [file, name = std::move(name)](std::span<char> into) -> absl::StatusOr<size_t> {
    file->read(into.data(), static_cast<std::streamsize>(into.size()));
    if (file->bad()) return LocalError(fmt::format("{}: cannot be read", name));
    return static_cast<size_t>(file->gcount());
  };
}

Source FromInput(Shell* shell) {
  return [shell](std::span<char> into) -> absl::StatusOr<size_t> {
    const long count = shell->read_input(into);
    if (shell->Interrupted()) return Interrupted();
    if (count < 0) return LocalError("standard input cannot be read");
    return static_cast<size_t>(count);
  };
}

absl::Status CopyInto(Shell* shell, const Source& source, FileWriter* writer) {
  std::vector<char> buffer(kCopyBytes);
  for (;;) {
    if (shell->Interrupted()) return Interrupted();
    ASSIGN_OR_RETURN(const size_t count, source(buffer));
    if (count == 0) break;
    RETURN_IF_ERROR(writer->Append(std::span<const char>(buffer.data(), count)));
  }
  return shell->Interrupted() ? Interrupted() : absl::OkStatus();
}

// Writes `source` to `path`, which then appears at once and whole.
absl::Status WriteWhole(Shell* shell, const Source& source, const std::string& path, bool overwrite) {
  const std::string copying = path + kCopying;
  CreateOptions options;
  options.overwrite = true;  // Of what an earlier, killed copy left.
  options.create_parent = false;
  options.delete_if_abandoned = true;  // Also a copy that is killed leaves nothing behind for long.
  ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> writer, shell->files->Create(copying, options));
  absl::Status status = CopyInto(shell, source, writer.get());
  if (status.ok()) status = writer->Close();
  if (!status.ok()) writer->Abort();
  writer.reset();
  if (status.ok() && shell->Interrupted()) status = Interrupted();
  if (status.ok()) status = shell->files->Rename(copying, path, overwrite);
  if (!status.ok()) IgnoreError(shell->files->Delete(copying, false).status(), "the first error is the one to tell");
  return status;
}

int PutOne(Shell* shell, const std::string& local, const PathArgument& target, bool overwrite);

int PutDirectory(Shell* shell, const std::string& local, const PathArgument& target, bool overwrite) {
  const absl::Status made = shell->files->MakeDirectories(target.path);
  if (!made.ok()) return Complain(shell, "put", target.typed, made);
  std::error_code error;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(local, error)) names.push_back(entry.path().filename().string());
  if (error) return Complain(shell, "put", local, error.message());
  std::sort(names.begin(), names.end());
  int worst = kSuccess;
  for (const std::string& name : names) worst = std::max(worst, PutOne(shell, local + "/" + name, Child(target, name), overwrite));
  return worst;
}

int PutOne(Shell* shell, const std::string& local, const PathArgument& target, bool overwrite) {
  if (shell->Interrupted()) return kFailure;
  const bool from_input = local == "-";
  std::error_code error;
  if (!from_input && !fs::exists(local, error)) return Complain(shell, "put", local, "No such file or directory");
  if (!from_input && fs::is_directory(local, error)) return PutDirectory(shell, local, target, overwrite);
  const absl::StatusOr<FileStatus> there = shell->files->GetFileStatus(target.path);
  if (there.ok() && there->is_directory) return Complain(shell, "put", target.typed, "Is a directory");
  if (there.ok() && !overwrite) return Complain(shell, "put", target.typed, "File exists");
  if (!there.ok() && !errors::IsNotFound(there.status())) return Complain(shell, "put", target.typed, there.status());
  absl::Status status;
  if (from_input) {
    status = WriteWhole(shell, FromInput(shell), target.path, overwrite);
  } else {
    std::ifstream file(local, std::ios::binary);
    if (!file) return Complain(shell, "put", local, "Permission denied");
    status = WriteWhole(shell, FromStream(&file, local), target.path, overwrite);
  }
  return status.ok() ? kSuccess : Complain(shell, "put", target.typed, status);
}

int Put(Shell* shell, const Arguments& arguments) {
  const PathArgument target = ResolvePath(*shell, arguments.values.back());
  const bool overwrite = arguments.Has("f");
  const absl::StatusOr<FileStatus> there = shell->files->GetFileStatus(target.path);
  if (!there.ok() && !errors::IsNotFound(there.status())) return Complain(shell, "put", target.typed, there.status());
  const bool into = there.ok() && there->is_directory;
  const std::span<const std::string> sources(arguments.values.data(), arguments.values.size() - 1);
  if (sources.size() > 1 && !into)
    return Complain(shell, "put", target.typed, there.ok() ? "Is not a directory" : "No such file or directory");
  // "dir/" is a directory or nothing: no file of that name appears.
  if (!into && arguments.values.back().ends_with('/')) return Complain(shell, "put", arguments.values.back(), "Is not a directory");
  if (!there.ok()) {
    const absl::StatusOr<FileStatus> parent = shell->files->GetFileStatus(ParentOf(target.path));
    if (!parent.ok()) return Complain(shell, "put", target.typed, parent.status());
  }
  int worst = kSuccess;
  for (const std::string& source : sources) {
    std::string name = fs::path(source).filename().string();
    if (name.empty()) name = fs::path(source).parent_path().filename().string();  // "dir/"
    if (into && source == "-") return Complain(shell, "put", target.typed, "Is a directory");
    worst = std::max(worst, PutOne(shell, source, into ? Child(target, name) : target, overwrite));
  }
  return worst;
}

absl::Status CopyOut(Shell* shell, const std::string& path, std::ostream* out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileReader> reader, shell->files->Open(path));
  std::vector<char> buffer(kCopyBytes);
  for (;;) {
    if (shell->Interrupted()) return Interrupted();
    ASSIGN_OR_RETURN(const size_t count, reader->Read(buffer));
    if (count == 0) return absl::OkStatus();
    out->write(buffer.data(), static_cast<std::streamsize>(count));
    if (!*out) return LocalError("the output cannot be written");
  }
}

int GetOne(Shell* shell, const PathArgument& source, const FileStatus& status, const std::string& local, bool overwrite) {
  if (shell->Interrupted()) return kFailure;
  std::error_code error;
  if (status.is_directory) {
    fs::create_directory(local, error);
    if (error) return Complain(shell, "get", local, error.message());
    const absl::StatusOr<std::vector<FileStatus>> entries = shell->files->List(source.path);
    if (!entries.ok()) return Complain(shell, "get", source.typed, entries.status());
    int worst = kSuccess;
    for (const FileStatus& entry : *entries) {
      const std::string name = BaseName(entry.path);
      worst = std::max(worst, GetOne(shell, Child(source, name), entry, local + "/" + name, overwrite));
    }
    return worst;
  }
  if (fs::exists(local, error) && !overwrite) return Complain(shell, "get", local, "File exists");
  const std::string copying = local + kCopying;
  absl::Status copied;
  {
    std::ofstream file(copying, std::ios::binary | std::ios::trunc);
    if (!file) return Complain(shell, "get", local, "No such file or directory");
    copied = CopyOut(shell, source.path, &file);
    file.close();
    if (copied.ok() && !file) copied = LocalError(fmt::format("{}: cannot be written", copying));
  }
  if (copied.ok()) fs::rename(copying, local, error);
  if (copied.ok() && error) copied = LocalError(error.message());
  if (copied.ok()) return kSuccess;
  fs::remove(copying, error);
  return Complain(shell, "get", source.typed, copied);
}

int Get(Shell* shell, const Arguments& arguments) {
  std::vector<std::string> sources = arguments.values;
  std::string local = ".";
  if (sources.size() > 1) {
    local = sources.back();
    sources.pop_back();
  }
  std::error_code error;
  const bool into = fs::is_directory(local, error);
  if (sources.size() > 1 && !into && local != "-") return Complain(shell, "get", local, "No such file or directory");
  return ForEachPath(shell, "get", sources, [&](const PathArgument& source) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(source.path);
    if (!status.ok()) return Complain(shell, "get", source.typed, status.status());
    if (local != "-") return GetOne(shell, source, *status, into ? local + "/" + BaseName(source.path) : local, arguments.Has("f"));
    if (status->is_directory) return Complain(shell, "get", source.typed, "Is a directory");
    const absl::Status copied = CopyOut(shell, source.path, shell->out);
    return copied.ok() ? kSuccess : Complain(shell, "get", source.typed, copied);
  });
}

int Cat(Shell* shell, const Arguments& arguments) {
  return ForEachPath(shell, "cat", arguments.values, [&](const PathArgument& path) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (!status.ok()) return Complain(shell, "cat", path.typed, status.status());
    if (status->is_directory) return Complain(shell, "cat", path.typed, "Is a directory");
    const absl::Status copied = CopyOut(shell, path.path, shell->out);
    return copied.ok() ? kSuccess : Complain(shell, "cat", path.typed, copied);
  });
}

Verb PutVerb(std::string name) {
  Verb verb;
  verb.name = std::move(name);
  verb.synopsis = "[-f] <localsrc> ... <dst>";
  verb.help = "Copies local files, or standard input (-), into the cluster. -f: replaces what is there.";
  verb.flags = {"f"};
  verb.least = 2;
  verb.run = Put;
  return verb;
}

Verb GetVerb(std::string name) {
  Verb verb;
  verb.name = std::move(name);
  verb.synopsis = "[-f] <src> ... <localdst>";
  verb.help = "Copies files out of the cluster, to a local path or to standard output (-). -f: replaces what is there.";
  verb.flags = {"f"};
  verb.least = 1;
  verb.run = Get;
  return verb;
}

}  // namespace

absl::Status AppendLocal(Shell* shell, const std::string& local, FileWriter* writer) {
  if (local == "-") return CopyInto(shell, FromInput(shell), writer);
  std::ifstream file(local, std::ios::binary);
  if (!file) return LocalError(fmt::format("{}: Permission denied", local));
  return CopyInto(shell, FromStream(&file, local), writer);
}

std::vector<Verb> TransferVerbs() {
  std::vector<Verb> verbs = {PutVerb("put"), PutVerb("copyFromLocal"), GetVerb("get"), GetVerb("copyToLocal")};
  Verb& cat = verbs.emplace_back();
  cat.name = "cat";
  cat.synopsis = "<src> ...";
  cat.help = "Writes files to standard output.";
  cat.least = 1;
  cat.run = Cat;
  return verbs;
}

}  // namespace cairn::cli
