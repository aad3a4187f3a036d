#include "namenode/replicas/placement_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/error.h"

namespace cairn::namenode {
namespace {

constexpr double kFewFree = 0.1;    // Of a volume's capacity.
constexpr double kNearlyAll = 0.8;  // Of what the emptiest full one has free.

struct Choice {
  const PlacementNode* node;
  std::vector<PlacementNode::Storage> roomy;
  uint64_t weight;
  double free_share;  // Of the emptiest of these volumes.
  bool full() const { return free_share < kFewFree; }
};

double FreeShare(const PlacementNode::Storage& storage) {
  if (storage.capacity_bytes == 0) return 1;
  return static_cast<double>(storage.remaining_bytes) / static_cast<double>(storage.capacity_bytes);
}

// Why a node cannot take the block; nothing if it can.
std::optional<Rejection> RejectionOf(const PlacementNode& node, const PlacementRequest& request, Choice* choice, std::string* said) {
  if (node.state != v1::LIVE && node.state != v1::STALE) return Rejection::kDead;
  if (node.admin == v1::DECOMMISSIONING || node.admin == v1::DECOMMISSIONED) return Rejection::kDraining;
  if (node.admin != v1::NODE_NORMAL) return Rejection::kMaintenance;
  for (const v1::ExcludedNode& excluded : request.excluded) {
    if (excluded.datanode_uuid() != node.datanode_uuid) continue;
    *said = excluded.reason();
    return Rejection::kExcluded;
  }
  if (std::find(request.holding.begin(), request.holding.end(), node.datanode_uuid) != request.holding.end()) return Rejection::kHoldsBlock;
  if (request.other_than_rack && node.rack == *request.other_than_rack) return Rejection::kSameRack;
  uint64_t remaining = 0;
  choice->free_share = 0;
  for (const PlacementNode::Storage& storage : node.storages) {
    if (storage.remaining_bytes < request.block_size_bytes || storage.remaining_bytes == 0) continue;
    choice->roomy.push_back(storage);
    choice->free_share = std::max(choice->free_share, FreeShare(storage));
    remaining += storage.remaining_bytes;
  }
  if (choice->roomy.empty()) return Rejection::kNoSpace;
  if (node.busy) return Rejection::kBusy;
  // Volumes that are nearly full are for when nothing else fits.
  if (!choice->full()) std::erase_if(choice->roomy, [](const PlacementNode::Storage& storage) { return FreeShare(storage) < kFewFree; });
  choice->node = &node;
  // In megabytes, so that sums of weights stay far from overflow.
  choice->weight = std::max<uint64_t>(1, (remaining >> 20) / (1 + node.active_streams));
  return std::nullopt;
}

struct Refusal {
  const PlacementNode* node;
  Rejection reason;
  std::string said;  // By the caller.
};

absl::Status NoTargets(const PlacementRequest& request, const std::vector<Refusal>& refusals) {
  RejectionCounts counts{};
  Error error;
  for (const Refusal& refusal : refusals) {
    if (request.names_nodes)
      error.nodes.push_back(
          fmt::format("{} {}{}{}", refusal.node->address, NameOf(refusal.reason), refusal.said.empty() ? "" : " ", refusal.said));
    ++counts[static_cast<size_t>(refusal.reason)];
  }
  const auto of = [&counts](Rejection reason) { return counts[static_cast<size_t>(reason)]; };
  const uint64_t leaving = of(Rejection::kDraining) + of(Rejection::kMaintenance);
  error.kind = ErrorKind::kNoTargets;
  if (of(Rejection::kDead) + leaving == refusals.size()) {
    error.reason = "NO_LIVE_DATANODES";
  } else if (of(Rejection::kNoSpace) > 0) {
    error.reason = "NO_SPACE";
  } else if (of(Rejection::kBusy) > 0) {
    error.reason = "ALL_BUSY";
  } else if (of(Rejection::kSameRack) > 0) {
    error.reason = "NO_OTHER_RACK";
  } else if (of(Rejection::kExcluded) > 0) {
    error.reason = "ALL_EXCLUDED";
  } else {
    error.reason = "ALL_HOLD_THE_BLOCK";
  }
  error.message = fmt::format(
      "no DataNode for a block of {} bytes: {} registered; dead {}, drained or in maintenance {}, excluded by the caller {}, no volume "
      "with "
      "room {}, busy {}, holding it already {}",
      request.block_size_bytes, refusals.size(), of(Rejection::kDead), leaving, of(Rejection::kExcluded), of(Rejection::kNoSpace),
      of(Rejection::kBusy), of(Rejection::kHoldsBlock));
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

// One that `fits`, with room to spare if there is such; else of the full ones one that is nearly as empty as the emptiest.
template <class Fits>
std::vector<Choice>::iterator DrawRoomy(std::vector<Choice>& choices, Random* random, Fits fits) {
  const auto drawn = Draw(choices, random, [&](const Choice& choice) { return fits(choice) && !choice.full(); });
  if (drawn != choices.end()) return drawn;
  double emptiest = 0;
  for (const Choice& choice : choices)
    if (fits(choice)) emptiest = std::max(emptiest, choice.free_share);
  return Draw(choices, random, [&](const Choice& choice) { return fits(choice) && choice.free_share >= kNearlyAll * emptiest; });
}

}  // namespace

const char* NameOf(Rejection reason) {
  switch (reason) {
    case Rejection::kDead: return "DEAD";
    case Rejection::kDraining: return "DRAINING";
    case Rejection::kMaintenance: return "MAINTENANCE";
    case Rejection::kExcluded: return "EXCLUDED";
    case Rejection::kHoldsBlock: return "HOLDS_BLOCK";
    case Rejection::kNoSpace: return "NO_SPACE";
    case Rejection::kBusy: return "BUSY";
    case Rejection::kSameRack: return "SAME_RACK";
  }
  return "UNKNOWN";
}

namespace {

// As if copies that are there and stay had just been placed: what matters is whether they are all on one rack.
std::vector<std::string> RacksOfHolders(const std::vector<PlacementNode>& nodes, const PlacementRequest& request) {
  std::set<std::string> racks;
  for (const PlacementNode& node : nodes) {
    const bool holds = std::find(request.holding.begin(), request.holding.end(), node.datanode_uuid) != request.holding.end();
    if (holds && node.admin == v1::NODE_NORMAL && node.state != v1::DEAD) racks.insert(node.rack);
  }
  std::vector<std::string> placed(racks.begin(), racks.end());
  if (placed.size() == 2) placed.push_back(placed.back());  // On two racks already: the next may stand anywhere.
  return placed;
}

}  // namespace

absl::StatusOr<std::vector<StorageNumber>> PlaceBlock(const std::vector<PlacementNode>& nodes, const PlacementRequest& request,
                                                      Random* random, RejectionCounts* rejected) {
  std::vector<Choice> choices;
  std::vector<Refusal> refusals;
  for (const PlacementNode& node : nodes) {
    Choice choice{};
    std::string said;
    const std::optional<Rejection> reason = RejectionOf(node, request, &choice, &said);
    if (!reason) {
      choices.push_back(std::move(choice));
      continue;
    }
    if (rejected != nullptr) ++(*rejected)[static_cast<size_t>(*reason)];
    refusals.push_back({&node, *reason, std::move(said)});
  }
  if (choices.empty()) return NoTargets(request, refusals);

  std::vector<StorageNumber> targets;
  std::vector<std::string> racks = RacksOfHolders(nodes, request);  // And of the targets so far.
  while (targets.size() < request.replication && !choices.empty()) {
    const auto live = [](const Choice& choice) { return choice.node->state == v1::LIVE; };
    const auto quick = [&](const Choice& choice) { return live(choice) && !choice.node->slow; };
    const auto local = [&](const Choice& choice) { return quick(choice) && !choice.full() && choice.node->host == request.client_host; };
    const auto on_wanted_rack = [&](const Choice& choice) {
      if (!live(choice)) return false;
      if (racks.size() == 1) return choice.node->rack != racks[0];
      if (racks.size() == 2 && racks[0] != racks[1]) return choice.node->rack == racks[1];
      return true;
    };
    auto drawn = choices.end();
    if (targets.empty() && !request.client_host.empty()) drawn = Draw(choices, random, local);
    const auto quick_on_wanted_rack = [&](const Choice& choice) { return quick(choice) && on_wanted_rack(choice); };
    if (drawn == choices.end()) drawn = DrawRoomy(choices, random, quick_on_wanted_rack);
    // A second rack goes before speed; the third copy's is a matter of taste.
    if (drawn == choices.end() && racks.size() == 1) drawn = DrawRoomy(choices, random, on_wanted_rack);
    if (drawn == choices.end()) drawn = DrawRoomy(choices, random, quick);
    if (drawn == choices.end()) drawn = DrawRoomy(choices, random, live);
    if (drawn == choices.end()) drawn = DrawRoomy(choices, random, [](const Choice&) { return true; });
    targets.push_back(DrawStorage(*drawn, random));
    racks.push_back(drawn->node->rack);
    choices.erase(drawn);
  }
  return targets;
}

}  // namespace cairn::namenode
