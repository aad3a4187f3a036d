// The balancer over the product's own parts: a node comes empty to three that are in use, DataNodes and the NameNode fail while replicas
// move, and every file is what it was, on as many nodes as before at every moment.

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/workload.h"
#include "tests/testing/seeds.h"
#include "tests/testing/sim_cluster.h"

namespace cairn::testing {
namespace {

using ::testing::IsEmpty;

class BalancedCluster {
 public:
  explicit BalancedCluster(uint64_t seed) : cluster_({.seed = seed}), workload_(&cluster_) {
    // Away while all is written, so that it has nothing.
    cluster_.KillDatanode(3, absl::Minutes(3));
    for (int i = 0; i < 10; ++i) workload_.Write(fmt::format("/in/{}", i), (2 << 20) + 100 * static_cast<uint64_t>(i));
    EXPECT_TRUE(workload_.WaitForAll(absl::Minutes(2)));
    cluster_.RunUntil([this] { return cluster_.AllUp(); }, absl::Minutes(5));
    EXPECT_TRUE(cluster_.Settle(absl::Minutes(10)));
    cluster_.RunFor(absl::Minutes(2));  // Out of the time in which a client's word counts.
    for (const auto& [path, life] : workload_.files()) {
      v1::GetBlockLocationsRequest request;
      request.set_path(path);
      request.set_length_bytes(uint64_t{1} << 40);
      const auto located = cluster_.Ask(&api::ClientNamenode::GetBlockLocations, request);
      EXPECT_TRUE(located.ok()) << located.status();
      if (!located.ok()) continue;
      for (const v1::LocatedBlock& block : located->blocks()) blocks_.insert(block.block().id());
    }
  }

  absl::StatusOr<v1::BalanceResponse> Ask(uint64_t run) {
    v1::BalanceRequest request;
    request.set_run(run);
    request.set_threshold(kThreshold);
    request.set_bytes_per_second(512 << 10);  // So that there is a middle.
    return cluster_.AskAdmin(&api::NamenodeAdmin::Balance, request);
  }
  // Until the run is over; nothing at the limit. `restless`: DataNodes are killed by the test, so copies may be away for a while.
  std::optional<v1::BalanceResponse> Drive(uint64_t run, absl::Duration limit, bool restless) {
    const SteadyTime end = cluster_.world().Now() + limit;
    while (cluster_.world().Now() < end) {
      const absl::StatusOr<v1::BalanceResponse> response = Ask(run);
      if (response.ok() && response->outcome() != v1::BalanceResponse::RUNNING) return *response;
      cluster_.RunUntil(
          [this, restless] {
            if (!restless) CheckCopies();
            return false;
          },
          absl::Seconds(1));
    }
    return std::nullopt;
  }
  void CheckCopies() {
    for (const uint64_t block : blocks_) ASSERT_GE(cluster_.FinalizedReplicas(block), 3u) << "block " << block;
  }
  std::vector<double> Percents() {
    std::vector<double> percents;
    const v1::ClusterReportResponse report = cluster_.Report();
    for (const v1::DatanodeReport& node : report.datanodes())
      percents.push_back(100 * static_cast<double>(node.storages(0).used_bytes()) / static_cast<double>(node.storages(0).capacity_bytes()));
    return percents;
  }
  void ExpectBalanced() {
    const std::vector<double> percents = Percents();
    double mean = 0;
    for (const double percent : percents) mean += percent / static_cast<double>(percents.size());
    for (const double percent : percents) EXPECT_NEAR(percent, mean, 1.1 * kThreshold);
  }

  // Of disks of 1 TiB: 3 MiB.
  static constexpr double kThreshold = 100.0 * (3 << 20) / (1ull << 40);
  SimCluster cluster_;
  Workload workload_;
  std::set<uint64_t> blocks_;
};

TEST(BalancerSim, ANewNodeIsFilledWhileEveryBlockKeepsItsCopies) {
  for (const uint64_t seed : Seeds(2)) {
    SCOPED_TRACE(ReplayHint(seed));
    BalancedCluster world(seed);
    ASSERT_GE(world.blocks_.size(), 29u);
    const std::optional<v1::BalanceResponse> end = world.Drive(1, absl::Minutes(20), false);
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->outcome(), v1::BalanceResponse::BALANCED) << end->ShortDebugString();
    EXPECT_GT(end->moved_blocks(), 5u);
    world.ExpectBalanced();
    ASSERT_TRUE(world.cluster_.Settle(absl::Minutes(10)));
    EXPECT_THAT(CheckFiles(&world.cluster_, &world.workload_), IsEmpty());
  }
}

TEST(BalancerSim, KillsInTheMiddleCostNothingAndTheRunGoesOn) {
  for (const uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(ReplayHint(seed));
    BalancedCluster world(seed);
    ASSERT_TRUE(world.Ask(1).ok());
    // The bandwidth is heard of after a heartbeat; then moves begin.
    EXPECT_FALSE(world.Drive(1, absl::Seconds(6), false).has_value());
    world.cluster_.PowerCutNamenode(absl::Seconds(3));
    EXPECT_FALSE(world.Drive(1, absl::Seconds(10), true).has_value());
    world.cluster_.KillDatanode(3, absl::Seconds(5));
    EXPECT_FALSE(world.Drive(1, absl::Seconds(4), true).has_value());
    world.cluster_.KillDatanode(seed % 3, absl::Seconds(5));
    const std::optional<v1::BalanceResponse> end = world.Drive(1, absl::Minutes(30), true);
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->outcome(), v1::BalanceResponse::BALANCED) << end->ShortDebugString();
    ASSERT_TRUE(world.cluster_.Settle(absl::Minutes(10)));
    world.ExpectBalanced();
    EXPECT_THAT(CheckFiles(&world.cluster_, &world.workload_), IsEmpty());
  }
}

}  // namespace
}  // namespace cairn::testing
