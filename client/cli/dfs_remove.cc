#include "client/cli/dfs_remove.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/errors.h"
#include "client/cli/format.h"
#include "common/error.h"

namespace cairn::cli {
namespace {

constexpr size_t kPathsPerCall = 1000;  // Between looks at whether the user has had enough.

// One command line of rm: paths go to the trash one by one, or are deleted many at a time.
class Removal {
 public:
  Removal(Shell* shell, const Arguments& arguments)
      : shell_(shell),
        force_(arguments.Has("f")),
        recursive_(arguments.Has("r") || arguments.Has("R")),
        skip_trash_(arguments.Has("skipTrash")) {}

  int Run(const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      const absl::StatusOr<std::vector<PathArgument>> paths = ExpandPattern(shell_, value);
      if (!paths.ok()) {
        Failed(value, paths.status());
        continue;
      }
      for (const PathArgument& path : *paths) {
        if (shell_->Interrupted()) return kFailure;
        Remove(path);
      }
    }
    Delete();
    return worst_;
  }

 private:
  void Failed(const std::string& typed, const absl::Status& status) {
    if (force_ && errors::IsNotFound(status)) return;
    worst_ = std::max(worst_, Complain(shell_, "rm", typed, status));
  }

  void Remove(const PathArgument& path) {
    bool is_directory = path.is_directory.value_or(false);
    if (!path.is_directory) {
      const absl::StatusOr<FileStatus> status = shell_->files->GetFileStatus(path.path);
      if (!status.ok()) return Failed(path.typed, status.status());
      is_directory = status->is_directory;
    }
    if (is_directory && !recursive_) {
      worst_ = std::max(worst_, Complain(shell_, "rm", path.typed, "Is a directory"));
      return;
    }
    if (!skip_trash_ && MovedToTrash(path)) return;
    to_delete_.push_back(path);
    if (to_delete_.size() == kPathsPerCall) Delete();
  }

  // True if nothing is left to do for the path, for better or worse: what could not be moved is not deleted instead.
  bool MovedToTrash(const PathArgument& path) {
    const absl::StatusOr<std::string> moved = shell_->files->MoveToTrash(path.path);
    if (!moved.ok()) {
      if (errors::IsNotFound(moved.status())) {
        Failed(path.typed, moved.status());
      } else {
        *shell_->err << fmt::format("rm: {}. Consider using -skipTrash option\n", std::string(moved.status().message()));
        worst_ = kFailure;
      }
      return true;
    }
    if (moved->empty()) return false;
    *shell_->out << fmt::format("Moved: '{0}{1}' to trash at: {0}{2}\n", shell_->address, path.path, *moved);
    return true;
  }

  // A tree is one entry of one call, however large it is.
  void Delete() {
    std::vector<std::string> paths;
    for (const PathArgument& path : to_delete_) paths.push_back(path.path);
    absl::StatusOr<std::vector<absl::Status>> many = std::vector<absl::Status>();
    if (paths.size() > 1) many = shell_->files->DeleteMany(paths, recursive_);
    for (size_t i = 0; i < paths.size(); ++i) {
      absl::Status result = !many.ok() ? many.status() : many->empty() ? DeleteAlone(paths[i]) : (*many)[i];
      // Of many, a call answers with a number only; alone, it says in full what is wrong.
      if (many.ok() && !many->empty() && !result.ok() && !errors::IsNotFound(result)) result = DeleteAlone(paths[i]);
      if (result.ok()) {
        *shell_->out << fmt::format("Deleted {}\n", to_delete_[i].typed);
      } else {
        Failed(to_delete_[i].typed, result);
      }
    }
    to_delete_.clear();
  }

  absl::Status DeleteAlone(const std::string& path) {
    const absl::StatusOr<bool> deleted = shell_->files->Delete(path, recursive_);
    if (!deleted.ok()) return deleted.status();
    return *deleted ? absl::OkStatus() : MakeError(ErrorKind::kNotFound, fmt::format("{} does not exist", path));
  }

  Shell* const shell_;
  const bool force_;
  const bool recursive_;
  const bool skip_trash_;
  std::vector<PathArgument> to_delete_;
  int worst_ = kSuccess;
};

int Rm(Shell* shell, const Arguments& arguments) { return Removal(shell, arguments).Run(arguments.values); }

int Expunge(Shell* shell, const Arguments& arguments) {
  const absl::StatusOr<ExpungedTrash> expunged = shell->files->ExpungeTrash(arguments.Has("immediate"));
  if (!expunged.ok()) {
    *shell->err << fmt::format("expunge: {}\n", std::string(expunged.status().message()));
    return kFailure;
  }
  // In the order in which they were done.
  const std::string made = expunged->made.empty() ? "" : fmt::format("Created trash checkpoint: {}\n", expunged->made);
  if (arguments.Has("immediate")) *shell->out << made;
  for (const std::string& path : expunged->deleted) *shell->out << fmt::format("Deleted trash checkpoint: {}\n", path);
  if (!arguments.Has("immediate")) *shell->out << made;
  return kSuccess;
}

}  // namespace

std::vector<Verb> RemoveVerbs() {
  std::vector<Verb> verbs(2);
  verbs[0].name = "rm";
  verbs[0].synopsis = "[-f] [-r|-R] [-skipTrash] <src> ...";
  verbs[0].help =
      "Deletes files, or moves them to the trash if there is one (fs.trash.interval). -r: directories with all they hold. -f: it is no "
      "error if a path is not there. -skipTrash: deletes at once.";
  verbs[0].flags = {"f", "r", "R", "skipTrash"};
  verbs[0].least = 1;
  verbs[0].run = Rm;
  verbs[1].name = "expunge";
  verbs[1].synopsis = "[-immediate]";
  verbs[1].help =
      "Deletes what has been in your trash for longer than fs.trash.interval, and makes a checkpoint of what was moved there since the "
      "last. -immediate: deletes all of it.";
  verbs[1].flags = {"immediate"};
  verbs[1].most = 0;
  verbs[1].run = Expunge;
  return verbs;
}

}  // namespace cairn::cli
