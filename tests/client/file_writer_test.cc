#include "client/src/file_writer.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "common/error.h"
#include "tests/client/client_cluster.h"

namespace cairn::client {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kBlock = 1 << 20;

TEST(FileWriter, EdgeSizesComeBackIdenticalOnThreeReplicas) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{511}, size_t{512}, size_t{513}, size_t{65536}, size_t{65537}, kBlock, kBlock + 1, 3 * kBlock + 77}) {
    ClientCluster cluster;
    const std::string data = Pattern(size);
    ASSERT_TRUE(cluster.Put("/f", data).ok()) << size;
    const FakeNamenode::File& file = cluster.namenode().files["/f"];
    EXPECT_FALSE(file.open);
    EXPECT_EQ(file.length(), size);
    ASSERT_EQ(file.blocks.size(), (size + kBlock - 1) / kBlock);
    for (size_t i = 0; i < file.blocks.size(); ++i) {
      EXPECT_THAT(file.blocks[i].acknowledged, SizeIs(3));
      EXPECT_THAT(cluster.Replicas("/f", i), SizeIs(3));
      EXPECT_THAT(cluster.Replicas("/f", i), Each(data.substr(i * kBlock, kBlock)));
    }
    EXPECT_EQ(cluster.Get("/f").value(), data) << size;
    EXPECT_THAT(cluster.Complaints(), IsEmpty());
  }
}

TEST(FileWriter, DurableCloseSyncsEveryReplicaAndOtherwiseOnlyEarlierBlocks) {
  ClientOptions options = ClientCluster::Quick();
  for (const CloseSync policy : {CloseSync::kData, CloseSync::kNone}) {
    options.close_sync = policy;
    ClientCluster cluster(3, options);
    ASSERT_TRUE(cluster.Put("/f", Pattern(kBlock + 5)).ok());
    const auto& blocks = cluster.namenode().files["/f"].blocks;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(cluster.datanode(i).replicas[blocks[0].block.id()].synced);
      EXPECT_EQ(cluster.datanode(i).replicas[blocks[1].block.id()].synced, policy == CloseSync::kData);
    }
  }
}

TEST(FileWriter, AQuotaHitFailsAtOnceAndIsNotTriedAgain) {
  ClientCluster cluster;
  Error quota;
  quota.kind = ErrorKind::kQuota;
  quota.reason = "SPACE_QUOTA";
  quota.path = "/q";
  quota.message = "The DiskSpace quota of /q is exceeded";
  cluster.namenode().refuse["AddBlock"] = std::vector<absl::Status>(100, MakeError(quota));
  auto writer = cluster.files().Create("/q/f").value();
  const SteadyTime began = cluster.world().Now();
  absl::Status status = writer->Append(Pattern(2 * kBlock));  // The first block came with Create.
  if (status.ok()) status = writer->Close();
  EXPECT_TRUE(errors::IsLimitExceeded(status)) << status;
  EXPECT_EQ(errors::Reason(status), "SPACE_QUOTA");
  EXPECT_LT(cluster.world().Now() - began, absl::Seconds(5));
  EXPECT_EQ(cluster.namenode().calls["AddBlock"], 1);
  // Whatever comes next says the same.
  EXPECT_EQ(errors::Reason(writer->Append("x")), "SPACE_QUOTA");
  EXPECT_EQ(errors::Reason(writer->Flush()), "SPACE_QUOTA");
  EXPECT_EQ(errors::Reason(writer->Close()), "SPACE_QUOTA");
}

