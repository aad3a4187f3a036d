#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "cairn/datanode_namenode.pb.h"
#include "common/env/clock.h"

namespace cairn::namenode {

// Which DataNodes are slow, by what the others say with their heartbeats: each compares the nodes that it forwards to with each other.
//
// A node is slow while enough others that live say so, and for kHold after, so that one at the limit does not come and go. Those that most
// nodes name go first, and there is a bound: if very many are slow, it is the load that is. A reporter's word counts until its next one, or
// until it lives no more; a word on a node that has started again since counts once all its samples are of the new process.
//
// Belongs to whoever calls; the registry, under its lock.
class SlowNodes {
 public:
  struct Options {
    bool avoid = true;     // dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled: whether anything follows from it.
    size_t most = 5;       // dfs.namenode.max.slowpeer.collect.nodes
    size_t reporters = 2;  // cairn.namenode.slow-node.reporters
  };
  static constexpr size_t kMostOfEach = 10;  // Peers that one heartbeat may name.
  static constexpr size_t kShare = 4;        // No more than one in so many live nodes, but always one.
  static constexpr absl::Duration kHold = absl::Seconds(30);

  explicit SlowNodes(const Options& options) : options_(options) {}
  void SetOptions(const Options& options) { options_ = options; }
  bool avoid() const { return options_.avoid; }

  // All that `reporter` finds slow now; what it said before is void. `peers` may be anything.
  void Heard(const std::string& reporter, const google::protobuf::RepeatedPtrField<v1::SlowPeer>& peers, SteadyTime now);
  // It is a new process, or gone: what was said of it counts no more, nor what it said.
  void Restarted(const std::string& uuid, SteadyTime now);
  void Forget(const std::string& uuid);

  // Decides anew. `living`: uuids of the nodes that live.
  void Judge(const std::set<std::string_view>& living, SteadyTime now);
  const std::set<std::string>& slow() const { return slow_; }

  struct Word {
    std::string reporter;  // Uuid.
    v1::SlowPeer what;
  };
  // What living nodes said of it, as of the last Judge; by uuid.
  std::vector<Word> WordsOn(const std::string& uuid) const;

 private:
  struct Claim {
    v1::SlowPeer what;
    SteadyTime oldest_sample;
  };
  Options options_;
  std::map<std::string, std::map<std::string, Claim>> said_;  // By reporter, then peer.
  std::map<std::string, SteadyTime> started_;                 // Nodes whose start is not long enough ago to be without interest.
  std::map<std::string, std::vector<Word>> words_;            // By peer; those that count.
  std::map<std::string, SteadyTime> last_found_;              // By enough others.
  std::set<std::string> slow_;
};

}  // namespace cairn::namenode
