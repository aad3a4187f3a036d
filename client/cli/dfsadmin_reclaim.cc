#include "client/cli/dfsadmin_reclaim.h"

#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "client/cli/format.h"

namespace cairn::cli {
namespace {

std::string PaceText(uint64_t pace) { return pace == 0 ? "unlimited" : fmt::format("{} entries per second", pace); }

std::string StatusText(const v1::ReclaimResponse& status) {
  std::string text = fmt::format("Reclaim: {}\n", status.paused() ? "paused" : status.works() == 0 ? "idle" : "running");
  text += fmt::format("Pace: {}\n", PaceText(status.pace()));
  text += fmt::format("Deleted trees to free: {}\n", status.works());
  text += fmt::format("Files and directories left: {}\n", status.left_inodes());
  text += fmt::format("Bytes left: {} ({})\n", status.left_bytes(), CapacityText(status.left_bytes()));
  text += fmt::format("Oldest: {:.1f} s\n", static_cast<double>(status.oldest_age_ms()) / 1000);
  text += fmt::format("Freed per second: {:.0f} entries\n", status.entries_per_second());
  text += fmt::format("Freed since start: {} entries, {} blocks\n", status.entries_freed(), status.blocks_freed());
  return text;
}

std::optional<uint64_t> ParseNumber(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int Misused(Shell* shell, const std::string& why) {
  *shell->err << fmt::format("-reclaim: {}\nUsage: cairn dfsadmin -reclaim status | pause | resume | pace <entries per second>\n", why);
  return kUsage;
}

int RunReclaim(const AskReclaim& ask, Shell* shell, const Arguments& arguments) {
  v1::ReclaimRequest request;
  const std::string word = arguments.values.empty() ? "status" : arguments.values[0];
  const bool pace = word == "pace";
  if (arguments.values.size() != (pace ? 2u : 1u) && !arguments.values.empty())
    return Misused(shell, pace ? "pace needs a number" : "Too many arguments");
  if (pace) {
    const std::optional<uint64_t> number = ParseNumber(arguments.values[1]);
    if (!number) return Misused(shell, fmt::format("{} is not a number", arguments.values[1]));
    request.set_action(v1::ReclaimRequest::PACE);
    request.set_entries_per_second(*number);
  } else if (word == "pause") {
    request.set_action(v1::ReclaimRequest::PAUSE);
  } else if (word == "resume") {
    request.set_action(v1::ReclaimRequest::RESUME);
  } else if (word != "status") {
    return Misused(shell, fmt::format("unknown action {}", word));
  }
  const absl::StatusOr<v1::ReclaimResponse> status = ask(std::move(request));
  if (!status.ok()) {
    *shell->err << fmt::format("reclaim: {}\n", std::string(status.status().message()));
    return kFailure;
  }
  if (pace) {
    *shell->out << fmt::format("Reclaim pace is {}\n", PaceText(status->pace()));
  } else if (word == "status") {
    *shell->out << StatusText(*status);
  } else {
    *shell->out << (status->paused() ? "Reclaim is paused\n" : "Reclaim is resumed\n");
  }
  return kSuccess;
}

}  // namespace

Verb ReclaimVerb(AskReclaim ask) {
  Verb verb;
  verb.name = "reclaim";
  verb.synopsis = "status | pause | resume | pace <entries per second>";
  verb.help =
      "How far the freeing of deleted trees has come; pauses or resumes it, or bounds its pace (0: no limit). What is set outlives a "
      "restart of the NameNode.";
  verb.most = 2;
  verb.run = [ask = std::move(ask)](Shell* shell, const Arguments& arguments) { return RunReclaim(ask, shell, arguments); };
  return verb;
}

}  // namespace cairn::cli
