// A DataNode that everybody waits for: its peers find it, the NameNode shows and avoids it, and forgets it when it is as fast as others.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/workload.h"
#include "tests/testing/sim_cluster.h"

namespace cairn::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SlowCluster {
 public:
  explicit SlowCluster(const SimClusterOptions& options) : cluster_(options), workload_(&cluster_) {}

  SimCluster& cluster() { return cluster_; }
  Workload& workload() { return workload_; }
  std::string NameOf(size_t node) { return cluster_.datanode_machine(node)->name(); }

  // One way, between `node` and every other DataNode.
  void Delay(size_t node, absl::Duration latency) {
    SimLinkOptions link;
    link.latency = latency;
    for (size_t other = 0; other < cluster_.datanode_count(); ++other)
      if (other != node) cluster_.world().network().SetLink(cluster_.datanode_machine(node), cluster_.datanode_machine(other), link);
  }
  // Small files, whose first paths are returned.
  std::vector<std::string> Write(size_t count) {
    std::vector<std::string> paths;
    for (size_t i = 0; i < count; ++i) {
      paths.push_back(fmt::format("/in/{}", files_++));
      workload_.Write(paths.back(), 3000);
    }
    EXPECT_TRUE(workload_.WaitForAll(absl::Minutes(10)));
    for (const std::string& path : paths) EXPECT_TRUE(workload_.file(path).written.ok()) << workload_.file(path).written;
    return paths;
  }
  std::vector<std::string> Slow() {
    std::vector<std::string> slow;
    const v1::ClusterReportResponse report = cluster_.Report();
    for (const v1::DatanodeReport& node : report.datanodes())
      if (node.slow()) slow.push_back(node.info().transfer().host());
    return slow;
  }
  // Writes until the NameNode finds somebody slow.
  bool WriteUntilSlow() {
    for (int round = 0; round < 20; ++round) {
      Write(50);
      cluster_.RunFor(absl::Seconds(3));
      if (!Slow().empty()) return true;
    }
    return false;
  }
  // Hosts, in the order in which a reader on `reader` is to try them.
  std::vector<std::string> HostsOf(const std::string& path, const std::string& reader = "") {
    v1::GetBlockLocationsRequest request;
    request.set_client_host(reader);
    request.set_path(path);
    request.set_length_bytes(1 << 20);
    const auto located = cluster_.Ask(&api::ClientNamenode::GetBlockLocations, request);
    EXPECT_TRUE(located.ok() && located->blocks_size() == 1) << located.status();
    std::vector<std::string> hosts;
    if (!located.ok()) return hosts;
    for (const v1::StorageLocation& location : located->blocks(0).locations()) hosts.push_back(location.datanode().transfer().host());
    return hosts;
  }

 private:
  SimCluster cluster_;
  Workload workload_;
  size_t files_ = 0;
};

