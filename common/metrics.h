#pragma once

// Metrics in Prometheus's words, over prometheus-cpp (seen by metrics.cc only).
//
// A Registry belongs to a daemon (main, or a test) and is handed to the parts, which make their metrics once and keep the handles:
//
//   metrics::Counter creates = registry.NewCounter("cairn_namespace_ops_total", "Operations by name and result.", {{"op", "create"}});
//   creates.Increment();
//
// Handles are small values; a copy counts into the same series. One that was default-constructed counts into nothing, so a class works
// without a registry. A handle must not be used after its registry is gone. All thread-safe. Names begin with cairn_, have base units
// (_seconds, _bytes), counters end in _total; labels are of bounded number: never paths, block or client ids.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace cairn::metrics {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Counter {
 public:
  Counter() = default;
  void Increment(double by = 1);  // `by` >= 0.
  double value() const;           // 0 for a default-constructed one.

 private:
  friend class Registry;
  explicit Counter(prometheus::Counter* series) : series_(series) {}
  prometheus::Counter* series_ = nullptr;
};

class Gauge {
 public:
  Gauge() = default;
  void Set(double value);
  void Add(double by);
  double value() const;

 private:
  friend class Registry;
  explicit Gauge(prometheus::Gauge* series) : series_(series) {}
  prometheus::Gauge* series_ = nullptr;
};

// Takes a lock for each observation: microseconds' work may observe once a batch instead.
class Histogram {
 public:
  Histogram() = default;
  void Observe(double value);
  void Observe(absl::Duration duration) { Observe(absl::ToDoubleSeconds(duration)); }

 private:
  friend class Registry;
  explicit Histogram(prometheus::Histogram* series) : series_(series) {}
  prometheus::Histogram* series_ = nullptr;
};

// Upper bounds of buckets.
std::vector<double> LatencyBuckets();  // Calls, in seconds: 0.5 ms to 10 s.
std::vector<double> SyncBuckets();     // Disk syncs, in seconds: 0.1 ms to 5 s.
std::vector<double> CountBuckets();    // Batches and sizes of queues: 1, 2, 4 ... 4096.

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The same name and labels give the same series. A name that is bad or has another type already is our bug: aborts.
  Counter NewCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge NewGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram NewHistogram(const std::string& name, const std::string& help, std::vector<double> buckets, const Labels& labels = {});

  // A gauge (or counter) whose value is asked for at each scrape: depth of a queue, age of its oldest entry. Reports until the returned
  // object is destroyed; that waits for a call that runs, so a part may own it and be captured by it. `value` may not touch the registry.
  class Callback {
   public:
    virtual ~Callback() = default;
  };
  [[nodiscard]] std::unique_ptr<Callback> NewCallbackGauge(const std::string& name, const std::string& help, const Labels& labels,
                                                           absl::AnyInvocable<double()> value);
  [[nodiscard]] std::unique_ptr<Callback> NewCallbackCounter(const std::string& name, const std::string& help, const Labels& labels,
                                                             absl::AnyInvocable<double()> value);

  // Everything, in the text format; also the process's own figures (process_cpu_seconds_total, process_resident_memory_bytes,
  // process_open_fds, process_threads, process_start_time_seconds) and cairn_build_info.
  std::string Text() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Of Text(); scrapers refuse an answer without the version.
inline constexpr char kTextContentType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace cairn::metrics
