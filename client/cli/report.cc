#include "client/cli/report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/json_util.h>

#include "client/cli/dfsadmin_nodes.h"
#include "client/cli/format.h"

namespace cairn::cli {
namespace {

struct Space {
  uint64_t capacity = 0;
  uint64_t used = 0;
  uint64_t remaining = 0;
  uint64_t replicas = 0;
  uint64_t present() const { return used + remaining; }
  uint64_t other() const { return capacity > present() ? capacity - present() : 0; }
};

void Add(Space* space, const v1::DatanodeReport& node) {
  for (const v1::StorageStatistics& storage : node.storages()) {
    space->capacity += storage.capacity_bytes();
    space->used += storage.used_bytes();
    space->remaining += storage.remaining_bytes();
    space->replicas += storage.replicas();
  }
}

std::string BytesLine(const std::string& name, uint64_t bytes) { return fmt::format("{}: {} ({})\n", name, bytes, CapacityText(bytes)); }

// As java.util.Date prints itself, which is what HDFS's report shows.
std::string DateText(absl::Time time) { return absl::FormatTime("%a %b %d %H:%M:%S UTC %Y", time, absl::UTCTimeZone()); }

// What others say of its speed, also if they are too few for it to count as slow.
std::string SpeedText(const v1::DatanodeReport& node) {
  if (!node.slow() && node.found_slow().empty()) return "";
  std::string text = node.slow() ? "Slow: yes\n" : "Slow: no, too few find it so\n";
  for (const v1::DatanodeReport::FoundSlow& found : node.found_slow()) {
    const auto milliseconds = [](uint64_t us) { return static_cast<double>(us) / 1000; };
    text += fmt::format("Found slow by {}: {:.1f} ms for {} of a block, where the median of its peers is {:.1f} ms\n", found.by(),
                        milliseconds(found.what().latency_us()), found.what().at_close() ? "the last packet" : "a packet",
                        milliseconds(found.what().peers_latency_us()));
  }
  return text;
}

std::string NodeText(const v1::DatanodeReport& node, absl::Time now) {
  Space space;
  Add(&space, node);
  const v1::DatanodeInfo& info = node.info();
  std::string text = fmt::format("Name: {}:{} ({})\n", info.transfer().host(), info.transfer().port(), info.transfer().host());
  text += fmt::format("Hostname: {}\n", info.transfer().host());
  if (!info.rack().empty() && info.rack() != "/default-rack") text += fmt::format("Rack: {}\n", info.rack());
  text += fmt::format("Decommission Status : {}\n", AdminStateText(node.admin_state()));
  text += BytesLine("Configured Capacity", space.capacity);
  text += BytesLine("DFS Used", space.used);
  text += BytesLine("Non DFS Used", space.other());
  text += BytesLine("DFS Remaining", space.remaining);
  text += fmt::format("DFS Used%: {}\n", PercentText(space.used, space.capacity));
  text += fmt::format("DFS Remaining%: {}\n", PercentText(space.remaining, space.capacity));
  text += "Configured Cache Capacity: 0 (0 B)\nCache Used: 0 (0 B)\nCache Remaining: 0 (0 B)\n";
  text += "Cache Used%: 100.00%\nCache Remaining%: 0.00%\n";  // As HDFS prints a cache of no bytes.
  text += fmt::format("Xceivers: {}\n", node.active_streams());
  text += fmt::format("Last contact: {}\n", DateText(now - absl::Milliseconds(node.last_contact_ms())));
  text +=
      fmt::format("Last Block Report: {}\n", node.last_walk_ms() < 0 ? "Never" : DateText(now - absl::Milliseconds(node.last_walk_ms())));
  text += fmt::format("Num of Blocks: {}\n", space.replicas);
  text += fmt::format("Heartbeat interval: {} ms\n", node.heartbeat_interval_ms());
  text += fmt::format("Command queue: {}\n", node.command_queue());
  text += fmt::format("Unacked report entries: {}\n", node.unacknowledged_events());
  text += fmt::format("Pending reclaim: {} blocks, {} ({})\n", node.pending_deletion_blocks(), node.pending_deletion_bytes(),
                      CapacityText(node.pending_deletion_bytes()));
  text += fmt::format("Open streams: {}\n", node.active_streams());
  if (node.overdue_steps() > 0)
    text += fmt::format("Overdue lane steps: {} (the last: {})\n", node.overdue_steps(), node.last_overdue_step());
  if (node.admin_state() == v1::DECOMMISSIONING || node.admin_state() == v1::ENTERING_MAINTENANCE)
    text += fmt::format("Blocks left: {}{}, of files being written: {}\n", node.blocks_left(), node.looked_once() ? "" : " or more",
                        node.open_blocks_left());
  if (node.maintenance_until_ms() != 0)
    text += fmt::format("Maintenance until: {}\n", DateText(absl::FromUnixMillis(node.maintenance_until_ms())));
  if (node.not_allowed()) text += "Not in dfs.hosts\n";
  text += SpeedText(node);
  return text + "\n\n";
}

}  // namespace

std::string JsonText(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &json, options);
  return printed.ok() ? json : "{}";
}

