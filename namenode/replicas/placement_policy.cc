#include "namenode/replicas/placement_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/error.h"

namespace cairn::namenode {
namespace {

struct Choice {
  const PlacementNode* node;
  std::vector<PlacementNode::Storage> roomy;
  uint64_t weight;
};

// Why a node cannot take the block; empty if it can.
std::string Refusal(const PlacementNode& node, const PlacementRequest& request, Choice* choice) {
  if (node.state != v1::LIVE && node.state != v1::STALE) return "DEAD";
  for (const v1::ExcludedNode& excluded : request.excluded)
    if (excluded.datanode_uuid() == node.datanode_uuid)
      return excluded.reason().empty() ? "EXCLUDED" : fmt::format("EXCLUDED {}", excluded.reason());
  if (std::find(request.holding.begin(), request.holding.end(), node.datanode_uuid) != request.holding.end()) return "HOLDS_BLOCK";
  uint64_t remaining = 0;
  for (const PlacementNode::Storage& storage : node.storages) {
    if (storage.remaining_bytes < request.block_size_bytes || storage.remaining_bytes == 0) continue;
    choice->roomy.push_back(storage);
    remaining += storage.remaining_bytes;
  }
  if (choice->roomy.empty()) return "NO_SPACE";
  if (node.busy) return "BUSY";
  choice->node = &node;
  // In megabytes, so that sums of weights stay far from overflow.
  choice->weight = std::max<uint64_t>(1, (remaining >> 20) / (1 + node.active_streams));
  return "";
}

absl::Status NoTargets(const PlacementRequest& request, const std::vector<std::pair<std::string, std::string>>& refusals) {
  size_t dead = 0, excluded = 0, full = 0, busy = 0, holding = 0;
  Error error;
  for (const auto& [address, why] : refusals) {
    error.nodes.push_back(address + " " + why);
    dead += why == "DEAD";
    excluded += std::string_view(why).substr(0, 8) == "EXCLUDED";
    full += why == "NO_SPACE";
    busy += why == "BUSY";
    holding += why == "HOLDS_BLOCK";
  }
  const size_t all = refusals.size();
  error.kind = ErrorKind::kNoTargets;
  if (dead == all) {
    error.reason = "NO_LIVE_DATANODES";
  } else if (full > 0) {
    error.reason = "NO_SPACE";
  } else if (busy > 0) {
    error.reason = "ALL_BUSY";
  } else if (excluded > 0) {
    error.reason = "ALL_EXCLUDED";
  } else {
    error.reason = "ALL_HOLD_THE_BLOCK";
  }
  error.message = fmt::format(
      "no DataNode for a block of {} bytes: {} registered; dead {}, excluded by the caller {}, no volume with room {}, "
      "busy {}, "
      "holding it already {}",
      request.block_size_bytes, all, dead, excluded, full, busy, holding);
  return MakeError(std::move(error));
}

// One of those that `fits`, by weight; the end if none.
template <class Fits>
std::vector<Choice>::iterator Draw(std::vector<Choice>& choices, Random* random, Fits fits) {
  uint64_t total = 0;
  for (const Choice& choice : choices)
    if (fits(choice)) total += choice.weight;
  if (total == 0) return choices.end();
  uint64_t at = random->Below(total);
  for (auto choice = choices.begin(); choice != choices.end(); ++choice) {
    if (!fits(*choice)) continue;
    if (at < choice->weight) return choice;
    at -= choice->weight;
  }
  return choices.end();
}

StorageNumber DrawStorage(const Choice& choice, Random* random) {
  uint64_t total = 0;
  for (const PlacementNode::Storage& storage : choice.roomy) total += std::max<uint64_t>(1, storage.remaining_bytes >> 20);
  uint64_t at = random->Below(total);
  for (const PlacementNode::Storage& storage : choice.roomy) {
    const uint64_t weight = std::max<uint64_t>(1, storage.remaining_bytes >> 20);
    if (at < weight) return storage.storage;
    at -= weight;
  }
  return choice.roomy.back().storage;
}

}  // namespace

absl::StatusOr<std::vector<StorageNumber>> PlaceBlock(const std::vector<PlacementNode>& nodes, const PlacementRequest& request,
                                                      Random* random) {
  std::vector<Choice> choices;
  std::vector<std::pair<std::string, std::string>> refusals;
  for (const PlacementNode& node : nodes) {
    Choice choice{};
    std::string why = Refusal(node, request, &choice);
    if (why.empty()) {
      choices.push_back(std::move(choice));
    } else {
      refusals.emplace_back(node.address, std::move(why));
    }
  }
  if (choices.empty()) return NoTargets(request, refusals);

  std::vector<StorageNumber> targets;
  std::vector<std::string> racks;  // Of the targets so far.
  while (targets.size() < request.replication && !choices.empty()) {
    const auto live = [](const Choice& choice) { return choice.node->state == v1::LIVE; };
    const auto local = [&](const Choice& choice) { return live(choice) && choice.node->host == request.client_host; };
    const auto on_wanted_rack = [&](const Choice& choice) {
      if (!live(choice)) return false;
      if (racks.size() == 1) return choice.node->rack != racks[0];
      if (racks.size() == 2 && racks[0] != racks[1]) return choice.node->rack == racks[1];
      return true;
    };
    auto drawn = choices.end();
    if (targets.empty() && !request.client_host.empty()) drawn = Draw(choices, random, local);
    if (drawn == choices.end()) drawn = Draw(choices, random, on_wanted_rack);
    if (drawn == choices.end()) drawn = Draw(choices, random, live);
    if (drawn == choices.end()) drawn = Draw(choices, random, [](const Choice&) { return true; });
    targets.push_back(DrawStorage(*drawn, random));
    racks.push_back(drawn->node->rack);
    choices.erase(drawn);
  }
  return targets;
}

}  // namespace cairn::namenode
