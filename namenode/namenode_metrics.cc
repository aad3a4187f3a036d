#include "namenode/namenode_metrics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "common/api/client_namenode.h"

namespace cairn::namenode {

NamenodeMetrics::NamenodeMetrics(metrics::Registry* registry, const NamespaceWriter* writer, const DiskWatch* disk,
                                 const Reclaimer* reclaimer, const LeaseMonitor* leases, ReplicaPlane* replicas, const MetaStore* store) {
  const auto gauge = [&](const std::string& name, const std::string& help, const metrics::Labels& labels, auto value) {
    callbacks_.push_back(registry->NewCallbackGauge(name, help, labels, [value] { return static_cast<double>(value()); }));
  };
  const auto counter = [&](const std::string& name, const std::string& help, const metrics::Labels& labels, auto value) {
    callbacks_.push_back(registry->NewCallbackCounter(name, help, labels, [value] { return static_cast<double>(value()); }));
  };

  sync_seconds_ = registry->NewHistogram("cairn_journal_sync_seconds", "Writing and syncing one batch.", metrics::SyncBuckets());
  batch_size_ = registry->NewHistogram("cairn_journal_batch_size", "Mutations made durable by one sync.", metrics::CountBuckets());
  gauge("cairn_journal_pending", "Mutations that wait for the writer.", {}, [writer] { return writer->stats().queued; });
  gauge("cairn_journal_oldest_age_seconds", "How long the oldest of them has waited.", {},
        [writer] { return absl::ToDoubleSeconds(writer->stats().oldest_age); });
  counter("cairn_journal_batches_total", "Batches committed.", {}, [writer] { return writer->stats().batches; });
  gauge("cairn_read_only", "1 while no changes are taken.", {}, [writer] { return writer->read_only() ? 1 : 0; });
  for (const auto& [state, name] : {std::pair{DiskWatch::State::kLowSpace, "low_space"}, std::pair{DiskWatch::State::kFull, "full"},
                                    std::pair{DiskWatch::State::kFailed, "failed"}}) {
    gauge("cairn_read_only_reason", "1 for the reason why no changes are taken.", {{"reason", name}},
          [disk, wanted = state] { return disk->stats().state == wanted ? 1 : 0; });
  }
  gauge("cairn_name_directory_available_bytes", "Free space of the namespace's disk.", {},
        [disk] { return disk->stats().available_bytes; });
  counter("cairn_disk_recoveries_total", "Times the namespace was opened again after its disk had been full.", {},
          [disk] { return disk->stats().recoveries; });

#define CAIRN_CALL_SERIES(Name)                                                                                                            \
  calls_[#Name] = {registry->NewCounter("cairn_namespace_ops_total", "Calls of clients.", {{"op", #Name}, {"result", "ok"}}),              \
                   registry->NewCounter("cairn_namespace_ops_total", "Calls of clients.", {{"op", #Name}, {"result", "error"}}),           \
                   registry->NewHistogram("cairn_rpc_duration_seconds", "From a call's arrival to its answer.", metrics::LatencyBuckets(), \
                                          {{"method", #Name}})};
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_CALL_SERIES)
#undef CAIRN_CALL_SERIES

  const google::protobuf::OneofDescriptor* const ops = v1::Mutation::descriptor()->FindOneofByName("op");
  for (int i = 0; i < ops->field_count(); ++i)
    rows_[ops->field(i)->number()] =
        registry->NewCounter("cairn_namespace_rows_total", "Rows written and deleted, by kind of change.", {{"op", ops->field(i)->name()}});

  gauge("cairn_reclaim_works", "Deleted subtrees that are still to be freed.", {}, [reclaimer] { return reclaimer->stats().works; });
  gauge("cairn_reclaim_left_inodes", "Files and directories in them.", {}, [reclaimer] { return reclaimer->stats().left_inodes; });
  gauge("cairn_reclaim_left_bytes", "Bytes in them, of one replica.", {}, [reclaimer] { return reclaimer->stats().left_bytes; });
  gauge("cairn_reclaim_entries_per_second", "Inodes and blocks freed, over the last 10 s.", {},
        [reclaimer] { return reclaimer->stats().entries_per_second; });
  gauge("cairn_reclaim_paused", "1 while an operator has paused it.", {}, [reclaimer] { return reclaimer->stats().paused ? 1 : 0; });
  counter("cairn_reclaim_entries_total", "Inodes and blocks freed.", {}, [reclaimer] { return reclaimer->stats().entries_freed; });
  gauge("cairn_reclaim_oldest_age_seconds", "Age of the oldest of them.", {},
        [reclaimer] { return absl::ToDoubleSeconds(reclaimer->stats().oldest_age); });
  counter("cairn_reclaim_blocks_total", "Blocks freed.", {}, [reclaimer] { return reclaimer->stats().blocks_freed; });
  gauge("cairn_leases", "Files being written, as of the last walk.", {}, [leases] { return leases->stats().leases; });
  gauge("cairn_leases_recovering", "Files whose last block is being recovered, as of the last walk.", {},
        [leases] { return leases->stats().recovering; });
  counter("cairn_leases_expired_total", "Files taken from writers that fell silent.", {}, [leases] { return leases->stats().expired; });
  counter("cairn_leases_deleted_total", "Of these: deleted, as their writers had wanted.", {},
          [leases] { return leases->stats().deleted; });

  const auto figures = [replicas] { return replicas->figures(); };
  const std::string blocks_help = "Blocks by trouble.";
  gauge("cairn_blocks", blocks_help, {{"state", "under_replicated"}}, [figures] { return figures().under_replicated_blocks; });
  gauge("cairn_blocks", blocks_help, {{"state", "at_risk"}}, [figures] { return figures().at_risk_blocks; });
  gauge("cairn_blocks", blocks_help, {{"state", "recovering"}}, [figures] { return figures().recovering_blocks; });
  gauge("cairn_blocks", blocks_help, {{"state", "missing"}}, [figures] { return figures().missing_blocks; });
  gauge("cairn_blocks", blocks_help, {{"state", "misreplicated"}}, [figures] { return figures().mis_replicated_blocks; });
  gauge("cairn_blocks", blocks_help, {{"state", "corrupt"}}, [figures] { return figures().corrupt_replicas; });
  gauge("cairn_blocks", blocks_help, {{"state", "quarantined"}}, [figures] { return figures().quarantined_blocks; });
  gauge("cairn_unknown_replicas_kept", "1 after a rollback of the namespace, until an operator confirms that what it does not know may go.",
        {}, [figures] { return figures().unknown_replicas_kept ? 1 : 0; });
  gauge("cairn_repair_inflight", "Repairs under way.", {}, [figures] { return figures().repairs_running; });
  gauge("cairn_repair_oldest_age_seconds", "Age of the oldest block that waits for repair.", {},
        [figures] { return absl::ToDoubleSeconds(figures().oldest_repair); });
  for (size_t i = 0; i < kRejections; ++i) {
    std::string reason = NameOf(static_cast<Rejection>(i));
    absl::AsciiStrToLower(&reason);
    counter("cairn_placement_rejected_total", "Nodes that a block could not be placed on, counted each time.", {{"reason", reason}},
            [replicas, i] { return replicas->placement_rejections()[i]; });
  }
  for (const auto& [state, name] :
       {std::pair{&ReplicaPlane::Figures::repairs_waiting, "waiting"}, std::pair{&ReplicaPlane::Figures::repairs_running, "in_flight"},
        std::pair{&ReplicaPlane::Figures::repairs_timed_out, "timed_out"},
        std::pair{&ReplicaPlane::Figures::repairs_parked_no_source, "no_source"},
        std::pair{&ReplicaPlane::Figures::repairs_parked_no_target, "no_target"}}) {
    gauge("cairn_repairs", "Under-replicated blocks by how their repair stands.", {{"state", name}},
          [figures, member = state] { return figures().*member; });
  }
  gauge("cairn_balancer_moves", "Replicas that the balancer moves now.", {}, [figures] { return figures().moves_in_flight; });
  counter("cairn_balancer_moved_replicas_total", "Replicas that the balancer has moved.", {},
          [figures] { return figures().moved_replicas; });
  counter("cairn_balancer_moved_bytes_total", "Bytes in them.", {}, [figures] { return figures().moved_bytes; });
  counter("cairn_balancer_failed_moves_total", "Moves that came to nothing.", {}, [figures] { return figures().failed_moves; });
  gauge("cairn_reclaim_pending_blocks", "Replicas that DataNodes are to delete, told or not.", {},
        [figures] { return figures().invalidations_waiting + figures().invalidations_told; });
  gauge("cairn_invalidation_oldest_age_seconds", "Age of the oldest replica that waits to be deleted.", {},
        [figures] { return absl::ToDoubleSeconds(figures().oldest_invalidation); });
  const auto count_nodes = [replicas](const auto& counts) {
    v1::ClusterReportResponse report;
    replicas->FillReport(&report);
    return std::count_if(report.datanodes().begin(), report.datanodes().end(), counts);
  };
  for (const auto& [state, name] : {std::pair{v1::LIVE, "live"}, std::pair{v1::STALE, "stale"}, std::pair{v1::DEAD, "dead"}}) {
    gauge("cairn_datanodes", "DataNodes by state.", {{"state", name}}, [count_nodes, wanted = state] {
      return count_nodes([wanted](const v1::DatanodeReport& node) { return node.state() == wanted; });
    });
  }
  gauge("cairn_datanodes_slow", "DataNodes that others find slow.", {},
        [count_nodes] { return count_nodes([](const v1::DatanodeReport& node) { return node.slow(); }); });
  counter("cairn_namespace_tombstones_skipped_total", "Deleted rows that scans of the namespace had to step over.", {},
          [store] { return store->tombstones_skipped(); });
  gauge("cairn_inodes", "Files and directories, an estimate.", {}, [store] { return store->EstimatedRows(Family::kInode); });
  gauge("cairn_blocks_total_count", "Blocks, an estimate.", {}, [store] { return store->EstimatedRows(Family::kBlock); });
}

void NamenodeMetrics::AddAuditLog(metrics::Registry* registry, const AuditLog* log) {
  callbacks_.push_back(registry->NewCallbackCounter("cairn_audit_lines_total", "Lines of the audit log.", {{"result", "written"}},
                                                    [log] { return static_cast<double>(log->written()); }));
  callbacks_.push_back(registry->NewCallbackCounter("cairn_audit_lines_total", "Lines of the audit log.", {{"result", "dropped"}},
                                                    [log] { return static_cast<double>(log->dropped()); }));
}

NamespaceWriter::CommitObserver NamenodeMetrics::CommitObserver() {
  return [sync = sync_seconds_, size = batch_size_](const NamespaceWriter::CommitSample& sample) mutable {
    sync.Observe(sample.commit_time);
    size.Observe(static_cast<double>(sample.mutations));
  };
}

NamespaceWriter::Observer NamenodeMetrics::RowsObserver() {
  return [rows = rows_](const std::vector<NamespaceWriter::Applied>& batch) mutable {
    for (const NamespaceWriter::Applied& applied : batch)
      if (const auto found = rows.find(applied.mutation->op_case()); found != rows.end())
        found->second.Increment(static_cast<double>(applied.rows));
  };
}

ClientService::CallObserver NamenodeMetrics::CallObserver() {
  return [calls = calls_](std::string_view call, absl::Duration took, const absl::Status& status) mutable {
    const auto found = calls.find(call);
    if (found == calls.end()) return;
    (status.ok() ? found->second.ok : found->second.failed).Increment();
    found->second.latency.Observe(took);
  };
}

}  // namespace cairn::namenode
