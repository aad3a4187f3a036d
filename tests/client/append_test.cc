// Files that are written on at their end.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/src/file_writer.h"
#include "tests/client/client_cluster.h"

namespace cairn::client {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kBlock = 1 << 20;

absl::Status Append(ClientCluster* cluster, const std::string& path, const std::string& data) {
  auto writer = cluster->files().Append(path);
  if (!writer.ok()) return writer.status();
  const absl::Status appended = (*writer)->Append(data);
  return appended.ok() ? (*writer)->Close() : appended;
}

void ExpectFile(ClientCluster* cluster, const std::string& data, size_t replicas = 3) {
  const FakeNamenode::File& file = cluster->namenode().files["/f"];
  EXPECT_FALSE(file.open);
  EXPECT_EQ(file.length(), data.size());
  ASSERT_EQ(file.blocks.size(), (data.size() + kBlock - 1) / kBlock);
  for (size_t i = 0; i < file.blocks.size(); ++i) {
    EXPECT_THAT(cluster->Replicas("/f", i), SizeIs(replicas)) << "block " << i;
    EXPECT_THAT(cluster->Replicas("/f", i), Each(data.substr(i * kBlock, kBlock)));
  }
  EXPECT_EQ(cluster->Get("/f").value(), data);
  EXPECT_THAT(cluster->Complaints(), IsEmpty());
}

TEST(Append, ContinuesAtEveryEdge) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{511}, size_t{512}, size_t{513}, kBlock - 1, kBlock, kBlock + 1}) {
    for (const size_t more : {size_t{0}, size_t{1}, size_t{600}, kBlock + 3}) {
      ClientCluster cluster;
      const std::string data = Pattern(size + more);
      ASSERT_TRUE(cluster.Put("/f", data.substr(0, size)).ok());
      const absl::Status appended = Append(&cluster, "/f", data.substr(size));
      ASSERT_TRUE(appended.ok()) << size << " + " << more << ": " << appended;
      ExpectFile(&cluster, data);
    }
  }
}

TEST(Append, SeveralTimesAndFlushedInBetween) {
  ClientCluster cluster;
  const std::string data = Pattern(5000);
  ASSERT_TRUE(cluster.Put("/f", data.substr(0, 100)).ok());
  size_t at = 100;
  for (const size_t to : {101UL, 512UL, 700UL, 1024UL, 1025UL, 5000UL}) {
    auto writer = cluster.files().Append("/f");
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_EQ((*writer)->position(), at);
    const size_t half = (to - at) / 2;
    ASSERT_TRUE((*writer)->Append(data.substr(at, half)).ok());
    ASSERT_TRUE((*writer)->Flush().ok());
    ASSERT_TRUE((*writer)->Append(data.substr(at + half, to - at - half)).ok());
    ASSERT_TRUE((*writer)->Sync().ok());
    EXPECT_EQ((*writer)->position(), to);
    ASSERT_TRUE((*writer)->Close().ok());
    at = to;
  }
  ExpectFile(&cluster, data);
}

TEST(Append, TakesNoSecondSetUpWhenAllNodesTakePart) {
  ClientCluster cluster;
  ASSERT_TRUE(cluster.Put("/f", Pattern(700)).ok());
  ASSERT_TRUE(Append(&cluster, "/f", "more").ok());
  EXPECT_EQ(cluster.namenode().calls["UpdatePipeline"], 0);
  const hdfs::OpWriteBlockProto& op = cluster.datanode(0).writes.back();
  EXPECT_EQ(op.stage(), hdfs::OpWriteBlockProto::PIPELINE_SETUP_APPEND);
  EXPECT_EQ(op.minbytesrcvd(), 700u);
  EXPECT_LT(op.header().baseheader().block().generationstamp(), op.latestgenerationstamp());
}

TEST(Append, GoesOnWithoutANodeThatIsGone) {
  for (const size_t gone : {size_t{0}, size_t{1}, size_t{2}}) {
    ClientCluster cluster(3);
    const std::string data = Pattern(kBlock / 2);
    ASSERT_TRUE(cluster.Put("/f", data.substr(0, 777)).ok());
    cluster.datanode(gone).Kill();
    const absl::Status appended = Append(&cluster, "/f", data.substr(777));
    ASSERT_TRUE(appended.ok()) << gone << ": " << appended;
    EXPECT_THAT(cluster.namenode().files["/f"].blocks[0].acknowledged, SizeIs(2));
    size_t whole = 0;
    for (size_t i = 0; i < 3; ++i) {
      if (i != gone && cluster.datanode(i).replicas.begin()->second.data == data) ++whole;
    }
    EXPECT_EQ(whole, 2u);
    EXPECT_THAT(cluster.Complaints(), IsEmpty());
  }
}

TEST(Append, ANodeLostInTheMiddleOfAnAppendIsDropped) {
  ClientCluster cluster(3);
  const std::string data = Pattern(kBlock / 2);
  ASSERT_TRUE(cluster.Put("/f", data.substr(0, 777)).ok());
  cluster.datanode(1).die_at_data_packet = 3;
  ASSERT_TRUE(Append(&cluster, "/f", data.substr(777)).ok());
  EXPECT_EQ(cluster.datanode(0).replicas.begin()->second.data, data);
  EXPECT_EQ(cluster.datanode(2).replicas.begin()->second.data, data);
}

TEST(Append, FailsWhenNoReplicaCanBeReached) {
  ClientCluster cluster(3);
  ASSERT_TRUE(cluster.Put("/f", Pattern(777)).ok());
  for (size_t i = 0; i < 3; ++i) cluster.datanode(i).Kill();
  auto writer = cluster.files().Append("/f");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append("more").ok());
  EXPECT_FALSE((*writer)->Close().ok());
}

}  // namespace
}  // namespace cairn::client
