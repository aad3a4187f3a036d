#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/metrics.h"
#include "namenode/audit_log.h"
#include "namenode/disk_watch.h"
#include "namenode/frontdoor/client_service.h"
#include "namenode/lease_monitor.h"
#include "namenode/namespace_writer.h"
#include "namenode/reclaimer.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

// The NameNode's figures. Most are asked for at the scrape; commits and calls are observed as they happen, through handles into the
// registry, which therefore outlives the parts. Destroy it before the parts.
class NamenodeMetrics {
 public:
  // All outlive this.
  NamenodeMetrics(metrics::Registry* registry, const NamespaceWriter* writer, const DiskWatch* disk, const Reclaimer* reclaimer,
                  const LeaseMonitor* leases, ReplicaPlane* replicas, const MetaStore* store);

  void AddAuditLog(metrics::Registry* registry, const AuditLog* log);  // Outlives this.

  NamespaceWriter::CommitObserver CommitObserver();
  NamespaceWriter::Observer RowsObserver();
  ClientService::CallObserver CallObserver();

 private:
  struct CallSeries {
    metrics::Counter ok;
    metrics::Counter failed;
    metrics::Histogram latency;
  };

  std::vector<std::unique_ptr<metrics::Registry::Callback>> callbacks_;
  metrics::Histogram sync_seconds_;
  metrics::Histogram batch_size_;
  std::map<int, metrics::Counter> rows_;                  // By Mutation::OpCase; fixed after construction.
  std::map<std::string, CallSeries, std::less<>> calls_;  // By name; fixed after construction.
};

}  // namespace cairn::namenode
