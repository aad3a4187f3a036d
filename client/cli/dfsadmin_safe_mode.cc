#include "client/cli/dfsadmin_safe_mode.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "client/cli/report.h"

namespace cairn::cli {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);  // HDFS: 5 s.

int Misused(Shell* shell) {
  *shell->err << "Usage: cairn dfsadmin [-safemode enter | leave | get | wait | forceExit]\n";
  return kUsage;
}

int Run(const AskSafeMode& ask, Shell* shell, const Arguments& arguments) {
  const std::string& word = arguments.values[0];
  // -json may stand behind as well.
  const bool json = arguments.Has("json") || (arguments.values.size() == 2 && arguments.values[1].ends_with("-json"));
  if (arguments.values.size() == 2 && !json) return Misused(shell);
  v1::SafeModeRequest request;
  if (word == "enter") {
    request.set_action(v1::SafeModeRequest::ENTER);
  } else if (word == "leave" || word == "forceExit") {
    request.set_action(v1::SafeModeRequest::LEAVE);
  } else if (word != "get" && word != "wait") {
    return Misused(shell);
  }
  absl::StatusOr<v1::SafeModeResponse> answer = ask(request);
  while (answer.ok() && word == "wait" && answer->on()) {
    if (shell->Interrupted()) return kFailure;
    shell->Wait(kLookEvery);
    answer = ask(request);
  }
  if (!answer.ok()) {
    *shell->err << fmt::format("safemode: {}\n", std::string(answer.status().message()));
    return kFailure;
  }
  if (json) {
    *shell->out << JsonText(*answer) << "\n";
    return kSuccess;
  }
  *shell->out << fmt::format("Safe mode is {}\n", answer->on() ? "ON" : "OFF");
  return kSuccess;
}

}  // namespace

Verb SafeModeVerb(AskSafeMode ask) {
  Verb verb;
  verb.name = "safemode";
  verb.synopsis = "[-json] enter | leave | get | wait | forceExit";
  verb.help =
      "Safe mode: no changes are taken, nothing is repaired or deleted; reads go on. wait: until it is off. -json: with the blocks that "
      "are missing, their files, and what has been heard of each DataNode. A NameNode that starts is in it only with "
      "cairn.namenode.safemode.at-start, and then until its DataNodes have reported.";
  verb.flags = {"json"};
  verb.least = 1;
  verb.most = 2;
  verb.run = [ask = std::move(ask)](Shell* shell, const Arguments& arguments) { return Run(ask, shell, arguments); };
  return verb;
}

}  // namespace cairn::cli
