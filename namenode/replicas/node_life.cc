#include "namenode/replicas/node_life.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "namenode/namespace/datanode_rows.h"
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
  ASSIGN_OR_RETURN(const auto registered, RegisteredStorages(*view));
  for (const auto& [number, record] : registered) storages[record.datanode_uuid()].push_back({number, record.storage_uuid()});
  for (const auto& [uuid, record] : records) registry_->Restore(uuid, record, storages[uuid]);
  return absl::OkStatus();
}

absl::StatusOr<NodeLife::Kept> NodeLife::KeptOf(const std::string& uuid) const {
  ASSIGN_OR_RETURN(const std::optional<std::string> row, space_->Snapshot()->Get(Family::kMeta, std::string(kMetaNodeAdminPrefix) + uuid));
  Kept kept;
  kept.row = row.value_or("");
  if (!kept.record.ParseFromString(kept.row)) return CorruptRow(Family::kMeta, uuid, "does not parse");
  return kept;
}

void NodeLife::Set(const v1::SetNodeAdminRequest& request, ReplicaPlane::Done<v1::SetNodeAdminResponse> done) {
  TrySet(request, kTries, std::move(done));
}

void NodeLife::TrySet(const v1::SetNodeAdminRequest& request, int tries, ReplicaPlane::Done<v1::SetNodeAdminResponse> done) {
  const absl::StatusOr<std::string> uuid = registry_->Find(request.node());
  if (!uuid.ok()) return done(uuid.status());
  absl::StatusOr<Kept> kept = KeptOf(*uuid);
  if (!kept.ok()) return done(kept.status());
  const int64_t now_ms = absl::ToUnixMillis(clock_->WallNow());
  const v1::NodeAdminState before = kept->record.state();
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
  Write(*uuid, std::move(record), *std::move(kept), {},
        [this, uuid = *uuid, to, request, tries, done = std::move(done)](const absl::Status& status) mutable {
          if (KindOf(status) == ErrorKind::kStaleGeneration && tries > 1) return TrySet(request, tries - 1, std::move(done));
          if (!status.ok()) return done(status);
          log::Info("DataNode {}: {} by {}", uuid, v1::NodeAdminState_Name(to), request.header().user());
          v1::SetNodeAdminResponse response;
          if (std::optional<v1::DatanodeInfo> info = registry_->InfoOf(uuid)) *response.mutable_datanode() = *std::move(info);
          response.set_state(to);
          done(std::move(response));
        });
}

void NodeLife::Move(const std::string& uuid, v1::NodeAdminState from, int64_t since_ms, v1::NodeAdminState to,
                    absl::AnyInvocable<void(absl::Status)> done) {
  std::vector<std::string> replaced;
  {
    MutexLock lock(mu_);
    if (const auto found = unwritten_.find(uuid); found != unwritten_.end()) {
      replaced = std::move(found->second);
      unwritten_.erase(found);
    }
  }
  if (!replaced.empty()) TakeOver(uuid, replaced, kTries);
  absl::StatusOr<Kept> kept = KeptOf(uuid);
  if (!kept.ok()) return done(kept.status());
  v1::NodeAdminRecord record = kept->record;
  if (record.state() != from || record.since_ms() != since_ms) {
    FollowRow(uuid, since_ms);
    return done(MakeError(ErrorKind::kStaleGeneration, fmt::format("DataNode {}: something else is wanted of it by now", uuid)));
  }
  record.set_state(to);
  Write(uuid, std::move(record), *std::move(kept), {}, [this, uuid, to, done = std::move(done)](const absl::Status& status) mutable {
    if (status.ok()) {
      log::Info("DataNode {}: {}", uuid, v1::NodeAdminState_Name(to));
      if (to == v1::NODE_NORMAL) FollowFilesNow(uuid);  // They had to wait for what a call had said.
    }
    done(status);
  });
}

void NodeLife::FollowRow(const std::string& uuid, int64_t since_ms) {
  {
    MutexLock lock(mu_);
    if (taking_over_.contains(uuid) || unwritten_.contains(uuid)) return;  // The row does not say it yet.
  }
  // Again if others have written meanwhile: what they told the registry must not be undone.
  absl::StatusOr<Kept> kept = KeptOf(uuid);
  for (int tries = kTries; kept.ok() && tries > 0; --tries) {
    v1::NodeAdminRecord record = kept->record;
    if (kept->row.empty()) record.set_since_ms(since_ms);
    registry_->SetAdmin(uuid, record);
    absl::StatusOr<Kept> now = KeptOf(uuid);
    if (now.ok() && now->row == kept->row) break;
    kept = std::move(now);
  }
  on_changed_(uuid);
}

void NodeLife::Write(const std::string& uuid, v1::NodeAdminRecord record, Kept before, std::vector<std::string> replaced,
                     absl::AnyInvocable<void(absl::Status)> done) {
  // No two of a node have one time, so that it says which one is meant.
  const int64_t last_ms = std::max(before.record.since_ms(), registry_->AdminOf(uuid).value_or(v1::NodeAdminRecord()).since_ms());
  const int64_t since_ms = std::max(absl::ToUnixMillis(clock_->WallNow()), last_ms + 1);
  if (record.state() == v1::NODE_NORMAL) record.Clear();
  record.set_since_ms(since_ms);
  if (record.state() != v1::NODE_NORMAL) {
    if (std::optional<v1::DatanodeInfo> info = registry_->InfoOf(uuid)) *record.mutable_info() = *std::move(info);
    record.mutable_info()->clear_admin_state();
  }
  NamespaceForReplicas::NodeAdminChange change;
  change.datanode_uuid = uuid;
  change.record = record;
  change.before = std::move(before.row);
  {  // What could not be written when it was taken over goes with whatever is wanted now, or the next start would take it over again.
    MutexLock lock(mu_);
    if (const auto found = unwritten_.find(uuid); found != unwritten_.end())
      replaced.insert(replaced.end(), found->second.begin(), found->second.end());
  }
  change.replaced = std::move(replaced);
  space_->SetNodeAdmin(std::move(change),
                       [this, uuid, record = std::move(record), done = std::move(done)](const absl::Status& status) mutable {
                         if (status.ok()) {
                           {
                             MutexLock lock(mu_);
                             unwritten_.erase(uuid);
                           }
                           registry_->SetAdmin(uuid, record);
                           on_changed_(uuid);
                         }
                         done(status);
                       });
}

