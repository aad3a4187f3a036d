#include "client/cli/dfs_change.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/errors.h"
#include "client/cli/format.h"

namespace cairn::cli {
namespace {

int Mkdir(Shell* shell, const Arguments& arguments) {
  int worst = kSuccess;
  for (const std::string& value : arguments.values) {
    const PathArgument path = ResolvePath(*shell, value);
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (status.ok()) {
      if (!status->is_directory)
        worst = std::max(worst, Complain(shell, "mkdir", path.typed, "Is not a directory"));
      else if (!arguments.Has("p"))
        worst = std::max(worst, Complain(shell, "mkdir", path.typed, "File exists"));
      continue;
    }
    if (!errors::IsNotFound(status.status())) {
      worst = std::max(worst, Complain(shell, "mkdir", path.typed, status.status()));
      continue;
    }
    if (!arguments.Has("p")) {
      const std::string parent = ParentOf(path.path);
      const absl::StatusOr<FileStatus> above = shell->files->GetFileStatus(parent);
      if (!above.ok()) {
        worst = std::max(worst, Complain(shell, "mkdir", parent, above.status()));
        continue;
      }
    }
    const absl::Status made = shell->files->MakeDirectories(path.path);
    if (!made.ok()) worst = std::max(worst, Complain(shell, "mkdir", path.typed, made));
  }
  return worst;
}

int Mv(Shell* shell, const Arguments& arguments) {
  const PathArgument target = ResolvePath(*shell, arguments.values.back());
  const std::span<const std::string> sources(arguments.values.data(), arguments.values.size() - 1);
  const absl::StatusOr<FileStatus> there = shell->files->GetFileStatus(target.path);
  if (!there.ok() && !errors::IsNotFound(there.status())) return Complain(shell, "mv", target.typed, there.status());
  const bool into = there.ok() && there->is_directory;
  if (sources.size() > 1 && !into)
    return Complain(shell, "mv", target.typed, there.ok() ? "Is not a directory" : "No such file or directory");
  return ForEachPath(shell, "mv", sources, [&](const PathArgument& source) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(source.path);
    if (!status.ok()) return Complain(shell, "mv", source.typed, status.status());
    const PathArgument to = into ? Child(target, BaseName(source.path)) : target;
    const absl::Status moved = shell->files->Rename(source.path, to.path, /*overwrite=*/false);
    if (moved.ok()) return kSuccess;
    // Whose fault it was: the destination's, when it is there already or its parent is not.
    const bool about_target = errors::IsAlreadyExists(moved) || errors::IsNotFound(moved) || errors::IsNotDirectory(moved);
    return Complain(shell, "mv", about_target ? to.typed : source.typed, moved);
  });
}

int Touchz(Shell* shell, const Arguments& arguments) {
  int worst = kSuccess;
  for (const std::string& value : arguments.values) {
    const PathArgument path = ResolvePath(*shell, value);
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (status.ok() && status->is_directory) {
      worst = std::max(worst, Complain(shell, "touchz", path.typed, "Is a directory"));
      continue;
    }
    if (status.ok() && status->length_bytes > 0) {
      worst = std::max(worst, Complain(shell, "touchz", path.typed, "Not a zero-length file"));
      continue;
    }
    CreateOptions options;
    options.overwrite = true;
    options.create_parent = false;
    absl::StatusOr<std::unique_ptr<FileWriter>> writer = shell->files->Create(path.path, options);
    const absl::Status made = writer.ok() ? (*writer)->Close() : writer.status();
    if (!made.ok()) worst = std::max(worst, Complain(shell, "touchz", path.typed, made));
  }
  return worst;
}

}  // namespace

std::vector<Verb> ChangeVerbs() {
  std::vector<Verb> verbs(3);
  verbs[0].name = "mkdir";
  verbs[0].synopsis = "[-p] <path> ...";
  verbs[0].help = "Makes directories. -p: with their parents, and it is no error if they are there.";
  verbs[0].flags = {"p"};
  verbs[0].least = 1;
  verbs[0].run = Mkdir;
  verbs[1].name = "mv";
  verbs[1].synopsis = "<src> ... <dst>";
  verbs[1].help = "Renames a path, or moves paths into a directory.";
  verbs[1].least = 2;
  verbs[1].run = Mv;
  verbs[2].name = "touchz";
  verbs[2].synopsis = "<path> ...";
  verbs[2].help = "Makes empty files.";
  verbs[2].least = 1;
  verbs[2].run = Touchz;
  return verbs;
}

}  // namespace cairn::cli
