#include "client/cli/dfsadmin_nodes.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "client/cli/format.h"
#include "common/config.h"

namespace cairn::cli {
namespace {

constexpr uint32_t kBlockersShown = 20;

int Failed(Shell* shell, const char* verb, const absl::Status& status) {
  *shell->err << fmt::format("{}: {}\n", verb, std::string(status.message()));
  return kFailure;
}

std::string AddressOf(const v1::DatanodeInfo& info) { return fmt::format("{}:{}", info.transfer().host(), info.transfer().port()); }

const char* LifeText(const v1::DatanodeReport& node) {
  if (node.not_allowed()) return "not allowed";
  switch (node.state()) {
    case v1::LIVE: return "live";
    case v1::STALE: return "stale";
    case v1::DEAD: return "dead";
    default: return "unknown";
  }
}

std::string AgeText(int64_t age_ms) {
  const int64_t seconds = age_ms / 1000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  return seconds < 7200 ? fmt::format("{} min", seconds / 60) : fmt::format("{} h", seconds / 3600);
}

bool Leaving(const v1::DatanodeReport& node) {
  return node.admin_state() == v1::DECOMMISSIONING || node.admin_state() == v1::ENTERING_MAINTENANCE;
}

int Set(const AskNodes& ask, Shell* shell, const char* verb, v1::SetNodeAdminRequest request) {
  const std::string node = request.node();
  const absl::StatusOr<v1::SetNodeAdminResponse> set = ask.set(std::move(request));
  if (!set.ok()) return Failed(shell, verb, set.status());
  *shell->out << fmt::format("{}: {}\n", AddressOf(set->datanode()), AdminStateText(set->state()));
  return kSuccess;
}

// When a maintenance is to end, from -until or -for; nothing if they make no sense.
std::optional<int64_t> EndOf(const Arguments& arguments, absl::Time now, Shell* shell) {
  const std::string* const until = arguments.Option("until");
  const std::string* const duration = arguments.Option("for");
  if (until != nullptr && duration != nullptr) {
    *shell->err << "maintenance: -until or -for, not both\n";
    return std::nullopt;
  }
  if (duration != nullptr) {
    const absl::StatusOr<absl::Duration> length = ParseDuration(*duration, "");
    if (length.ok() && *length > absl::ZeroDuration()) return absl::ToUnixMillis(now + *length);
    *shell->err << fmt::format("maintenance: '{}' is no duration: a number and one of s, m, h, d\n", *duration);
    return std::nullopt;
  }
  if (until == nullptr) return 0;
  absl::Time end;
  std::string why;
  if (absl::ParseTime(absl::RFC3339_full, *until, &end, &why) ||
      absl::ParseTime("%Y-%m-%d %H:%M:%S", *until, absl::UTCTimeZone(), &end, &why))
    return absl::ToUnixMillis(end);
  *shell->err << fmt::format("maintenance: '{}' is no time: 2026-03-01T14:00:00Z, or '2026-03-01 14:00:00' (UTC)\n", *until);
  return std::nullopt;
}

int Maintenance(const AskNodes& ask, absl::Time now, Shell* shell, const Arguments& given) {
  // The options may also follow the node.
  Arguments arguments = given;
  for (size_t i = 1; i < given.values.size(); ++i) {
    const std::string& word = given.values[i];
    const std::string name = word.substr(word.find_first_not_of('-') == std::string::npos ? 0 : word.find_first_not_of('-'));
    if (name == "force") {
      arguments.flags.insert(name);
    } else if ((name == "until" || name == "for") && i + 1 < given.values.size()) {
      arguments.options[name] = given.values[++i];
    } else {
      *shell->err << fmt::format("maintenance: one node, not '{}' as well\n", word);
      return kUsage;
    }
  }
  const std::optional<int64_t> end = EndOf(arguments, now, shell);
  if (!end) return kUsage;
  v1::SetNodeAdminRequest request;
  request.set_node(arguments.values[0]);
  request.set_action(v1::SetNodeAdminRequest::MAINTENANCE);
  request.set_until_ms(*end);
  request.set_force(arguments.Has("force"));
  return Set(ask, shell, "maintenance", std::move(request));
}

int Nodes(const AskNodes& ask, Shell* shell, const Arguments& arguments) {
  const absl::StatusOr<v1::ClusterReportResponse> report = ask.report();
  if (!report.ok()) return Failed(shell, "nodes", report.status());
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"Node", "State", "Wanted", "Left", "Open", "Uuid"});
  for (const v1::DatanodeReport& node : report->datanodes()) {
    const bool leaving = Leaving(node);
    std::string wanted = AdminStateText(node.admin_state());
    if (node.maintenance_until_ms() != 0) wanted += fmt::format(" until {}", SecondText(absl::FromUnixMillis(node.maintenance_until_ms())));
    std::string left = leaving ? fmt::format("{}{}", node.blocks_left(), node.looked_once() ? "" : "+") : "-";
    rows.push_back({AddressOf(node.info()), LifeText(node), std::move(wanted), std::move(left),
                    leaving ? fmt::format("{}", node.open_blocks_left()) : "-", node.info().uuid()});
  }
  for (const std::string& row : AlignColumns(rows)) *shell->out << row << "\n";
  if (arguments.Has("C")) return kSuccess;
  for (const v1::DatanodeReport& node : report->datanodes()) {
    if (!Leaving(node) || node.blocks_left() == 0) continue;
    v1::ListNodeBlockersRequest request;
    request.set_node(node.info().uuid());
    request.set_limit(kBlockersShown);
    const absl::StatusOr<v1::ListNodeBlockersResponse> blockers = ask.blockers(std::move(request));
    if (!blockers.ok()) return Failed(shell, "nodes", blockers.status());
    *shell->out << fmt::format("\n{} waits for {} blocks:\n", AddressOf(node.info()), blockers->blocks_left());
    for (const v1::NodeBlocker& blocker : blockers->blockers())
      *shell->out << fmt::format("  blk_{} {}: {} of {} live copies elsewhere, for {}, {}\n", blocker.block().id(), blocker.reason(),
                                 blocker.live(), blocker.wanted(), AgeText(blocker.age_ms()),
                                 blocker.path().empty() ? "of a file that was deleted" : blocker.path());
    if (blockers->blocks_left() > static_cast<uint64_t>(blockers->blockers_size()))
      *shell->out << fmt::format("  and {} more\n", blockers->blocks_left() - static_cast<uint64_t>(blockers->blockers_size()));
  }
  return kSuccess;
}

