#include "client/cli/datanode_verbs.h"

#include <utility>

#include <fmt/format.h>

#include "client/cli/format.h"
#include "common/config.h"

namespace cairn::cli {
namespace {

constexpr uint16_t kDefaultPort = 9868;

std::string AddressText(const v1::Endpoint& endpoint) { return fmt::format("{}:{}", endpoint.host(), endpoint.port()); }

std::string StorageText(const v1::StorageStatistics& storage) {
  const std::string state = storage.state() == v1::HEALTHY && storage.read_only() ? "READ_ONLY" : v1::StorageState_Name(storage.state());
  return fmt::format("  {} {} {}: {} replicas, {} used, {} remaining of {}\n", storage.storage_uuid(), storage.directory(), state,
                     storage.replicas(), CapacityText(storage.used_bytes()), CapacityText(storage.remaining_bytes()),
                     CapacityText(storage.capacity_bytes()));
}

}  // namespace

std::string DatanodeInfoText(const v1::GetDatanodeInfoResponse& info) {
  std::string text = fmt::format("Uptime: {}, Software version: {}, Config version: 1\n", info.uptime_ms() / 1000, info.software_version());
  text += fmt::format("Datanode UUID: {}\n", info.datanode_uuid());
  text += fmt::format("Cluster ID: {}\n", info.cluster_id().empty() ? "none yet" : info.cluster_id());
  text += fmt::format("Registered: {}, epoch {}\n", info.registered() ? "yes" : "no", info.epoch());
  text += fmt::format("Transfer: {}, HTTP: {}, admin: {}\n", AddressText(info.info().transfer()), AddressText(info.info().http()),
                      AddressText(info.info().admin()));
  text += fmt::format("Volumes: {}\n", info.storages_size());
  for (const v1::StorageStatistics& storage : info.storages()) text += StorageText(storage);
  text += fmt::format("Moved between volumes: {} replicas, {} ({}), {} failed{}{}\n", info.volume_moved_replicas(),
                      info.volume_moved_bytes(), CapacityText(info.volume_moved_bytes()), info.volume_moves_failed(),
                      info.volume_move().empty() ? "" : "; now ", info.volume_move());
  text += fmt::format("Num of Blocks: {}\n", info.replicas());
  text += fmt::format("Xceivers: {}\n", info.active_streams());
  text += fmt::format("Pending reclaim: {} blocks, {} ({})\n", info.pending_deletion_blocks(), info.pending_deletion_bytes(),
                      CapacityText(info.pending_deletion_bytes()));
  text += fmt::format("Unacked report entries: {}\n", info.unacknowledged_events());
  text += fmt::format("Command queue: {}\n", info.command_queue());
  text += fmt::format("Block recoveries: {}\n", info.recoveries());
  text += "Lanes:\n";
  for (const v1::LaneAge& lane : info.lanes()) {
    text += fmt::format("  {}: last step {}\n", lane.lane(),
                        lane.last_step_ms() < 0 ? std::string("never") : fmt::format("{} ms ago", lane.last_step_ms()));
  }
  text += fmt::format("Overdue lane steps: {}{}\n", info.overdue_steps(),
                      info.last_overdue_step().empty() ? "" : fmt::format(" (the last: {})", info.last_overdue_step()));
  return text;
}

absl::StatusOr<HostPort> ParseDatanode(const std::string& typed) {
  absl::StatusOr<HostPort> address = ParseHostPort(typed);
  return address.ok() ? address : ParseHostPort(fmt::format("{}:{}", typed, kDefaultPort));
}

int ShowDatanode(const AskDatanode& ask, const char* verb, const std::string& typed, Shell* shell,
                 absl::FunctionRef<std::string(const v1::GetDatanodeInfoResponse& info)> text) {
  const absl::StatusOr<HostPort> address = ParseDatanode(typed);
  if (!address.ok()) {
    *shell->err << fmt::format("{}: {}: {}\n", verb, typed, std::string(address.status().message()));
    return kUsage;
  }
  const absl::StatusOr<v1::GetDatanodeInfoResponse> info = ask(*address);
  if (!info.ok()) {
    *shell->err << fmt::format("Datanode unreachable. {}: {}\n", verb, std::string(info.status().message()));
    return kFailure;
  }
  *shell->out << text(*info);
  return kSuccess;
}

std::vector<Verb> DatanodeVerbs(AskDatanode ask) {
  std::vector<Verb> verbs(1);
  verbs[0].name = "getDatanodeInfo";
  verbs[0].synopsis = "<datanode_host:admin_port>";
  verbs[0].help = "What one DataNode says of itself: version, volumes, streams, lanes. The port is that of gRPC, 9868 unless given.";
  verbs[0].least = 1;
  verbs[0].most = 1;
  verbs[0].run = [ask = std::move(ask)](Shell* shell, const Arguments& arguments) {
    return ShowDatanode(ask, "getDatanodeInfo", arguments.values[0], shell, DatanodeInfoText);
  };
  return verbs;
}

}  // namespace cairn::cli