TEST(SlowNodesSim, ASlowNodeIsFoundAvoidedReadLastAndTakenBack) {
  SlowCluster slow({.seed = 11, .datanodes = 5});
  const std::vector<std::string> before = slow.Write(30);
  EXPECT_THAT(slow.Slow(), IsEmpty());
  slow.Delay(2, absl::Milliseconds(60));
  ASSERT_TRUE(slow.WriteUntilSlow());
  ASSERT_THAT(slow.Slow(), ::testing::ElementsAre(slow.NameOf(2)));
  const v1::ClusterReportResponse report = slow.cluster().Report();
  for (const v1::DatanodeReport& node : report.datanodes()) {
    if (node.info().transfer().host() != slow.NameOf(2)) {
      EXPECT_THAT(node.found_slow(), IsEmpty());
      continue;
    }
    EXPECT_GE(node.found_slow_size(), 2);
    for (const auto& found : node.found_slow()) EXPECT_GE(found.what().latency_us(), 100'000u) << found.ShortDebugString();
  }

  for (const std::string& path : slow.Write(20)) {
    const std::vector<std::string> hosts = slow.HostsOf(path);
    EXPECT_THAT(hosts, SizeIs(3));
    EXPECT_THAT(hosts, Not(Contains(slow.NameOf(2)))) << path;
  }
  size_t on_it = 0;
  for (const std::string& path : before) {
    const std::vector<std::string> hosts = slow.HostsOf(path);
    const auto found = std::find(hosts.begin(), hosts.end(), slow.NameOf(2));
    if (found == hosts.end()) continue;
    ++on_it;
    EXPECT_EQ(found, hosts.end() - 1) << path;
    // Whoever reads on the node itself waits for no network.
    EXPECT_EQ(slow.HostsOf(path, slow.NameOf(2)).front(), slow.NameOf(2)) << path;
  }
  EXPECT_GT(on_it, 5u);

  slow.Delay(2, absl::Microseconds(100));
  // Nothing is written to it, so nobody learns of it; what is known grows old.
  bool taken_back = false;
  for (int minute = 0; minute < 8 && !taken_back; ++minute) {
    slow.cluster().RunFor(absl::Minutes(1));
    taken_back = slow.Slow().empty();
  }
  ASSERT_TRUE(taken_back);
  size_t chosen = 0;
  for (const std::string& path : slow.Write(20)) {
    const std::vector<std::string> hosts = slow.HostsOf(path);
    chosen += static_cast<size_t>(std::count(hosts.begin(), hosts.end(), slow.NameOf(2)));
  }
  EXPECT_GT(chosen, 3u);
  EXPECT_THAT(slow.Slow(), IsEmpty());
  EXPECT_THAT(CheckFiles(&slow.cluster(), &slow.workload()), IsEmpty());
}

TEST(SlowNodesSim, ARestartedNodeIsNotSlowAnyMore) {
  SlowCluster slow({.seed = 12, .datanodes = 5});
  slow.Delay(1, absl::Milliseconds(60));
  ASSERT_TRUE(slow.WriteUntilSlow());
  ASSERT_THAT(slow.Slow(), ::testing::ElementsAre(slow.NameOf(1)));
  slow.Delay(1, absl::Microseconds(100));
  slow.cluster().KillDatanode(1, absl::Seconds(2));
  ASSERT_TRUE(slow.cluster().RunUntil([&] { return slow.cluster().AllUp(); }, absl::Minutes(1)));
  slow.cluster().RunFor(absl::Seconds(5));
  EXPECT_THAT(slow.Slow(), IsEmpty());
  // Others still have what they measured of the process before.
  slow.Write(30);
  slow.cluster().RunFor(absl::Seconds(5));
  EXPECT_THAT(slow.Slow(), IsEmpty());
}

TEST(SlowNodesSim, ThreeNodesOfWhichOneIsSlowStillWriteThreeReplicas) {
  SlowCluster slow({.seed = 13, .datanodes = 3});
  slow.Delay(0, absl::Milliseconds(60));
  ASSERT_TRUE(slow.WriteUntilSlow());
  ASSERT_THAT(slow.Slow(), ::testing::ElementsAre(slow.NameOf(0)));
  for (const std::string& path : slow.Write(10)) {
    const std::vector<std::string> hosts = slow.HostsOf(path);
    ASSERT_THAT(hosts, SizeIs(3));
    EXPECT_EQ(hosts.back(), slow.NameOf(0));
  }
  ASSERT_TRUE(slow.cluster().Settle(absl::Minutes(5))) << slow.cluster().Report().ShortDebugString();
  EXPECT_THAT(CheckFiles(&slow.cluster(), &slow.workload()), IsEmpty());
}

TEST(SlowNodesSim, AllAreAsSlowSoNoneIs) {
  SlowCluster slow({.seed = 14, .datanodes = 4});
  for (size_t node = 0; node < 4; ++node) slow.Delay(node, absl::Milliseconds(60));
  for (int round = 0; round < 3; ++round) slow.Write(50);
  slow.cluster().RunFor(absl::Seconds(5));
  EXPECT_THAT(slow.Slow(), IsEmpty());
}

// A file that is open for long has one of the nodes that get slow meanwhile.
TEST(SlowNodesSim, AWriterGoesOnWithoutTheNodeThatBecameSlowIfNodesSaySo) {
  SlowCluster slow({.seed = 15, .datanodes = 4, .block_size_bytes = 4 << 20, .tell_slow = true});
  slow.workload().Start("/long", {.size = 2'000'000, .part_bytes = 5'000, .pause = absl::Milliseconds(500), .flush = true});
  slow.cluster().RunFor(absl::Seconds(2));
  const std::vector<std::string> pipeline = slow.HostsOf("/long");
  ASSERT_THAT(pipeline, SizeIs(3));
  size_t node = 0;
  while (slow.NameOf(node) != pipeline[1]) ++node;
  slow.Delay(node, absl::Milliseconds(60));
  size_t files = 0;
  const auto without_it = [&] { return slow.HostsOf("/long").size() == 2; };
  while (!without_it() && files < 1000) {
    for (int i = 0; i < 50; ++i) slow.workload().Write(fmt::format("/in/{}", files++), 3000);
    slow.cluster().RunFor(absl::Seconds(10));
  }
  EXPECT_THAT(slow.HostsOf("/long"), Not(Contains(pipeline[1])));
  ASSERT_TRUE(slow.workload().WaitForAll(absl::Minutes(30)));
  EXPECT_TRUE(slow.workload().file("/long").written.ok()) << slow.workload().file("/long").written;
  ASSERT_TRUE(slow.cluster().Settle(absl::Minutes(5))) << slow.cluster().Report().ShortDebugString();
  EXPECT_THAT(slow.HostsOf("/long"), SizeIs(3));
  EXPECT_THAT(CheckFiles(&slow.cluster(), &slow.workload()), IsEmpty());
}

}  // namespace
}  // namespace cairn::testing
