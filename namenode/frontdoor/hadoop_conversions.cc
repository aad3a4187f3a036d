#include "namenode/frontdoor/hadoop_conversions.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace cairn::namenode {
namespace {

uint64_t NotOurs(uint64_t capacity, uint64_t used, uint64_t remaining) {
  return capacity > used + remaining ? capacity - used - remaining : 0;
}

}  // namespace

std::string_view WithoutSlash(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

std::string_view LastComponent(std::string_view path) {
  path = WithoutSlash(path);
  return path.substr(path.rfind('/') + 1);  // Also of a path without any.
}

std::string Join(std::string_view directory, std::string_view name) {
  return fmt::format("{}{}{}", directory, directory.ends_with('/') ? "" : "/", name);
}

hdfs::HdfsFileStatusProto ToHadoopStatus(const v1::FileStatus& status, std::string_view name) {
  hdfs::HdfsFileStatusProto out;
  const bool is_directory = status.is_directory();
  out.set_filetype(is_directory ? hdfs::HdfsFileStatusProto::IS_DIR : hdfs::HdfsFileStatusProto::IS_FILE);
  out.set_path(name.data(), name.size());
  out.set_length(is_directory ? 0 : status.length_bytes());
  out.mutable_permission()->set_perm(status.mode());
  out.set_owner(status.owner());
  out.set_group(status.group());
  out.set_modification_time(static_cast<uint64_t>(status.modification_time_ms()));
  out.set_access_time(is_directory ? 0 : static_cast<uint64_t>(status.access_time_ms()));
  out.set_block_replication(is_directory ? 0 : status.replication());
  out.set_blocksize(is_directory ? 0 : status.block_size_bytes());
  out.set_fileid(status.inode_id());
  const uint64_t most = std::numeric_limits<int32_t>::max();
  out.set_childrennum(is_directory ? static_cast<int32_t>(std::min<uint64_t>(status.children(), most)) : 0);
  out.set_storagepolicy(0);
  out.set_flags(0);
  return out;
}

hdfs::ExtendedBlockProto ToHadoopBlock(const v1::Block& block, const std::string& pool_name) {
  hdfs::ExtendedBlockProto out;
  out.set_poolid(pool_name);
  out.set_blockid(block.id());
  out.set_generationstamp(block.generation_stamp());
  out.set_numbytes(block.length_bytes());
  return out;
}

v1::Block FromHadoopBlock(const hdfs::ExtendedBlockProto& block) {
  v1::Block out;
  out.set_id(block.blockid());
  out.set_generation_stamp(block.generationstamp());
  out.set_length_bytes(block.numbytes());
  return out;
}

void FillRest(hdfs::LocatedBlockProto* block) {
  block->set_corrupt(false);
  hdfs::TokenProto& token = *block->mutable_blocktoken();
  token.set_identifier("");
  token.set_password("");
  token.set_kind("");
  token.set_service("");
}

void AddLocation(const v1::StorageLocation& location, hdfs::LocatedBlockProto* to) {
  FillDatanode(location.datanode(), to->add_locs());
  to->add_storagetypes(hdfs::DISK);
  to->add_storageids(location.storage_uuid());
}

hdfs::LocatedBlockProto ToHadoopLocated(const v1::LocatedBlock& block, const std::string& pool_name) {
  hdfs::LocatedBlockProto out;
  *out.mutable_b() = ToHadoopBlock(block.block(), pool_name);
  out.set_offset(block.offset_bytes());
  for (const v1::StorageLocation& location : block.locations()) AddLocation(location, &out);
  FillRest(&out);
  return out;
}

void FillDatanode(const v1::DatanodeInfo& datanode, hdfs::DatanodeInfoProto* to) {
  hdfs::DatanodeIDProto& id = *to->mutable_id();
  id.set_ipaddr(datanode.transfer().host());
  id.set_hostname(datanode.transfer().host());
  id.set_datanodeuuid(datanode.uuid());
  id.set_xferport(datanode.transfer().port());
  id.set_infoport(datanode.http().port());
  id.set_ipcport(0);
  to->set_location(datanode.rack().empty() ? std::string("/default-rack") : datanode.rack());
  // The numbers are the same.
  const int state = static_cast<int>(datanode.admin_state());
  if (hdfs::DatanodeInfoProto::AdminState_IsValid(state)) to->set_adminstate(static_cast<hdfs::DatanodeInfoProto::AdminState>(state));
}

void AddStorages(const v1::DatanodeReport& report, StorageTotals* to) {
  for (const v1::StorageStatistics& storage : report.storages()) {
    to->capacity += storage.capacity_bytes();
    to->used += storage.used_bytes();
    to->remaining += storage.remaining_bytes();
    to->replicas += storage.replicas();
  }
}

hdfs::DatanodeInfoProto ToHadoopReport(const v1::DatanodeReport& report, int64_t now_ms) {
  hdfs::DatanodeInfoProto out;
  v1::DatanodeInfo info = report.info();
  info.set_admin_state(report.admin_state());
  FillDatanode(info, &out);
  StorageTotals totals;
  AddStorages(report, &totals);
  out.set_capacity(totals.capacity);
  out.set_dfsused(totals.used);
  out.set_remaining(totals.remaining);
  out.set_blockpoolused(totals.used);
  out.set_nondfsused(NotOurs(totals.capacity, totals.used, totals.remaining));
  out.set_lastupdate(static_cast<uint64_t>(std::max<int64_t>(0, now_ms - report.last_contact_ms())));
  if (report.last_walk_ms() >= 0) out.set_lastblockreporttime(static_cast<uint64_t>(std::max<int64_t>(0, now_ms - report.last_walk_ms())));
  out.set_xceivercount(report.active_streams());
  out.set_numblocks(static_cast<uint32_t>(std::min<uint64_t>(totals.replicas, std::numeric_limits<uint32_t>::max())));
  return out;
}

hdfs::DatanodeStorageReportProto ToHadoopStorageReport(const v1::DatanodeReport& report, int64_t now_ms) {
  hdfs::DatanodeStorageReportProto out;
  *out.mutable_datanodeinfo() = ToHadoopReport(report, now_ms);
  for (const v1::StorageStatistics& storage : report.storages()) {
    hdfs::StorageReportProto& added = *out.add_storagereports();
    added.set_storageuuid(storage.storage_uuid());
    added.set_failed(storage.state() >= v1::UNAVAILABLE);
    added.set_capacity(storage.capacity_bytes());
    added.set_dfsused(storage.used_bytes());
    added.set_remaining(storage.remaining_bytes());
    added.set_blockpoolused(storage.used_bytes());
    added.set_nondfsused(NotOurs(storage.capacity_bytes(), storage.used_bytes(), storage.remaining_bytes()));
    added.mutable_storage()->set_storageuuid(storage.storage_uuid());
    added.mutable_storage()->set_storagetype(hdfs::DISK);
  }
  return out;
}

hdfs::BlockStoragePolicyProto HotPolicy() {
  hdfs::BlockStoragePolicyProto policy;
  policy.set_policyid(kHotPolicyId);
  policy.set_name("HOT");
  policy.mutable_creationpolicy()->add_storagetypes(hdfs::DISK);
  policy.mutable_creationfallbackpolicy();
  policy.mutable_replicationfallbackpolicy()->add_storagetypes(hdfs::ARCHIVE);
  return policy;
}

}  // namespace cairn::namenode
