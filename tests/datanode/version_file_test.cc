#include "datanode/storage/version_file.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace cairn::datanode {
namespace {

using cairn::testing::HasKind;
using cairn::testing::IsOk;

VersionRecord Some() {
  return {.layout = kVolumeLayout,
          .cluster_id = "CID-1",
          .pool_id = std::string("\x00\x01pool-pool-pool", 16),
          .datanode_uuid = "node",
          .storage_uuid = "storage",
          .highest_epoch = 7,
          .highest_block_id = (1ull << 53) + 1,  // A double would round it.
          .highest_generation_stamp = 1005};
}

TEST(VersionFile, ComesBackAsItWas) {
  const auto record = DecodeVersion(EncodeVersion(Some()));
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(record->cluster_id, Some().cluster_id);
  EXPECT_EQ(record->pool_id, Some().pool_id);
  EXPECT_EQ(record->datanode_uuid, "node");
  EXPECT_EQ(record->storage_uuid, "storage");
  EXPECT_EQ(record->highest_epoch, 7u);
  EXPECT_EQ(record->highest_block_id, (1ull << 53) + 1);
  EXPECT_EQ(record->highest_generation_stamp, 1005u);
}

TEST(VersionFile, IsTheSameBytesEachTime) {
  EXPECT_EQ(EncodeVersion(Some()), R"({
 "layout": 1,
 "clusterId": "CID-1",
 "poolId": "0001706f6f6c2d706f6f6c2d706f6f6c",
 "datanodeUuid": "node",
 "storageUuid": "storage",
 "highestEpoch": "7",
 "highestBlockId": "9007199254740993",
 "highestGenerationStamp": "1005"
}
)");
  VersionRecord odd = Some();
  odd.cluster_id = "a \"quoted\" \\ name";
  EXPECT_EQ(DecodeVersion(EncodeVersion(odd))->cluster_id, odd.cluster_id);
}

TEST(VersionFile, DistrustIsWrittenOnlyWhereThereIsSome) {
  EXPECT_FALSE(DecodeVersion(EncodeVersion(Some()))->distrust);
  VersionRecord failed = Some();
  failed.distrust = true;
  EXPECT_TRUE(DecodeVersion(EncodeVersion(failed))->distrust);
  EXPECT_TRUE(EncodeVersion(failed).ends_with(" \"highestGenerationStamp\": \"1005\",\n \"distrust\": true\n}\n"));
}

TEST(VersionFile, ReadsWhatAPersonMayHaveWritten) {
  const auto record = DecodeVersion(R"({"storageUuid":"s","layout":1,"datanodeUuid":"d","poolId":"","clusterId":"","comment":[1,2]})");
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(record->cluster_id, "");
  EXPECT_EQ(record->highest_epoch, 0u);
}

TEST(VersionFile, NewerLayoutIsRefusedNamingBoth) {
  VersionRecord newer = Some();
  newer.layout = 2;
  const auto record = DecodeVersion(EncodeVersion(newer));
  EXPECT_THAT(record, HasKind(ErrorKind::kUnsupported));
  EXPECT_NE(std::string(record.status().message()).find("layout 2"), std::string::npos);
  EXPECT_NE(std::string(record.status().message()).find("reads 1"), std::string::npos);
}

TEST(VersionFile, GarbageIsNamedAsSuch) {
  for (const char* bad : {"", "{", "[]", "{}", R"({"layout":"x"})", R"({"layout":0})", R"({"layout":1})",
                          R"({"layout":1,"clusterId":"","poolId":"zz","datanodeUuid":"d","storageUuid":"s"})",
                          R"({"layout":1,"clusterId":"","poolId":"","datanodeUuid":"","storageUuid":"s"})",
                          R"({"layout":1,"clusterId":"","poolId":"","datanodeUuid":"d","storageUuid":"s","highestEpoch":"-1"})"}) {
    EXPECT_THAT(DecodeVersion(bad), HasKind(ErrorKind::kCorruptMetadata)) << bad;
  }
}

}  // namespace
}  // namespace cairn::datanode
