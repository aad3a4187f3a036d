#include "namenode/namenode_directory.h"

#include <string>

#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/store/keys.h"
#include "tests/namenode/store_world.h"

namespace cairn::namenode {
namespace {

class NamenodeDirectoryTest : public ::testing::Test {
 protected:
  absl::Status Format(const std::string& cluster_id = "") {
    return NamenodeDirectory::Format("/data/nn", {.cluster_id = cluster_id, .owner = ""}, &world_);
  }
  absl::StatusOr<std::unique_ptr<NamenodeDirectory>> Open(const std::string& directory = "/data/nn") {
    MetaStore::Options options;
    options.simulated = true;
    return NamenodeDirectory::Open(directory, options, &world_);
  }
  void PowerCut() {
    world_.Kill();
    world_.LosePowerAndBoot();
  }
  std::string Version() { return world_.files().ReadWhole("/data/nn/VERSION").value(); }
  void SetVersion(const std::string& json) { ASSERT_TRUE(world_.files().WriteWhole("/data/nn/VERSION", json).ok()); }
  void ExpectMessage(const absl::Status& status, ErrorKind kind, std::initializer_list<std::string> parts) {
    EXPECT_EQ(KindOf(status), kind) << status;
    for (const std::string& part : parts)
      EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status << " lacks " << part;
  }

  testing::StoreWorld world_;
};

TEST_F(NamenodeDirectoryTest, AFormattedDirectoryIsAnEmptyCluster) {
  ASSERT_TRUE(Format("CID-7").ok());
  const auto opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->cluster_id(), "CID-7");
  EXPECT_EQ((*opened)->pool_id().size(), 16u);
  EXPECT_EQ((*opened)->replicas_directory(), "/data/nn/replicas");
  const auto view = (*opened)->store().Snapshot();
  EXPECT_TRUE(ResolvePath(*view, "/").ok());
  const auto counters = ReadCounters(*view);
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ(counters->cluster_id, "CID-7");
  EXPECT_EQ(counters->pool_id, (*opened)->pool_id());
  EXPECT_EQ(counters->epoch, (*opened)->epoch());
}

TEST_F(NamenodeDirectoryTest, ClustersWithoutAGivenIdDiffer) {
  ASSERT_TRUE(Format().ok());
  ASSERT_TRUE(NamenodeDirectory::Format("/data/other", {}, &world_).ok());
  const auto other = Open("/data/other");
  const auto opened = Open();
  ASSERT_TRUE(opened.ok() && other.ok());
  EXPECT_NE((*opened)->cluster_id(), (*other)->cluster_id());
  EXPECT_NE((*opened)->pool_id(), (*other)->pool_id());
}

TEST_F(NamenodeDirectoryTest, FormatOutlivesAPowerCut) {
  ASSERT_TRUE(world_.files().MakeDirectories("/data").ok());
  ASSERT_TRUE(world_.files().SyncDirectory("/").ok());
  ASSERT_TRUE(Format().ok());
  const std::string version = Version();
  PowerCut();
  EXPECT_EQ(Version(), version);
  EXPECT_TRUE(Open().ok());
}

TEST_F(NamenodeDirectoryTest, EveryStartTakesTheNextEpochDurably) {
  ASSERT_TRUE(world_.files().MakeDirectories("/data").ok());
  ASSERT_TRUE(world_.files().SyncDirectory("/").ok());
  ASSERT_TRUE(Format().ok());
  uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    {
      const auto opened = Open();
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_EQ((*opened)->epoch().value(), last + 1);
      last = (*opened)->epoch().value();
    }
    if (i % 2 == 0) PowerCut();
  }
}

TEST_F(NamenodeDirectoryTest, FormatRefusesADirectoryThatHoldsAnything) {
  ASSERT_TRUE(Format().ok());
  const std::string version = Version();
  ExpectMessage(Format(), ErrorKind::kNotEmpty, {"/data/nn", "holds a cluster already"});
  EXPECT_EQ(Version(), version);

  ASSERT_TRUE(world_.files().MakeDirectories("/data/photos/2024").ok());
  ExpectMessage(NamenodeDirectory::Format("/data/photos", {}, &world_), ErrorKind::kNotEmpty, {"/data/photos", "2024"});
  EXPECT_EQ(world_.files().List("/data/photos").value().size(), 1u);
}

