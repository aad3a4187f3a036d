#include "client/cli/dfsadmin.h"

#include <utility>

#include <fmt/format.h>

#include "client/cli/report.h"

namespace cairn::cli {

std::vector<Verb> AdminVerbs(AskReport ask, std::function<absl::Time()> wall_now) {
  std::vector<Verb> verbs(1);
  verbs[0].name = "report";
  verbs[0].synopsis = "[-live] [-dead] [-decommissioning] [-enteringmaintenance] [-inmaintenance] [-slownodes] [-json]";
  verbs[0].help = "Capacity, the state of blocks, and every DataNode. -live and so on: only those. -json: all that is known, for programs.";
  verbs[0].flags = {"live", "dead", "decommissioning", "enteringmaintenance", "inmaintenance", "slownodes", "json"};
  verbs[0].most = 0;
  verbs[0].run = [ask = std::move(ask), wall_now = std::move(wall_now)](Shell* shell, const Arguments& arguments) {
    const absl::StatusOr<v1::ClusterReportResponse> report = ask();
    if (!report.ok()) {
      *shell->err << fmt::format("report: {}\n", std::string(report.status().message()));
      return kFailure;
    }
    if (arguments.Has("json")) {
      *shell->out << JsonText(*report) << "\n";
      return kSuccess;
    }
    ReportSections sections;
    sections.live = arguments.Has("live");
    sections.dead = arguments.Has("dead");
    sections.decommissioning = arguments.Has("decommissioning");
    sections.entering_maintenance = arguments.Has("enteringmaintenance");
    sections.in_maintenance = arguments.Has("inmaintenance");
    sections.slow = arguments.Has("slownodes");
    *shell->out << ReportText(*report, wall_now(), sections);
    return kSuccess;
  };
  return verbs;
}

}  // namespace cairn::cli