bool NodeLife::FollowFiles(const std::string& uuid, const std::shared_ptr<const HostList>& hosts, int tries) {
  const std::optional<v1::DatanodeInfo> info = registry_->InfoOf(uuid);
  absl::StatusOr<Kept> kept = KeptOf(uuid);
  if (!info || !kept.ok()) return false;
  const v1::NodeAdminRecord& before = kept->record;
  const int64_t now_ms = absl::ToUnixMillis(clock_->WallNow());
  const int64_t* const maintenance = hosts->MaintenanceOf(info->transfer());
  const bool is_drained = before.state() == v1::DECOMMISSIONING || before.state() == v1::DECOMMISSIONED;
  const bool is_maintained = before.state() == v1::ENTERING_MAINTENANCE || before.state() == v1::IN_MAINTENANCE;
  v1::NodeAdminRecord record;
  record.set_from_file(true);
  if (hosts->Excludes(info->transfer())) {
    if (is_drained) return false;
    record.set_state(v1::DECOMMISSIONING);
  } else if (maintenance != nullptr && (*maintenance == 0 || *maintenance > now_ms)) {
    if (is_maintained && before.until_ms() == *maintenance) return false;
    record.set_state(before.state() == v1::IN_MAINTENANCE ? v1::IN_MAINTENANCE : v1::ENTERING_MAINTENANCE);
    record.set_until_ms(*maintenance);
  } else if (!is_drained && !is_maintained) {
    return false;
  }
  const std::string address = AddressOf(*info);
  const std::string to = v1::NodeAdminState_Name(record.state());
  if ((is_drained || is_maintained) && !before.from_file()) {
    if (record.state() != v1::NODE_NORMAL)
      log::Warning("DataNode {} at {}: {}, say the files of dfs.hosts; {}, a call has said, which stands until -recommission", uuid,
                   address, to, v1::NodeAdminState_Name(before.state()));
    return false;
  }
  log::Info("DataNode {} at {}: {}, as the files of dfs.hosts say", uuid, address, to);
  Write(uuid, std::move(record), *std::move(kept), {}, [this, uuid, hosts, tries](const absl::Status& status) {
    if (KindOf(status) == ErrorKind::kStaleGeneration && tries > 1) {
      FollowFiles(uuid, hosts, tries - 1);
    } else if (!status.ok()) {
      log::Warning("DataNode {}: what the files of dfs.hosts say was not written: {}", uuid, std::string(status.message()));
    }
  });
  return true;
}

void NodeLife::FollowFilesNow(const std::string& uuid) {
  std::shared_ptr<const HostList> hosts;
  {
    MutexLock lock(mu_);
    hosts = hosts_;
  }
  if (hosts != nullptr) FollowFiles(uuid, hosts, kTries);
}

uint32_t NodeLife::SetHosts(std::shared_ptr<const HostList> hosts) {
  {
    MutexLock lock(mu_);
    hosts_ = hosts;
  }
  registry_->SetHosts(hosts);
  uint32_t changed = 0;
  for (const std::string& uuid : registry_->AllNodes()) changed += FollowFiles(uuid, hosts, kTries);
  return changed;
}

void NodeLife::OnRegistered(const std::string& uuid, const std::vector<std::string>& replaced) {
  for (const std::string& other : replaced) log::Info("DataNode {} has taken the place of {}, at its address", uuid, other);
  if (!replaced.empty()) TakeOver(uuid, replaced, kTries);
  FollowFilesNow(uuid);
}

void NodeLife::TakeOver(const std::string& uuid, const std::vector<std::string>& replaced, int tries) {
  const auto failed = [this, uuid, replaced](const absl::Status& status) {
    {
      MutexLock lock(mu_);
      unwritten_[uuid] = replaced;
    }
    log::Warning("DataNode {}: what was wanted of the one whose place it took was not written: {}", uuid, std::string(status.message()));
  };
  absl::StatusOr<Kept> kept = KeptOf(uuid);
  if (!kept.ok()) return failed(kept.status());
  std::vector<std::string> gone;
  for (const std::string& other : replaced) {
    const absl::StatusOr<Kept> row = KeptOf(other);
    if (!row.ok() || !row->row.empty()) gone.push_back(other);
  }
  v1::NodeAdminRecord record = kept->record;
  if (kept->row.empty()) record = registry_->AdminOf(uuid).value_or(v1::NodeAdminRecord());
  if (gone.empty() && record.state() == kept->record.state()) return;
  {
    MutexLock lock(mu_);
    taking_over_.insert(uuid);
  }
  Write(uuid, std::move(record), *std::move(kept), std::move(gone), [this, uuid, replaced, tries, failed](const absl::Status& status) {
    {
      MutexLock lock(mu_);
      taking_over_.erase(uuid);
    }
    if (KindOf(status) == ErrorKind::kStaleGeneration && tries > 1) {
      TakeOver(uuid, replaced, tries - 1);
    } else if (!status.ok()) {
      failed(status);
    }
  });
}

}  // namespace cairn::namenode
