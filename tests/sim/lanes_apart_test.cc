// Heartbeats, reports and deletions do not wait for one another: while one of them hangs, every
// other takes exactly as long as without that. Links have a constant delay and the simulated CPU
// and disks take no time, so durations are compared to the nanosecond.

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/fault_points.h"
#include "tests/sim/report_watch.h"
#include "tests/sim/workload.h"
#include "tests/testing/seeds.h"
#include "tests/testing/sim_cluster.h"

namespace cairn::testing {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kFilesBefore = 40;  // Deleted while the fault lasts.
constexpr int kFilesMeanwhile = 30;
constexpr absl::Duration kFaultLasts = absl::Seconds(30);

struct Latencies {
  std::vector<absl::Duration> opens;
  std::vector<absl::Duration> closes;
  ReportWatch::Latencies reports;
  std::vector<uint64_t> heartbeats;  // Sent by each DataNode.
  std::vector<uint64_t> answers;     // That they took notice of.
  uint64_t unlinks_waiting = 0;      // When the fault ended.
};

// Writes files, then deletes them while others are written. `fault` (may be empty) is armed meanwhile.
Latencies Measure(const std::string& fault, const std::string& action) {
  Latencies result;
  // Not gathered: what else happens decides which reports share a message, but not how long one takes.
  SimCluster cluster({.seed = Seeds(1).front(), .report_gather = absl::ZeroDuration()});
  Workload workload(&cluster);
  const absl::Duration written_by = absl::Seconds(20);
  for (int i = 0; i < kFilesBefore; ++i)
    workload.Start(fmt::format("/old/{}", i), {.size = 400'000, .keep = written_by + absl::Milliseconds(700 * i), .remove = true});
  cluster.RunFor(written_by);

  if (!fault.empty()) {
    EXPECT_TRUE(ArmFault(fault, action).ok());
  }
  std::vector<uint64_t> heartbeats;
  std::vector<uint64_t> answers;
  for (size_t i = 0; i < cluster.datanode_count(); ++i) {
    heartbeats.push_back(cluster.datanode(i)->lanes().heartbeat().sent());
    answers.push_back(cluster.datanode(i)->lanes().heartbeat().answered());
  }
  ReportWatch watch(&cluster);
  std::vector<std::string> paths;
  for (int i = 0; i < kFilesMeanwhile; ++i) {
    paths.push_back(fmt::format("/new/{}", i));
    workload.Start(paths.back(), {.size = 1 + static_cast<uint64_t>(i) * 60'000, .keep = absl::Seconds(3), .remove = i % 3 == 0});
    const auto look = [&watch] {
      watch.Look();
      return false;
    };
    cluster.RunUntil(look, kFaultLasts / kFilesMeanwhile);
  }
  for (size_t i = 0; i < cluster.datanode_count(); ++i) {
    result.heartbeats.push_back(cluster.datanode(i)->lanes().heartbeat().sent() - heartbeats[i]);
    result.answers.push_back(cluster.datanode(i)->lanes().heartbeat().answered() - answers[i]);
    result.unlinks_waiting += cluster.datanode(i)->store().pending_deletion_blocks();
  }
  DisarmAllFaults();
  EXPECT_TRUE(workload.WaitForAll(absl::Minutes(5)));
  EXPECT_TRUE(cluster.Settle(absl::Minutes(10))) << cluster.Report().ShortDebugString();
  EXPECT_THAT(CheckFiles(&cluster, &workload), IsEmpty());
  for (const std::string& path : paths) {
    result.opens.push_back(workload.file(path).open_took);
    result.closes.push_back(workload.file(path).close_took);
  }
  result.reports = watch.latencies();
  return result;
}

class LanesApart : public ::testing::Test {
 protected:
  LanesApart() { EnableFaultPoints(); }
  ~LanesApart() override { DisarmAllFaults(); }

  static void ExpectEqual(const Latencies& a, const Latencies& b) {
    EXPECT_EQ(a.opens, b.opens);
    EXPECT_EQ(a.closes, b.closes);
    EXPECT_EQ(a.reports, b.reports);
    EXPECT_EQ(a.heartbeats, b.heartbeats);
  }
};

TEST_F(LanesApart, ClosesAndReportsTakeAsLongWhileDeletionsAreBlocked) {
  const Latencies without = Measure("", "");
  const Latencies with = Measure("datanode.deleter.unlink", "block");
  EXPECT_THAT(without.closes, SizeIs(kFilesMeanwhile));
  EXPECT_THAT(without.closes, Each(Gt(absl::ZeroDuration())));
  EXPECT_GE(without.reports.size(), static_cast<size_t>(kFilesMeanwhile));
  EXPECT_EQ(without.unlinks_waiting, 0u);
  EXPECT_GE(with.unlinks_waiting, 3u * kFilesBefore);
  ExpectEqual(with, without);
  EXPECT_EQ(with.answers, without.answers);
}

TEST_F(LanesApart, ClosesReportsAndDeletionsTakeAsLongWhileHeartbeatAnswersAreHeld) {
  const Latencies without = Measure("", "");
  const Latencies with = Measure("datanode.heartbeat.answer", "block");
  EXPECT_THAT(without.answers, Each(Gt(20u)));
  EXPECT_THAT(with.answers, Each(0u));
  ExpectEqual(with, without);
  EXPECT_EQ(with.unlinks_waiting, 0u);
}

TEST_F(LanesApart, ADelayThatCountsIsMeasured) {
  const Latencies without = Measure("", "");
  const Latencies with = Measure("datanode.receiver.before_ack", "delay(5)");
  EXPECT_NE(with.closes, without.closes);
}

}  // namespace
}  // namespace cairn::testing
