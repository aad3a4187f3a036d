#pragma once

#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "cairn/client_namenode.pb.h"
#include "common/env/clock.h"
#include "common/mutex.h"

namespace cairn::client {

// DataNodes that failed this client a short while ago. New blocks are asked for without them, so
// that not every writer finds out for itself; a node is forgiven after kFor, because the NameNode
// knows better by then. Thread-safe, memory only.
class ExcludedNodes {
 public:
  static constexpr absl::Duration kFor = absl::Minutes(1);

  void Add(const std::string& datanode_uuid, const std::string& reason, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    nodes_[datanode_uuid] = Entry(reason, now + kFor);
  }
  void Clear() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    nodes_.clear();
  }
  std::vector<v1::ExcludedNode> Current(SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    std::vector<v1::ExcludedNode> current;
    for (auto it = nodes_.begin(); it != nodes_.end();) {
      if (it->second.until <= now) {
        it = nodes_.erase(it);
        continue;
      }
      v1::ExcludedNode& node = current.emplace_back();
      node.set_datanode_uuid(it->first);
      node.set_reason(it->second.reason);
      ++it;
    }
    return current;
  }

 private:
  struct Entry {
    Entry() = default;
    Entry(std::string why, SteadyTime when) : reason(std::move(why)), until(when) {}
    std::string reason;  // UPPER_CASE.
    SteadyTime until;
  };
  Mutex mu_;
  absl::btree_map<std::string, Entry> nodes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::client
