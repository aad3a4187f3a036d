#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/testing/sim_cluster.h"

namespace cairn::testing {

// Follows the report streams of all DataNodes, none of which may restart meanwhile: when an event
// was numbered, and when the NameNode's answer says that it is applied. Look() after every task of
// the world: events that are durable are forgotten.
class ReportWatch {
 public:
  // By block: times from its replicas' FINALIZED events until they were applied.
  using Latencies = std::map<uint64_t, std::multiset<absl::Duration>>;

  explicit ReportWatch(SimCluster* cluster) : cluster_(cluster), nodes_(cluster->datanode_count()) {
    for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].seen = cluster_->datanode(i)->events().last();
  }

  void Look() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      const datanode::EventLog& events = cluster_->datanode(i)->events();
      if (events.last() > node.seen) {
        for (const v1::ReportEvent& event : events.From(node.seen + 1, 1000, 1 << 20).events) {
          if (event.type() == v1::REPLICA_FINALIZED) node.open[event.number()] = {event.replica().block_id(), cluster_->world().Now()};
          ranges_ += event.type() == v1::RANGE ? 1 : 0;
        }
        node.seen = events.last();
      }
      const uint64_t applied = cluster_->datanode(i)->lanes().report().applied();
      while (!node.open.empty() && node.open.begin()->first <= applied) {
        const auto& [block, at] = node.open.begin()->second;
        latencies_[block].insert(cluster_->world().Now() - at);
        node.open.erase(node.open.begin());
      }
    }
  }

  const Latencies& latencies() const { return latencies_; }
  uint64_t ranges() const { return ranges_; }  // Statements of walks.

 private:
  struct Node {
    uint64_t seen = 0;
    std::map<uint64_t, std::pair<uint64_t, SteadyTime>> open;  // Event number: block, and when.
  };
  SimCluster* const cluster_;
  std::vector<Node> nodes_;
  Latencies latencies_;
  uint64_t ranges_ = 0;
};

}  // namespace cairn::testing