TEST(FileWriter, WindowBoundsWhatIsUnacknowledged) {
  ClientCluster cluster;
  cluster.datanode(0).hold_acks = true;
  auto writer = cluster.files().Create("/f").value();
  auto killer = cluster.world().executors().NewExecutor("canceller");
  killer->PostAt(cluster.world().Now() + absl::Seconds(5), [&] { writer->Abort(); });
  EXPECT_FALSE(writer->Append(Pattern(900'000)).ok());
  const uint64_t id = cluster.namenode().files["/f"].blocks[0].block.id();
  EXPECT_EQ(cluster.datanode(0).replicas[id].data.size(), 256u << 10);  // ClientOptions::window_bytes.
}

TEST(FileWriter, FlushShowsTheBytesToNewReadersAgainAndAgain) {
  ClientCluster cluster;
  auto writer = cluster.files().Create("/f").value();
  const std::string data = Pattern(5000);
  for (size_t at = 0; at < data.size(); at += 700) {
    ASSERT_TRUE(writer->Append(data.substr(at, 700)).ok());
    ASSERT_TRUE(writer->Flush().ok());
    EXPECT_EQ(cluster.Get("/f").value(), data.substr(0, at + 700));
  }
  const int published = cluster.namenode().calls["Fsync"];
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(cluster.namenode().calls["Fsync"], published);  // Nothing new to publish.
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(cluster.Get("/f").value(), data);
  EXPECT_THAT(cluster.Complaints(), IsEmpty());
}

TEST(FileWriter, SyncIsOnDiskAtEveryReplica) {
  ClientOptions options = ClientCluster::Quick();
  options.close_sync = CloseSync::kNone;
  ClientCluster cluster(3, options);
  auto writer = cluster.files().Create("/f").value();
  ASSERT_TRUE(writer->Append(Pattern(700)).ok());
  ASSERT_TRUE(writer->Flush().ok());
  const uint64_t id = cluster.namenode().files["/f"].blocks[0].block.id();
  EXPECT_FALSE(cluster.datanode(2).replicas[id].synced);
  ASSERT_TRUE(writer->Sync().ok());  // Nothing new: an empty packet asks for the disk.
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(cluster.datanode(i).replicas[id].synced);
  ASSERT_TRUE(writer->Close().ok());
}

TEST(FileWriter, IdleWriterKeepsItsPipelineAndItsLeaseAlive) {
  ClientCluster cluster;
  auto writer = cluster.files().Create("/f").value();
  ASSERT_TRUE(writer->Append(Pattern(100)).ok());
  ASSERT_TRUE(writer->Flush().ok());
  cluster.world().RunFor(absl::Minutes(5));
  EXPECT_GE(cluster.datanode(2).heartbeats, 9);
  EXPECT_GE(cluster.namenode().calls["RenewLease"], 14);
  ASSERT_TRUE(writer->Append(Pattern(100, 2)).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(cluster.Get("/f").value(), Pattern(100) + Pattern(100, 2));
  EXPECT_EQ(cluster.namenode().calls["UpdatePipeline"], 0);
  const int renewed = cluster.namenode().calls["RenewLease"];
  cluster.world().RunFor(absl::Minutes(5));
  EXPECT_EQ(cluster.namenode().calls["RenewLease"], renewed);  // Nothing is open any more.
}

class MeetsASlowNode : public ::testing::TestWithParam<size_t> {};

TEST_P(MeetsASlowNode, WhileStreamingAndGoesOnWithoutIt) {
  ClientOptions options = ClientCluster::Quick();
  options.slow_node_threshold = 4;
  ClientCluster cluster(3, options);
  cluster.datanode(GetParam()).says_slow = true;
  const std::string data = Pattern(kBlock);
  auto writer = cluster.files().Create("/f").value();
  ASSERT_TRUE(writer->Append(data).ok());
  ASSERT_TRUE(writer->Close().ok());
  const auto& block = cluster.namenode().files["/f"].blocks[0];
  EXPECT_EQ(cluster.namenode().calls["UpdatePipeline"], 1);
  EXPECT_THAT(block.acknowledged, SizeIs(2));
  EXPECT_THAT(cluster.Replicas("/f", 0), ::testing::ElementsAre(data, data));
  // What it acknowledged in time stands.
  EXPECT_GE(cluster.datanode(GetParam()).replicas[block.block.id()].packets, 4);
  EXPECT_EQ(cluster.Get("/f").value(), data);
  // It works, so the NameNode may still choose it where it has no other.
  cluster.datanode(GetParam()).says_slow = false;
  ASSERT_TRUE(cluster.Put("/g", data).ok());
  EXPECT_THAT(cluster.namenode().last_excluded, IsEmpty());
  EXPECT_THAT(cluster.Replicas("/g", 0), SizeIs(3));
  EXPECT_THAT(cluster.Complaints(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(FileWriter, MeetsASlowNode, ::testing::Values(0, 1, 2));

TEST(FileWriter, SlowNodesStayWhileTooFewOthersAreLeftOrTheThresholdSaysSo) {
  ClientOptions options = ClientCluster::Quick();
  options.slow_node_threshold = 4;
  for (const size_t nodes : {size_t{1}, size_t{2}}) {
    ClientCluster cluster(nodes, options);
    cluster.datanode(0).says_slow = true;
    ASSERT_TRUE(cluster.Put("/f", Pattern(kBlock)).ok());
    EXPECT_EQ(cluster.namenode().calls["UpdatePipeline"], 0) << nodes;
    EXPECT_THAT(cluster.Replicas("/f", 0), SizeIs(nodes));
  }
  {
    ClientCluster cluster(3, options);  // All of them: one goes, two stay.
    for (size_t i = 0; i < 3; ++i) cluster.datanode(i).says_slow = true;
    ASSERT_TRUE(cluster.Put("/f", Pattern(kBlock)).ok());
    EXPECT_EQ(cluster.namenode().calls["UpdatePipeline"], 1);
    EXPECT_THAT(cluster.Replicas("/f", 0), SizeIs(2));
  }
  for (const int threshold : {0, 17}) {  // The block has sixteen packets.
    options.slow_node_threshold = threshold;
    ClientCluster cluster(3, options);
    cluster.datanode(1).says_slow = true;
    ASSERT_TRUE(cluster.Put("/f", Pattern(kBlock)).ok());
    EXPECT_EQ(cluster.namenode().calls["UpdatePipeline"], 0) << threshold;
    EXPECT_THAT(cluster.Replicas("/f", 0), SizeIs(3));
  }
}

class LosesANode : public ::testing::TestWithParam<size_t> {};

TEST_P(LosesANode, WhileStreamingAndGoesOnWithTheSurvivors) {
  ClientCluster cluster(3);
  cluster.datanode(GetParam()).die_at_data_packet = 5;
  const std::string data = Pattern(700'000);
  ASSERT_TRUE(cluster.Put("/f", data).ok());
  const FakeNamenode::File& file = cluster.namenode().files["/f"];
  ASSERT_EQ(file.blocks.size(), 1u);
  EXPECT_THAT(file.blocks[0].acknowledged, SizeIs(2));
  EXPECT_THAT(cluster.Replicas("/f", 0), SizeIs(2));
  EXPECT_THAT(cluster.Replicas("/f", 0), Each(data));
  EXPECT_EQ(cluster.namenode().acted["UpdatePipeline"], 1);
  EXPECT_EQ(cluster.Get("/f").value(), data);
  EXPECT_THAT(cluster.Complaints(), IsEmpty());
}

TEST_P(LosesANode, AtTheLastPacketAndClosesByRecovery) {
  ClientCluster cluster(3);
  cluster.datanode(GetParam()).die_at_last_packet = true;
  const std::string data = Pattern(200'000);
  ASSERT_TRUE(cluster.Put("/f", data).ok());
  EXPECT_THAT(cluster.Replicas("/f", 0), SizeIs(2));
  EXPECT_THAT(cluster.Replicas("/f", 0), Each(data));
  EXPECT_THAT(cluster.Complaints(), IsEmpty());
}

TEST_P(LosesANode, AtSetUpAndAsksForAnotherBlock) {
  ClientCluster cluster(4);
  cluster.datanode(GetParam()).refuse_set_up = true;
  const std::string data = Pattern(100'000);
  ASSERT_TRUE(cluster.Put("/f", data).ok());
  EXPECT_THAT(cluster.namenode().abandoned, SizeIs(1));
  ASSERT_THAT(cluster.namenode().last_excluded, SizeIs(1));
  EXPECT_EQ(cluster.namenode().last_excluded[0].datanode_uuid(), "uuid-dn" + std::to_string(GetParam()));
  EXPECT_THAT(cluster.Replicas("/f", 0), SizeIs(3));
  EXPECT_THAT(cluster.Replicas("/f", 0), Each(data));
  // The next file does not try it again.
  ASSERT_TRUE(cluster.Put("/g", data).ok());
  EXPECT_THAT(cluster.namenode().abandoned, SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(FirstMiddleLast, LosesANode, ::testing::Values(0, 1, 2));

TEST(FileWriter, LosesTwoNodesOfThree) {
  ClientCluster cluster(3);
  cluster.datanode(0).die_at_data_packet = 3;
  cluster.datanode(2).die_at_data_packet = 6;
  const std::string data = Pattern(900'000);
  ASSERT_TRUE(cluster.Put("/f", data).ok());
  EXPECT_THAT(cluster.Replicas("/f", 0), SizeIs(1));
  EXPECT_THAT(cluster.Replicas("/f", 0), Each(data));
  EXPECT_EQ(cluster.namenode().acted["UpdatePipeline"], 2);
}

TEST(FileWriter, FailsWhenTheOnlyHoldersOfAcknowledgedBytesAreGone) {
  ClientCluster cluster(4);
  for (size_t i = 0; i < 3; ++i) cluster.datanode(i).die_at_data_packet = 4;
  auto writer = cluster.files().Create("/f").value();
  ASSERT_TRUE(writer->Append(Pattern(100)).ok());
  ASSERT_TRUE(writer->Flush().ok());
  absl::Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) {
    status = writer->Append(Pattern(100'000));
    if (status.ok()) status = writer->Flush();
  }
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("no DataNode of its pipeline is left"));
  EXPECT_EQ(writer->Close(), status);  // Sticky.
}

TEST(FileWriter, MovesToAnotherBlockWhenAllNodesDieBeforeAnythingWasAcknowledged) {
  ClientCluster cluster(6);
  for (size_t i = 0; i < 3; ++i) cluster.datanode(i).die_at_data_packet = 1;
  const std::string data = Pattern(100'000);
  ASSERT_TRUE(cluster.Put("/f", data).ok());
  EXPECT_THAT(cluster.namenode().abandoned, SizeIs(1));
  EXPECT_THAT(cluster.Replicas("/f", 0), SizeIs(3));
  EXPECT_EQ(cluster.Get("/f").value(), data);
}

TEST(FileWriter, NoAcknowledgementIsReleasedBeforeTheNameNodeKnowsTheNewPipeline) {
  ClientCluster cluster(3);
  auto writer = cluster.files().Create("/f").value();
  ASSERT_TRUE(writer->Append(Pattern(1000)).ok());
  ASSERT_TRUE(writer->Flush().ok());
  cluster.namenode().refuse["UpdatePipeline"] = std::vector<absl::Status>(5, MakeError(ErrorKind::kRetriable, "later"));
  cluster.datanode(1).Kill();
  ASSERT_TRUE(writer->Append(Pattern(1000, 2)).ok());
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(cluster.namenode().acted["UpdatePipeline"], 1);  // Acted before Flush returned.
  ASSERT_TRUE(writer->Close().ok());
}

TEST(FileWriter, OutlivesANameNodeRestart) {
  ClientCluster cluster;
  auto writer = cluster.files().Create("/f").value();
  const std::string data = Pattern(3 * kBlock);
  ASSERT_TRUE(writer->Append(data.substr(0, 1000)).ok());
  cluster.StopNamenode();
  auto nap = cluster.world().executors().NewExecutor("operator");
  nap->PostAt(cluster.world().Now() + absl::Seconds(60), [&] { cluster.StartNamenode(); });
  ASSERT_TRUE(writer->Append(data.substr(1000)).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(cluster.Get("/f").value(), data);
}

TEST(FileWriter, GivesUpOnAnAbsentNameNodeWithinItsBudget) {
  ClientOptions options = ClientCluster::Quick();
  options.retry_budget = absl::Seconds(15);
  ClientCluster cluster(3, options);
  auto writer = cluster.files().Create("/f").value();
  ASSERT_TRUE(writer->Append(Pattern(100)).ok());
  cluster.StopNamenode();
  const SteadyTime began = cluster.world().Now();
  const absl::Status status = writer->Close();
  EXPECT_TRUE(errors::IsOutcomeUnknown(status)) << status;
  EXPECT_NEAR(absl::ToDoubleSeconds(cluster.world().Now() - began), 15, 3);
  cluster.StartNamenode();
}

TEST(FileWriter, AbortEndsABlockedAppendAtOnce) {
  ClientCluster cluster;
  cluster.datanode(0).hold_acks = true;
  auto writer = cluster.files().Create("/f").value();
  auto killer = cluster.world().executors().NewExecutor("canceller");
  killer->PostAt(cluster.world().Now() + absl::Seconds(5), [&] { writer->Abort(); });
  const absl::Status status = writer->Append(Pattern(2 << 20));  // More than the window.
  EXPECT_TRUE(errors::IsCancelled(status)) << status;
  EXPECT_LT((cluster.world().Now() - cluster.began()), absl::Seconds(6));
  EXPECT_TRUE(errors::IsCancelled(writer->Flush()));
  EXPECT_TRUE(errors::IsCancelled(writer->Close()));
  writer.reset();
  EXPECT_LT((cluster.world().Now() - cluster.began()), absl::Seconds(6));
  EXPECT_TRUE(cluster.namenode().files["/f"].open);
}

TEST(FileWriter, DestroyedUnclosedLeavesTheFileOpenAndDropsItsLease) {
  ClientCluster cluster;
  {
    auto writer = cluster.files().Create("/f").value();
  }
  EXPECT_TRUE(cluster.namenode().files["/f"].open);
  EXPECT_EQ(cluster.core().leases().writers(), 0);
}

TEST(FileWriter, CreateReportsWhyNoDataNodeTookTheBlock) {
  ClientOptions options = ClientCluster::Quick();
  options.retry_budget = absl::Seconds(15);
  ClientCluster cluster(0, options);
  const absl::Status status = cluster.files().Create("/f").status();
  EXPECT_TRUE(errors::IsNoDatanodes(status));
  EXPECT_EQ(errors::Reason(status), "NO_LIVE_DATANODES");
  EXPECT_NEAR(absl::ToDoubleSeconds((cluster.world().Now() - cluster.began())), 15, 3);
}

TEST(FileWriter, ForgivesExcludedNodesRatherThanFail) {
  ClientCluster cluster(3);
  for (size_t i = 0; i < 3; ++i) cluster.datanode(i).refuse_set_up = true;
  auto healer = cluster.world().executors().NewExecutor("operator");
  healer->PostAt(cluster.world().Now() + absl::Seconds(5), [&] {
    for (size_t i = 0; i < 3; ++i) cluster.datanode(i).refuse_set_up = false;
  });
  ASSERT_TRUE(cluster.Put("/f", Pattern(1000)).ok());
  EXPECT_EQ(cluster.Get("/f").value(), Pattern(1000));
}

TEST(FileWriter, SecondCreateOfAPathIsRefusedUnlessOverwrite) {
  ClientCluster cluster;
  ASSERT_TRUE(cluster.Put("/f", "one").ok());
  EXPECT_TRUE(errors::IsAlreadyExists(cluster.files().Create("/f").status()));
  CreateOptions overwrite;
  overwrite.overwrite = true;
  auto writer = cluster.files().Create("/f", overwrite).value();
  ASSERT_TRUE(writer->Append("two").ok());
  ASSERT_TRUE(writer->Close().ok());
  ASSERT_TRUE(writer->Close().ok());  // Idempotent.
  EXPECT_EQ(cluster.Get("/f").value(), "two");
}

}  // namespace
}  // namespace cairn::client
