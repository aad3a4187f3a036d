#include "common/metrics.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "common/check.h"
#include "common/mutex.h"

#ifndef CAIRN_VERSION
#define CAIRN_VERSION "unknown"
#endif

namespace cairn::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::map<std::string, std::string> ToMap(const Labels& labels) { return {labels.begin(), labels.end()}; }

// Registration throws for names that are wrong or taken by another type: those are ours, so it is a bug.
template <class Register>
auto& OrDie(const std::string& name, Register add) {
  try {
    return add();
  } catch (const std::exception& e) {
    CAIRN_CHECK(false, "metric " + name + ": " + e.what());
    std::abort();
  }
}

ClientMetric Sample(MetricType type, double value, const Labels& labels) {
  ClientMetric metric;
  for (const auto& [name, text] : labels) metric.label.push_back(ClientMetric::Label{name, text});
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return metric;
}

MetricFamily Family(std::string name, std::string help, MetricType type) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  return family;
}

void AddProcess(const std::string& name, const std::string& help, MetricType type, double value, std::vector<MetricFamily>& out) {
  out.push_back(Family(name, help, type));
  out.back().metric.push_back(Sample(type, value, {}));
}

double BootTimeSeconds() {
  std::ifstream stat("/proc/stat");
  std::string word;
  while (stat >> word)
    if (double seconds = 0; word == "btime" && stat >> seconds) return seconds;
  return 0;
}

// From /proc/self; what cannot be read is left out.
void CollectProcess(std::vector<MetricFamily>& out) {
  constexpr double kTicksPerSecond = 100;  // USER_HZ, fixed in Linux's interface whatever the kernel's own.
  constexpr double kPageBytes = 4096;
  std::ifstream file("/proc/self/stat");
  std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The second field is the program's name in parentheses and may hold anything; fields are counted after it, from 3.
  if (const size_t end = stat.rfind(')'); end != std::string::npos) {
    std::istringstream rest(stat.substr(end + 1));
    std::vector<std::string> fields((std::istream_iterator<std::string>(rest)), std::istream_iterator<std::string>());
    const auto field = [&fields](size_t number) { return std::strtod(fields[number - 3].c_str(), nullptr); };
    if (fields.size() >= 22) {
      AddProcess("process_cpu_seconds_total", "User and system time.", MetricType::Counter, (field(14) + field(15)) / kTicksPerSecond, out);
      AddProcess("process_threads", "Threads now.", MetricType::Gauge, field(20), out);
      AddProcess("process_start_time_seconds", "Since the Unix epoch.", MetricType::Gauge, BootTimeSeconds() + field(22) / kTicksPerSecond,
                 out);
      AddProcess("process_virtual_memory_bytes", "Address space.", MetricType::Gauge, field(23), out);
      AddProcess("process_resident_memory_bytes", "Memory in RAM.", MetricType::Gauge, field(24) * kPageBytes, out);
    }
  }
  std::error_code error;
  double open = 0;
  for (std::filesystem::directory_iterator i("/proc/self/fd", error), end; !error && i != end; i.increment(error)) ++open;
  if (!error) AddProcess("process_open_fds", "Open file descriptors.", MetricType::Gauge, open, out);
}

struct CallbackEntry {
  std::string name;
  std::string help;
  MetricType type;
  Labels labels;
  absl::AnyInvocable<double()> value;
};

}  // namespace

void Counter::Increment(double by) {
  if (series_ != nullptr) series_->Increment(by);
}
double Counter::value() const { return series_ == nullptr ? 0 : series_->Value(); }

void Gauge::Set(double value) {
  if (series_ != nullptr) series_->Set(value);
}
void Gauge::Add(double by) {
  if (series_ != nullptr) series_->Increment(by);
}
double Gauge::value() const { return series_ == nullptr ? 0 : series_->Value(); }

void Histogram::Observe(double value) {
  if (series_ != nullptr) series_->Observe(value);
}

