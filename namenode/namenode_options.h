#pragma once

#include <cstdint>
#include <string>

#include "namenode/audit_log.h"
#include "namenode/checkpoints.h"
#include "namenode/disk_watch.h"
#include "namenode/frontdoor/client_service.h"
#include "namenode/frontdoor/group_mapping.h"
#include "namenode/lease_monitor.h"
#include "namenode/namespace_writer.h"
#include "namenode/reclaimer.h"
#include "namenode/replicas/rack_script.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/retry_sweeper.h"
#include "namenode/safe_mode_watch.h"
#include "namenode/store/meta_store.h"
#include "namenode/trash_emptier.h"

namespace cairn {
class Config;
}

namespace cairn::namenode {

// Everything a NameNode can be told, typed. Directories inside `store`, `replicas` and `disk` are set from `directory`.
struct NamenodeOptions {
  std::string directory;  // dfs.namenode.name.dir.
  MetaStore::Options store;
  NamespaceWriter::Options writer;
  ReplicaPlane::Options replicas;
  // The superuser is who runs this process unless it names one; its group mapping is set by Namenode::Start.
  ClientService::Options clients;
  GroupMapping::Options groups;
  std::string group_overrides;  // hadoop.user.group.static.mapping.overrides; see ParseGroupOverrides.
  Reclaimer::Options reclaimer;
  LeaseMonitor::Options leases;
  RetrySweeper::Options retries;
  TrashEmptier::Options trash;  // Its limits are those of `clients`.
  DiskWatch::Options disk;
  uint64_t disk_reserve_bytes = 16 << 20;  // cairn.namenode.disk-reserve.
  Checkpoints::Options checkpoints;
  AuditLog::Options audit;          // Without a file there is none.
  std::string racks_file;           // net.topology.table.file.name.
  RackScript::Options rack_script;  // Without a program, or what runs it, there is none.
  RackScript::Run run_program;
  bool safe_mode_at_start = false;  // cairn.namenode.safemode.at-start.
  SafeModeWatch::Options safe_mode;
  std::string hosts_file;        // dfs.hosts; empty: everyone may come.
  std::string exclude_file;      // dfs.hosts.exclude.
  size_t readers = 2;            // Executors for snapshot reads.
  std::string software_version;  // For reports.
};

// From the configuration's keys; see deploy/config/cairn.yaml.
NamenodeOptions NamenodeOptionsFrom(const Config& config);

}  // namespace cairn::namenode