int Bad(const AskNodes& ask, Shell* shell, const Arguments& arguments) {
  v1::ListBadBlocksRequest request;
  const std::string kind = arguments.values.empty() ? "missing" : arguments.values[0];
  if (kind == "missing") {
    request.set_kind(v1::ListBadBlocksRequest::MISSING);
  } else if (kind == "corrupt") {
    request.set_kind(v1::ListBadBlocksRequest::CORRUPT);
  } else if (kind == "parked") {
    request.set_kind(v1::ListBadBlocksRequest::PARKED);
  } else {
    *shell->err << fmt::format("badBlocks: '{}' is none of missing, corrupt, parked\n", kind);
    return kUsage;
  }
  uint64_t found = 0;
  for (;;) {
    const absl::StatusOr<v1::ListBadBlocksResponse> page = ask.bad(request);
    if (!page.ok()) return Failed(shell, "badBlocks", page.status());
    for (const v1::BadBlock& block : page->blocks()) {
      ++found;
      *shell->out << fmt::format("blk_{}_{} {} bytes{}{} {}\n", block.block().id(), block.block().generation_stamp(),
                                 block.block().length_bytes(), block.reason().empty() ? "" : " ", block.reason(), block.path());
    }
    if (page->next() == 0 || shell->Interrupted()) break;
    request.set_start_after(page->next());
  }
  *shell->out << fmt::format("{} blocks are {}\n", found, kind);
  return kSuccess;
}

}  // namespace

const char* AdminStateText(v1::NodeAdminState state) {
  switch (state) {
    case v1::DECOMMISSIONING: return "Decommission in progress";
    case v1::DECOMMISSIONED: return "Decommissioned";
    case v1::ENTERING_MAINTENANCE: return "Entering maintenance";
    case v1::IN_MAINTENANCE: return "In maintenance";
    default: return "Normal";
  }
}

