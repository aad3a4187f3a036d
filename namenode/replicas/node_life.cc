#include "namenode/replicas/node_life.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "namenode/namespace/records.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {

absl::Status NodeLife::Restore() {
  const std::shared_ptr<const ReadView> view = space_->Snapshot();
  std::map<std::string, v1::NodeAdminRecord> records;
  {
    const std::string begin(kMetaNodeAdminPrefix);
    const auto cursor = view->Scan(Family::kMeta, begin, PrefixEnd(begin));
    for (; cursor->Valid(); cursor->Next()) {
      v1::NodeAdminRecord record;
      if (!record.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size())))
        return CorruptRow(Family::kMeta, cursor->key(), "does not parse");
      records.emplace(std::string(cursor->key().substr(begin.size())), std::move(record));
    }
    RETURN_IF_ERROR(cursor->status());
  }
  if (records.empty()) return absl::OkStatus();
  std::map<std::string, std::vector<DatanodeRegistry::KnownStorage>> storages;
  const auto cursor = view->Scan(Family::kDatanode, "", "");
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<StorageNumber> number = ParseDatanodeKey(cursor->key());
    v1::DatanodeRecord record;
    if (!number || !record.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size())))
      return CorruptRow(Family::kDatanode, cursor->key(), "does not parse");
    storages[record.datanode_uuid()].push_back({*number, record.storage_uuid()});
  }
  RETURN_IF_ERROR(cursor->status());
  for (const auto& [uuid, record] : records) registry_->Restore(uuid, record, storages[uuid]);
  return absl::OkStatus();
}

void NodeLife::Set(const v1::SetNodeAdminRequest& request, ReplicaPlane::Done<v1::SetNodeAdminResponse> done) {
  const absl::StatusOr<std::string> uuid = registry_->Find(request.node());
  if (!uuid.ok()) return done(uuid.status());
  const int64_t now_ms = absl::ToUnixMillis(clock_->WallNow());
  const v1::NodeAdminState before = registry_->AdminOf(*uuid).value_or(v1::NodeAdminRecord()).state();
  v1::NodeAdminRecord record;
  switch (request.action()) {
    case v1::SetNodeAdminRequest::DECOMMISSION:
      record.set_state(before == v1::DECOMMISSIONED ? v1::DECOMMISSIONED : v1::DECOMMISSIONING);
      break;
    case v1::SetNodeAdminRequest::RECOMMISSION: record.set_state(v1::NODE_NORMAL); break;
    case v1::SetNodeAdminRequest::MAINTENANCE:
      if (request.until_ms() != 0 && request.until_ms() <= now_ms)
        return done(MakeError(ErrorKind::kInvalidArgument, fmt::format("{}: a maintenance that is over before it begins", request.node())));
      if (before == v1::DECOMMISSIONING || before == v1::DECOMMISSIONED)
        return done(MakeError(ErrorKind::kInvalidArgument, fmt::format("{} is decommissioned: recommission it first", request.node())));
      record.set_state(before == v1::IN_MAINTENANCE || request.force() ? v1::IN_MAINTENANCE : v1::ENTERING_MAINTENANCE);
      record.set_until_ms(request.until_ms());
      break;
    default: return done(MakeError(ErrorKind::kInvalidArgument, "a node: an unknown action"));
  }
  const v1::NodeAdminState to = record.state();
  log::Info("DataNode {}: {} by {}", *uuid, v1::NodeAdminState_Name(to), request.header().user());
  Write(*uuid, std::move(record), [this, uuid = *uuid, to, done = std::move(done)](const absl::Status& status) mutable {
    if (!status.ok()) return done(status);
    v1::SetNodeAdminResponse response;
    if (std::optional<v1::DatanodeInfo> info = registry_->InfoOf(uuid)) *response.mutable_datanode() = *std::move(info);
    response.set_state(to);
    done(std::move(response));
  });
}

void NodeLife::Move(const std::string& uuid, v1::NodeAdminState to, absl::AnyInvocable<void(absl::Status)> done) {
  const std::optional<v1::NodeAdminRecord> before = registry_->AdminOf(uuid);
  if (!before) return done(MakeError(ErrorKind::kNotFound, "DataNode " + uuid + " is gone"));
  v1::NodeAdminRecord record = *before;
  record.set_state(to);
  log::Info("DataNode {}: {}", uuid, v1::NodeAdminState_Name(to));
  Write(uuid, std::move(record), std::move(done));
}

