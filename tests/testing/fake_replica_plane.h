#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/replicas/replica_plane.h"

namespace cairn::testing {

// A replica plane that believes what it is told: storages "s1", "s2", ... with the numbers 1, 2, ..., each on a DataNode "d1", "d2", ...
// Not thread-safe.
class FakeReplicaPlane : public namenode::ReplicaPlane {
 public:
  explicit FakeReplicaPlane(uint32_t storages) {
    for (uint32_t i = 1; i <= storages; ++i) live.insert(i);
  }

  std::set<uint32_t> live;    // Registered with this NameNode.
  std::set<uint32_t> silent;  // Have reported no replica. All others have each block as it is named.
  std::vector<BlockId> changed;
  std::vector<v1::FreedBlock> freed;
  std::vector<std::string> bad;
  std::vector<TargetRequest> asked;

  absl::StatusOr<std::vector<StorageNumber>> ChooseTargets(const TargetRequest& request) override {
    asked.push_back(request);
    std::vector<StorageNumber> targets;
    for (const uint32_t number : live) {
      const bool excluded = std::any_of(request.excluded.begin(), request.excluded.end(),
                                        [&](const v1::ExcludedNode& node) { return node.datanode_uuid() == fmt::format("d{}", number); });
      if (!excluded && targets.size() < request.replication) targets.emplace_back(number);
    }
    if (!targets.empty()) return targets;
    Error error;
    error.kind = ErrorKind::kNoTargets;
    error.reason = live.empty() ? "NO_LIVE_DATANODES" : "ALL_EXCLUDED";
    error.message = "no DataNode can take the block";
    return MakeError(std::move(error));
  }
  Locations Locate(BlockId, const v1::BlockRecord& record, const std::string&, namenode::Reach) override {
    Locations found;
    if (record.state() == v1::COMMITTED && record.inode_id() == 0) {  // Of no file's row: who has reported it?
      for (const uint32_t number : live)
        if (!silent.contains(number)) found.locations.push_back(*LocationOf(StorageNumber(number)));
      return found;
    }
    for (const uint32_t number : record.expected_storages())
      if (auto location = LocationOf(StorageNumber(number))) found.locations.push_back(*std::move(location));
    found.retry = found.locations.empty();
    return found;
  }
  std::optional<v1::StorageLocation> LocationOf(StorageNumber storage) override {
    if (!live.contains(static_cast<uint32_t>(storage.value()))) return std::nullopt;
    v1::StorageLocation location;
    location.set_storage_uuid(fmt::format("s{}", storage.value()));
    location.mutable_datanode()->set_uuid(fmt::format("d{}", storage.value()));
    return location;
  }
  std::optional<StorageNumber> NumberOf(const std::string&) override { return std::nullopt; }
  void OnBlocksChanged(const std::vector<BlockId>& blocks) override { changed.insert(changed.end(), blocks.begin(), blocks.end()); }
  void OnBlocksFreed(const std::vector<v1::FreedBlock>& blocks) override { freed.insert(freed.end(), blocks.begin(), blocks.end()); }
  void OnBadReplica(const v1::Block& block, const std::string& storage_uuid) override {
    bad.push_back(fmt::format("{}@{}", block.id(), storage_uuid));
  }
  void FillReport(v1::ClusterReportResponse* report) override {
    for (const uint32_t number : live) {
      v1::DatanodeReport& node = *report->add_datanodes();
      node.mutable_info()->set_uuid(fmt::format("d{}", number));
      v1::StorageStatistics& storage = *node.add_storages();
      storage.set_storage_uuid(fmt::format("s{}", number));
      storage.set_state(v1::HEALTHY);
    }
  }
  void SetNodeAdmin(v1::SetNodeAdminRequest, Done<v1::SetNodeAdminResponse> done) override { done(Unsupported()); }
  uint32_t SetHosts(std::shared_ptr<const namenode::HostList>) override { return 0; }
  void ListNodeBlockers(v1::ListNodeBlockersRequest, Done<v1::ListNodeBlockersResponse> done) override { done(Unsupported()); }
  absl::StatusOr<v1::FsckBlock> Inspect(BlockId, const v1::BlockRecord&, bool) override { return Unsupported(); }
  void ListBadBlocks(v1::ListBadBlocksRequest, Done<v1::ListBadBlocksResponse> done) override { done(Unsupported()); }
  void Balance(v1::BalanceRequest, Done<v1::BalanceResponse> done) override { done(Unsupported()); }
  static absl::Status Unsupported() { return MakeError(ErrorKind::kUnsupported, "no DataNodes are kept here"); }
  void Stop(absl::AnyInvocable<void()> then) override { then(); }

  void Register(api::CallContext, v1::RegisterRequest, api::Done<v1::RegisterResponse> done) override { done(v1::RegisterResponse()); }
  void Heartbeat(api::CallContext, v1::HeartbeatRequest, api::Done<v1::HeartbeatResponse> done) override { done(v1::HeartbeatResponse()); }
  void CommitBlockRecovery(api::CallContext, v1::CommitBlockRecoveryRequest, api::Done<v1::CommitBlockRecoveryResponse> done) override {
    done(v1::CommitBlockRecoveryResponse());
  }
  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(api::CallContext, std::shared_ptr<api::MessageHandler<v1::ReportDown>>) override {
    return nullptr;
  }
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(api::CallContext,
                                                            std::shared_ptr<api::MessageHandler<v1::CommandDown>>) override {
    return nullptr;
  }
};

}  // namespace cairn::testing