TEST_F(NamenodeDirectoryTest, FormatTakesAFreshFileSystem) {
  ASSERT_TRUE(world_.files().MakeDirectories("/data/nn/lost+found").ok());
  ASSERT_TRUE(Format().ok());
  EXPECT_TRUE(Open().ok());
}

TEST_F(NamenodeDirectoryTest, OpenNamesDirectoryAndCommandWhenNotFormatted) {
  ExpectMessage(Open().status(), ErrorKind::kNotFound, {"/data/nn", "cairn-namenode --format"});
  EXPECT_FALSE(world_.files().Exists("/data/nn").value());  // Nothing was made.
}

TEST_F(NamenodeDirectoryTest, AnUnfinishedFormatIsNotACluster) {
  ASSERT_TRUE(Format().ok());
  ASSERT_TRUE(world_.files().Remove("/data/nn/VERSION").ok());
  ExpectMessage(Open().status(), ErrorKind::kNotFound, {"/data/nn"});
  ExpectMessage(Format(), ErrorKind::kNotEmpty, {"/data/nn", "is not empty"});
}

TEST_F(NamenodeDirectoryTest, OneProcessAtATime) {
  ASSERT_TRUE(Format().ok());
  {
    const auto first = Open();
    ASSERT_TRUE(first.ok());
    ExpectMessage(Open().status(), ErrorKind::kBusy, {"/data/nn"});
  }
  EXPECT_TRUE(Open().ok());
}

TEST_F(NamenodeDirectoryTest, ANewerLayoutIsRefusedNamingBoth) {
  ASSERT_TRUE(Format().ok());
  SetVersion(R"({"layout": 97, "cluster_id": "c", "pool_id": 12, "shards": [1]})");
  ExpectMessage(Open().status(), ErrorKind::kCorruptMetadata, {"VERSION"});  // A field of ours with another type.
  SetVersion(R"({"layout": 97, "cluster_id": "c", "shards": [1]})");
  ExpectMessage(Open().status(), ErrorKind::kUnsupported, {"/data/nn/VERSION", "97", "1"});
}

TEST_F(NamenodeDirectoryTest, ADamagedVersionIsRefused) {
  ASSERT_TRUE(Format().ok());
  const std::string pool = "00112233445566778899aabbccddeeff";
  for (const std::string& json :
       {std::string(), std::string("\xff\xfe"), std::string("{}"), std::string("[]"), R"({"layout": 1, "cluster_id": "c"})" + std::string(),
        R"({"layout": 0, "cluster_id": "c", "pool_id": ")" + pool + "\"}",
        R"({"layout": 1, "cluster_id": "c", "pool_id": "zz)" + pool.substr(2) + "\"}",
        R"({"layout": 1, "cluster_id": "c", "pool_id": ")" + pool.substr(2) + "\"}"}) {
    SetVersion(json);
    ExpectMessage(Open().status(), ErrorKind::kCorruptMetadata, {"/data/nn/VERSION"});
  }
}

TEST_F(NamenodeDirectoryTest, ADatabaseOfAnotherClusterIsRefused) {
  ASSERT_TRUE(Format("mine").ok());
  SetVersion(R"({"layout": 1, "cluster_id": "theirs", "pool_id": "00112233445566778899aabbccddeeff"})");
  ExpectMessage(Open().status(), ErrorKind::kCorruptMetadata, {"theirs", "mine"});
}

TEST_F(NamenodeDirectoryTest, AFailedEpochWriteIsAFailedStart) {
  ASSERT_TRUE(Format().ok());
  uint64_t epoch = 0;
  {
    const auto opened = Open();
    ASSERT_TRUE(opened.ok());
    epoch = (*opened)->epoch().value();
  }
  // Nothing but the epoch is written to the new log.
  world_.disk().SetFaultHook([](testing::SimDisk::Op op, const std::string& path) {
    return op == testing::SimDisk::Op::kSync && path.ends_with(".log") ? absl::InternalError("bad disk") : absl::OkStatus();
  });
  EXPECT_FALSE(Open().ok());
  world_.disk().SetFaultHook(nullptr);
  const auto opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_GT((*opened)->epoch().value(), epoch);
}

}  // namespace
}  // namespace cairn::namenode
