#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "cairn/client_namenode.pb.h"
#include "common/env/random.h"
#include "common/ids.h"

namespace cairn::namenode {

// A DataNode as placement sees it.
struct PlacementNode {
  struct Storage {
    StorageNumber storage;
    uint64_t remaining_bytes = 0;  // 0 for a read-only one.
    uint64_t capacity_bytes = 0;   // 0: unknown, and never full.
  };
  std::string datanode_uuid;
  std::string host;
  std::string address;  // host:port, for messages.
  std::string rack;     // Empty: unknown.
  v1::NodeState state = v1::NODE_STATE_UNSPECIFIED;
  v1::NodeAdminState admin = v1::NODE_NORMAL;  // Only a normal one takes blocks.
  uint32_t active_streams = 0;
  bool busy = false;              // Has all the repairs it may have.
  bool slow = false;              // As others find: chosen second.
  std::vector<Storage> storages;  // The healthy ones.
};

struct PlacementRequest {
  uint32_t replication = 3;
  uint64_t block_size_bytes = 0;
  std::string client_host;  // The first copy goes there if it can.
  std::vector<v1::ExcludedNode> excluded;
  std::vector<std::string> holding;            // Uuids of DataNodes that have the block already.
  std::optional<std::string> other_than_rack;  // Nodes there are not chosen from.
  bool names_nodes = true;                     // A refusal says of every node why; costs as many words as there are nodes.
};

// Why a node was not chosen from. Named in errors and in cairn_placement_rejected_total.
enum class Rejection : uint8_t { kDead, kDraining, kMaintenance, kExcluded, kHoldsBlock, kNoSpace, kBusy, kSameRack };
inline constexpr size_t kRejections = 8;
const char* NameOf(Rejection reason);  // "DEAD"
using RejectionCounts = std::array<uint64_t, kRejections>;

// Targets for a block: the first on the writer's own host, the second on another rack than the first, the
// third on the second's rack, all others anywhere; among equals by chance, weighted by free space over active
// streams; one copy a node; a stale node only when no live one is left. Where racks leave no choice, racks
// give way. Copies that are there already count as placed, so that a repair brings a block to a second rack.
// A slow node, be it the writer's own, is taken only where no other is: on the rack that makes the second, or at all.
//
// A volume of which less than a tenth is free is taken only if no other on the same terms of rack fits; among such, only those that have
// nearly as much free as the emptiest of them.
//
// Pure: the same nodes, request and generator give the same answer. Fewer targets than asked for is success.
// None is kNoTargets, with a reason and in `nodes` "host:port REASON" of every node: NO_LIVE_DATANODES (none
// registered, or all DEAD), ALL_EXCLUDED (by the caller), NO_SPACE (none of the others has a volume with room
// for a block), ALL_BUSY, NO_OTHER_RACK, ALL_HOLD_THE_BLOCK. Nodes that are drained or in maintenance count as dead ones do.
absl::StatusOr<std::vector<StorageNumber>> PlaceBlock(const std::vector<PlacementNode>& nodes, const PlacementRequest& request,
                                                      Random* random, RejectionCounts* rejected = nullptr);

}  // namespace cairn::namenode
