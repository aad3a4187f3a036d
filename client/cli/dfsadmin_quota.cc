#include "client/cli/dfsadmin_quota.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/cli/format.h"

namespace cairn::cli {
namespace {

struct QuotaVerb {
  const char* name;
  const char* synopsis;
  const char* help;
  bool space;
  bool clear;
};

int Run(Shell* shell, const QuotaVerb& verb, const Arguments& arguments) {
  int64_t quota = kNoQuota;
  std::span<const std::string> directories(arguments.values);
  if (!verb.clear) {
    const absl::StatusOr<int64_t> given = ParseQuota(directories[0], /*with_suffix=*/verb.space);
    if (!given.ok()) {
      *shell->err << fmt::format("{}: {}\nUsage: cairn dfsadmin [-{} {}]\n", verb.name, std::string(given.status().message()), verb.name,
                                 verb.synopsis);
      return kUsage;
    }
    quota = *given;
    directories = directories.subspan(1);
  }
  int worst = kSuccess;
  for (const std::string& typed : directories) {
    const absl::StatusOr<std::vector<PathArgument>> paths = ExpandPattern(shell, typed);
    if (!paths.ok()) {
      worst = std::max(worst, Complain(shell, verb.name, typed, paths.status()));
      continue;
    }
    for (const PathArgument& path : *paths) {
      const absl::Status set =
          verb.space ? shell->files->SetQuota(path.path, std::nullopt, quota) : shell->files->SetQuota(path.path, quota, std::nullopt);
      if (set.ok()) continue;
      *shell->err << fmt::format("{}: {}\n", verb.name, std::string(set.message()));
      worst = std::max(worst, kFailure);
    }
  }
  return worst;
}

}  // namespace

std::vector<Verb> QuotaVerbs() {
  static constexpr QuotaVerb kVerbs[] = {
      {"setQuota", "<quota> <dirname>...<dirname>",
       "Bounds the number of files and directories below each directory, itself included. What would exceed it is refused.", false, false},
      {"clrQuota", "<dirname>...<dirname>", "Takes the bound on names away.", false, true},
      {"setSpaceQuota", "<quota> <dirname>...<dirname>",
       "Bounds the bytes below each directory, all replicas counted: a number, or with k, m, g, t.", true, false},
      {"clrSpaceQuota", "<dirname>...<dirname>", "Takes the bound on bytes away.", true, true},
  };
  std::vector<Verb> verbs;
  for (const QuotaVerb& quota : kVerbs) {
    Verb& verb = verbs.emplace_back();
    verb.name = quota.name;
    verb.synopsis = quota.synopsis;
    verb.help = quota.help;
    verb.least = quota.clear ? 1 : 2;
    verb.run = [&quota](Shell* shell, const Arguments& arguments) { return Run(shell, quota, arguments); };
  }
  return verbs;
}

}  // namespace cairn::cli
