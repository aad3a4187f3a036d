#include "client/cli/dfs_list.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/errors.h"
#include "client/cli/format.h"

namespace cairn::cli {
namespace {

// One directory, and those below it. Pages are printed as they come: a directory of millions needs
// no memory.
int ListDirectory(Shell* shell, const PathArgument& directory, bool recursive, bool human) {
  std::string start_after;
  int worst = kSuccess;
  std::vector<FileStatus> entries;
  for (bool more = true; more && !shell->Interrupted();) {
    absl::StatusOr<std::vector<FileStatus>> page = shell->files->ListPage(directory.path, start_after, 0, &more);
    if (!page.ok()) return Complain(shell, "ls", directory.typed, page.status());
    if (page->empty()) break;
    start_after = BaseName(page->back().path);
    std::move(page->begin(), page->end(), std::back_inserter(entries));
    if (!recursive) continue;
    const ListColumns columns = ColumnsFor(entries, human);
    for (const FileStatus& entry : entries) {
      const PathArgument child = Child(directory, BaseName(entry.path));
      *shell->out << ListLine(entry, child.typed, columns, human, shell->zone) << "\n";
      if (entry.is_directory) worst = std::max(worst, ListDirectory(shell, child, recursive, human));
    }
    entries.clear();
  }
  if (recursive || entries.empty()) return worst;
  *shell->out << fmt::format("Found {} items\n", entries.size());
  const ListColumns columns = ColumnsFor(entries, human);
  for (const FileStatus& entry : entries)
    *shell->out << ListLine(entry, Child(directory, BaseName(entry.path)).typed, columns, human, shell->zone) << "\n";
  return worst;
}

int Ls(Shell* shell, const Arguments& arguments) {
  std::vector<std::string> values = arguments.values;
  if (values.empty()) values.push_back(".");
  return ForEachPath(shell, "ls", values, [&](const PathArgument& path) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (!status.ok()) return Complain(shell, "ls", path.typed, status.status());
    const bool human = arguments.Has("h");
    if (status->is_directory && !arguments.Has("d")) return ListDirectory(shell, path, arguments.Has("R"), human);
    *shell->out << ListLine(*status, path.typed, ColumnsFor({*status}, human), human, shell->zone) << "\n";
    return kSuccess;
  });
}

int Stat(Shell* shell, const Arguments& arguments) {
  std::string format = "%y";
  std::vector<std::string> values = arguments.values;
  if (values[0].find('%') != std::string::npos) {
    format = values[0];
    values.erase(values.begin());
  }
  if (values.empty()) {
    *shell->err << "-stat: Not enough arguments: expected 1 but got 0\n";
    return kUsage;
  }
  return ForEachPath(shell, "stat", values, [&](const PathArgument& path) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (!status.ok()) return Complain(shell, "stat", path.typed, status.status());
    *shell->out << StatText(format, *status) << "\n";
    return kSuccess;
  });
}

int Test(Shell* shell, const Arguments& arguments) {
  if (arguments.flags.size() != 1) {
    *shell->err << (arguments.flags.empty() ? "-test: No test flag given\n" : "-test: Only one test flag is allowed\n");
    return kUsage;
  }
  const PathArgument path = ResolvePath(*shell, arguments.values[0]);
  const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
  if (!status.ok()) {
    if (!errors::IsNotFound(status.status()) && !errors::IsNotDirectory(status.status()))
      return Complain(shell, "test", path.typed, status.status());
    return kFailure;
  }
  bool holds = false;
  switch ((*arguments.flags.begin())[0]) {
    case 'e': holds = true; break;
    case 'd': holds = status->is_directory; break;
    case 'f': holds = !status->is_directory; break;
    case 's': holds = status->length_bytes > 0; break;
    case 'z': holds = status->length_bytes == 0; break;
    case 'r':
    case 'w': {
      const absl::Status access = shell->files->CheckAccess(path.path, arguments.Has("r") ? kMayRead : kMayWrite);
      if (!access.ok() && !errors::IsPermissionDenied(access)) return Complain(shell, "test", path.typed, access);
      holds = access.ok();
      break;
    }
    default: break;  // ParseArguments lets no other through.
  }
  return holds ? kSuccess : kFailure;
}

Verb MakeVerb(std::string name, std::string synopsis, std::vector<std::string> flags, size_t least, size_t most,
              std::function<int(Shell*, const Arguments&)> run, std::string help) {
  Verb verb;
  verb.name = std::move(name);
  verb.synopsis = std::move(synopsis);
  verb.flags = std::move(flags);
  verb.least = least;
  verb.most = most;
  verb.run = std::move(run);
  verb.help = std::move(help);
  return verb;
}

}  // namespace

std::vector<Verb> ListVerbs() {
  return {
      MakeVerb("ls", "[-d] [-h] [-R] [<path> ...]", {"d", "h", "R"}, 0, SIZE_MAX, Ls,
               "Lists what a directory holds, or a file. -d: the directory itself. -h: sizes as 1.5 K. -R: with everything below."),
      MakeVerb("stat", "[format] <path> ...", {}, 1, SIZE_MAX, Stat,
               "One line about each path: %a %A %b %F %g %n %o %r %u %x %X %y %Y, default %y."),
      MakeVerb("test", "-[defsrwz] <path>", {"d", "e", "f", "s", "r", "w", "z"}, 1, 1, Test,
               "Exit code 0 if the path is a directory, exists, is a file, is not empty, is readable, is writable, is empty; else 1."),
  };
}

}  // namespace cairn::cli
