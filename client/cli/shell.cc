#include "client/cli/shell.h"

#include <fnmatch.h>

#include <algorithm>

#include <fmt/format.h>

#include "absl/strings/ascii.h"

#include "cairn/errors.h"
#include "client/cli/format.h"
#include "client/src/path.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::cli {
namespace {

absl::Status Bad(std::string message) { return MakeError(ErrorKind::kInvalidArgument, std::move(message)); }

const Verb* FindVerb(const std::vector<Verb>& verbs, std::string_view word) {
  if (!word.starts_with('-')) return nullptr;
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  const auto it = std::find_if(verbs.begin(), verbs.end(), [word](const Verb& verb) { return verb.name == word; });
  return it == verbs.end() ? nullptr : &*it;
}

std::string UsageLine(const std::string& group, const Verb& verb) {
  return fmt::format("Usage: {} -{}{}{}", group, verb.name, verb.synopsis.empty() ? "" : " ", verb.synopsis);
}

bool HasPattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

// An error that begins with "path: " or "call path: ", without that: whoever shows it has named the path.
std::string WithoutPath(const std::string& text, const std::vector<std::string>& names) {
  size_t begin = 0;
  while (begin < text.size() && absl::ascii_isalpha(static_cast<unsigned char>(text[begin]))) ++begin;
  begin = begin < text.size() && text[begin] == ' ' ? begin + 1 : 0;
  for (const size_t at : {size_t{0}, begin}) {
    for (const std::string& name : names)
      if (text.compare(at, name.size() + 2, name + ": ") == 0) return text.substr(at + name.size() + 2);
  }
  return text;
}

std::vector<std::string> Components(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < path.size();) {
    size_t end = path.find('/', begin);
    if (end == std::string::npos) end = path.size();
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "cairn" of "cairn://host/x"; nothing of a path.
std::string SchemeOf(const std::string& typed) {
  const size_t end = typed.find("://");
  return end == std::string::npos || typed.find('/') != end + 1 ? std::string() : typed.substr(0, end);
}

bool IsOurScheme(const std::string& scheme) { return scheme == "cairn" || scheme == "hdfs"; }

absl::Status UnknownScheme(const std::string& scheme) { return Bad(fmt::format("No FileSystem for scheme \"{}\"", scheme)); }

}  // namespace

absl::StatusOr<Arguments> ParseArguments(const Verb& verb, std::span<const std::string> words) {
  Arguments arguments;
  bool flags_over = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!flags_over && word == "--") {
      flags_over = true;
    } else if (!flags_over && word.size() > 1 && word.starts_with('-')) {
      const std::string flag = word.substr(word.starts_with("--") ? 2 : 1);
      const auto knows = [&flag](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), flag) != names.end();
      };
      if (knows(verb.options)) {
        if (i + 1 == words.size()) return Bad(fmt::format("option {} requires 1 argument.", word));
        arguments.options[flag] = words[++i];
      } else if (knows(verb.flags)) {
        arguments.flags.insert(flag);
      } else if (verb.unknown_flags_are_values) {
        flags_over = true;
        arguments.values.push_back(word);
      } else {
        return Bad(fmt::format("Illegal option {}", word));
      }
    } else {
      flags_over = true;
      // An unset variable in a script must not come to mean the home directory.
      if (word.empty()) return Bad("An empty argument names no path");
      arguments.values.push_back(word);
    }
  }
  if (arguments.values.size() < verb.least)
    return Bad(fmt::format("Not enough arguments: expected {} but got {}", verb.least, arguments.values.size()));
  if (arguments.values.size() > verb.most)
    return Bad(fmt::format("Too many arguments: expected {} but got {}", verb.most, arguments.values.size()));
  return arguments;
}

void PrintUsage(const std::string& group, const std::vector<Verb>& verbs, std::ostream* out) {
  *out << "Usage: " << group << " [-fs <cairn://host:port>] <verb>\n";
  for (const Verb& verb : verbs) *out << fmt::format("\t[-{}{}{}]\n", verb.name, verb.synopsis.empty() ? "" : " ", verb.synopsis);
  *out << "\t[-help [<verb>]]\n\t[-usage [<verb>]]\n";
}

int RunVerb(const std::string& group, const std::vector<Verb>& verbs, std::span<const std::string> words, Shell* shell) {
  if (words.empty()) {
    PrintUsage(group, verbs, shell->err);
    return kUsage;
  }
  const std::string& word = words[0];
  if (word == "-help" || word == "--help" || word == "-usage" || word == "--usage") {
    const Verb* about = words.size() > 1 ? FindVerb(verbs, words[1].starts_with('-') ? words[1] : "-" + words[1]) : nullptr;
    if (words.size() > 1 && about == nullptr) {
      *shell->err << fmt::format("{}: Unknown command\n", words[1]);
      return kUsage;
    }
    if (about == nullptr)
      PrintUsage(group, verbs, shell->out);
    else if (word.ends_with("usage"))
      *shell->out << UsageLine(group, *about) << "\n";
    else
      *shell->out << fmt::format("-{} {} :\n  {}\n", about->name, about->synopsis, about->help);
    return kSuccess;
  }
  const Verb* verb = FindVerb(verbs, word);
  if (verb == nullptr) {
    *shell->err << fmt::format("{}: Unknown command\n", word);
    PrintUsage(group, verbs, shell->err);
    return kUsage;
  }
  const absl::StatusOr<Arguments> arguments = ParseArguments(*verb, words.subspan(1));
  if (!arguments.ok()) {
    *shell->err << fmt::format("-{}: {}\n{}\n", verb->name, std::string(arguments.status().message()), UsageLine(group, *verb));
    return kUsage;
  }
  const int result = verb->run(shell, *arguments);
  if (result == kUsage) *shell->err << UsageLine(group, *verb) << "\n";
  return result;
}

