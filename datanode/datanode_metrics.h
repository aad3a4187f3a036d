#pragma once

#include <memory>
#include <vector>

#include "common/env/clock.h"
#include "common/metrics.h"
#include "datanode/lanes/namenode_lanes.h"
#include "datanode/storage/block_store.h"
#include "datanode/storage/event_log.h"
#include "datanode/transfer/transfer_context.h"

namespace cairn::datanode {

class TransferServer;

// The DataNode's figures, all asked for at the scrape from counters that exist anyway: nothing is added to any path. Destroyed before the
// parts it points to.
class DatanodeMetrics {
 public:
  DatanodeMetrics(metrics::Registry* registry, BlockStore* store, const EventLog* events, const TransferCounters* transfers,
                  const NamenodeLanes* lanes);
  // How fast other nodes are, and whether they find this one slow. Both outlive this.
  void AddPeers(metrics::Registry* registry, const TransferServer* transfer, const Clock* clock);

 private:
  std::vector<std::unique_ptr<metrics::Registry::Callback>> callbacks_;
};

}  // namespace cairn::datanode