std::string ReportText(const v1::ClusterReportResponse& report, absl::Time now, const ReportSections& sections) {
  Space total;
  std::vector<const v1::DatanodeReport*> living;
  std::vector<const v1::DatanodeReport*> gone;
  std::vector<const v1::DatanodeReport*> draining, entering, maintained, slow;
  for (const v1::DatanodeReport& node : report.datanodes()) {
    (node.state() == v1::DEAD ? gone : living).push_back(&node);
    if (node.state() != v1::DEAD) Add(&total, node);
    if (node.admin_state() == v1::DECOMMISSIONING) draining.push_back(&node);
    if (node.admin_state() == v1::ENTERING_MAINTENANCE) entering.push_back(&node);
    if (node.admin_state() == v1::IN_MAINTENANCE) maintained.push_back(&node);
    if (node.slow()) slow.push_back(&node);
  }
  std::string text;
  text += BytesLine("Configured Capacity", total.capacity);
  text += BytesLine("Present Capacity", total.present());
  text += BytesLine("DFS Remaining", total.remaining);
  text += BytesLine("DFS Used", total.used);
  text += fmt::format("DFS Used%: {}\n", PercentText(total.used, total.present()));
  text += "Replicated Blocks:\n";
  text += fmt::format("\tUnder replicated blocks: {}\n", report.under_replicated_blocks());
  text += fmt::format("\tBlocks with corrupt replicas: {}\n", report.corrupt_blocks());
  text += fmt::format("\tMissing blocks: {}\n", report.missing_blocks());
  text += fmt::format("\tMissing blocks (with replication factor 1): {}\n", report.missing_blocks_replication_one());
  text += fmt::format("\tBadly Distributed Blocks: {}\n", report.mis_replicated_blocks());
  text += fmt::format("\tLow redundancy blocks with highest priority to recover: {}\n", report.at_risk_blocks());
  text += fmt::format("\tPending deletion blocks: {}\n", report.pending_deletion_blocks());
  text += "Erasure Coded Block Groups: \n\tLow redundancy block groups: 0\n\tBlock groups with corrupt internal blocks: 0\n";
  text += "\tMissing block groups: 0\n\tLow redundancy blocks with highest priority to recover: 0\n\tPending deletion blocks: 0\n";
  text += fmt::format("Repairs: waiting {}, in flight {}, timed out {}, parked {}", report.repairs_waiting(), report.repairs_in_flight(),
                      report.repairs_timed_out(), report.repairs_parked());
  std::vector<std::string> reasons;
  for (const v1::ClusterReportResponse::Parked& parked : report.parked())
    if (parked.blocks() > 0) reasons.push_back(fmt::format("{} {}", parked.reason(), parked.blocks()));
  text += reasons.empty() ? "\n" : fmt::format(" ({})\n", fmt::join(reasons, ", "));
  text += fmt::format("Standard deviation of DFS Used% over the live nodes: {:.2f}\n", report.used_ratio_deviation() * 100);
  text += "\n-------------------------------------------------\n";
  const bool all = !(sections.live || sections.dead || sections.decommissioning || sections.entering_maintenance ||
                     sections.in_maintenance || sections.slow);
  const auto section = [&text, now](const char* name, const std::vector<const v1::DatanodeReport*>& nodes) {
    text += fmt::format("{} datanodes ({}):\n\n", name, nodes.size());
    for (const v1::DatanodeReport* node : nodes) text += NodeText(*node, now);
  };
  const auto wanted = [&section, all](bool asked, const char* name, const std::vector<const v1::DatanodeReport*>& nodes) {
    if (asked || (all && !nodes.empty())) section(name, nodes);
  };
  wanted(sections.live, "Live", living);
  wanted(sections.dead, "Dead", gone);
  wanted(sections.decommissioning, "Decommissioning", draining);
  wanted(sections.entering_maintenance, "Entering maintenance", entering);
  wanted(sections.in_maintenance, "In maintenance", maintained);
  wanted(sections.slow, "Slow", slow);
  return text;
}

}  // namespace cairn::cli
