#pragma once

// The frame of every command: verbs, their flags and arguments, and what is said when they are
// wrong.

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/file_system.h"

namespace cairn::cli {

// As HDFS's shell.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kUsage = 255;

inline constexpr char kCopying[] = "._COPYING_";  // Behind the name of a file while it is copied.

// What a command works with. Tests give a FileSystem of their own.
struct Shell {
  FileSystem* files = nullptr;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  // Bytes of standard input: how many were read, 0 at the end, -1 for an error or an interrupt.
  std::function<long(std::span<char>)> read_input;
  std::string user;     // For relative paths: /user/<user>.
  std::string address;  // "cairn://host:port", where a message names a whole path.
  absl::TimeZone zone = absl::UTCTimeZone();
  std::function<absl::Time()> now;                 // The clock on the wall.
  const std::atomic<bool>* interrupted = nullptr;  // Set by a signal: stop, and leave nothing behind.
  std::function<void(absl::Duration)> wait;        // Returns early when interrupted.

  void Wait(absl::Duration duration) const {
    if (wait) wait(duration);
  }
  bool Interrupted() const { return interrupted != nullptr && interrupted->load(); }
};

// A verb's command line after parsing.
struct Arguments {
  std::set<std::string> flags;                 // Without the dash.
  std::vector<std::string> values;             // The rest, in order.
  std::map<std::string, std::string> options;  // Flags that take a value.
  bool Has(const std::string& flag) const { return flags.contains(flag); }
  // Null if it was not given.
  const std::string* Option(const std::string& name) const {
    const auto found = options.find(name);
    return found == options.end() ? nullptr : &found->second;
  }
};

struct Verb {
  std::string name;                       // Without the dash.
  std::string synopsis;                   // "[-R] [-h] [-d] [<path> ...]"
  std::string help;                       // One or two sentences.
  std::vector<std::string> flags;         // Those it knows.
  std::vector<std::string> options = {};  // Flags that take the next word as their value.
  bool unknown_flags_are_values = false;
  size_t least = 0;  // Arguments besides flags.
  size_t most = SIZE_MAX;
  // An exit code; after kUsage, and its own message, the synopsis is printed.
  std::function<int(Shell*, const Arguments&)> run;
};

// Flags come first (as do options: "-t VALUE"), "--" ends them, "-" is a value. The error's message is HDFS's: "Illegal option
// -x", "Not enough arguments: expected 1 but got 0", "Too many arguments: expected 1 but got 2".
absl::StatusOr<Arguments> ParseArguments(const Verb& verb, std::span<const std::string> words);

// Runs `words` = verb and arguments. `group` is "cairn dfs". Accepts -verb and --verb; -help
// [verb], -usage [verb].
int RunVerb(const std::string& group, const std::vector<Verb>& verbs, std::span<const std::string> words, Shell* shell);
void PrintUsage(const std::string& group, const std::vector<Verb>& verbs, std::ostream* out);

// A path as it was typed and what it means.
struct PathArgument {
  std::string typed;                 // For messages and listings.
  std::string path;                  // Absolute, in Cairn.
  std::optional<bool> is_directory;  // If a listing has told.
};
// "cairn://host/x", "/x" and relative "x" (below /user/<user>). Doubled and trailing slashes go, "." and ".." are resolved.
// What is no path of Cairn stays as it was typed: every call refuses it, saying why.
PathArgument ResolvePath(const Shell& shell, const std::string& typed);
PathArgument Child(const PathArgument& directory, const std::string& name);
std::string BaseName(const std::string& path);
std::string ParentOf(const std::string& path);

// The paths that `typed` matches: * ? [...] in any component, by name. kNotFound if a pattern
// matches nothing; without a pattern the path itself, there or not.
absl::StatusOr<std::vector<PathArgument>> ExpandPattern(Shell* shell, const std::string& typed);

// "verb: `path': why" on standard error; returns kFailure.
int Complain(Shell* shell, const std::string& verb, const std::string& typed, const absl::Status& status);
int Complain(Shell* shell, const std::string& verb, const std::string& typed, const std::string& why);

// Runs `each` for every path that the values match; the worst exit code.
int ForEachPath(Shell* shell, const std::string& verb, std::span<const std::string> values,
                const std::function<int(const PathArgument&)>& each);

}  // namespace cairn::cli
