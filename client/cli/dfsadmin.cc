#include "client/cli/dfsadmin.h"

#include <utility>

#include <fmt/format.h>

#include "client/cli/report.h"

namespace cairn::cli {

std::vector<Verb> AdminVerbs(AskReport ask, std::function<absl::Time()> wall_now) {
  std::vector<Verb> verbs(1);
  verbs[0].name = "report";
  verbs[0].synopsis = "[-live] [-dead]";
  verbs[0].help = "Capacity, the state of blocks, and every DataNode. -live, -dead: only those.";
  verbs[0].flags = {"live", "dead"};
  verbs[0].most = 0;
  verbs[0].run = [ask = std::move(ask), wall_now = std::move(wall_now)](Shell* shell, const Arguments& arguments) {
    const absl::StatusOr<v1::ClusterReportResponse> report = ask();
    if (!report.ok()) {
      *shell->err << fmt::format("report: {}\n", std::string(report.status().message()));
      return kFailure;
    }
    *shell->out << ReportText(*report, wall_now(), arguments.Has("live"), arguments.Has("dead"));
    return kSuccess;
  };
  return verbs;
}

}  // namespace cairn::cli
