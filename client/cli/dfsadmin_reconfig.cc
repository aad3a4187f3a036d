#include "client/cli/dfsadmin_reconfig.h"

#include <utility>

#include <fmt/format.h>

#include "common/config.h"

namespace cairn::cli {
namespace {

std::string DateText(int64_t ms) { return absl::FormatTime("%a %b %d %H:%M:%S UTC %Y", absl::FromUnixMillis(ms), absl::UTCTimeZone()); }

std::string StatusText(const std::string& node, const v1::ReconfigureResponse& status) {
  std::string text = fmt::format("Reconfiguring status for node [{}]: ", node);
  if (status.started_ms() == 0) return text + "no task was found.\n";
  text += fmt::format("started at {} and finished at {}.\n", DateText(status.started_ms()), DateText(status.ended_ms()));
  if (!status.error().empty() && status.changes().empty()) return text + fmt::format("FAILED: nothing was changed: {}\n", status.error());
  if (!status.error().empty()) text += fmt::format("FAILED: {}\n", status.error());  // The rest was taken over.
  for (const v1::ReconfigureResponse::Change& change : status.changes()) {
    text += fmt::format("{}: {} property {}\n\tFrom: \"{}\"\n\tTo: \"{}\"\n", change.taken() ? "SUCCESS" : "FAILED",
                        change.taken() ? "Changed" : "Change", change.key(), change.from(), change.to());
    if (!change.taken()) text += "\tError: it is taken over at a restart only.\n";
  }
  if (status.changes().empty()) text += "No property differs.\n";
  return text;
}

int Run(const AskReconfigure& ask_namenode, const AskReconfigure& ask_datanode, Shell* shell, const Arguments& arguments) {
  const std::string& kind = arguments.values[0];
  const std::string& node = arguments.values[1];
  const std::string& action = arguments.values[2];
  const auto misused = [shell](const std::string& why) {
    *shell->err << fmt::format("reconfig: {}\n", why);
    return kUsage;
  };
  if (kind != "namenode" && kind != "datanode") return misused(fmt::format("Node type {} does not support reconfiguration.", kind));
  v1::ReconfigureRequest request;
  if (action == "start") {
    request.set_action(v1::ReconfigureRequest::START);
  } else if (action == "properties") {
    request.set_action(v1::ReconfigureRequest::PROPERTIES);
  } else if (action != "status") {
    return misused(fmt::format("Unknown operation: {}", action));
  }
  const absl::StatusOr<HostPort> address = ParseHostPort(node);
  if (!address.ok()) return misused(std::string(address.status().message()));
  const absl::StatusOr<v1::ReconfigureResponse> answer = (kind == "namenode" ? ask_namenode : ask_datanode)(*address, request);
  if (!answer.ok()) {
    *shell->err << fmt::format("reconfig: {}\n", std::string(answer.status().message()));
    return kFailure;
  }
  if (request.action() == v1::ReconfigureRequest::PROPERTIES) {
    *shell->out << fmt::format("Node [{}] Reconfigurable properties:\n", node);
    for (const std::string& key : answer->properties()) *shell->out << key << "\n";
    return kSuccess;
  }
  if (request.action() == v1::ReconfigureRequest::STATUS) {
    *shell->out << StatusText(node, *answer);
    return kSuccess;
  }
  if (!answer->error().empty()) {
    *shell->err << fmt::format("reconfig: node [{}]{}: {}\n", node, answer->changes().empty() ? " changed nothing" : "", answer->error());
    return kFailure;
  }
  *shell->out << fmt::format("Started reconfiguration task on node [{}].\n", node);
  return kSuccess;
}

}  // namespace

Verb ReconfigVerb(AskReconfigure ask_namenode, AskReconfigure ask_datanode) {
  Verb verb;
  verb.name = "reconfig";
  verb.synopsis = "namenode|datanode <host:port> start|status|properties";
  verb.help =
      "Takes a changed configuration file over without a restart (start), says what came of it (status) or which keys it is for "
      "(properties). A bad file changes nothing. The port is that of gRPC: 8021 of a NameNode, 9868 of a DataNode. For superusers.";
  verb.least = verb.most = 3;
  verb.run = [ask_namenode = std::move(ask_namenode), ask_datanode = std::move(ask_datanode)](Shell* shell, const Arguments& arguments) {
    return Run(ask_namenode, ask_datanode, shell, arguments);
  };
  return verb;
}

}  // namespace cairn::cli
