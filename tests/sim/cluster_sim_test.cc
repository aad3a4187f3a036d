// The whole product under attack: what was acknowledged is there, whole and on all its nodes, and
// what was deleted is gone, in every seed.

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/attackers.h"
#include "tests/sim/workload.h"
#include "tests/testing/seeds.h"
#include "tests/testing/sim_cluster.h"

namespace cairn::testing {
namespace {

using ::testing::IsEmpty;

struct RunResult {
  std::vector<std::string> wrong;
  int acknowledged = 0;
  int failed = 0;
  int renamed = 0;
  int removed = 0;
  int crashes = 0;
  int cuts = 0;
  int delays = 0;
  uint64_t trace_hash = 0;
};

FilePlan AnyPlan(const std::string& path, Random* random) {
  static constexpr uint64_t kSizes[] = {0, 1, 511, 512, 513, 65536, 65537, 1 << 20, (1 << 20) + 1, (3 << 20) + 777};
  FilePlan plan;
  plan.size = random->OneIn(2) ? kSizes[random->Below(std::size(kSizes))] : random->Below(4 << 20);
  plan.pause = absl::Milliseconds(random->Below(400));
  plan.flush = random->OneIn(4);
  plan.keep = absl::Milliseconds(random->Below(5000));
  if (random->OneIn(3)) plan.rename_to = path + ".moved";
  plan.remove = random->OneIn(4);
  return plan;
}

RunResult RunSeed(uint64_t seed, int files) {
  RunResult result;
  SimCluster cluster({.seed = seed});
  Workload workload(&cluster);
  Random random = cluster.world().NewRandom();
  Attackers attackers(&cluster, cluster.world().NewRandom());
  attackers.Start();
  for (int i = 0; i < files; ++i) {
    const std::string path = fmt::format("/job/chk-{}/file-{}", i / 4, i);
    workload.Start(path, AnyPlan(path, &random));
    cluster.RunFor(absl::Milliseconds(random.Below(3000)));
  }
  if (!workload.WaitForAll(absl::Minutes(30))) result.wrong.push_back("the writers do not end");
  attackers.Stop();
  if (!cluster.Settle(absl::Minutes(30))) result.wrong.push_back("the cluster does not settle: " + cluster.Report().ShortDebugString());
  for (const auto& [path, life] : workload.files()) {
    ++(life.written.ok() ? result.acknowledged : result.failed);
    if (!life.written.ok()) fmt::print("  {}: {}\n", path, std::string(life.written.message()));
    result.renamed += life.written.ok() && !life.plan.rename_to.empty() && life.renamed.ok() ? 1 : 0;
    result.removed += life.written.ok() && life.plan.remove && life.removed.ok() ? 1 : 0;
  }
  for (std::string& wrong : CheckFiles(&cluster, &workload)) result.wrong.push_back(std::move(wrong));
  result.crashes = attackers.crashes();
  result.cuts = attackers.cuts();
  result.delays = attackers.delays();
  result.trace_hash = cluster.world().trace_hash();
  return result;
}

TEST(ClusterSim, AcknowledgedFilesSurviveCrashesCutsAndDelays) {
  int renamed = 0;
  int removed = 0;
  const std::vector<uint64_t> seeds = Seeds(20);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(ReplayHint(seed));
    const RunResult result = RunSeed(seed, 16);
    fmt::print("seed {}: {} files acknowledged, {} failed, {} renamed, {} deleted; {} crashes, {} cuts, {} delays\n", seed,
               result.acknowledged, result.failed, result.renamed, result.removed, result.crashes, result.cuts, result.delays);
    EXPECT_THAT(result.wrong, IsEmpty());
    EXPECT_GE(result.crashes, 1);
    EXPECT_GE(result.cuts, 1);
    EXPECT_GE(result.delays, 1);
    EXPECT_GE(result.acknowledged, 8);
    renamed += result.renamed;
    removed += result.removed;
    if (HasFailure()) return;
  }
  if (seeds.size() < 20) return;
  EXPECT_GE(renamed, 20);
  EXPECT_GE(removed, 20);
}

TEST(ClusterSim, ARunRepeatsFromItsSeed) {
  const uint64_t seed = Seeds(1).front();
  const RunResult first = RunSeed(seed, 8);
  const RunResult second = RunSeed(seed, 8);
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.crashes, second.crashes);
  EXPECT_EQ(first.acknowledged, second.acknowledged);
  EXPECT_NE(first.trace_hash, RunSeed(seed + 1, 8).trace_hash);
}

TEST(ClusterSim, AFileSurvivesPowerLossOfAllNodesRightAfterItsClose) {
  for (const uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(ReplayHint(seed));
    SimCluster cluster({.seed = seed});
    Workload workload(&cluster);
    for (const uint64_t size : {0ull, 1ull, 511ull, 512ull, 513ull, 65537ull, 1ull << 20, (1ull << 20) + 1, 2'500'000ull}) {
      const std::string path = fmt::format("/power/{}", size);
      workload.Write(path, size);
      ASSERT_TRUE(workload.WaitForAll(absl::Minutes(10))) << path;
      ASSERT_TRUE(workload.file(path).written.ok()) << workload.file(path).written;
      cluster.PowerCutAll(absl::Seconds(3));
      EXPECT_EQ(workload.Compare(path), "");
    }
    ASSERT_TRUE(cluster.Settle(absl::Minutes(10))) << cluster.Report().ShortDebugString();
    EXPECT_THAT(CheckFiles(&cluster, &workload), IsEmpty());
  }
}

TEST(ClusterSim, ADeadDatanodesBlocksAreReplicatedAgain) {
  SimCluster cluster({.seed = Seeds(1).front(), .datanodes = 5});
  Workload workload(&cluster);
  for (int i = 0; i < 6; ++i) workload.Write(fmt::format("/repair/{}", i), 1'500'000);
  ASSERT_TRUE(workload.WaitForAll(absl::Minutes(10)));
  cluster.KillDatanode(2, absl::Hours(10));
  const auto back = [&] {
    const v1::ClusterReportResponse report = cluster.Report();
    size_t dead = 0;
    for (const v1::DatanodeReport& node : report.datanodes()) dead += node.state() == v1::DEAD ? 1 : 0;
    return dead == 1 && report.under_replicated_blocks() == 0;
  };
  bool repaired = false;
  for (int i = 0; i < 600 && !repaired; ++i) {
    cluster.RunFor(absl::Seconds(1));
    repaired = back();
  }
  EXPECT_TRUE(repaired) << cluster.Report().ShortDebugString();
  cluster.RunFor(absl::Seconds(30));
  EXPECT_THAT(CheckFiles(&cluster, &workload), IsEmpty());
}

}  // namespace
}  // namespace cairn::testing
