#include "client/cli/debug_verbs.h"

#include <charconv>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace cairn::cli {
namespace {

constexpr absl::Duration kBetweenTries = absl::Seconds(5);

// "-path P -retries N" in any order. Options that take a value are none of the shell's flags, which come first and alone: the first
// one is found among the flags, the rest among the values.
std::optional<std::map<std::string, std::string>> PairsOf(const Arguments& arguments) {
  std::vector<std::string> words;
  for (const std::string& flag : arguments.flags) words.push_back("-" + flag);
  words.insert(words.end(), arguments.values.begin(), arguments.values.end());
  std::map<std::string, std::string> pairs;
  if (arguments.flags.size() > 1 || words.size() % 2 != 0) return std::nullopt;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (words[i] != "-path" && words[i] != "-retries") return std::nullopt;
    pairs[words[i]] = words[i + 1];
  }
  return pairs;
}

int RecoverLease(Shell* shell, const Arguments& arguments) {
  const auto pairs = PairsOf(arguments);
  if (!pairs || !pairs->contains("-path")) {
    *shell->err << "You must supply a -path argument to recoverLease.\n";
    return kFailure;
  }
  int retries = 1;
  if (const auto given = pairs->find("-retries"); given != pairs->end()) {
    const std::string& text = given->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), retries);
    if (error != std::errc() || end != text.data() + text.size() || retries < 1) {
      *shell->err << fmt::format("recoverLease: '{}' is no number of retries\n", text);
      return kFailure;
    }
  }
  const PathArgument path = ResolvePath(*shell, pairs->at("-path"));
  for (int tries = 1;; ++tries) {
    const absl::StatusOr<bool> closed = shell->files->RecoverLease(path.path);
    if (!closed.ok()) return Complain(shell, "recoverLease", path.typed, closed.status());
    if (*closed) {
      *shell->out << fmt::format("recoverLease SUCCEEDED on {}\n", path.typed);
      return kSuccess;
    }
    if (tries >= retries) break;
    *shell->out << fmt::format("recoverLease returned false.\nRetrying in {} ms...\nRetry #{}\n", absl::ToInt64Milliseconds(kBetweenTries),
                               tries);
    shell->out->flush();
    shell->Wait(kBetweenTries);
    if (shell->Interrupted()) return kFailure;
  }
  *shell->err << fmt::format("Giving up on recoverLease for {} after {} {}; its last block is being recovered.\n", path.typed, retries,
                             retries == 1 ? "try" : "tries");
  return kFailure;
}

}  // namespace

std::vector<Verb> DebugVerbs() {
  std::vector<Verb> verbs(1);
  verbs[0].name = "recoverLease";
  verbs[0].synopsis = "-path <path> [-retries <num-retries>]";
  verbs[0].help = "Takes a file from its writer, and recovers and closes it.";
  verbs[0].flags = {"path", "retries"};
  verbs[0].least = 1;
  verbs[0].run = RecoverLease;
  return verbs;
}

}  // namespace cairn::cli
