#include "client/cli/dfs_append.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cairn/errors.h"
#include "client/cli/dfs_transfer.h"

namespace cairn::cli {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);

int AppendToFile(Shell* shell, const Arguments& arguments) {
  const PathArgument target = ResolvePath(*shell, arguments.values.back());
  const std::span<const std::string> sources(arguments.values.data(), arguments.values.size() - 1);
  // All of them before the file is touched: half an append cannot be taken back.
  for (const std::string& source : sources) {
    std::error_code error;
    if (source == "-") continue;
    if (!std::filesystem::exists(source, error)) return Complain(shell, "appendToFile", source, "No such file or directory");
    if (std::filesystem::is_directory(source, error)) return Complain(shell, "appendToFile", source, "Is a directory");
  }
  const absl::StatusOr<FileStatus> there = shell->files->GetFileStatus(target.path);
  if (there.ok() && there->is_directory) return Complain(shell, "appendToFile", target.typed, "Is a directory");
  if (!there.ok() && !errors::IsNotFound(there.status())) return Complain(shell, "appendToFile", target.typed, there.status());
  AppendOptions append;
  append.new_block = arguments.Has("n");
  CreateOptions create;
  create.create_parent = false;
  absl::StatusOr<std::unique_ptr<FileWriter>> writer =
      there.ok() ? shell->files->Append(target.path, append) : shell->files->Create(target.path, create);
  if (!writer.ok()) return Complain(shell, "appendToFile", target.typed, writer.status());
  absl::Status status;
  for (const std::string& source : sources) {
    status = AppendLocal(shell, source, writer->get());
    if (!status.ok()) break;
  }
  if (status.ok()) status = (*writer)->Close();
  if (status.ok()) return kSuccess;
  (*writer)->Abort();
  return Complain(shell, "appendToFile", target.typed, status);
}

std::optional<uint64_t> ParseLength(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Until the file is closed and as long as was asked for.
int WaitForTruncate(Shell* shell, const PathArgument& path, uint64_t length) {
  *shell->out << fmt::format("Waiting for {} ...\n", path.typed);
  shell->out->flush();
  for (;;) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (!status.ok()) return Complain(shell, "truncate", path.typed, status.status());
    if (!status->under_construction && status->length_bytes == length) break;
    shell->Wait(kBetweenLooks);
    if (shell->Interrupted()) return kFailure;
  }
  *shell->out << fmt::format("Truncated {} to length: {}\n", path.typed, length);
  return kSuccess;
}

int Truncate(Shell* shell, const Arguments& arguments) {
  const std::optional<uint64_t> length = ParseLength(arguments.values.front());
  if (!length) return Complain(shell, "truncate", arguments.values.front(), "Illegal length, must be a number that is not negative");
  std::vector<PathArgument> waiting;
  const std::span<const std::string> paths(arguments.values.data() + 1, arguments.values.size() - 1);
  int worst = ForEachPath(shell, "truncate", paths, [&](const PathArgument& path) {
    const absl::StatusOr<FileStatus> status = shell->files->GetFileStatus(path.path);
    if (!status.ok()) return Complain(shell, "truncate", path.typed, status.status());
    if (status->is_directory) return Complain(shell, "truncate", path.typed, "Is a directory");
    const absl::StatusOr<bool> done = shell->files->Truncate(path.path, *length);
    if (!done.ok()) return Complain(shell, "truncate", path.typed, done.status());
    if (*done) {
      *shell->out << fmt::format("Truncated {} to length: {}\n", path.typed, *length);
    } else if (arguments.Has("w")) {
      waiting.push_back(path);
    } else {
      *shell->out << fmt::format("Truncating {} to length: {}. Wait for block recovery to complete before further updating this file.\n",
                                 path.typed, *length);
    }
    return kSuccess;
  });
  for (const PathArgument& path : waiting) worst = std::max(worst, WaitForTruncate(shell, path, *length));
  return worst;
}

}  // namespace

std::vector<Verb> AppendVerbs() {
  std::vector<Verb> verbs(2);
  verbs[0].name = "appendToFile";
  verbs[0].synopsis = "[-n] <localsrc> ... <dst>";
  verbs[0].help = "Appends local files, or standard input (-), to a file, which is made if it is not there. -n: begin a new block.";
  verbs[0].flags = {"n"};
  verbs[0].least = 2;
  verbs[0].run = AppendToFile;
  verbs[1].name = "truncate";
  verbs[1].synopsis = "[-w] <length> <path> ...";
  verbs[1].help = "Cuts files to a length. A cut inside a block takes a recovery of that block; -w: waits for it.";
  verbs[1].flags = {"w"};
  verbs[1].least = 2;
  verbs[1].run = Truncate;
  return verbs;
}

}  // namespace cairn::cli