std::vector<double> LatencyBuckets() { return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}; }
std::vector<double> SyncBuckets() { return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}; }
std::vector<double> CountBuckets() {
  std::vector<double> buckets;
  for (double bound = 1; bound <= 4096; bound *= 2) buckets.push_back(bound);
  return buckets;
}

struct Registry::State {
  prometheus::Registry registry;  // Has its own lock.

  Mutex mu;
  uint64_t next_callback ABSL_GUARDED_BY(mu) = 1;
  std::map<uint64_t, CallbackEntry> callbacks ABSL_GUARDED_BY(mu);  // By number, so that the text keeps its order.
};

namespace {

// Takes its entry out when destroyed. The lock is held while callbacks are asked, so none runs after that.
template <class State>
class Registered : public Registry::Callback {
 public:
  Registered(std::shared_ptr<State> state, uint64_t number) : state_(std::move(state)), number_(number) {}
  ~Registered() override {
    MutexLock lock(state_->mu);
    state_->callbacks.erase(number_);
  }

 private:
  std::shared_ptr<State> state_;
  uint64_t number_;
};

template <class State>
std::unique_ptr<Registry::Callback> Add(const std::shared_ptr<State>& state, CallbackEntry entry) {
  MutexLock lock(state->mu);
  for (const auto& [number, other] : state->callbacks) {
    CAIRN_CHECK(other.name != entry.name || other.type == entry.type, "metric " + entry.name + " has two types");
    CAIRN_CHECK(other.name != entry.name || other.labels != entry.labels, "metric " + entry.name + " is there twice");
  }
  const uint64_t number = state->next_callback++;
  state->callbacks.emplace(number, std::move(entry));
  return std::make_unique<Registered<State>>(state, number);
}

}  // namespace

Registry::Registry() : state_(std::make_shared<State>()) {
  NewGauge("cairn_build_info", "1; what runs is in the labels.", {{"version", CAIRN_VERSION}}).Set(1);
}

Registry::~Registry() = default;

Counter Registry::NewCounter(const std::string& name, const std::string& help, const Labels& labels) {
  return Counter(&OrDie(name, [&]() -> prometheus::Counter& {
    return prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry).Add(ToMap(labels));
  }));
}

Gauge Registry::NewGauge(const std::string& name, const std::string& help, const Labels& labels) {
  return Gauge(&OrDie(name, [&]() -> prometheus::Gauge& {
    return prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry).Add(ToMap(labels));
  }));
}

Histogram Registry::NewHistogram(const std::string& name, const std::string& help, std::vector<double> buckets, const Labels& labels) {
  return Histogram(&OrDie(name, [&]() -> prometheus::Histogram& {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry).Add(ToMap(labels), std::move(buckets));
  }));
}

std::unique_ptr<Registry::Callback> Registry::NewCallbackGauge(const std::string& name, const std::string& help, const Labels& labels,
                                                               absl::AnyInvocable<double()> value) {
  return Add(state_, CallbackEntry{name, help, MetricType::Gauge, labels, std::move(value)});
}

std::unique_ptr<Registry::Callback> Registry::NewCallbackCounter(const std::string& name, const std::string& help, const Labels& labels,
                                                                 absl::AnyInvocable<double()> value) {
  return Add(state_, CallbackEntry{name, help, MetricType::Counter, labels, std::move(value)});
}

std::string Registry::Text() const {
  std::vector<MetricFamily> families = state_->registry.Collect();
  {
    std::map<std::string, size_t> asked;  // Families by name: one HELP for all series of it.
    MutexLock lock(state_->mu);
    for (auto& [number, entry] : state_->callbacks) {
      const auto [at, added] = asked.emplace(entry.name, families.size());
      if (added) families.push_back(Family(entry.name, entry.help, entry.type));
      families[at->second].metric.push_back(Sample(entry.type, entry.value(), entry.labels));
    }
  }
  CollectProcess(families);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace cairn::metrics