namespace {

// As HDFS: racks and their nodes, by name.
int Topology(const AskNodes& ask, Shell* shell) {
  const absl::StatusOr<v1::ClusterReportResponse> report = ask.report();
  if (!report.ok()) return Failed(shell, "printTopology", report.status());
  std::map<std::string, std::set<std::string>> racks;
  for (const v1::DatanodeReport& node : report->datanodes())
    racks[node.info().rack()].insert(fmt::format("   {} ({})\n", AddressOf(node.info()), node.info().transfer().host()));
  if (racks.empty()) *shell->out << "No DataNodes\n";
  for (const auto& [rack, nodes] : racks) {
    *shell->out << fmt::format("Rack: {}\n", rack);
    for (const std::string& node : nodes) *shell->out << node;
    *shell->out << "\n";
  }
  return kSuccess;
}

// One that only says what is wanted of a node.
Verb VerbOfANode(const char* name, const char* help, v1::SetNodeAdminRequest::Action action, const AskNodes& ask) {
  Verb verb;
  verb.name = name;
  verb.synopsis = "<host:port | uuid>";
  verb.help = help;
  verb.least = verb.most = 1;
  verb.run = [name, action, ask](Shell* shell, const Arguments& arguments) {
    v1::SetNodeAdminRequest request;
    request.set_node(arguments.values[0]);
    request.set_action(action);
    return Set(ask, shell, name, std::move(request));
  };
  return verb;
}

}  // namespace

std::vector<Verb> NodeVerbs(AskNodes ask, std::function<absl::Time()> wall_now) {
  std::vector<Verb> verbs(7);
  verbs[0].name = "refreshNodes";
  verbs[0].help = "Reads the files of dfs.hosts and dfs.hosts.exclude again: nodes that are excluded now are drained, others taken back.";
  verbs[0].most = 0;
  verbs[0].run = [ask](Shell* shell, const Arguments&) {
    const absl::StatusOr<v1::RefreshNodesResponse> refreshed = ask.refresh();
    if (!refreshed.ok()) return Failed(shell, "refreshNodes", refreshed.status());
    *shell->out << "Refresh nodes successful\n";
    return kSuccess;
  };
  verbs[1] = VerbOfANode("decommission",
                         "Drains a node: all it holds is copied to others, and it takes no new blocks. -nodes shows how far it is.",
                         v1::SetNodeAdminRequest::DECOMMISSION, ask);
  verbs[2] = VerbOfANode("recommission", "Takes a node back that is decommissioned or in maintenance.",
                         v1::SetNodeAdminRequest::RECOMMISSION, ask);
  verbs[3].name = "maintenance";
  verbs[3].synopsis = "[-until <time> | -for <duration>] [-force] <host:port | uuid>";
  verbs[3].help =
      "Lets a node be away for a while without copies being made of what it holds, as long as dfs.namenode.maintenance.replication.min "
      "live "
      "copies are elsewhere; the node is in maintenance once that is so, or at once with -force. Ends by itself if an end is given.";
  verbs[3].flags = {"force"};
  verbs[3].options = {"until", "for"};
  verbs[3].least = 1;
  verbs[3].most = 5;
  verbs[3].unknown_flags_are_values = true;
  verbs[3].run = [ask, wall_now](Shell* shell, const Arguments& arguments) { return Maintenance(ask, wall_now(), shell, arguments); };
  verbs[4].name = "nodes";
  verbs[4].synopsis = "[-C]";
  verbs[4].help = "A line for each DataNode, and what holds those back that drain or enter maintenance. -C: the lines only.";
  verbs[4].flags = {"C"};
  verbs[4].most = 0;
  verbs[4].run = [ask](Shell* shell, const Arguments& arguments) { return Nodes(ask, shell, arguments); };
  verbs[5].name = "badBlocks";
  verbs[5].synopsis = "[missing | corrupt | parked]";
  verbs[5].help =
      "Lists blocks with their files: those without any good replica; those with a corrupt one; those that are not repaired now, because "
      "no DataNode can copy them (NO_SOURCE) or take a copy (NO_TARGET).";
  verbs[5].most = 1;
  verbs[5].run = [ask](Shell* shell, const Arguments& arguments) { return Bad(ask, shell, arguments); };
  verbs[6].name = "printTopology";
  verbs[6].help = "The racks, and the DataNodes on each.";
  verbs[6].most = 0;
  verbs[6].run = [ask](Shell* shell, const Arguments&) { return Topology(ask, shell); };
  return verbs;
}

}  // namespace cairn::cli
