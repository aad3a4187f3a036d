#include "namenode/frontdoor/hadoop_conversions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/frontdoor/hadoop_call.h"
#include "namenode/namespace/lease_rules.h"

namespace cairn::namenode {
namespace {

v1::DatanodeReport Report() {
  v1::DatanodeReport report;
  report.mutable_info()->set_uuid("d1");
  report.mutable_info()->mutable_transfer()->set_host("10.0.0.1");
  report.mutable_info()->mutable_transfer()->set_port(9866);
  report.mutable_info()->mutable_http()->set_port(9864);
  report.mutable_info()->set_rack("/r1");
  report.set_admin_state(v1::DECOMMISSIONED);
  report.set_last_contact_ms(500);
  report.set_last_walk_ms(-1);
  for (const char* uuid : {"s1", "s2"}) {
    v1::StorageStatistics& storage = *report.add_storages();
    storage.set_storage_uuid(uuid);
    storage.set_capacity_bytes(1000);
    storage.set_used_bytes(100);
    storage.set_remaining_bytes(700);
    storage.set_replicas(3);
  }
  report.mutable_storages(1)->set_state(v1::FAILED);
  return report;
}

TEST(HadoopConversions, ANodesReportAddsItsStoragesUp) {
  const hdfs::DatanodeInfoProto node = ToHadoopReport(Report(), 10'000);
  EXPECT_TRUE(node.IsInitialized());
  EXPECT_EQ(node.id().ipaddr(), "10.0.0.1");
  EXPECT_EQ(node.id().xferport(), 9866u);
  EXPECT_EQ(node.id().infoport(), 9864u);
  EXPECT_EQ(node.location(), "/r1");
  EXPECT_EQ(node.capacity(), 2000u);
  EXPECT_EQ(node.dfsused(), 200u);
  EXPECT_EQ(node.remaining(), 1400u);
  EXPECT_EQ(node.nondfsused(), 400u);
  EXPECT_EQ(node.lastupdate(), 9'500u);
  EXPECT_FALSE(node.has_lastblockreporttime());
  EXPECT_EQ(node.numblocks(), 6u);
  EXPECT_EQ(node.adminstate(), hdfs::DatanodeInfoProto::DECOMMISSIONED);
}

TEST(HadoopConversions, AStorageReportTellsWhichFailed) {
  const hdfs::DatanodeStorageReportProto report = ToHadoopStorageReport(Report(), 10'000);
  EXPECT_TRUE(report.IsInitialized());
  ASSERT_EQ(report.storagereports_size(), 2);
  EXPECT_FALSE(report.storagereports(0).failed());
  EXPECT_TRUE(report.storagereports(1).failed());
  EXPECT_EQ(report.storagereports(1).storage().storageuuid(), "s2");
}

TEST(HadoopConversions, ANodeWithoutARackHasHdfssDefault) {
  hdfs::DatanodeInfoProto node;
  FillDatanode(v1::DatanodeInfo(), &node);
  EXPECT_TRUE(node.IsInitialized());
  EXPECT_EQ(node.location(), "/default-rack");
}

TEST(HadoopConversions, BlocksAreTheSameBothWays) {
  v1::Block block;
  block.set_id(uint64_t{1} << 30);
  block.set_generation_stamp(1001);
  block.set_length_bytes(5);
  const hdfs::ExtendedBlockProto there = ToHadoopBlock(block, "pool");
  EXPECT_EQ(there.poolid(), "pool");
  EXPECT_EQ(FromHadoopBlock(there).SerializeAsString(), block.SerializeAsString());
}

TEST(HadoopFailures, AreThoseThatHdfsThrows) {
  const auto exception = [](ErrorKind kind, std::string_view reason) {
    Error error;
    error.kind = kind;
    error.reason = std::string(reason);
    error.message = "words";
    const ipc::Failure failure = ToHadoopFailure(MakeError(std::move(error)));
    EXPECT_EQ(failure.message, "words");
    EXPECT_EQ(failure.code, hdfs::RpcResponseHeaderProto::ERROR_APPLICATION);
    return failure.exception;
  };
  EXPECT_EQ(exception(ErrorKind::kBeingWritten, kRecovering), "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException");
  EXPECT_EQ(exception(ErrorKind::kBeingWritten, kHeldByOther), "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException");
  EXPECT_EQ(exception(ErrorKind::kQuota, "SPACE_QUOTA"), "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException");
  EXPECT_EQ(exception(ErrorKind::kQuota, "DIRECTORY_FULL"),
            "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException");
  EXPECT_EQ(exception(ErrorKind::kPermission, ""), "org.apache.hadoop.security.AccessControlException");
  EXPECT_EQ(exception(ErrorKind::kSafeMode, ""), "org.apache.hadoop.hdfs.server.namenode.SafeModeException");
  EXPECT_EQ(ToHadoopFailure(absl::InternalError("x")).exception, "java.io.IOException");
}

}  // namespace
}  // namespace cairn::namenode
