// cairn-namespace: looks at a namespace that no NameNode has open: a checkpoint, a download, the directory of a stopped NameNode; or
// compacts it. Run by `cairn namespace`.

#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/error.h"
#include "common/status.h"
#include "namenode/namespace/checker.h"
#include "namenode/namespace/row_text.h"
#include "namenode/namespace_compaction.h"
#include "namenode/namespace_copy.h"

namespace cairn::namenode {
namespace {

constexpr char kProgram[] = "cairn namespace";
constexpr int kViolations = 1;
constexpr int kFailure = 2;

absl::StatusOr<int> Check(const ReadView& view) {
  ASSIGN_OR_RETURN(const CheckSummary summary,
                   CheckNamespace(view, [](const Violation& violation) { std::printf("%s\n", ToString(violation).c_str()); }));
  std::printf("%s\n", fmt::format("{}: {} directories, {} files, {} blocks, {} leases, {} works, {} retry rows; {} violations",
                                  summary.violations == 0 ? "sound" : "NOT SOUND", summary.directories, summary.files, summary.blocks,
                                  summary.leases, summary.works, summary.retries, summary.violations)
                          .c_str());
  return summary.violations == 0 ? 0 : kViolations;
}

absl::StatusOr<int> Dump(const ReadView& view) {
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const auto family = static_cast<Family>(i);
    const auto cursor = view.Scan(family, "", "");
    for (; cursor->Valid(); cursor->Next()) {
      const std::string line = RowJson(family, cursor->key(), cursor->value()) + "\n";
      if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) return absl::DataLossError("standard output takes no more");
    }
    RETURN_IF_ERROR(cursor->status());
  }
  return 0;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", kProgram, std::string(status.message()).c_str());
  return kFailure;
}

int Compact(const std::string& directory) {
  const std::unique_ptr<Env> env = NewRealEnv();
  const absl::StatusOr<NamespaceCompaction> compacted = CompactNamespace(directory, env.get(), [](Family family) {
    std::fprintf(stderr, "%s: %s is compacted\n", kProgram, std::string(FamilyName(family)).c_str());
  });
  if (!compacted.ok()) return Fail(compacted.status());
  for (const std::string& line : compacted->changed_options) std::printf("%s\n", line.c_str());
  std::printf("%s\n", fmt::format("compacted: {} bytes, {} before; {} options differ ({}, {} before)", compacted->bytes_after,
                                  compacted->bytes_before, compacted->changed_options.size(), compacted->options_after,
                                  compacted->options_before)
                          .c_str());
  return 0;
}

int Run(bool check, const std::string& directory) {
  const std::unique_ptr<Env> env = NewRealEnv();
  absl::StatusOr<NamespaceCopy> copy = NamespaceCopy::Open(directory, env.get());
  if (!copy.ok()) return Fail(copy.status());
  const absl::StatusOr<int> code = check ? Check(copy->view()) : Dump(copy->view());
  if (!code.ok()) return Fail(code.status());
  if (std::fflush(stdout) != 0) return Fail(absl::DataLossError("standard output takes no more"));
  return *code;
}

}  // namespace
}  // namespace cairn::namenode

int main(int argc, char** argv) {
  CLI::App app("For a namespace that no NameNode has open: a NameNode's directory, or a checkpoint of one.", "cairn namespace");
  std::string directory;
  CLI::App* check = app.add_subcommand("check", "Verifies every row and every total; prints what is wrong. Exit code 1 if anything is.");
  CLI::App* dump = app.add_subcommand("dump", "Prints every row as a line of JSON.");
  CLI::App* compact = app.add_subcommand(
      "compact", "Rewrites the database of a stopped NameNode, with the options that a NameNode of this version opens it with.");
  // Said by those who know that there is no other way.
  bool offline = true;
  compact->add_flag("--offline", offline, "As it always is");
  for (CLI::App* command : {check, dump, compact}) command->add_option("directory", directory, "The copy")->required();
  app.require_subcommand(1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 255;
  }
  if (compact->parsed()) return cairn::namenode::Compact(directory);
  return cairn::namenode::Run(check->parsed(), directory);
}