PathArgument ResolvePath(const Shell& shell, const std::string& typed) {
  PathArgument argument;
  argument.typed = typed;
  while (argument.typed.size() > 1 && argument.typed.ends_with('/') && !argument.typed.ends_with("//")) argument.typed.pop_back();
  argument.path = typed;
  if (const std::string scheme = SchemeOf(typed); !scheme.empty()) {
    if (!IsOurScheme(scheme)) return argument;  // Not a path of ours: it is refused by the scheme's name.
    const size_t root = typed.find('/', scheme.size() + 3);
    argument.path = root == std::string::npos ? "/" : typed.substr(root);
  }
  if (!argument.path.starts_with('/')) argument.path = fmt::format("/user/{}/{}", shell.user, argument.path);
  const absl::StatusOr<std::string> clean = client::CleanPath(argument.path);
  if (clean.ok()) argument.path = *clean;  // Else every call says what is wrong with it.
  return argument;
}

PathArgument Child(const PathArgument& directory, const std::string& name) {
  PathArgument child;
  // As HDFS: what is in "." is shown by its name alone.
  child.typed = directory.typed == "." ? name : directory.typed.ends_with('/') ? directory.typed + name : directory.typed + "/" + name;
  child.path = directory.path.ends_with('/') ? directory.path + name : directory.path + "/" + name;
  return child;
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

absl::StatusOr<std::vector<PathArgument>> ExpandPattern(Shell* shell, const std::string& typed) {
  if (const std::string scheme = SchemeOf(typed); !scheme.empty() && !IsOurScheme(scheme)) return UnknownScheme(scheme);
  const PathArgument whole = ResolvePath(*shell, typed);
  if (!HasPattern(whole.path)) return std::vector<PathArgument>{whole};
  std::vector<PathArgument> found(1);
  bool exists = true;  // Whether the last component came from a listing.
  for (const std::string& part : Components(whole.path)) {
    std::vector<PathArgument> next;
    exists = HasPattern(part);
    for (const PathArgument& directory : found) {
      if (!exists) {
        next.emplace_back().path = directory.path + "/" + part;
        continue;
      }
      const std::string path = directory.path.empty() ? "/" : directory.path;
      if (!directory.is_directory) {
        const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path);
        if (!status.ok() || !status->is_directory) continue;
      } else if (!*directory.is_directory) {
        continue;
      }
      ASSIGN_OR_RETURN(const std::vector<FileStatus> entries, shell->files->List(path));
      for (const FileStatus& entry : entries) {
        if (fnmatch(part.c_str(), BaseName(entry.path).c_str(), 0) != 0) continue;
        PathArgument& match = next.emplace_back();
        match.path = entry.path;
        match.is_directory = entry.is_directory;
      }
    }
    found = std::move(next);
  }
  std::vector<PathArgument> matches;
  for (PathArgument& match : found) {
    if (!exists) {
      ASSIGN_OR_RETURN(const bool there, shell->files->Exists(match.path));
      if (!there) continue;
    }
    match.typed = match.path;
    matches.push_back(std::move(match));
  }
  if (matches.empty()) return MakeError(ErrorKind::kNotFound, fmt::format("{}: No such file or directory", typed));
  return matches;
}

int Complain(Shell* shell, const std::string& verb, const std::string& typed, const std::string& why) {
  *shell->err << fmt::format("{}: `{}': {}\n", verb, typed, why);
  return kFailure;
}

int Complain(Shell* shell, const std::string& verb, const std::string& typed, const absl::Status& status) {
  // These name what they are about themselves, as in HDFS.
  if (errors::IsPermissionDenied(status) || errors::IsLimitExceeded(status) || errors::IsBeingWritten(status)) {
    *shell->err << fmt::format("{}: {}\n", verb, std::string(status.message()));
    return kFailure;
  }
  const std::string path = ResolvePath(*shell, typed).path;
  return Complain(shell, verb, typed, WithoutPath(ErrorText(status), {typed, path, path + kCopying}));
}

int ForEachPath(Shell* shell, const std::string& verb, std::span<const std::string> values,
                const std::function<int(const PathArgument&)>& each) {
  int worst = kSuccess;
  for (const std::string& value : values) {
    const absl::StatusOr<std::vector<PathArgument>> paths = ExpandPattern(shell, value);
    if (!paths.ok()) {
      worst = std::max(worst, Complain(shell, verb, value, paths.status()));
      continue;
    }
    for (const PathArgument& path : *paths) {
      if (shell->Interrupted()) return kFailure;
      worst = std::max(worst, each(path));
    }
  }
  return worst;
}

}  // namespace cairn::cli
