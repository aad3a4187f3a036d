#include "client/cli/dfsadmin_orphans.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "absl/time/time.h"
#include "client/cli/format.h"
#include "common/config.h"

namespace cairn::cli {
namespace {

constexpr absl::Duration kTellEvery = absl::Seconds(5);

const char* StateText(v1::OrphanFile::State state) {
  switch (state) {
    case v1::OrphanFile::ABANDONED: return "ABANDONED";
    case v1::OrphanFile::SILENT: return "SILENT";
    case v1::OrphanFile::WRITING: return "WRITING";
    default: return "UNKNOWN";
  }
}

std::string Line(const v1::OrphanFile& file) {
  return fmt::format("{:<9} {} {:>12} {}\n", StateText(file.state()), SecondText(absl::FromUnixMillis(file.since_ms())),
                     file.length_bytes(), file.path());
}

// Totals of the pages so far.
struct Found {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t seen = 0;
};

// The age may also follow the path.
const std::string* AgeOf(const Arguments& arguments) {
  if (arguments.values.size() == 1) return arguments.Option("older");
  const bool follows = arguments.values.size() == 3 && (arguments.values[1] == "-older" || arguments.values[1] == "--older");
  return follows ? &arguments.values[2] : nullptr;
}

int Run(const AskOrphans& ask, Shell* shell, const Arguments& arguments) {
  const std::string* const given = AgeOf(arguments);
  if (given == nullptr) {
    *shell->err << "orphans: one path and -older are needed: an age beyond that of any file that is still written\n";
    return kUsage;
  }
  const absl::StatusOr<absl::Duration> age = ParseDuration(*given, "");
  if (!age.ok() || *age < absl::ZeroDuration()) {
    *shell->err << fmt::format("orphans: '{}' is no age: a number and one of s, m, h, d\n", *given);
    return kUsage;
  }
  const PathArgument root = ResolvePath(*shell, arguments.values[0]);
  v1::ListOrphansRequest request;
  request.set_path(root.path);
  request.set_older_than_ms(absl::ToInt64Milliseconds(*age));
  Found found;
  absl::Time told = shell->now ? shell->now() : absl::InfiniteFuture();
  for (;;) {
    if (shell->Interrupted()) return kFailure;
    const absl::StatusOr<v1::ListOrphansResponse> page = ask(request);
    if (!page.ok()) {
      *shell->err << fmt::format("orphans: `{}': {}\n", root.typed, std::string(page.status().message()));
      return kFailure;
    }
    found.seen += page->inodes_seen();
    for (const v1::OrphanFile& file : page->files()) {
      *shell->out << (arguments.Has("C") ? file.path() + "\n" : Line(file));
      ++found.files;
      found.bytes += file.length_bytes();
    }
    if (page->next().empty()) break;
    request.set_start_after(page->next());
    if (!shell->now || shell->now() - told < kTellEvery) continue;
    told = shell->now();
    shell->out->flush();
    *shell->err << fmt::format("orphans: {} files and directories looked at, {} found, at {}{}\n", found.seen, found.files,
                               root.path == "/" ? "" : root.path, page->next());
  }
  if (!arguments.Has("C"))
    *shell->out << fmt::format("{} files of {} bytes that no writer has closed, among {} files and directories\n", found.files, found.bytes,
                               found.seen);
  return kSuccess;
}

}  // namespace

Verb OrphansVerb(AskOrphans ask) {
  Verb verb;
  verb.name = "orphans";
  verb.synopsis = "[-C] -older <age> <path>";
  verb.help =
      "Lists the files below a path that no writer has closed, if that has been so for the age (30m, 2d): ABANDONED, closed by the "
      "NameNode after their writer had gone; SILENT, open, of a writer that nobody has heard of; WRITING, open, of one that lives. -C: "
      "paths only. Nothing is deleted. For superusers.";
  verb.flags = {"C"};
  verb.options = {"older"};
  verb.least = 1;
  verb.most = 3;
  verb.run = [ask = std::move(ask)](Shell* shell, const Arguments& arguments) { return Run(ask, shell, arguments); };
  return verb;
}

}  // namespace cairn::cli
