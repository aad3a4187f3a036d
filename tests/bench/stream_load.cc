// Load for `./dev bench`: writes or reads files through the public client library, and says how long it took and how much CPU this
// process used. What the DataNodes used is measured from outside.
//
//   stream_load write|read --namenode ADDRESS --directory D --streams S --bytes N [--packet N] [--close-sync none|data]
//
// S threads with a file of N bytes each, at the same time. Reading reads what a write with the same arguments wrote.

#include <sys/resource.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cairn/file_system.h"

namespace {

struct Arguments {
  bool write = true;
  std::string namenode;
  std::string directory = "/bench";
  size_t streams = 1;
  uint64_t bytes = 1ull << 30;
  cairn::ClientOptions client;
};

double Seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

absl::Status WriteOne(cairn::FileSystem* files, const std::string& path, uint64_t bytes, const std::vector<char>& data) {
  cairn::CreateOptions options;
  options.overwrite = true;
  auto writer = files->Create(path, options);
  if (!writer.ok()) return writer.status();
  for (uint64_t at = 0; at < bytes;) {
    const size_t size = std::min<uint64_t>(data.size(), bytes - at);
    if (absl::Status status = (*writer)->Append(std::span<const char>(data.data(), size)); !status.ok()) return status;
    at += size;
  }
  return (*writer)->Close();
}

absl::Status ReadOne(cairn::FileSystem* files, const std::string& path, uint64_t bytes) {
  auto reader = files->Open(path);
  if (!reader.ok()) return reader.status();
  std::vector<char> buffer(1 << 20);
  uint64_t total = 0;
  for (;;) {
    const absl::StatusOr<size_t> got = (*reader)->Read(buffer);
    if (!got.ok()) return got.status();
    if (*got == 0) break;
    total += *got;
  }
  if (total != bytes) return absl::DataLossError(path + " has " + std::to_string(total) + " bytes");
  return absl::OkStatus();
}

[[noreturn]] void Usage() {
  std::fprintf(stderr,
               "usage: stream_load write|read --namenode ADDRESS --directory D --streams S --bytes N [--packet N] "
               "[--close-sync none|data]\n");
  std::exit(255);
}

Arguments Parse(int argc, char** argv) {
  Arguments a;
  if (argc < 2 || (std::string(argv[1]) != "write" && std::string(argv[1]) != "read")) Usage();
  a.write = std::string(argv[1]) == "write";
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = argv[i + 1];
    if (flag == "--namenode")
      a.namenode = value;
    else if (flag == "--directory")
      a.directory = value;
    else if (flag == "--streams")
      a.streams = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--bytes")
      a.bytes = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--packet")
      a.client.packet_bytes = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--close-sync")
      a.client.close_sync = value == "none" ? cairn::CloseSync::kNone : cairn::CloseSync::kData;
    else
      Usage();
  }
  if (a.namenode.empty() || a.streams == 0 || argc % 2 != 0) Usage();
  return a;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments a = Parse(argc, argv);
  auto files = cairn::FileSystem::Connect(a.namenode, a.client);
  if (!files.ok()) {
    std::fprintf(stderr, "stream_load: %s\n", std::string(files.status().message()).c_str());
    return 1;
  }
  std::vector<char> data(1 << 20);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 131 + (i >> 8));

  const double cpu_before = CpuSeconds();
  const double begin = Now();
  std::vector<absl::Status> results(a.streams);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < a.streams; ++i)
    threads.emplace_back([&, i] {
      const std::string path = a.directory + "/file-" + std::to_string(i);
      results[i] = a.write ? WriteOne(files->get(), path, a.bytes, data) : ReadOne(files->get(), path, a.bytes);
    });
  for (std::thread& thread : threads) thread.join();
  const double seconds = Now() - begin;
  const double cpu = CpuSeconds() - cpu_before;
  for (const absl::Status& result : results)
    if (!result.ok()) {
      std::fprintf(stderr, "stream_load: %s\n", std::string(result.message()).c_str());
      return 1;
    }
  std::printf("{\"seconds\": %.4f, \"client_cpu_seconds\": %.4f}\n", seconds, cpu);
  return 0;
}
