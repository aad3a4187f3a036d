// checkpoint-job: a small stream job on real input that checkpoints into Cairn, as Flink's RocksDB backend does.
//
// Counts the words of every C and C++ header on this machine, per file, in a RocksDB; takes incremental
// checkpoints along the way; after a crash it restores the newest complete one and goes on. Prints the totals
// at the end in a form that an independent count can be compared with: entries, words, and a digest that does
// not depend on order (the sum, modulo 2^64, of CRC-32(word NUL file TAB count)).
#include <chrono>

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include <zlib.h>
#include <CLI/CLI.hpp>

#include "cairn/file_system.h"
#include "checkpoints.h"
#include "keyed_state.h"
#include "word_stream.h"

namespace {

struct Arguments {
  std::string address;
  std::string job_directory = "/checkpoints/job";
  std::string local_directory;
  std::vector<std::string> roots = {"/usr/include"};
  double share = 1.0;
  uint64_t checkpoints = 6;
  uint64_t block_size = 0;
  std::vector<uint64_t> pause_in_checkpoints;
  std::string pause_marker;
};

int Fail(const absl::Status& status) {
  std::cerr << "checkpoint-job: " << status.message() << std::endl;
  return 1;
}

std::string MiB(uint64_t bytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return std::move(text).str();
}

absl::Status CountFile(const WordStream& stream, size_t index, KeyedState* state) {
  absl::StatusOr<std::string> text = stream.ReadFile(index);
  if (!text.ok()) return text.status();
  std::map<std::string, Occurrences, std::less<>> counts;
  ForEachWord(*text, [&](std::string_view word) {
    const auto offset = static_cast<uint64_t>(word.data() - text->data());
    auto found = counts.find(word);
    if (found == counts.end()) found = counts.emplace(word, Occurrences{0, offset, offset}).first;
    ++found->second.count;
    found->second.last_offset = offset;
  });
  for (const auto& [word, count] : counts)
    if (absl::Status status = state->Add(word, stream.file(index), count); !status.ok()) return status;
  return absl::OkStatus();
}

absl::Status PrintTotals(KeyedState* state) {
  uint64_t entries = 0;
  uint64_t words = 0;
  uint64_t digest = 0;
  absl::Status status = state->ForEach([&](std::string_view word, std::string_view file, uint64_t count) {
    std::string line(word);
    line += '\0';
    line += file;
    line += '\t' + std::to_string(count);
    digest += crc32(0, reinterpret_cast<const Bytef*>(line.data()), static_cast<uInt>(line.size()));
    ++entries;
    words += count;
  });
  if (status.ok()) std::cout << "totals: entries=" << entries << " words=" << words << " digest=" << digest << std::endl;
  return status;
}

int Run(const Arguments& arguments) {
  cairn::ClientOptions options;
  options.block_size_bytes = arguments.block_size;
  absl::StatusOr<std::unique_ptr<cairn::FileSystem>> files = cairn::FileSystem::Connect(arguments.address, options);
  if (!files.ok()) return Fail(files.status());
  absl::StatusOr<WordStream> stream = WordStream::Open(arguments.roots, arguments.share);
  if (!stream.ok()) return Fail(stream.status());

  std::optional<Checkpoints::Pause> pause;
  if (!arguments.pause_in_checkpoints.empty())
    pause = Checkpoints::Pause{{arguments.pause_in_checkpoints.begin(), arguments.pause_in_checkpoints.end()}, arguments.pause_marker};
  Checkpoints checkpoints(files->get(), arguments.job_directory, arguments.local_directory, pause);
  const std::string state_directory = arguments.local_directory + "/state";
  std::error_code error;
  std::filesystem::remove_all(arguments.local_directory, error);  // State lives in checkpoints; what is here is a crashed run's.
  std::filesystem::create_directories(arguments.local_directory, error);

  absl::StatusOr<std::optional<CheckpointMetadata>> newest = checkpoints.FindNewest();
  if (!newest.ok()) return Fail(newest.status());
  size_t next_file = 0;
  uint64_t taken = 0;
  absl::StatusOr<uint64_t> orphans = checkpoints.RemoveOrphans();
  if (!orphans.ok()) return Fail(orphans.status());
  if (*orphans > 0) std::cout << "removed " << *orphans << " files that a crashed run left behind" << std::endl;
  if (newest->has_value()) {
    if (absl::Status status = checkpoints.Restore(**newest, state_directory); !status.ok()) return Fail(status);
    next_file = (*newest)->next_file;
    taken = (*newest)->number;
    std::cout << "restored checkpoint " << taken << " (" << MiB((*newest)->bytes) << "), going on at file " << next_file << " of "
              << stream->file_count() << std::endl;
  } else {
    std::cout << "fresh start, " << stream->file_count() << " files" << std::endl;
  }
  absl::StatusOr<std::unique_ptr<KeyedState>> state = KeyedState::Open(state_directory);
  if (!state.ok()) return Fail(state.status());

  while (next_file < stream->file_count()) {
    const size_t due = stream->file_count() * (taken + 1) / arguments.checkpoints;
    const size_t until = std::min(stream->file_count(), std::max(due, next_file + 1));
    for (; next_file < until; ++next_file)
      if (absl::Status status = CountFile(*stream, next_file, state->get()); !status.ok()) return Fail(status);
    absl::StatusOr<Checkpoints::Summary> summary = checkpoints.Take(state->get(), next_file);
    if (!summary.ok()) return Fail(summary.status());
    taken = summary->number;
    std::cout << "checkpoint " << summary->number << ": " << std::fixed << std::setprecision(2) << summary->seconds << " s, "
              << MiB(summary->total_bytes) << ", new " << summary->uploaded_files << " files " << MiB(summary->uploaded_bytes)
              << ", largest " << MiB(summary->largest_file) << ", deleted " << summary->deleted_files << " files of older ones"
              << std::endl;
  }
  if (absl::Status status = PrintTotals(state->get()); !status.ok()) return Fail(status);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("A stream job that counts words per header file and checkpoints into Cairn.", "checkpoint-job");
  app.add_option("--namenode", arguments.address, "Address of the cluster, cairn://host:port")->required();
  app.add_option("--job-directory", arguments.job_directory, "Directory in Cairn");
  app.add_option("--local-directory", arguments.local_directory, "Local directory for state; emptied at the start")->required();
  app.add_option("--input", arguments.roots, "Directories whose header files are the stream");
  app.add_option("--share", arguments.share, "Part of the files to take, (0, 1]")->check(CLI::Range(0.0001, 1.0));
  app.add_option("--checkpoints", arguments.checkpoints, "How many checkpoints to spread over the stream")->check(CLI::Range(1, 1000));
  app.add_option("--block-size", arguments.block_size, "Block size in bytes; 0: the server's");
  app.add_option("--pause-in-checkpoint", arguments.pause_in_checkpoints, "Stop in the middle of a file of these checkpoints");
  app.add_option("--pause-marker", arguments.pause_marker, "File that marks the stop; removed by who wants the job to go on");
  CLI11_PARSE(app, argc, argv);
  return Run(arguments);
}
