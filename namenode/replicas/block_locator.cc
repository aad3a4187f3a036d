#include "namenode/replicas/block_locator.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "common/env/random.h"
#include "namenode/replicas/block_states.h"

namespace cairn::namenode {

ReplicaPlane::Locations BlockLocator::Locate(BlockId id, const v1::BlockRecord& record, const std::string& client_host, uint64_t chance,
                                             Reach reach) const {
  ReplicaPlane::Locations result;
  if (record.state() != v1::COMMITTED) {
    for (uint32_t number : record.expected_storages())
      if (std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(StorageNumber(number)))
        result.locations.push_back(*std::move(location));
    result.retry = result.locations.empty() && record.expected_storages_size() > 0;
    return result;
  }

  const bool starting = parts_.clock->Now() - started_ < parts_.dead_after;
  bool not_registered = false;
  struct Ranked {
    std::tuple<bool, bool, bool, bool, bool, uint64_t>
        rank;  // Leaves, stale, slow for others, not on the client's host, not on its rack, chance.
    StorageNumber storage;
  };
  std::vector<Ranked> ranked;
  Random random(chance);
  const std::string client_rack = client_host.empty() ? std::string() : parts_.registry->RackOfHost(client_host);
  const auto add = [&](StorageNumber storage) {
    const std::optional<StorageHealth> health = parts_.registry->HealthOf(storage, client_host, client_rack);
    if (!health) {
      not_registered = true;
      return;
    }
    if (health->node == v1::DEAD || health->state >= v1::UNAVAILABLE) return;
    ranked.push_back({{health->leaves, health->node != v1::LIVE, health->slow && !health->is_on_host, !health->is_on_host,
                       !health->is_on_rack, random.Next()},
                      storage});
  };

  const absl::StatusOr<std::vector<ReplicaRow>> rows = parts_.store->ReplicasOf(id, reach);
  if (IsNotInMemory(rows.status())) {
    result.needs_disk = true;
    return result;
  }
  std::vector<StorageNumber> judged;  // Readable, or known not to be; a few.
  if (rows.ok()) {
    for (const ReplicaRow& row : *rows) {
      if (IsWhole(row, record)) {
        add(row.storage);
        judged.push_back(row.storage);
      } else if (row.corrupt || row.state == v1::RWR) {
        judged.push_back(row.storage);
      }
    }
  }
  // What was acknowledged serves at once, and as long as the stream may just not have said so yet.
  const int64_t age_ms = absl::ToUnixMillis(parts_.clock->WallNow()) - record.committed_ms();
  const bool in_grace = age_ms < absl::ToInt64Milliseconds(parts_.acknowledged_grace);
  for (uint32_t number : record.expected_storages()) {
    const StorageNumber storage(number);
    if (std::find(judged.begin(), judged.end(), storage) != judged.end()) continue;
    const std::optional<StorageHealth> health = parts_.registry->HealthOf(storage, client_host, client_rack);
    if (!health) not_registered = true;
    if (health && (in_grace || health->floor > id.value())) add(storage);
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; });
  for (const Ranked& entry : ranked) {
    std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(entry.storage);
    // A node that has moved its replica to another of its volumes is named by both for a while.
    const auto same_node = [&](const v1::StorageLocation& there) { return there.datanode().uuid() == location->datanode().uuid(); };
    if (location && std::none_of(result.locations.begin(), result.locations.end(), same_node))
      result.locations.push_back(*std::move(location));
  }
  if (result.locations.empty()) result.retry = (starting && not_registered) || parts_.registry->WalkIsDue() || !rows.ok();
  return result;
}

}  // namespace cairn::namenode
