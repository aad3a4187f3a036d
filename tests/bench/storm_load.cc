// Load for `./dev bench storm`, through the public client library.
//
//   storm_load fill --namenode ADDRESS --base /b --files N --bytes N --writers N     files of that size, unsynced, 100 in a directory
//   storm_load write --namenode ADDRESS --base /b --bytes N --writers N [--rate N]   the same, synced, until standard input ends; of all
//                                                                                    writers together at most so many begun in a second
//
// Prints one JSON object: files, seconds, and how long a close took.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "cairn/file_system.h"
#include "tests/bench/load_runner.h"

namespace cairn::bench {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "storm_load: %s\n", what.c_str());
  std::exit(1);
}

struct Arguments {
  bool until_told = false;
  std::string namenode;
  std::string base;
  uint64_t files = UINT64_MAX;
  uint64_t bytes = 0;
  size_t writers = 0;
  double rate = 0;  // 0: one after another.
};

// Writes files until all are written or `stop`; the microseconds of each close.
std::vector<double> Write(FileSystem* files, const Arguments& arguments, std::atomic<uint64_t>* next, const std::atomic<bool>* stop) {
  const std::vector<char> data(std::min<uint64_t>(arguments.bytes, 1 << 20), 'c');
  std::vector<double> closes;
  const double start = NowSeconds();
  while (!stop->load()) {
    const uint64_t number = next->fetch_add(1);
    if (number >= arguments.files) break;
    if (arguments.rate > 0) {
      const double wait = start + static_cast<double>(number) / arguments.rate - NowSeconds();
      // The pace of the load itself; nothing is waited for.
      if (wait > 0) std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    }
    auto writer = files->Create(fmt::format("{}/{}/{}", arguments.base, number / 100, number));
    if (!writer.ok()) Die(std::string(writer.status().message()));
    for (uint64_t left = arguments.bytes; left > 0;) {
      const size_t size = std::min<uint64_t>(left, data.size());
      if (const absl::Status status = (*writer)->Append(std::span<const char>(data.data(), size)); !status.ok())
        Die(std::string(status.message()));
      left -= size;
    }
    const double begin = NowSeconds();
    if (const absl::Status status = (*writer)->Close(); !status.ok()) Die(std::string(status.message()));
    closes.push_back((NowSeconds() - begin) * 1e6);
  }
  return closes;
}

int Run(const Arguments& arguments) {
  ClientOptions options;
  options.close_sync = arguments.until_told ? CloseSync::kData : CloseSync::kNone;
  auto files = FileSystem::Connect(arguments.namenode, options);
  if (!files.ok()) Die(std::string(files.status().message()));
  std::atomic<uint64_t> next{0};
  std::atomic<bool> stop{false};
  std::vector<std::vector<double>> closes(arguments.writers);
  std::vector<std::thread> writers;
  const double begin = NowSeconds();
  for (size_t i = 0; i < arguments.writers; ++i) writers.emplace_back([&, i] { closes[i] = Write(files->get(), arguments, &next, &stop); });
  if (arguments.until_told) {
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    stop.store(true);
  }
  for (std::thread& writer : writers) writer.join();
  const double seconds = NowSeconds() - begin;
  std::vector<double> all;
  for (const std::vector<double>& some : closes) all.insert(all.end(), some.begin(), some.end());
  if (all.empty()) Die("nothing was written");
  std::sort(all.begin(), all.end());
  const auto quantile = [&](double q) { return all[std::min(all.size() - 1, static_cast<size_t>(q * static_cast<double>(all.size())))]; };
  std::printf(
      "{\"files\": %zu, \"seconds\": %.3f, \"mib_per_s\": %.1f, \"close_p50_us\": %.0f, \"close_p99_us\": %.0f, \"close_max_us\": %.0f}\n",
      all.size(), seconds, static_cast<double>(all.size() * arguments.bytes) / seconds / (1 << 20), quantile(0.5), quantile(0.99),
      all.back());
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  std::map<std::string, std::string> values;
  for (int i = 2; i + 1 < argc; i += 2) values[argv[i]] = argv[i + 1];
  cairn::bench::Arguments arguments;
  arguments.until_told = argc > 1 && std::string(argv[1]) == "write";
  arguments.namenode = values["--namenode"];
  arguments.base = values["--base"];
  arguments.bytes = std::strtoull(values["--bytes"].c_str(), nullptr, 10);
  arguments.writers = std::strtoull(values["--writers"].c_str(), nullptr, 10);
  arguments.rate = std::strtod(values["--rate"].c_str(), nullptr);
  if (!arguments.until_told) arguments.files = std::strtoull(values["--files"].c_str(), nullptr, 10);
  if (argc % 2 != 0 || arguments.namenode.empty() || arguments.base.empty() || arguments.writers == 0 || arguments.files == 0) {
    std::fprintf(stderr, "usage: storm_load fill|write --namenode ADDRESS --base /b [--files N] --bytes N --writers N [--rate N]\n");
    return 255;
  }
  return cairn::bench::Run(arguments);
}
