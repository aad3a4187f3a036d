// Disks that rot, and disks that are away for a while, under a whole cluster.

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datanode/storage/replica_format.h"
#include "tests/sim/workload.h"
#include "tests/testing/sim_cluster.h"

namespace cairn::testing {
namespace {

using ::testing::IsEmpty;

std::string PathOf(uint64_t block) { return fmt::format("/data/blocks/{}/{}/blk_{}", block >> 20 & 255, block >> 12 & 255, block); }

std::vector<uint64_t> BlocksOf(SimCluster* cluster, const std::string& path) {
  v1::GetBlockLocationsRequest request;
  request.set_path(path);
  request.set_length_bytes(~0ull >> 1);
  const auto located = cluster->Ask(&api::ClientNamenode::GetBlockLocations, request);
  EXPECT_TRUE(located.ok()) << located.status();
  std::vector<uint64_t> blocks;
  if (!located.ok()) return blocks;
  for (const v1::LocatedBlock& block : located->blocks()) blocks.push_back(block.block().id());
  return blocks;
}

// Nobody reads: only the scanner can find it.
TEST(DisksSim, RotOfOneReplicaIsFoundByTheScannerAndHealed) {
  SimCluster cluster({.seed = 1});
  Workload workload(&cluster);
  for (int i = 0; i < 4; ++i) workload.Write(fmt::format("/f{}", i), 900'000);
  ASSERT_TRUE(workload.WaitForAll(absl::Minutes(5)));
  ASSERT_TRUE(cluster.Settle(absl::Minutes(5)));
  const uint64_t rotten_offset = datanode::DataOffset(64 << 20, 512) + 300'000;
  size_t rotten = 0;
  for (int i = 0; i < 4; ++i) {
    for (const uint64_t block : BlocksOf(&cluster, fmt::format("/f{}", i))) {
      // On one of the disks that have it, another one each time.
      for (size_t n = 0; n < cluster.datanode_count(); ++n) {
        const size_t node = (n + static_cast<size_t>(i)) % cluster.datanode_count();
        if (!cluster.datanode_machine(node)->disk().FlipByte(PathOf(block), rotten_offset).ok()) continue;
        ++rotten;
        break;
      }
    }
  }
  ASSERT_GE(rotten, 4u);
  const auto errors = [&cluster] {
    uint64_t sum = 0;
    for (size_t n = 0; n < cluster.datanode_count(); ++n) sum += cluster.datanode(n)->store().Statistics()[0].scan_errors();
    return sum;
  };
  // Its round may be over; the next one, or a restart with its cursor taken away, begins anew.
  for (size_t n = 0; n < cluster.datanode_count(); ++n) {
    datanode::ScannerOptions again;
    again.period = absl::Minutes(1);
    cluster.datanode(n)->volumes().SetPace({}, again, {});
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return errors() >= rotten; }, absl::Minutes(10)));
  ASSERT_TRUE(cluster.Settle(absl::Minutes(10))) << cluster.Report().ShortDebugString();
  EXPECT_EQ(cluster.Report().corrupt_replicas(), 0u);
  EXPECT_THAT(CheckFiles(&cluster, &workload), IsEmpty());
}

TEST(DisksSim, DiskThatIsAwayForAMinuteLosesNotEvenLastCopies) {
  SimCluster cluster({.seed = 2, .datanodes = 2, .replication = 1});
  Workload workload(&cluster);
  for (int i = 0; i < 6; ++i) workload.Write(fmt::format("/f{}", i), 500'000);
  ASSERT_TRUE(workload.WaitForAll(absl::Minutes(5)));
  ASSERT_TRUE(cluster.Settle(absl::Minutes(5)));
  SimDisk& disk = cluster.datanode_machine(0)->disk();
  int removals = 0;
  disk.SetFaultHook([&removals](SimDisk::Op op, const std::string& path) -> absl::Status {
    if (op == SimDisk::Op::kRemove && path.find("/blk_") != std::string::npos) ++removals;
    return absl::InternalError(path + ": Input/output error");
  });
  ASSERT_TRUE(cluster.RunUntil(
      [&] { return !workload.Compare("/f0").empty() || !workload.Compare("/f1").empty() || !workload.Compare("/f2").empty(); },
      absl::Seconds(30)));
  cluster.RunFor(absl::Seconds(60));
  disk.SetFaultHook(nullptr);
  cluster.RunFor(absl::Seconds(30));
  for (int i = 0; i < 6; ++i) EXPECT_THAT(workload.Compare(fmt::format("/f{}", i)), IsEmpty()) << i;
  EXPECT_EQ(removals, 0);
  EXPECT_EQ(cluster.datanode(0)->store().Statistics()[0].state(), v1::HEALTHY);
  EXPECT_EQ(cluster.Report().missing_blocks(), 0u);
}

// All files of a machine, while none of its processes runs.
void Wipe(LocalFileSystem* files, const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> names = files->List(path);
  if (names.ok()) {
    for (const std::string& name : *names) Wipe(files, path + "/" + name);
  }
  IgnoreError(files->Remove(path), "a directory above it may be a root");
}

TEST(DisksSim, NodeWhoseOnlyVolumeWasWipedTakesItsOldPlace) {
  SimCluster cluster({.seed = 4, .datanodes = 3});
  Workload workload(&cluster);
  for (int i = 0; i < 4; ++i) workload.Write(fmt::format("/f{}", i), 900'000);
  ASSERT_TRUE(workload.WaitForAll(absl::Minutes(5)));
  ASSERT_TRUE(cluster.Settle(absl::Minutes(5)));
  const auto uuid = [&cluster] { return cluster.datanode(1)->store().Statistics()[0].storage_uuid(); };
  const std::string before = uuid();
  cluster.KillDatanode(1, absl::Seconds(5));
  // As soon as it has ended; it comes back to an empty disk.
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.datanode(1) == nullptr; }, absl::Seconds(4)));
  const std::unique_ptr<LocalFileSystem> files = cluster.datanode_machine(1)->disk().NewView(std::make_shared<const bool>(true));
  Wipe(files.get(), "/data");
  ASSERT_FALSE(*files->Exists("/data/VERSION"));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.AllUp() && cluster.datanode(1)->Ready().ok(); }, absl::Minutes(2)));
  EXPECT_NE(uuid(), before);
  ASSERT_TRUE(cluster.Settle(absl::Minutes(5)));
  const v1::ClusterReportResponse report = cluster.Report();
  EXPECT_EQ(report.datanodes_size(), 3);
  for (const v1::DatanodeReport& node : report.datanodes()) {
    EXPECT_EQ(node.state(), v1::LIVE) << node.ShortDebugString();
    EXPECT_EQ(node.storages_size(), 1);
  }
  EXPECT_EQ(report.under_replicated_blocks(), 0u);
  EXPECT_EQ(report.missing_blocks(), 0u);
  for (int i = 0; i < 4; ++i) {
    for (const uint64_t block : BlocksOf(&cluster, fmt::format("/f{}", i))) EXPECT_EQ(cluster.FinalizedReplicas(block), 3u);
  }
  EXPECT_THAT(CheckFiles(&cluster, &workload), IsEmpty());
}

TEST(DisksSim, NodeThatTheNamenodeDoesNotHearIsNotReady) {
  SimCluster cluster({.seed = 3});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.datanode(0)->Ready().ok(); }, absl::Minutes(1)));
  cluster.world().network().Block(cluster.datanode_machine(0), cluster.namenode_machine());
  cluster.RunFor(absl::Seconds(14));
  EXPECT_TRUE(cluster.datanode(0)->Ready().ok());
  cluster.RunFor(absl::Seconds(5));
  const absl::Status ready = cluster.datanode(0)->Ready();
  EXPECT_EQ(ready.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(ready.message()), ::testing::HasSubstr("has not answered for"));
  EXPECT_TRUE(cluster.datanode(1)->Ready().ok());
  cluster.world().network().Heal();
  cluster.RunFor(absl::Seconds(5));
  EXPECT_TRUE(cluster.datanode(0)->Ready().ok());
}

}  // namespace
}  // namespace cairn::testing
