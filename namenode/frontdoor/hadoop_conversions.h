#pragma once

// Cairn's words for files, blocks and nodes in HDFS's messages, and back. Pure functions.

#include <string>
#include <string_view>

#include "cairn/admin.pb.h"
#include "cairn/types.pb.h"
#include "hdfs/namespace.pb.h"

namespace cairn::namenode {

// --- paths, as HDFS's clients write them: perhaps with slashes at the end ---
std::string_view WithoutSlash(std::string_view path);  // "/" stays.
std::string_view LastComponent(std::string_view path);
std::string Join(std::string_view directory, std::string_view name);

inline constexpr uint32_t kHotPolicyId = 7;  // All replicas on disks: HDFS's default.

// `name`: of a child in a listing; empty for the status of a path that was asked for.
hdfs::HdfsFileStatusProto ToHadoopStatus(const v1::FileStatus& status, std::string_view name);

hdfs::ExtendedBlockProto ToHadoopBlock(const v1::Block& block, const std::string& pool_name);
v1::Block FromHadoopBlock(const hdfs::ExtendedBlockProto& block);

// With an empty token and its locations in order.
hdfs::LocatedBlockProto ToHadoopLocated(const v1::LocatedBlock& block, const std::string& pool_name);
void AddLocation(const v1::StorageLocation& location, hdfs::LocatedBlockProto* to);
// An empty token, and what else has to be there.
void FillRest(hdfs::LocatedBlockProto* block);

void FillDatanode(const v1::DatanodeInfo& datanode, hdfs::DatanodeInfoProto* to);
// Of all storages, in bytes but for the replicas.
struct StorageTotals {
  uint64_t capacity = 0;
  uint64_t used = 0;
  uint64_t remaining = 0;
  uint64_t replicas = 0;
};
void AddStorages(const v1::DatanodeReport& report, StorageTotals* to);
// A node as reports show it; `now_ms` since 1970.
hdfs::DatanodeInfoProto ToHadoopReport(const v1::DatanodeReport& report, int64_t now_ms);
hdfs::DatanodeStorageReportProto ToHadoopStorageReport(const v1::DatanodeReport& report, int64_t now_ms);

hdfs::BlockStoragePolicyProto HotPolicy();

}  // namespace cairn::namenode
