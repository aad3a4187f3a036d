// Every figure that operators watch moves when that of which it tells happens, and goes back when it is over.

#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cairn/file_system.h"
#include "common/fault_points.h"
#include "tests/cluster/cluster_fixture.h"

namespace cairn::testing {
namespace {

class Metrics : public ClusterTest {
 protected:
  void SetUp() override {
    EnableFaultPoints();
    StartCluster([](namenode::NamenodeOptions* namenode) {
      namenode->replicas.heartbeat_interval = absl::Seconds(1);
      namenode->replicas.stale_after = absl::Seconds(2);
      namenode->replicas.dead_after = absl::Seconds(4);
      namenode->replicas.acknowledged_grace = absl::Seconds(2);
    });
  }
  void TearDown() override {
    DisarmAllFaults();
    ClusterTest::TearDown();
  }

  // Of all DataNodes that run.
  double OfDatanodes(const std::string& series) {
    double sum = 0;
    for (size_t i = 0; i < cluster_->datanode_count(); ++i)
      if (cluster_->datanode(i) != nullptr) sum += OfDatanode(i, series);
    return sum;
  }
  absl::Status Write(const std::string& path, size_t size) {
    auto file = files_->Create(path);
    if (!file.ok()) return file.status();
    const std::string data(size, 'x');
    if (absl::Status written = (*file)->Append(data); !written.ok()) return written;
    return (*file)->Close();
  }
};

TEST_F(Metrics, BatchesSyncsAndCallsAreCounted) {
  const double batches = OfNamenode("cairn_journal_batches_total");
  const double sizes = OfNamenode("cairn_journal_batch_size_sum");
  const double syncs = OfNamenode("cairn_journal_sync_seconds_count");
  const double sync_time = OfNamenode("cairn_journal_sync_seconds_sum");
  EXPECT_GE(batches, 0);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(files_->MakeDirectories(fmt::format("/d/{}", i)).ok());
  EXPECT_FALSE(files_->GetFileStatus("/absent").ok());
  EXPECT_GE(OfNamenode("cairn_journal_batches_total"), batches + 5);
  EXPECT_GE(OfNamenode("cairn_journal_batch_size_sum"), sizes + 5);
  EXPECT_GE(OfNamenode("cairn_journal_sync_seconds_count"), syncs + 5);
  EXPECT_GT(OfNamenode("cairn_journal_sync_seconds_sum"), sync_time);
  const auto counted = [&] {
    return OfNamenode("cairn_namespace_ops_total{op=\"Mkdirs\",result=\"ok\"}") == 5 &&
           OfNamenode("cairn_namespace_ops_total{op=\"GetFileInfo\",result=\"error\"}") == 1 &&
           OfNamenode("cairn_rpc_duration_seconds_count{method=\"Mkdirs\"}") == 5;
  };
  EXPECT_TRUE(Eventually(counted)) << cluster_->namenode_metrics().Text();
  EXPECT_GT(OfNamenode("cairn_rpc_duration_seconds_sum{method=\"Mkdirs\"}"), 0);
}

TEST_F(Metrics, ChangesThatWaitForTheJournalAreSeen) {
  ASSERT_TRUE(ArmFault("local_journal.before_commit", "block").ok());
  const auto make = [this](int i) {
    return std::async(std::launch::async, [this, i] { return files_->MakeDirectories(fmt::format("/wait/{}", i)); });
  };
  std::vector<std::future<absl::Status>> calls;
  calls.push_back(make(0));
  // The writer stands in the commit of the first; only what comes later waits in its queue.
  EXPECT_TRUE(Eventually([] { return FaultHits("local_journal.before_commit") >= 1; }));
  for (int i = 1; i < 4; ++i) calls.push_back(make(i));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_journal_pending") >= 1; }));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_journal_oldest_age_seconds") > 0.05; }));
  DisarmAllFaults();
  for (auto& call : calls) EXPECT_TRUE(call.get().ok());
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_journal_pending") == 0; }));
  EXPECT_EQ(OfNamenode("cairn_journal_oldest_age_seconds"), 0);
}

