// The part of DatanodeRegistry that is about slow nodes.

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/log.h"
#include "namenode/replicas/datanode_registry.h"

namespace cairn::namenode {

void DatanodeRegistry::SetSlowNodes(const SlowNodes::Options& options) {
  MutexLock lock(mu_);
  slow_nodes_.SetOptions(options);
}

bool DatanodeRegistry::IsSlow(const std::string& uuid) const {
  MutexLock lock(mu_);
  const auto found = nodes_.find(uuid);
  return found != nodes_.end() && found->second.slow;
}

void DatanodeRegistry::JudgeSpeed() {
  std::set<std::string_view> living;
  for (const auto& [uuid, node] : nodes_)
    if (StateOf(node) == v1::LIVE) living.insert(uuid);
  slow_nodes_.Judge(living, clock_->Now());
  for (auto& [uuid, node] : nodes_) {
    const bool slow = slow_nodes_.slow().contains(uuid);
    if (std::exchange(node.slow, slow) == slow) continue;
    if (!slow) {
      log::Info("DataNode {} at {} is not slow any more", uuid, AddressOf(node.info));
      continue;
    }
    const std::vector<SlowNodes::Word> words = slow_nodes_.WordsOn(uuid);
    const v1::SlowPeer first = words.empty() ? v1::SlowPeer() : words.front().what;
    log::Warning("DataNode {} at {} is slow, as {} others find: {} us for {} of a block, where others take {} us", uuid,
                 AddressOf(node.info), words.size(), first.latency_us(), first.at_close() ? "the last packet" : "a packet",
                 first.peers_latency_us());
  }
}

void DatanodeRegistry::FillSpeed(const std::string& uuid, const Node& node, v1::DatanodeReport* report) const {
  report->set_slow(node.slow);
  for (SlowNodes::Word& word : slow_nodes_.WordsOn(uuid)) {
    v1::DatanodeReport::FoundSlow* found = report->add_found_slow();
    const auto reporter = nodes_.find(word.reporter);
    found->set_by(reporter == nodes_.end() ? word.reporter : AddressOf(reporter->second.info));
    *found->mutable_what() = std::move(word.what);
  }
}

}  // namespace cairn::namenode
