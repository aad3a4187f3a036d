#include "datanode/datanode_metrics.h"

#include <algorithm>
#include <utility>

#include "datanode/transfer/transfer_server.h"

namespace cairn::datanode {

DatanodeMetrics::DatanodeMetrics(metrics::Registry* registry, BlockStore* store, const EventLog* events, const TransferCounters* transfers,
                                 const NamenodeLanes* lanes) {
  const auto gauge = [&](const std::string& name, const std::string& help, const metrics::Labels& labels, auto value) {
    callbacks_.push_back(registry->NewCallbackGauge(name, help, labels, [value] { return static_cast<double>(value()); }));
  };
  const auto counter = [&](const std::string& name, const std::string& help, const metrics::Labels& labels, auto value) {
    callbacks_.push_back(registry->NewCallbackCounter(name, help, labels, [value] { return static_cast<double>(value()); }));
  };

  gauge("cairn_datanode_streams", "Transfers under way.", {}, [transfers] { return transfers->active_streams.load(); });
  gauge("cairn_datanode_connections", "Open connections of the transfer port.", {}, [transfers] { return transfers->connections.load(); });
  counter("cairn_datanode_io_bytes_total", "Bytes of replicas received and sent.", {{"direction", "write"}},
          [transfers] { return transfers->bytes_received.load(); });
  counter("cairn_datanode_io_bytes_total", "Bytes of replicas received and sent.", {{"direction", "read"}},
          [transfers] { return transfers->bytes_sent.load(); });
  counter("cairn_datanode_blocks_total", "Blocks moved, by what for.", {{"kind", "written"}},
          [transfers] { return transfers->blocks_written.load(); });
  counter("cairn_datanode_blocks_total", "Blocks moved, by what for.", {{"kind", "read"}},
          [transfers] { return transfers->blocks_read.load(); });
  counter("cairn_datanode_blocks_total", "Blocks moved, by what for.", {{"kind", "transferred"}},
          [transfers] { return transfers->blocks_transferred.load(); });
  counter("cairn_datanode_refused_total", "Transfers refused, by reason.", {{"reason", "busy"}},
          [transfers] { return transfers->refused_busy.load(); });
  counter("cairn_datanode_refused_total", "Transfers refused, by reason.", {{"reason", "bad_request"}},
          [transfers] { return transfers->bad_requests.load(); });
  counter("cairn_datanode_network_errors_total", "Pipelines that lost the next node.", {},
          [transfers] { return transfers->mirror_errors.load(); });
  counter("cairn_datanode_checksum_errors_total", "Packets that did not verify.", {},
          [transfers] { return transfers->checksum_errors.load(); });

  gauge("cairn_datanode_replicas", "Replicas in the map.", {}, [store] { return store->replica_count(); });
  gauge("cairn_reclaim_pending_blocks", "Replica files that wait to be unlinked.", {},
        [store] { return store->pending_deletion_blocks(); });
  gauge("cairn_reclaim_pending_bytes", "Bytes of replica files that wait to be unlinked.", {},
        [store] { return store->pending_deletion_bytes(); });
  gauge("cairn_reclaim_oldest_age_seconds", "How long the oldest of them has waited.", {},
        [store] { return absl::ToDoubleSeconds(store->oldest_pending_deletion()); });
  gauge("cairn_disk_queue_length", "Reads and writes that wait for a volume's disk thread.", {},
        [store] { return store->disk_queue().depth; });
  gauge("cairn_disk_queue_oldest_age_seconds", "How long the oldest of them has waited.", {},
        [store] { return absl::ToDoubleSeconds(store->disk_queue().oldest_age); });
  counter("cairn_scanner_replicas_total", "Replicas that were read again.", {}, [store] {
    uint64_t total = 0;
    for (const v1::StorageStatistics& storage : store->Statistics()) total += storage.scanned_replicas();
    return total;
  });
  counter("cairn_scanner_bytes_total", "Bytes of replicas that were read again.", {}, [store] {
    uint64_t total = 0;
    for (const v1::StorageStatistics& storage : store->Statistics()) total += storage.scanned_bytes();
    return total;
  });
  counter("cairn_scanner_errors_total", "Replicas that were found corrupt by that.", {}, [store] {
    uint64_t total = 0;
    for (const v1::StorageStatistics& storage : store->Statistics()) total += storage.scan_errors();
    return total;
  });
  gauge("cairn_scanner_oldest_round_seconds", "Since the volume that waits longest for it was read through; -1: one never was.", {},
        [store] {
          int64_t oldest_ms = 0;
          for (const v1::StorageStatistics& storage : store->Statistics()) {
            if (storage.last_scan_ms() < 0) return -1.0;
            oldest_ms = std::max(oldest_ms, storage.last_scan_ms());
          }
          return static_cast<double>(oldest_ms) / 1000;
        });
  counter("cairn_volume_moved_replicas_total", "Replicas that were moved from the fullest volume to the emptiest.", {},
          [store] { return store->volume_moves().replicas; });
  counter("cairn_volume_moved_bytes_total", "What those take up on a disk.", {}, [store] { return store->volume_moves().bytes; });
  counter("cairn_volume_moves_failed_total", "Replicas that could not be moved so.", {}, [store] { return store->volume_moves().failed; });
  gauge("cairn_volumes", "Data directories, by state.", {{"state", "failed"}}, [store] {
    size_t failed = 0;
    for (const v1::StorageStatistics& storage : store->Statistics()) failed += storage.state() == v1::FAILED ? 1 : 0;
    return failed;
  });
  gauge("cairn_volumes", "Data directories, by state.", {{"state", "healthy"}}, [store] {
    size_t healthy = 0;
    for (const v1::StorageStatistics& storage : store->Statistics()) healthy += storage.state() == v1::HEALTHY ? 1 : 0;
    return healthy;
  });
  gauge("cairn_volumes", "Data directories, by state.", {{"state", "slow"}}, [store] {
    const std::vector<BlockStore::DiskSpeed> disks = store->disk_speeds();
    return std::count_if(disks.begin(), disks.end(), [](const BlockStore::DiskSpeed& disk) { return disk.slow; });
  });
  const auto slowest = [store](absl::Duration BlockStore::DiskSpeed::* kind) {
    absl::Duration longest;
    for (const BlockStore::DiskSpeed& disk : store->disk_speeds()) longest = std::max(longest, disk.*kind);
    return absl::ToDoubleSeconds(longest);
  };
  gauge("cairn_slowest_disk_seconds", "How long one write or sync has lately taken, on the disk where it takes longest.",
        {{"kind", "write"}}, [slowest] { return slowest(&BlockStore::DiskSpeed::write); });
  gauge("cairn_slowest_disk_seconds", "How long one write or sync has lately taken, on the disk where it takes longest.",
        {{"kind", "sync"}}, [slowest] { return slowest(&BlockStore::DiskSpeed::sync); });
  const auto sum = [store](auto field) {
    double total = 0;
    for (const v1::StorageStatistics& storage : store->Statistics()) total += static_cast<double>((storage.*field)());
    return total;
  };
  gauge("cairn_capacity_bytes", "Space of all volumes, by state.", {{"state", "total"}},
        [sum] { return sum(&v1::StorageStatistics::capacity_bytes); });
  gauge("cairn_capacity_bytes", "Space of all volumes, by state.", {{"state", "used"}},
        [sum] { return sum(&v1::StorageStatistics::used_bytes); });
  gauge("cairn_capacity_bytes", "Space of all volumes, by state.", {{"state", "free"}},
        [sum] { return sum(&v1::StorageStatistics::remaining_bytes); });

  gauge("cairn_report_pending", "Events of the report stream that the NameNode has not made durable.", {},
        [events] { return events->kept(); });
  gauge("cairn_report_oldest_age_seconds", "Age of the oldest of them.", {},
        [events] { return absl::ToDoubleSeconds(events->OldestAge()); });
  gauge("cairn_heartbeat_interval_seconds", "Between the last two heartbeats.", {},
        [lanes] { return absl::ToDoubleSeconds(lanes->heartbeat().last_interval()); });
  counter("cairn_lane_overdue_steps_total", "Steps of a lane that took longer than 10 s; each is in the log with its stack.", {},
          [lanes] { return lanes->watchdog().overdue_steps(); });
  counter("cairn_heartbeats_total", "Heartbeats sent.", {}, [lanes] { return lanes->heartbeat().sent(); });
  gauge("cairn_command_queue_length", "Commands taken and not yet carried out.", {}, [lanes] { return lanes->command().queued(); });
  gauge("cairn_command_oldest_age_seconds", "How long the oldest of them has waited.", {},
        [lanes] { return absl::ToDoubleSeconds(lanes->command().oldest_age()); });
}

void DatanodeMetrics::AddPeers(metrics::Registry* registry, const TransferServer* transfer, const Clock* clock) {
  const PeerLatencies* const peers = &transfer->peers();
  callbacks_.push_back(registry->NewCallbackGauge("cairn_slow_peers", "Nodes downstream that take far longer than others.", {},
                                                  [peers, clock] { return static_cast<double>(peers->Slow(clock->Now()).size()); }));
  callbacks_.push_back(registry->NewCallbackGauge("cairn_datanode_slow", "1 while other DataNodes find this one slow.", {},
                                                  [transfer] { return transfer->slow() ? 1.0 : 0.0; }));
  for (const auto& [kind, name] : {std::pair{PeerLatency::Kind::kData, "data"}, std::pair{PeerLatency::Kind::kClose, "close"}}) {
    callbacks_.push_back(registry->NewCallbackGauge(
        "cairn_slowest_peer_seconds", "What the slowest node downstream adds to the acknowledgement of a packet, a median.",
        {{"packet", name}}, [peers, clock, wanted = kind] { return absl::ToDoubleSeconds(peers->Longest(wanted, clock->Now())); }));
  }
}

}  // namespace cairn::datanode
