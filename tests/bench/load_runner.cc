#include "tests/bench/load_runner.h"

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <sstream>

#include <fmt/format.h>

namespace cairn::bench {
namespace {

double Seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Callers of one phase. Shared by the answers under way.
struct Loop : std::enable_shared_from_this<Loop> {
  uint64_t operations = 0;
  const Issue* issue = nullptr;
  const std::function<bool()>* stop = nullptr;
  std::vector<double> latencies;  // By operation; each written once.
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> done{0};
  std::atomic<bool> failed{false};

  std::mutex mu;
  std::condition_variable ended;
  size_t active = 0;
  absl::Status status;

  void Next(size_t caller) {
    const bool halt = failed.load() || (*stop && (*stop)());
    const uint64_t index = halt ? operations : next.fetch_add(1);
    if (index >= operations) {
      const std::lock_guard lock(mu);
      if (--active == 0) ended.notify_all();
      return;
    }
    const double begin = NowSeconds();
    (*issue)(caller, index, [self = shared_from_this(), caller, index, begin](const absl::Status& result) {
      self->latencies[index] = NowSeconds() - begin;
      if (result.ok()) {
        self->done.fetch_add(1);
      } else if (!self->failed.exchange(true)) {
        const std::lock_guard lock(self->mu);
        self->status = result;
      }
      self->Next(caller);
    });
  }
};

double Percentile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(part * static_cast<double>(sorted.size())))];
}

}  // namespace

double NowSeconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

ProcessCpu CpuOf(pid_t pid) {
  ProcessCpu cpu;
  const std::string folder = fmt::format("/proc/{}", pid);
  const std::string stat = ReadFile(folder + "/stat");
  if (const size_t end = stat.rfind(')'); end != std::string::npos) {
    std::istringstream rest(stat.substr(end + 1));
    std::string field;
    for (int number = 3; rest >> field; ++number)
      if (number == 14 || number == 15) cpu.seconds += std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  DIR* tasks = opendir((folder + "/task").c_str());
  if (tasks == nullptr) return cpu;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    const std::string task = folder + "/task/" + entry->d_name;
    std::string name = ReadFile(task + "/comm");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    double nanoseconds = 0;
    std::istringstream(ReadFile(task + "/schedstat")) >> nanoseconds;
    cpu.threads[name] += 1e-9 * nanoseconds;
  }
  closedir(tasks);
  return cpu;
}

PhaseResult RunPhase(const std::string& name, uint64_t operations, size_t in_flight, pid_t server, const Issue& issue,
                     const std::function<bool()>& stop) {
  auto loop = std::make_shared<Loop>();
  loop->operations = operations;
  loop->issue = &issue;
  loop->stop = &stop;
  loop->latencies.resize(operations);
  loop->active = in_flight;
  const ProcessCpu server_before = CpuOf(server);
  const double client_before = OwnCpuSeconds();
  const double begin = NowSeconds();
  for (size_t caller = 0; caller < in_flight; ++caller) loop->Next(caller);
  {
    std::unique_lock lock(loop->mu);
    loop->ended.wait(lock, [&] { return loop->active == 0; });
  }
  PhaseResult result;
  result.name = name;
  result.seconds = NowSeconds() - begin;
  const double client_cpu = OwnCpuSeconds() - client_before;
  const ProcessCpu server_after = CpuOf(server);
  result.operations = loop->done.load();
  result.status = loop->status;
  const double scale = 1e6 / std::max(1.0, static_cast<double>(result.operations));
  result.client_cpu_us = client_cpu * scale;
  result.server_cpu_us = (server_after.seconds - server_before.seconds) * scale;
  for (const auto& [thread, seconds] : server_after.threads) {
    const auto before = server_before.threads.find(thread);
    const double used = (seconds - (before == server_before.threads.end() ? 0 : before->second)) * scale;
    if (used >= 0.05) result.server_threads_us[thread] = used;
  }
  loop->latencies.resize(std::min(operations, loop->next.load()));
  std::sort(loop->latencies.begin(), loop->latencies.end());
  result.p50_us = 1e6 * Percentile(loop->latencies, 0.5);
  result.p99_us = 1e6 * Percentile(loop->latencies, 0.99);
  return result;
}

std::string ToText(const PhaseResult& r) {
  std::string text = fmt::format("--- {} stats ---\n# operations: {}\nElapsed Time: {}\n Ops per sec: {:.2f}\nAverage Time: {:.3f}\n",
                                 r.name, r.operations, static_cast<int64_t>(r.seconds * 1e3), static_cast<double>(r.operations) / r.seconds,
                                 r.seconds * 1e3 / std::max(1.0, static_cast<double>(r.operations)));
  text += fmt::format("p50 {:.0f} us, p99 {:.0f} us, CPU an operation: client {:.1f} us, server {:.1f} us (", r.p50_us, r.p99_us,
                      r.client_cpu_us, r.server_cpu_us);
  std::vector<std::pair<double, std::string>> threads;
  for (const auto& [name, used] : r.server_threads_us) threads.emplace_back(-used, name);
  std::sort(threads.begin(), threads.end());
  for (size_t i = 0; i < threads.size(); ++i) text += fmt::format("{}{} {:.1f}", i == 0 ? "" : ", ", threads[i].second, -threads[i].first);
  return text + ")\n";
}

std::string ToJson(const PhaseResult& r) {
  std::string threads;
  for (const auto& [name, used] : r.server_threads_us) threads += fmt::format("{}\"{}\": {:.2f}", threads.empty() ? "" : ", ", name, used);
  return fmt::format(
      "{{\"name\": \"{}\", \"operations\": {}, \"seconds\": {:.4f}, \"ops_per_s\": {:.1f}, \"average_ms\": {:.4f}, \"p50_us\": {:.1f}, "
      "\"p99_us\": {:.1f}, \"client_cpu_us\": {:.2f}, \"server_cpu_us\": {:.2f}, \"server_threads_us\": {{{}}}}}",
      r.name, r.operations, r.seconds, static_cast<double>(r.operations) / r.seconds,
      r.seconds * 1e3 / std::max(1.0, static_cast<double>(r.operations)), r.p50_us, r.p99_us, r.client_cpu_us, r.server_cpu_us, threads);
}

}  // namespace cairn::bench
