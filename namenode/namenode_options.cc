#include "namenode/namenode_options.h"

#include "common/config.h"

namespace cairn::namenode {

NamenodeOptions NamenodeOptionsFrom(const Config& config) {
  NamenodeOptions options;
  const std::vector<std::string> directories = config.GetDirectories("dfs.namenode.name.dir");
  if (!directories.empty()) options.directory = directories.front();
  options.store.block_cache_bytes = config.GetBytes("cairn.namenode.block-cache");
  options.store.row_cache_bytes = config.GetBytes("cairn.namenode.row-cache");
  options.writer.max_batch = static_cast<size_t>(config.GetInt("cairn.namenode.batch.max-mutations"));
  options.writer.gather = config.GetDuration("cairn.namenode.batch.gather");
  options.writer.max_queued = static_cast<size_t>(config.GetInt("cairn.namenode.queue.max-mutations"));

  options.replicas.heartbeat_interval = config.GetDuration("dfs.heartbeat.interval");
  options.replicas.stale_after = config.GetDuration("dfs.namenode.stale.datanode.interval");
  options.replicas.dead_after = config.GetDuration("cairn.namenode.dead-interval");
  options.replicas.acknowledged_grace = config.GetDuration("cairn.namenode.confirm-interval");
  options.replicas.repair_timeout = config.GetDuration("dfs.namenode.reconstruction.pending.timeout-sec");
  options.replicas.recovery_round = config.GetDuration("cairn.namenode.block-recovery.round");
  options.replicas.max_repairs_per_node = static_cast<size_t>(config.GetInt("dfs.namenode.replication.max-streams"));
  options.replicas.maintenance_minimum = static_cast<uint32_t>(config.GetInt("dfs.namenode.maintenance.replication.min"));
  options.replicas.drain_interval = config.GetDuration("dfs.namenode.decommission.interval");
  options.rack_script.program = config.GetString("net.topology.script.file.name");
  options.rack_script.most_arguments = static_cast<size_t>(config.GetInt("net.topology.script.number.args"));
  options.safe_mode_at_start = config.GetBool("cairn.namenode.safemode.at-start");
  options.safe_mode.extension = config.GetDuration("dfs.namenode.safemode.extension");
  options.replicas.balancer_bytes_per_second = config.GetBytes("dfs.datanode.balance.bandwidthPerSec");
  options.replicas.balancer_moves_per_node = static_cast<size_t>(config.GetInt("dfs.datanode.balance.max.concurrent.moves"));
  options.replicas.slow_nodes.avoid = config.GetBool("dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled");
  options.replicas.slow_nodes.most = static_cast<size_t>(config.GetInt("dfs.namenode.max.slowpeer.collect.nodes"));
  options.replicas.slow_nodes.reporters = static_cast<size_t>(config.GetInt("cairn.namenode.slow-node.reporters"));
  options.racks_file = config.GetString("net.topology.table.file.name");
  options.hosts_file = config.GetString("dfs.hosts");
  options.exclude_file = config.GetString("dfs.hosts.exclude");
  options.replicas.min_replication = static_cast<uint32_t>(config.GetInt("dfs.namenode.replication.min"));

  CallLimits& limits = options.clients.limits;
  limits.max_component_bytes = static_cast<uint64_t>(config.GetInt("dfs.namenode.fs-limits.max-component-length"));
  limits.max_path_bytes = static_cast<uint64_t>(config.GetInt("cairn.namenode.fs-limits.max-path-length"));
  limits.max_depth = static_cast<uint64_t>(config.GetInt("cairn.namenode.fs-limits.max-path-depth"));
  limits.forbidden_characters = config.GetString("cairn.namenode.fs-limits.forbidden-characters");
  limits.max_directory_entries = static_cast<uint64_t>(config.GetInt("dfs.namenode.fs-limits.max-directory-items"));
  limits.min_replication = options.replicas.min_replication;
  limits.max_replication = static_cast<uint32_t>(config.GetInt("dfs.replication.max"));
  limits.min_block_size_bytes = config.GetBytes("dfs.namenode.fs-limits.min-block-size");
  limits.max_block_size_bytes = config.GetBytes("cairn.block.max-size");
  limits.max_blocks_per_file = static_cast<uint64_t>(config.GetInt("dfs.namenode.fs-limits.max-blocks-per-file"));
  limits.max_xattrs = static_cast<uint64_t>(config.GetInt("dfs.namenode.fs-limits.max-xattrs-per-inode"));
  limits.max_xattr_bytes = static_cast<uint64_t>(config.GetInt("dfs.namenode.fs-limits.max-xattr-size"));
  limits.permissions_enabled = config.GetBool("dfs.permissions.enabled");
  options.clients.supergroup = config.GetString("dfs.permissions.superusergroup");
  options.group_overrides = config.GetString("hadoop.user.group.static.mapping.overrides");
  options.groups.keep = config.GetDuration("hadoop.security.groups.cache.secs");
  options.groups.keep_none = config.GetDuration("hadoop.security.groups.negative-cache.secs");
  limits.lease_soft_limit = config.GetDuration("cairn.namenode.lease-soft-limit");
  options.clients.default_block_size_bytes = config.GetBytes("dfs.blocksize");
  options.clients.default_replication = static_cast<uint32_t>(config.GetInt("dfs.replication"));
  options.clients.bytes_per_checksum = static_cast<uint32_t>(config.GetInt("dfs.bytes-per-checksum"));
  options.clients.token_lifetime = config.GetDuration("cairn.block.token.lifetime");
  options.clients.list_limit = static_cast<uint32_t>(config.GetInt("dfs.ls.limit"));
  options.clients.trash_interval = config.GetDuration("fs.trash.interval");
  options.trash.interval = options.clients.trash_interval;
  options.trash.checkpoint_interval = config.GetDuration("fs.trash.checkpoint.interval");
  options.reclaimer.entries_per_step = static_cast<uint32_t>(config.GetInt("cairn.namenode.reclaim.batch"));
  options.reclaimer.step_time = config.GetDuration("cairn.namenode.reclaim.step-time");
  options.reclaimer.yielding.share = static_cast<double>(config.GetInt("cairn.namenode.reclaim.busy-percent")) / 100;
  options.reclaimer.yielding.patience = config.GetDuration("cairn.namenode.reclaim.patience");
  options.disk.reserved_bytes = config.GetBytes("dfs.namenode.resource.du.reserved");
  options.disk_reserve_bytes = config.GetBytes("cairn.namenode.disk-reserve");
  if (config.GetBool("cairn.namenode.audit.enabled")) {
    options.audit.file = config.GetString("cairn.namenode.audit.file");
    const std::string log_directory = config.GetString("cairn.log.dir");
    if (options.audit.file.empty() && !log_directory.empty()) options.audit.file = log_directory + "/cairn-audit.log";
  }
  options.audit.max_file_bytes = config.GetBytes("cairn.namenode.audit.file.size");
  options.audit.max_files = static_cast<size_t>(config.GetInt("cairn.namenode.audit.file.count"));
  options.checkpoints.kept = static_cast<size_t>(config.GetInt("dfs.namenode.num.checkpoints.retained"));
  options.disk.interval = config.GetDuration("dfs.namenode.resource.check.interval");
  options.leases.hard_limit = config.GetDuration("dfs.namenode.lease-hard-limit-sec");
  return options;
}

}  // namespace cairn::namenode