TEST_F(Metrics, StreamsBytesAndReportsAreSeen) {
  const double reports = OfDatanodes("cairn_report_ack_lag_seconds_count");
  auto file = files_->Create("/streamed");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string data(300'000, 'x');
  ASSERT_TRUE((*file)->Append(data).ok());
  ASSERT_TRUE((*file)->Flush().ok());
  EXPECT_GE(OfDatanodes("cairn_datanode_streams"), 3);
  EXPECT_GE(OfDatanodes("cairn_datanode_io_bytes_total{direction=\"write\"}"), 3 * 300'000);
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_leases") == 1; }, absl::Minutes(1)));
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_datanode_streams") == 0; }));
  // An event waits until it is durable over there.
  ASSERT_TRUE(Write("/again", 1000).ok());
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_report_ack_lag_seconds_count") >= reports + 3; }));
  EXPECT_GT(OfDatanodes("cairn_report_ack_lag_seconds_sum"), 0);
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_report_pending") == 0; }));
  EXPECT_EQ(OfDatanodes("cairn_report_oldest_age_seconds"), 0);
  auto reader = files_->Open("/streamed");
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string found(300'000, '\0');
  ASSERT_TRUE((*reader)->ReadAt(0, found).ok());
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_datanode_io_bytes_total{direction=\"read\"}") >= 300'000; }));
}

TEST_F(Metrics, ReportsThatTheNamenodeDoesNotTakeArePending) {
  ASSERT_TRUE(Eventually([&] { return OfDatanodes("cairn_report_pending") == 0; }));
  cluster_->StopNamenode();
  ASSERT_TRUE(cluster_->datanode(0) != nullptr);
  cluster_->datanode(0)->store().MarkEpoch(Epoch(1));  // As good an event as any.
  EXPECT_GE(OfDatanode(0, "cairn_report_pending"), 1);
  EXPECT_TRUE(Eventually([&] { return OfDatanode(0, "cairn_report_oldest_age_seconds") > 0.02; }));
  ASSERT_TRUE(cluster_->StartNamenode().ok());
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_report_pending") == 0; }, absl::Minutes(1)));
}

TEST_F(Metrics, HeartbeatsShowTheirInterval) {
  const double sent = OfDatanodes("cairn_heartbeats_total");
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_heartbeats_total") >= sent + 6; }));
  for (size_t i = 0; i < cluster_->datanode_count(); ++i) EXPECT_GT(OfDatanode(i, "cairn_heartbeat_interval_seconds"), 0.3);
}

TEST_F(Metrics, DeletionBacklogGrowsWhileNothingIsUnlinkedAndGoesAway) {
  ASSERT_TRUE(Write("/doomed/file", 200'000).ok());
  const double freed = OfNamenode("cairn_reclaim_blocks_total");
  ASSERT_TRUE(ArmFault("datanode.deleter.unlink", "block").ok());
  ASSERT_TRUE(files_->Delete("/doomed", true).ok());
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_reclaim_pending_blocks") == 3; }, absl::Minutes(1)));
  EXPECT_GE(OfDatanodes("cairn_reclaim_pending_bytes"), 3 * 200'000);
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_reclaim_oldest_age_seconds") > 0.05; }));
  EXPECT_EQ(OfNamenode("cairn_reclaim_blocks_total"), freed + 1);
  DisarmAllFaults();
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_reclaim_pending_blocks") == 0; }));
  EXPECT_EQ(OfDatanodes("cairn_reclaim_pending_bytes"), 0);
  EXPECT_EQ(OfDatanodes("cairn_reclaim_oldest_age_seconds"), 0);
}

TEST_F(Metrics, DeletedSubtreesWaitToBeFreed) {
  ASSERT_TRUE(Write("/tree/file", 1000).ok());
  ASSERT_TRUE(ArmFault("local_journal.before_commit", "block@1").ok());  // The delete passes, its reclaim waits.
  ASSERT_TRUE(files_->Delete("/tree", true).ok());
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_reclaim_works") >= 1; }));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_reclaim_oldest_age_seconds") > 0; }));
  EXPECT_EQ(OfNamenode("cairn_reclaim_left_inodes"), 2);
  EXPECT_EQ(OfNamenode("cairn_reclaim_left_bytes"), 1000);
  EXPECT_GT(OfNamenode("cairn_namespace_rows_total{op=\"delete\"}"), 0);
  DisarmAllFaults();
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_reclaim_works") == 0; }));
  EXPECT_EQ(OfNamenode("cairn_reclaim_left_inodes"), 0);
  EXPECT_EQ(OfNamenode("cairn_reclaim_left_bytes"), 0);
  EXPECT_GE(OfNamenode("cairn_reclaim_entries_total"), 3);
  EXPECT_GT(OfNamenode("cairn_reclaim_entries_per_second"), 0);
}

TEST_F(Metrics, WorkThatWaitsForADiskIsSeen) {
  ASSERT_TRUE(ArmFault("replica_file.before_data", "block").ok());
  std::vector<std::future<absl::Status>> writes;
  for (int i = 0; i < 3; ++i)
    writes.push_back(std::async(std::launch::async, [this, i] { return Write(fmt::format("/disk/{}", i), 1000); }));
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_disk_queue_length") >= 1; }));
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_disk_queue_oldest_age_seconds") > 0.05; }));
  DisarmAllFaults();
  for (auto& write : writes) {
    const absl::Status written = write.get();
    EXPECT_TRUE(written.ok()) << written;
  }
  EXPECT_TRUE(Eventually([&] { return OfDatanodes("cairn_disk_queue_length") == 0; }));
}

TEST_F(Metrics, ADeadDatanodeLeavesUnderReplicatedBlocksAndDeletionsThatWait) {
  ASSERT_TRUE(Write("/kept", 1000).ok());
  ASSERT_TRUE(Write("/doomed", 1000).ok());
  ASSERT_TRUE(Eventually([&] { return OfNamenode("cairn_datanodes{state=\"live\"}") == 3; }));
  EXPECT_EQ(OfNamenode("cairn_blocks{state=\"under_replicated\"}"), 0);
  // The NameNode has heard of all replicas: of one that it has not, no deletion would wait.
  ASSERT_TRUE(Eventually([&] { return OfDatanodes("cairn_report_pending") == 0; }));
  cluster_->StopDatanode(2);
  ASSERT_TRUE(files_->Delete("/doomed", false).ok());
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_reclaim_pending_blocks") >= 1; }));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_invalidation_oldest_age_seconds") > 0; }));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_datanodes{state=\"stale\"}") == 1; }));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_datanodes{state=\"dead\"}") == 1; }));
  EXPECT_EQ(OfNamenode("cairn_datanodes{state=\"live\"}"), 2);
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_blocks{state=\"under_replicated\"}") == 1; }));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_repair_oldest_age_seconds") > 0; }));
  ASSERT_TRUE(cluster_->StartDatanode(2).ok());
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_datanodes{state=\"live\"}") == 3; }));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_blocks{state=\"under_replicated\"}") == 0; }, absl::Minutes(1)));
  EXPECT_TRUE(Eventually([&] { return OfNamenode("cairn_reclaim_pending_blocks") == 0; }, absl::Minutes(1)));
}

}  // namespace
}  // namespace cairn::testing
