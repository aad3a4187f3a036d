#include "common/metrics.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::metrics {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The value of a series in the text, by its name with labels.
double ValueOf(const std::string& text, const std::string& series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(series + " ")) return std::strtod(line.c_str() + series.size(), nullptr);
  ADD_FAILURE() << series << " is not in\n" << text;
  return -1;
}

TEST(Metrics, CountersCountAndShowAtOnce) {
  Registry registry;
  Counter creates = registry.NewCounter("cairn_namespace_ops_total", "Operations.", {{"op", "create"}});
  EXPECT_EQ(ValueOf(registry.Text(), "cairn_namespace_ops_total{op=\"create\"}"), 0);  // A series is there before its first event.
  creates.Increment();
  creates.Increment(2);
  EXPECT_EQ(ValueOf(registry.Text(), "cairn_namespace_ops_total{op=\"create\"}"), 3);
  EXPECT_THAT(registry.Text(),
              AllOf(HasSubstr("# HELP cairn_namespace_ops_total Operations.\n"), HasSubstr("# TYPE cairn_namespace_ops_total counter\n")));
}

TEST(Metrics, TheSameNameAndLabelsAreOneSeries) {
  Registry registry;
  Counter a = registry.NewCounter("cairn_x_total", "X.", {{"k", "v"}});
  Counter b = registry.NewCounter("cairn_x_total", "X.", {{"k", "v"}});
  Counter other = registry.NewCounter("cairn_x_total", "X.", {{"k", "w"}});
  a.Increment();
  b.Increment();
  EXPECT_EQ(a.value(), 2);
  EXPECT_EQ(other.value(), 0);
}

TEST(Metrics, GaugesGoUpAndDown) {
  Registry registry;
  Gauge streams = registry.NewGauge("cairn_datanode_streams", "Open streams.");
  streams.Set(5);
  streams.Add(-2);
  EXPECT_EQ(ValueOf(registry.Text(), "cairn_datanode_streams"), 3);
}

TEST(Metrics, HistogramsPutObservationsIntoBuckets) {
  Registry registry;
  Histogram sync = registry.NewHistogram("cairn_journal_sync_seconds", "Sync.", {0.001, 0.01});
  sync.Observe(absl::Milliseconds(2));
  sync.Observe(absl::Seconds(1));
  const std::string text = registry.Text();
  EXPECT_EQ(ValueOf(text, "cairn_journal_sync_seconds_bucket{le=\"0.001\"}"), 0);
  EXPECT_EQ(ValueOf(text, "cairn_journal_sync_seconds_bucket{le=\"0.01\"}"), 1);
  EXPECT_EQ(ValueOf(text, "cairn_journal_sync_seconds_count"), 2);
  EXPECT_NEAR(ValueOf(text, "cairn_journal_sync_seconds_sum"), 1.002, 1e-9);
}

TEST(Metrics, CallbacksAreAskedAtEachScrapeUntilTheyGo) {
  Registry registry;
  double depth = 7;
  auto a = registry.NewCallbackGauge("cairn_queue_depth", "Waiting.", {{"queue", "a"}}, [&] { return depth; });
  auto b = registry.NewCallbackGauge("cairn_queue_depth", "Waiting.", {{"queue", "b"}}, [] { return 1.0; });
  EXPECT_EQ(ValueOf(registry.Text(), "cairn_queue_depth{queue=\"a\"}"), 7);
  depth = 8;
  const std::string text = registry.Text();
  EXPECT_EQ(ValueOf(text, "cairn_queue_depth{queue=\"a\"}"), 8);
  EXPECT_EQ(ValueOf(text, "cairn_queue_depth{queue=\"b\"}"), 1);
  EXPECT_EQ(text.find("# TYPE cairn_queue_depth"), text.rfind("# TYPE cairn_queue_depth"));  // Once for the family.
  a.reset();
  EXPECT_THAT(registry.Text(), AllOf(Not(HasSubstr("queue=\"a\"")), HasSubstr("queue=\"b\"")));
}

TEST(Metrics, ACallbackMayOutliveTheRegistry) {
  auto registry = std::make_unique<Registry>();
  auto callback = registry->NewCallbackGauge("cairn_queue_depth", "Waiting.", {}, [] { return 1.0; });
  registry.reset();
  callback.reset();
}

TEST(Metrics, LabelValuesAreEscaped) {
  Registry registry;
  registry.NewGauge("cairn_volume_state", "State.", {{"volume", "/a \"b\"\\\n"}}).Set(1);
  EXPECT_THAT(registry.Text(), HasSubstr("cairn_volume_state{volume=\"/a \\\"b\\\"\\\\\\n\"} 1"));
}

TEST(Metrics, TheProcessReportsItself) {
  const Registry registry;
  const std::string text = registry.Text();
  EXPECT_GT(ValueOf(text, "process_resident_memory_bytes"), 1e6);
  EXPECT_GE(ValueOf(text, "process_open_fds"), 3);
  EXPECT_GE(ValueOf(text, "process_threads"), 1);
  EXPECT_GE(ValueOf(text, "process_cpu_seconds_total"), 0);
  EXPECT_GT(ValueOf(text, "process_start_time_seconds"), 1.6e9);
  EXPECT_THAT(text, HasSubstr("cairn_build_info{version=\""));
}

TEST(Metrics, HandlesWithoutARegistryCountIntoNothing) {
  Counter counter;
  Gauge gauge;
  Histogram histogram;
  counter.Increment();
  gauge.Set(1);
  gauge.Add(1);
  histogram.Observe(1.0);
  EXPECT_EQ(counter.value(), 0);
  EXPECT_EQ(gauge.value(), 0);
}

TEST(MetricsDeathTest, NamesThatClashAreABug) {
  Registry registry;
  registry.NewCounter("cairn_x_total", "X.");
  EXPECT_DEATH(registry.NewGauge("cairn_x_total", "X."), "cairn_x_total");
  EXPECT_DEATH(registry.NewCounter("cairn-x", "X."), "cairn-x");
  const auto callback = registry.NewCallbackGauge("cairn_depth", "D.", {}, [] { return 0.0; });
  EXPECT_DEATH(static_cast<void>(registry.NewCallbackGauge("cairn_depth", "D.", {}, [] { return 0.0; })), "twice");
}

TEST(Metrics, BucketsAscend) {
  for (const std::vector<double>& buckets : {LatencyBuckets(), SyncBuckets(), CountBuckets()})
    EXPECT_TRUE(std::is_sorted(buckets.begin(), buckets.end()));
}

}  // namespace
}  // namespace cairn::metrics
