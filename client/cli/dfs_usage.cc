#include "client/cli/dfs_usage.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/cli/format.h"

namespace cairn::cli {
namespace {

int Du(Shell* shell, const Arguments& arguments) {
  std::vector<std::string> values = arguments.values;
  if (values.empty()) values.push_back(".");
  const bool human = arguments.Has("h");
  std::vector<std::vector<std::string>> rows;
  if (arguments.Has("v")) rows.push_back({"SIZE", "DISK_SPACE_CONSUMED_WITH_ALL_REPLICAS", "FULL_PATH_NAME"});
  const auto add = [&](const PathArgument& path) {
    const absl::StatusOr<ContentSummary> summary = shell->files->GetContentSummary(path.path);
    if (!summary.ok()) return Complain(shell, "du", path.typed, summary.status());
    rows.push_back({SizeText(summary->length_bytes, human), SizeText(summary->charged_bytes, human), path.typed});
    return kSuccess;
  };
  const int result = ForEachPath(shell, "du", values, [&](const PathArgument& path) {
    if (arguments.Has("s")) return add(path);
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (!status.ok()) return Complain(shell, "du", path.typed, status.status());
    if (!status->is_directory) return add(path);
    const absl::StatusOr<std::vector<FileStatus>> entries = shell->files->List(path.path);
    if (!entries.ok()) return Complain(shell, "du", path.typed, entries.status());
    int worst = kSuccess;
    for (const FileStatus& entry : *entries) worst = std::max(worst, add(Child(path, BaseName(entry.path))));
    return worst;
  });
  for (const std::string& line : AlignColumns(rows)) *shell->out << line << "\n";
  return result;
}

int Count(Shell* shell, const Arguments& arguments) {
  const CountColumns columns = arguments.Has("u")   ? CountColumns::kQuotas
                               : arguments.Has("q") ? CountColumns::kQuotasAndTotals
                                                    : CountColumns::kTotals;
  if (arguments.Has("v")) *shell->out << CountHeader(columns) << "\n";
  return ForEachPath(shell, "count", arguments.values, [&](const PathArgument& path) {
    const absl::StatusOr<ContentSummary> summary = shell->files->GetContentSummary(path.path);
    if (!summary.ok()) return Complain(shell, "count", path.typed, summary.status());
    *shell->out << CountLine(*summary, path.typed, columns, arguments.Has("h")) << "\n";
    return kSuccess;
  });
}

}  // namespace

std::vector<Verb> UsageVerbs() {
  std::vector<Verb> verbs(2);
  verbs[0].name = "du";
  verbs[0].synopsis = "[-s] [-h] [-v] [-x] <path> ...";
  verbs[0].help =
      "Bytes of each entry, and with all its replicas. -s: the total of each path. -h: sizes as 1.5 K. -v: with a header line. -x: without "
      "snapshots, of which there are none.";
  verbs[0].flags = {"s", "h", "v", "x"};
  verbs[0].run = Du;
  verbs[1].name = "count";
  verbs[1].synopsis = "[-q] [-u] [-h] [-v] [-x] <path> ...";
  verbs[1].help =
      "Directories, files and bytes below each path. -q: quotas and what is left of them too. -u: these alone. -h: sizes as 1.5 K. -v: "
      "with a header line. -x: without snapshots, of which there are none.";
  verbs[1].flags = {"q", "u", "h", "v", "x"};
  verbs[1].least = 1;
  verbs[1].run = Count;
  return verbs;
}

}  // namespace cairn::cli
