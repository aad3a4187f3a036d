#include "client/cli/dfs_blocks.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "cairn/errors.h"
#include "client/cli/format.h"

namespace cairn::cli {
namespace {

constexpr absl::Duration kPollInterval = absl::Seconds(1);

int SetOne(Shell* shell, const PathArgument& path, const FileStatus& status, uint32_t replication, std::vector<PathArgument>* changed) {
  if (shell->Interrupted()) return kFailure;
  if (!status.is_directory) {
    const absl::StatusOr<bool> set = shell->files->SetReplication(path.path, replication);
    if (!set.ok()) return Complain(shell, "setrep", path.typed, set.status());
    *shell->out << fmt::format("Replication {} set: {}\n", replication, path.typed);
    changed->push_back(path);
    return kSuccess;
  }
  int worst = kSuccess;
  std::string start_after;
  for (bool more = true; more && !shell->Interrupted();) {
    const absl::StatusOr<std::vector<FileStatus>> page = shell->files->ListPage(path.path, start_after, 0, &more);
    if (!page.ok()) return Complain(shell, "setrep", path.typed, page.status());
    if (page->empty()) break;
    start_after = BaseName(page->back().path);
    for (const FileStatus& entry : *page)
      worst = std::max(worst, SetOne(shell, Child(path, BaseName(entry.path)), entry, replication, changed));
  }
  return worst;
}

// Until every block is on just so many DataNodes, beside those that are drained or in maintenance.
int WaitFor(Shell* shell, const PathArgument& path, uint32_t replication) {
  *shell->out << fmt::format("Waiting for {} ...", path.typed) << std::flush;
  bool warned = false;
  for (;;) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (!status.ok()) return Complain(shell, "setrep", path.typed, status.status());
    const absl::StatusOr<std::vector<BlockLocation>> blocks = shell->files->GetBlockLocations(path.path, 0, status->length_bytes);
    if (!blocks.ok()) return Complain(shell, "setrep", path.typed, blocks.status());
    bool done = true;
    bool too_many = false;
    for (const BlockLocation& block : *blocks) {
      const size_t staying = block.hosts.size() - block.leaving;
      done &= staying == replication;
      too_many |= staying > replication;
    }
    if (done) break;
    if (too_many && !warned) *shell->out << "\nWARNING: the waiting time may be long for DECREASING the number of replications.\n";
    warned |= too_many;
    *shell->out << "." << std::flush;
    shell->Wait(kPollInterval);
    if (shell->Interrupted()) return kFailure;
  }
  *shell->out << " done\n";
  return kSuccess;
}

int SetRep(Shell* shell, const Arguments& arguments) {
  uint32_t replication = 0;
  const std::string& number = arguments.values[0];
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), replication);
  if (error != std::errc() || end != number.data() + number.size()) {
    *shell->err << "setrep: Illegal replication, a positive integer expected\n";
    return kUsage;
  }
  if (replication < 1) {
    *shell->err << "-setrep: replication must be >= 1\n";
    return kUsage;
  }
  std::vector<PathArgument> changed;
  const std::span<const std::string> paths(arguments.values.data() + 1, arguments.values.size() - 1);
  int worst = ForEachPath(shell, "setrep", paths, [&](const PathArgument& path) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (!status.ok()) return Complain(shell, "setrep", path.typed, status.status());
    return SetOne(shell, path, *status, replication, &changed);
  });
  if (!arguments.Has("w")) return worst;
  for (const PathArgument& path : changed) worst = std::max(worst, WaitFor(shell, path, replication));
  return worst;
}

int Concat(Shell* shell, const Arguments& arguments) {
  const PathArgument target = ResolvePath(*shell, arguments.values[0]);
  const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(target.path);
  if (!status.ok()) return Complain(shell, "concat", target.typed, status.status());
  if (status->is_directory) return Complain(shell, "concat", target.typed, "Is a directory");
  std::vector<std::string> sources;
  const std::span<const std::string> typed(arguments.values.data() + 1, arguments.values.size() - 1);
  const int found = ForEachPath(shell, "concat", typed, [&](const PathArgument& source) {
    const absl::StatusOr<bool> exists = shell->files->Exists(source.path);
    if (!exists.ok()) return Complain(shell, "concat", source.typed, exists.status());
    if (!*exists) return Complain(shell, "concat", source.typed, "No such file or directory");
    sources.push_back(source.path);
    return kSuccess;
  });
  if (found != kSuccess) return found;
  const absl::Status joined = shell->files->Concat(target.path, sources);
  return joined.ok() ? kSuccess : Complain(shell, "concat", target.typed, joined);
}

}  // namespace

std::vector<Verb> BlockVerbs() {
  std::vector<Verb> verbs(2);
  verbs[0].name = "setrep";
  verbs[0].synopsis = "[-R] [-w] <rep> <path> ...";
  verbs[0].help =
      "Sets how many replicas files have; of a directory, all files below it. -w: waits until they have them. -R: accepted, as in HDFS, "
      "without effect.";
  verbs[0].flags = {"R", "w"};
  verbs[0].least = 2;
  verbs[0].run = SetRep;
  verbs[1].name = "concat";
  verbs[1].synopsis = "<target path> <src path> <src path> ...";
  verbs[1].help = "Moves the blocks of the source files to the end of the target; the sources are gone then. All are in one directory.";
  verbs[1].least = 2;
  verbs[1].run = Concat;
  return verbs;
}

}  // namespace cairn::cli
