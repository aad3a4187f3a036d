#include "client/src/file_reader.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "tests/client/client_cluster.h"

namespace cairn::client {
namespace {

using ::testing::SizeIs;

constexpr size_t kBlock = 1 << 20;

class FileReaderTest : public ::testing::Test {
 protected:
  FileReaderTest() { EXPECT_TRUE(cluster_.Put("/f", data_).ok()); }

  ClientCluster cluster_;
  const std::string data_ = Pattern(2 * kBlock + 12345);
};

TEST_F(FileReaderTest, ReadsAcrossBlocksAndEndsCleanly) {
  EXPECT_EQ(cluster_.Get("/f").value(), data_);
  cluster_.world().RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster_.datanode(0).read_verdicts, 3);
}

TEST_F(FileReaderTest, ReadsAtAnyOffset) {
  auto reader = cluster_.files().Open("/f").value();
  EXPECT_EQ(reader->length(), data_.size());
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{1}, uint64_t{511}, uint64_t{512}, uint64_t{kBlock - 1}, uint64_t{kBlock}, uint64_t{2 * kBlock + 12344}}) {
    for (const size_t size : {size_t{1}, size_t{513}, size_t{70'000}, kBlock + 1}) {
      std::string into(size, ' ');
      const size_t count = reader->ReadAt(offset, into).value();
      EXPECT_EQ(into.substr(0, count), data_.substr(offset, size)) << offset << " " << size;
    }
  }
  std::string into(10, ' ');
  EXPECT_EQ(reader->ReadAt(data_.size(), into).value(), 0u);
}

TEST_F(FileReaderTest, SeeksBothWays) {
  auto reader = cluster_.files().Open("/f").value();
  std::string into(1000, ' ');
  for (const uint64_t offset : {uint64_t{5}, uint64_t{10}, uint64_t{kBlock + 3}, uint64_t{100}, uint64_t{data_.size()}, uint64_t{0}}) {
    ASSERT_TRUE(reader->Seek(offset).ok());
    EXPECT_EQ(reader->position(), offset);
    size_t done = 0;
    while (done < into.size()) {
      const size_t count = reader->Read(std::span<char>(into).subspan(done)).value();
      if (count == 0) break;
      done += count;
    }
    EXPECT_EQ(into.substr(0, done), data_.substr(offset, into.size()));
  }
  EXPECT_FALSE(reader->Seek(data_.size() + 1).ok());
}

TEST_F(FileReaderTest, CorruptReplicaIsReportedAndAnotherOneRead) {
  cluster_.datanode(0).corrupt_reads = true;
  EXPECT_EQ(cluster_.Get("/f").value(), data_);
  ASSERT_THAT(cluster_.namenode().bad_replicas, SizeIs(3));  // One a block.
  EXPECT_EQ(cluster_.namenode().bad_replicas[0].storage_uuid(), "storage-dn0");
  EXPECT_EQ(cluster_.namenode().bad_replicas[0].block().id(), cluster_.namenode().files["/f"].blocks[0].block.id());
}

TEST_F(FileReaderTest, GoesOnAtTheSameByteWhenAReplicaIsLostMidStream) {
  cluster_.datanode(0).cut_reads_after = 3;
  EXPECT_EQ(cluster_.Get("/f").value(), data_);
  ASSERT_FALSE(cluster_.datanode(1).reads.empty());
  EXPECT_EQ(cluster_.datanode(1).reads[0].offset(), 3u * (64 << 10));
}

TEST_F(FileReaderTest, ReadsWhileOneReplicaLives) {
  cluster_.datanode(0).Kill();
  cluster_.datanode(1).Kill();
  EXPECT_EQ(cluster_.Get("/f").value(), data_);
}

TEST_F(FileReaderTest, WaitsForAReplicaToComeBackWithinTheBudget) {
  for (size_t i = 0; i < 3; ++i) cluster_.datanode(i).refuse_token = true;
  auto operator_ = cluster_.world().executors().NewExecutor("operator");
  operator_->PostAt(cluster_.world().Now() + absl::Seconds(20), [&] { cluster_.datanode(2).refuse_token = false; });
  EXPECT_EQ(cluster_.Get("/f").value(), data_);
}

TEST_F(FileReaderTest, SaysSoWhenNoReplicaIsLeft) {
  for (size_t i = 0; i < 3; ++i) cluster_.datanode(i).Kill();
  const absl::Status status = cluster_.Get("/f").status();
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("no replica of the block at offset 0"));
  EXPECT_NEAR(absl::ToDoubleSeconds((cluster_.world().Now() - cluster_.began())), 120, 15);
}

TEST_F(FileReaderTest, ReadAheadIsBounded) {
  ASSERT_TRUE(cluster_.Put("/large", Pattern(12 << 20)).ok());
  for (size_t i = 0; i < 3; ++i) cluster_.datanode(i).reads.clear();
  auto reader = cluster_.files().Open("/large").value();
  std::string one(1, ' ');
  ASSERT_EQ(reader->Read(one).value(), 1u);
  cluster_.world().RunFor(absl::Minutes(1));
  // Blocks of 1 MiB: as many as the bound holds, the one that was taken from, and one more on its way.
  EXPECT_LE(cluster_.datanode(0).reads.size(), (FileReaderCore::kReadAheadBytes >> 20) + 2);
  EXPECT_GE(cluster_.datanode(0).reads.size(), 2u);
}

TEST_F(FileReaderTest, ClosedReaderRefuses) {
  auto reader = cluster_.files().Open("/f").value();
  reader->Close();
  std::string one(1, ' ');
  EXPECT_TRUE(errors::IsCancelled(reader->Read(one).status()));
  EXPECT_TRUE(errors::IsCancelled(reader->ReadAt(0, one).status()));
}

TEST_F(FileReaderTest, MissingFileIsNotFound) { EXPECT_TRUE(errors::IsNotFound(cluster_.files().Open("/nowhere").status())); }

TEST_F(FileReaderTest, StreamsOutliveTheFileSystem) {
  std::unique_ptr<FileReader> reader;
  {
    std::unique_ptr<FileSystem> files = NewFileSystem(std::shared_ptr<ClientCore>(&cluster_.core(), [](ClientCore*) {}));
    reader = files->Open("/f").value();
  }
  std::string into(data_.size(), ' ');
  EXPECT_EQ(reader->ReadAt(0, into).value(), data_.size());
  EXPECT_EQ(into, data_);
}

}  // namespace
}  // namespace cairn::client