void NodeLife::Write(const std::string& uuid, v1::NodeAdminRecord record, absl::AnyInvocable<void(absl::Status)> done) {
  record.set_since_ms(absl::ToUnixMillis(clock_->WallNow()));
  if (std::optional<v1::DatanodeInfo> info = registry_->InfoOf(uuid)) *record.mutable_info() = *std::move(info);
  record.mutable_info()->clear_admin_state();
  if (record.state() == v1::NODE_NORMAL) record.Clear();
  space_->SetNodeAdmin(uuid, record, [this, uuid, record, done = std::move(done)](const absl::Status& status) mutable {
    if (status.ok()) {
      registry_->SetAdmin(uuid, record);
      on_changed_(uuid);
    }
    done(status);
  });
}

bool NodeLife::FollowFiles(const std::string& uuid, const HostList& hosts) {
  const std::optional<v1::DatanodeInfo> info = registry_->InfoOf(uuid);
  const std::optional<v1::NodeAdminRecord> before = registry_->AdminOf(uuid);
  if (!info || !before) return false;
  const int64_t now_ms = absl::ToUnixMillis(clock_->WallNow());
  const int64_t* const maintenance = hosts.MaintenanceOf(info->transfer());
  v1::NodeAdminRecord record;
  record.set_from_file(true);
  if (hosts.Excludes(info->transfer())) {
    if (before->state() == v1::DECOMMISSIONING || before->state() == v1::DECOMMISSIONED) return false;
    record.set_state(v1::DECOMMISSIONING);
  } else if (maintenance != nullptr && (*maintenance == 0 || *maintenance > now_ms)) {
    const bool is_there = before->state() == v1::ENTERING_MAINTENANCE || before->state() == v1::IN_MAINTENANCE;
    if (is_there && before->until_ms() == *maintenance) return false;
    record.set_state(before->state() == v1::IN_MAINTENANCE ? v1::IN_MAINTENANCE : v1::ENTERING_MAINTENANCE);
    record.set_until_ms(*maintenance);
  } else if (before->state() == v1::NODE_NORMAL || !before->from_file()) {
    return false;
  }
  log::Info("DataNode {} at {}:{}: {}, as the files of dfs.hosts say", uuid, info->transfer().host(), info->transfer().port(),
            v1::NodeAdminState_Name(record.state()));
  Write(uuid, std::move(record), [uuid](const absl::Status& status) {
    if (!status.ok()) log::Warning("DataNode {}: what the files of dfs.hosts say was not written: {}", uuid, std::string(status.message()));
  });
  return true;
}

uint32_t NodeLife::SetHosts(std::shared_ptr<const HostList> hosts) {
  {
    MutexLock lock(mu_);
    hosts_ = hosts;
  }
  registry_->SetHosts(hosts);
  uint32_t changed = 0;
  for (const std::string& uuid : registry_->AllNodes()) changed += FollowFiles(uuid, *hosts);
  return changed;
}

void NodeLife::OnRegistered(const std::string& uuid, const std::vector<std::string>& replaced) {
  for (const std::string& other : replaced) {
    log::Info("DataNode {} has taken the place of {}, at its address", uuid, other);
    space_->SetNodeAdmin(other, v1::NodeAdminRecord(), [other](const absl::Status& status) {
      if (!status.ok()) log::Warning("DataNode {}, which is gone, is still on record: {}", other, std::string(status.message()));
    });
  }
  if (!replaced.empty())
    if (std::optional<v1::NodeAdminRecord> inherited = registry_->AdminOf(uuid); inherited && inherited->state() != v1::NODE_NORMAL)
      Write(uuid, *std::move(inherited), [](const absl::Status&) {});
  std::shared_ptr<const HostList> hosts;
  {
    MutexLock lock(mu_);
    hosts = hosts_;
  }
  if (hosts != nullptr) FollowFiles(uuid, *hosts);
}

}  // namespace cairn::namenode
