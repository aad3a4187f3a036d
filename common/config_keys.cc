// The table of configuration keys. See common/config.h; tests/common/config_test.cc compares it with deploy/config/cairn.yaml.

#include <array>
#include <limits>

#include <fmt/format.h>

#include "common/api/balance.h"
#include "common/config.h"

namespace cairn {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// Name, type, default, unit, least, most, meaning, part, and true if it is reloadable. Durations' limits are in milliseconds, sizes' in
// bytes.
constexpr auto kKeys = std::to_array<ConfigKey>({
    // Files.
    {"dfs.blocksize", ValueType::kBytes, "128m", "", 1048576, kMost,
     "Block size of new files that do not ask for one. At most cairn.block.max-size.", "Files", true},
    {"dfs.replication", ValueType::kInt, "3", "", 1, 512, "Replicas of new files that do not ask for a number.", "Files", true},
    {"dfs.replication.max", ValueType::kInt, "512", "", 1, 32767, "Most replicas a file may ask for.", "Files", true},
    {"dfs.bytes-per-checksum", ValueType::kInt, "512", "bytes", 64, 1048576, "Bytes that one checksum covers.", "Files"},
    {"dfs.checksum.type", ValueType::kChoice, "CRC32C", "CRC32C|CRC32", 0, kMost, "Checksum of new files.", "Files"},
    {"cairn.block.max-size", ValueType::kBytes, "1g", "", 1048576, kMost,
     "Largest block; every replica file lays out room for its checksums.", "Files"},
    {"cairn.close.sync", ValueType::kChoice, "data", "none|data", 0, kMost,
     "When a closed file survives power loss of all its DataNodes: at once (data; HDFS: only when the kernels write back), "
     "or as HDFS (none).",
     "Files"},
    {"fs.permissions.umask-mode", ValueType::kMode, "022", "octal", 0, kMost, "Bits taken from the mode of new files and directories.",
     "Files"},
    {"fs.trash.interval", ValueType::kDuration, "0", "m", 0, kMost,
     "How long what -rm removes stays in the user's trash; 0: there is none. The NameNode's value, unless it is 0, goes before a client's.",
     "Files", true},
    {"fs.trash.checkpoint.interval", ValueType::kDuration, "0", "m", 0, kMost,
     "How often the NameNode looks after the trash; 0: as fs.trash.interval, which is also the most.", "Files", true},
    // Client.
    {"fs.defaultFS", ValueType::kString, "", "", 0, kMost, "File system of paths without a scheme: cairn://host:port, or hdfs://host:port.",
     "Client"},
    {"cairn.client.packet.size", ValueType::kBytes, "512k", "", 65536, 4194304,
     "Data of one packet of a writer (HDFS: dfs.client-write-packet-size, 64 KiB).", "Client"},
    {"cairn.client.window", ValueType::kBytes, "8m", "", 65536, 1073741824, "Unacknowledged bytes of one writer.", "Client"},
    {"cairn.client.retry.budget", ValueType::kDuration, "2m", "s", 0, kMost, "How long a call waits for a NameNode that does not answer.",
     "Client"},
    {"cairn.client.call.timeout", ValueType::kDuration, "30s", "s", 1, kMost, "One try of one call.", "Client"},
    {"cairn.client.connect.timeout", ValueType::kDuration, "5s", "s", 1, kMost, "Setting up a connection.", "Client"},
    {"cairn.client.slots", ValueType::kInt, "64", "", 1, 1024,
     "Changes that one client may have under way; further ones queue in the client.", "Client"},
    {"dfs.client.socket-timeout", ValueType::kDuration, "60s", "ms", 1, kMost,
     "Silence on a data connection after which it counts as broken.", "Client"},
    {"dfs.client.mark.slownode.as.badnode.threshold", ValueType::kInt, "10", "", 0, kMost,
     "A writer goes on without a node that has said of itself in so many packets running that it is slow, while two others are left. 0: "
     "never. DataNodes say so with dfs.pipeline.slownode.",
     "Client"},
    {"dfs.client.lease.renew.interval", ValueType::kDuration, "20s", "s", 1, kMost, "How often the leases of open files are renewed.",
     "Client"},
    // NameNode: directories and addresses.
    {"dfs.namenode.name.dir", ValueType::kList, "/var/lib/cairn/namenode", "", 0, kMost,
     "Directory of the namespace. One; made by cairn-namenode --format.", "NameNode: directories and addresses"},
    {"cairn.namenode.grpc-address", ValueType::kAddress, "localhost:8021", "host:port", 0, kMost,
     "Where native clients and DataNodes find the NameNode.", "NameNode: directories and addresses"},
    {"cairn.namenode.grpc-bind-address", ValueType::kAddress, "0.0.0.0:8021", "host:port", 0, kMost, "Where the NameNode listens for them.",
     "NameNode: directories and addresses"},
    {"dfs.namenode.rpc-address", ValueType::kAddress, "localhost:8020", "host:port", 0, kMost,
     "Where stock HDFS clients find the NameNode.", "NameNode: directories and addresses"},
    {"dfs.namenode.rpc-bind-host", ValueType::kString, "0.0.0.0", "", 0, kMost, "Address the NameNode listens on for them, at that port.",
     "NameNode: directories and addresses"},
    {"ipc.maximum.data.length", ValueType::kBytes, "2097152", "", 65536, 2147483647,
     "Largest request that the NameNode takes from stock HDFS clients.", "NameNode: directories and addresses"},
    {"dfs.namenode.http-address", ValueType::kAddress, "0.0.0.0:9870", "host:port", 0, kMost,
     "Where the NameNode serves /healthz, /readyz and /metrics; what others use to find it, too.", "NameNode: directories and addresses"},
    {"dfs.namenode.http-bind-host", ValueType::kString, "", "", 0, kMost, "Address it listens on instead of that host.",
     "NameNode: directories and addresses"},
    {"dfs.namenode.resource.du.reserved", ValueType::kBytes, "104857600", "", 0, kMost,
     "Free space of the namespace's disk below which no changes are taken; above it again, they are.",
     "NameNode: directories and addresses", true},
    {"cairn.namenode.disk-reserve", ValueType::kBytes, "16m", "", 0, kMost,
     "Space kept back on that disk, which a NameNode that starts on a full disk gives up, to serve reads. 0: none.",
     "NameNode: directories and addresses"},
    {"dfs.namenode.resource.check.interval", ValueType::kDuration, "5000", "ms", 10, kMost, "How often that is looked at.",
     "NameNode: directories and addresses"},
    {"dfs.namenode.num.checkpoints.retained", ValueType::kInt, "2", "", 1, 1000, "Checkpoints of the namespace kept beside it.",
     "NameNode: directories and addresses"},
    // NameNode: nodes and blocks.
    {"dfs.namenode.replication.min", ValueType::kInt, "1", "", 1, 512,
     "Acknowledged replicas that a block needs before its file can be closed.", "NameNode: nodes and blocks"},
    {"dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled", ValueType::kBool, "true", "", 0, kMost,
     "Whether nodes that others find slow are chosen for blocks, and read, only when nothing else is left (HDFS: false, and never then).",
     "NameNode: nodes and blocks", true},
    {"dfs.namenode.max.slowpeer.collect.nodes", ValueType::kInt, "5", "", 0, 100000,
     "So many nodes are held slow at most, and no more than a quarter of those that live, or one.", "NameNode: nodes and blocks", true},
    {"cairn.namenode.slow-node.reporters", ValueType::kInt, "2", "", 1, 1000, "So many others have to find a node slow.",
     "NameNode: nodes and blocks", true},
    {"dfs.heartbeat.interval", ValueType::kDuration, "3s", "s", 100, kMost, "How often a DataNode says that it lives.",
     "NameNode: nodes and blocks"},
    {"dfs.namenode.stale.datanode.interval", ValueType::kDuration, "15s", "ms", 100, kMost,
     "Silence after which a node is chosen last (HDFS: 30 s).", "NameNode: nodes and blocks"},
    {"cairn.namenode.dead-interval", ValueType::kDuration, "60s", "s", 100, kMost,
     "Silence after which its replicas no longer count and are made again elsewhere (HDFS: 10.5 minutes).", "NameNode: nodes and blocks"},
    {"cairn.namenode.confirm-interval", ValueType::kDuration, "60s", "s", 100, kMost,
     "How long a closed block may rest on the client's word before its DataNodes are asked.", "NameNode: nodes and blocks"},
    {"dfs.namenode.replication.max-streams", ValueType::kInt, "2", "", 1, 1000, "Repair copies that one DataNode makes at once.",
     "NameNode: nodes and blocks"},
    {"dfs.namenode.reconstruction.pending.timeout-sec", ValueType::kDuration, "300s", "s", 1000, kMost,
     "After which a repair copy that was not reported is ordered again.", "NameNode: nodes and blocks"},
    {"dfs.hosts", ValueType::kString, "", "", 0, kMost,
     "File of the DataNodes that may register, a host or host:port a word; or a JSON array of them with their states. Empty: all may.",
     "NameNode: nodes and blocks"},
    {"dfs.hosts.exclude", ValueType::kString, "", "", 0, kMost,
     "File of the DataNodes that are decommissioned. Both are read at the start and by dfsadmin -refreshNodes.",
     "NameNode: nodes and blocks"},
    {"net.topology.table.file.name", ValueType::kString, "", "", 0, kMost,
     "File of the racks of hosts: a host and a rack, as /rack-1, a line; others are on /default-rack. Empty: as each DataNode says. Read "
     "as "
     "dfs.hosts is.",
     "NameNode: nodes and blocks"},
    {"net.topology.script.file.name", ValueType::kString, "", "", 0, kMost,
     "Program that is asked for the racks of hosts that the table does not name: hosts for its arguments, a rack a line in its answer. "
     "Until it has answered, and when it fails, they are on /default-rack.",
     "NameNode: nodes and blocks"},
    {"net.topology.script.number.args", ValueType::kInt, "100", "", 1, 10000, "Hosts that it is asked for at once, at most.",
     "NameNode: nodes and blocks"},
    {"cairn.namenode.safemode.at-start", ValueType::kBool, "false", "", 0, kMost,
     "Whether a NameNode begins in safe mode, until the DataNodes that it knows of have said what they have. Otherwise it serves at once.",
     "NameNode: nodes and blocks"},
    {"dfs.namenode.safemode.extension", ValueType::kDuration, "30000", "ms", 0, kMost, "How long that safe mode goes on after they have.",
     "NameNode: nodes and blocks"},
    {"dfs.namenode.decommission.interval", ValueType::kDuration, "5s", "s", 100, kMost,
     "Pause between looks at what a node that is decommissioned still holds (HDFS: 30 s).", "NameNode: nodes and blocks"},
    {"dfs.namenode.maintenance.replication.min", ValueType::kInt, "1", "", 0, 512,
     "Live replicas that a block needs while others are in maintenance.", "NameNode: nodes and blocks"},
    {"cairn.namenode.block-recovery.round", ValueType::kDuration, "10s", "s", 1000, kMost,
     "What one round of the recovery of a block may take; each further one twice as long, up to 5 minutes.", "NameNode: nodes and blocks"},
    {"dfs.block.invalidate.limit", ValueType::kInt, "1000", "", 1, 100000, "Replicas in one order to delete.",
     "NameNode: nodes and blocks"},
    {"cairn.block.token.lifetime", ValueType::kDuration, "10h", "m", 60000, kMost, "How long a client may use the locations it was given.",
     "NameNode: nodes and blocks"},
    {"cairn.block.token.empty", ValueType::kChoice, "accept", "accept|refuse", 0, kMost,
     "What a DataNode does with stock HDFS clients' requests, which bear no block token.", "NameNode: nodes and blocks"},
    // NameNode: namespace.
    {"dfs.namenode.lease-hard-limit-sec", ValueType::kDuration, "1200s", "s", 1000, kMost,
     "Silence of a writer after which the NameNode closes its files.", "NameNode: namespace", true},
    {"cairn.namenode.lease-soft-limit", ValueType::kDuration, "60s", "s", 1000, kMost,
     "Silence of a writer after which another may take its file over.", "NameNode: namespace", true},
    {"dfs.namenode.fs-limits.min-block-size", ValueType::kBytes, "1m", "", 1, kMost, "Smallest block size a file may ask for.",
     "NameNode: namespace", true},
    {"dfs.namenode.fs-limits.max-blocks-per-file", ValueType::kInt, "10000", "", 1, kMost, "Blocks of one file.", "NameNode: namespace",
     true},
    {"dfs.namenode.fs-limits.max-component-length", ValueType::kInt, "255", "bytes", 1, 8000, "Length of one name.", "NameNode: namespace",
     true},
    {"dfs.namenode.fs-limits.max-directory-items", ValueType::kInt, "16777216", "", 1, kMost, "Entries of one directory (HDFS: 1 M).",
     "NameNode: namespace", true},
    {"cairn.namenode.fs-limits.max-path-length", ValueType::kInt, "8000", "bytes", 1, 65535, "Length of one path.", "NameNode: namespace",
     true},
    {"cairn.namenode.fs-limits.max-path-depth", ValueType::kInt, "1000", "", 1, 10000, "Names in one path.", "NameNode: namespace", true},
    {"dfs.namenode.fs-limits.max-xattrs-per-inode", ValueType::kInt, "32", "", 0, 32, "Extended attributes of one file or directory.",
     "NameNode: namespace", true},
    {"dfs.namenode.fs-limits.max-xattr-size", ValueType::kInt, "16384", "bytes", 1, 32768, "Name and value of one of them.",
     "NameNode: namespace", true},
    {"cairn.namenode.fs-limits.forbidden-characters", ValueType::kString, "", "", 0, kMost,
     "Characters that no new name may hold, beside / and NUL; what is there stays in use.", "NameNode: namespace", true},
    {"dfs.ls.limit", ValueType::kInt, "1000", "", 1, 10000, "Most entries in one answer of a listing; further ones are asked for.",
     "NameNode: namespace", true},
    {"dfs.permissions.enabled", ValueType::kBool, "true", "", 0, kMost,
     "Whether rights are checked. Modes and owners are kept either way, and only owners and superusers change them.", "NameNode: namespace",
     true},
    {"dfs.permissions.superusergroup", ValueType::kString, "supergroup", "", 0, kMost,
     "Group whose members may do everything, beside the user that runs the NameNode.", "NameNode: namespace", true},
    {"hadoop.user.group.static.mapping.overrides", ValueType::kString, "dr.who=;", "", 0, kMost,
     "Groups of users that the system is not asked for: user1=group1,group2;user2=.", "NameNode: namespace"},
    {"hadoop.security.groups.cache.secs", ValueType::kDuration, "300s", "s", 0, kMost,
     "How long the system's word on a user's groups is believed.", "NameNode: namespace"},
    {"hadoop.security.groups.negative-cache.secs", ValueType::kDuration, "30s", "s", 0, kMost, "The same for a user it does not know.",
     "NameNode: namespace"},
    {"cairn.namenode.queue.max-mutations", ValueType::kInt, "16384", "", 1, 1000000,
     "Changes that wait for the writer; further ones are told to come again.", "NameNode: namespace"},
    {"cairn.namenode.batch.max-mutations", ValueType::kInt, "256", "", 1, 10000, "Changes made durable by one sync.",
     "NameNode: namespace"},
    {"cairn.namenode.batch.gather", ValueType::kDuration, "1ms", "ms", 0, kMost,
     "Longest wait of a change for others to share its sync, while several callers are at work.", "NameNode: namespace", true},
    {"cairn.namenode.block-cache", ValueType::kBytes, "256m", "", 8388608, kMost, "Memory for rows of the namespace read from disk.",
     "NameNode: namespace"},
    {"cairn.namenode.reclaim.batch", ValueType::kInt, "1000", "", 1, 1024,
     "Most files, directories and blocks of deleted trees freed by one change of the namespace.", "NameNode: namespace"},
    {"cairn.namenode.reclaim.step-time", ValueType::kDuration, "2ms", "ms", 0, kMost,
     "How long the writer may spend on one such change; while others use it, half of that.", "NameNode: namespace"},
    {"cairn.namenode.reclaim.busy-percent", ValueType::kInt, "3", "", 1, 100,
     "Share of the writer's time that such changes take while others use it. What follows from a freed block, on the DataNodes too, costs "
     "several times as much.",
     "NameNode: namespace"},
    {"cairn.namenode.reclaim.patience", ValueType::kDuration, "2m", "s", 0, kMost,
     "Trees that have been waiting for longer than this are freed with twice that share, and again for each further one, up to a quarter "
     "of the time.",
     "NameNode: namespace"},
    {"cairn.namenode.row-cache", ValueType::kBytes, "64m", "", 0, kMost,
     "Memory for the rows of it that were used last, in front of the block cache: directories above all.", "NameNode: namespace"},
    // DataNode: directories and addresses.
    {"dfs.datanode.data.dir", ValueType::kList, "/var/lib/cairn/datanode", "", 0, kMost,
     "Directories of replicas, one a disk. A storage type such as [SSD] before one is allowed and ignored.",
     "DataNode: directories and addresses", true},
    {"dfs.datanode.du.reserved", ValueType::kBytes, "0", "", 0, kMost, "Bytes of each disk that are left to others.",
     "DataNode: directories and addresses"},
    {"dfs.datanode.failed.volumes.tolerated", ValueType::kInt, "0", "", 0, 1000, "Disks that may fail before the DataNode gives up.",
     "DataNode: directories and addresses"},
    {"dfs.datanode.max.slowdisks.to.exclude", ValueType::kInt, "1", "", 0, 1000,
     "So many disks get no new replicas while their writes or syncs take five times as long as the others', and 20 ms; half of the disks "
     "always do. 0, as in HDFS: none is left out.",
     "DataNode: directories and addresses"},
    {"dfs.datanode.hostname", ValueType::kString, "", "", 0, kMost,
     "Name that others find this node by; empty: the machine's. The addresses below are where it listens.",
     "DataNode: directories and addresses"},
    {"dfs.datanode.address", ValueType::kAddress, "0.0.0.0:9866", "host:port", 0, kMost, "Data transfer.",
     "DataNode: directories and addresses"},
    {"dfs.datanode.http.address", ValueType::kAddress, "0.0.0.0:9864", "host:port", 0, kMost, "/healthz, /readyz, /metrics.",
     "DataNode: directories and addresses"},
    {"cairn.datanode.grpc-bind-address", ValueType::kAddress, "0.0.0.0:9868", "host:port", 0, kMost,
     "Administration and recovery between DataNodes.", "DataNode: directories and addresses"},
    {"cairn.datanode.advertised-address", ValueType::kAddress, "", "host:port", 0, kMost,
     "Data transfer as others reach it; empty: dfs.datanode.hostname and the port above.", "DataNode: directories and addresses"},
    {"cairn.datanode.http-advertised-address", ValueType::kAddress, "", "host:port", 0, kMost, "The same for HTTP.",
     "DataNode: directories and addresses"},
    {"cairn.datanode.grpc-advertised-address", ValueType::kAddress, "", "host:port", 0, kMost, "The same for gRPC.",
     "DataNode: directories and addresses"},
    // DataNode: limits.
    {"cairn.datanode.replicas.max", ValueType::kInt, "8000000", "", 1, kMost,
     "Replicas that the node keeps in memory, at most 64 bytes each; beyond it the node reports itself full.", "DataNode: limits"},
    {"dfs.datanode.max.transfer.threads", ValueType::kInt, "4096", "", 1, 1000000, "Streams at once (HDFS: threads; here none is one).",
     "DataNode: limits", true},
    {"cairn.datanode.transfer.threads", ValueType::kInt, "2", "", 1, 256, "Threads that carry them.", "DataNode: limits"},
    {"cairn.datanode.stream.window", ValueType::kBytes, "8m", "", 65536, 1073741824,
     "Bytes of one stream received and not yet written and forwarded; what pushes back on the sender.", "DataNode: limits"},
    {"cairn.datanode.transfer.memory", ValueType::kBytes, "1g", "", 1048576, 1099511627776,
     "The same for all streams together; each has an equal part, if that is less than its window.", "DataNode: limits"},
    {"cairn.datanode.read.packet-size", ValueType::kBytes, "64k", "", 4096, 4194304, "Data of one packet for readers that ask for no size.",
     "DataNode: limits"},
    {"cairn.datanode.transfer.packet-size", ValueType::kBytes, "1m", "", 65536, 4194304, "Data of one packet between DataNodes.",
     "DataNode: limits"},
    {"cairn.datanode.connect.timeout", ValueType::kDuration, "10s", "s", 1, kMost, "Setting up a connection to another DataNode.",
     "DataNode: limits"},
    {"dfs.datanode.socket.write.timeout", ValueType::kDuration, "480s", "ms", 1, kMost, "How long a peer may take no bytes.",
     "DataNode: limits"},
    {"dfs.datanode.socket.reuse.keepalive", ValueType::kDuration, "4s", "ms", 0, kMost,
     "How long a connection is kept for another operation after a read.", "DataNode: limits"},
    {"dfs.datanode.synconclose", ValueType::kBool, "true", "", 0, kMost,
     "The close of writers that do not say: as cairn.close.sync data (HDFS: false).", "DataNode: limits"},
    {"cairn.datanode.events.max", ValueType::kInt, "1048576", "", 1000, kMost,
     "Report events kept until the NameNode has them on disk; beyond it, a walk.", "DataNode: limits"},
    {"cairn.datanode.events.max-bytes", ValueType::kBytes, "64m", "", 65536, kMost, "The same in bytes, as they are sent.",
     "DataNode: limits"},
    {"cairn.datanode.report.gather", ValueType::kDuration, "10ms", "ms", 0, 60000,
     "After a report to the NameNode, what happens within this time goes into the next one together. Nobody waits for reports.",
     "DataNode: limits"},
    {"cairn.datanode.walk.interval", ValueType::kDuration, "6h", "s", 1000, kMost, "How often every replica is reported again.",
     "DataNode: limits"},
    {"cairn.datanode.delete.unlinks-per-second", ValueType::kInt, "2000", "", 1, 1000000, "Pace of deletion, each disk.",
     "DataNode: limits", true},
    {"cairn.datanode.delete.bytes-per-second", ValueType::kBytes, "4g", "", 1048576, kMost, "Pace of deletion, each disk.",
     "DataNode: limits", true},
    {"cairn.datanode.delete.busy-percent", ValueType::kInt, "25", "", 1, 100,
     "Share of the time that unlinking takes while writers and readers use the disk. One that is nine tenths full does not wait.",
     "DataNode: limits", true},
    {"cairn.datanode.delete.patience", ValueType::kDuration, "1m", "s", 0, kMost,
     "Files that have been waiting for longer than this are unlinked with twice that share, and again for each further one, up to half of "
     "the time.",
     "DataNode: limits", true},
    {"cairn.datanode.delete.backlog", ValueType::kInt, "200000", "", 1, kMost,
     "Files waiting to be unlinked, beyond which the DataNode takes no more deletions from the NameNode.", "DataNode: limits"},
    {"dfs.datanode.balance.bandwidthPerSec", ValueType::kBytes, "100m", "", int64_t{api::kLeastBalanceBytesPerSecond}, kMost,
     "What one DataNode sends and receives in a second for the balancer; the NameNode reckons with it too.", "DataNode: limits"},
    {"dfs.datanode.balance.max.concurrent.moves", ValueType::kInt, "4", "", 1, api::kMostBalanceMoves,
     "Replicas that the balancer moves from or to one DataNode at once (HDFS: 100); the NameNode's side of it, too.", "DataNode: limits"},
    {"dfs.datanode.peer.stats.enabled", ValueType::kBool, "true", "", 0, kMost,
     "Whether a DataNode measures how long those take that it forwards to, and tells the NameNode which are slow (HDFS: false).",
     "DataNode: limits"},
    {"dfs.datanode.slowpeer.low.threshold.ms", ValueType::kDuration, "20ms", "ms", 0, kMost,
     "What a node adds to the acknowledgement of a packet, as a median, is not slow below this, whatever others take (HDFS: 5 ms).",
     "DataNode: limits"},
    {"dfs.datanode.min.outlier.detection.nodes", ValueType::kInt, "2", "", 2, 1000000,
     "Nodes that a DataNode has to have measured before it finds one of them slow (HDFS: 10).", "DataNode: limits"},
    {"dfs.datanode.peer.metrics.min.outlier.detection.samples", ValueType::kInt, "10", "", 1, 64,
     "Packets in the last five minutes by which a node is judged, at least (HDFS: 1000).", "DataNode: limits"},
    {"dfs.pipeline.slownode", ValueType::kBool, "false", "", 0, kMost,
     "Whether a node that the NameNode has found slow says so in its acknowledgements, so that writers do without it; see "
     "dfs.client.mark.slownode.as.badnode.threshold.",
     "DataNode: limits"},
    {"dfs.datanode.scan.period.hours", ValueType::kDuration, "504h", "h", 0, kMost,
     "Within this time every replica is read again and checked; 0: never.", "DataNode: limits", true},
    {"dfs.block.scanner.volume.bytes.per.second", ValueType::kBytes, "1m", "", 0, kMost,
     "Pace of that, each disk; a disk of which it takes longer than the period is read round without a pause. 0: never.",
     "DataNode: limits", true},
    {"cairn.datanode.volume-balance.threshold-percent", ValueType::kInt, "0", "", 0, 100,
     "Replicas are moved between the volumes of one DataNode when the used shares of the fullest and the emptiest differ by more points "
     "than this, until they differ by half; 0: never.",
     "DataNode: limits", true},
    {"cairn.datanode.volume-balance.bytes-per-second", ValueType::kBytes, "10m", "", 0, kMost,
     "Pace of that, of each DataNode (as HDFS's dfs.disk.balancer.max.disk.throughputInMBperSec). 0: never.", "DataNode: limits", true},
    // NameNode: audit log.
    {"cairn.namenode.audit.enabled", ValueType::kBool, "true", "", 0, kMost,
     "Whether each call of a client is a line of the audit log; there has to be a file for it.", "NameNode: audit log"},
    {"cairn.namenode.audit.file", ValueType::kString, "", "", 0, kMost,
     "File of the audit log; empty: cairn-audit.log in cairn.log.dir, or none if that is empty too.", "NameNode: audit log"},
    {"cairn.namenode.audit.file.size", ValueType::kBytes, "256m", "", 65536, kMost, "It is renamed at this size and a new one begun.",
     "NameNode: audit log"},
    {"cairn.namenode.audit.file.count", ValueType::kInt, "20", "", 1, 1000, "Older files kept.", "NameNode: audit log"},
    // Logs.
    {"cairn.log.level", ValueType::kChoice, "info", "debug|info|warning|error", 0, kMost, "Least level that is written.", "Logs", true},
    {"cairn.log.dir", ValueType::kString, "", "", 0, kMost, "Directory of log files; empty: standard error only.", "Logs"},
    {"cairn.log.stderr", ValueType::kBool, "true", "", 0, kMost, "Whether lines go to standard error too.", "Logs"},
    {"cairn.log.file.size", ValueType::kBytes, "64m", "", 65536, kMost, "A file that has grown to this is renamed and a new one begun.",
     "Logs"},
    {"cairn.log.file.count", ValueType::kInt, "8", "", 1, 1000, "Older files kept.", "Logs"},
});

std::string_view TypeName(ValueType type) {
  switch (type) {
    case ValueType::kBool: return "true or false";
    case ValueType::kInt: return "number";
    case ValueType::kMode: return "octal number";
    case ValueType::kBytes: return "size, bytes or with k, m, g, t";
    case ValueType::kDuration: return "duration with ns, us, ms, s, m, h, d";
    case ValueType::kString: return "text";
    case ValueType::kChoice: return "one of";
    case ValueType::kAddress: return "host:port";
    case ValueType::kList: return "list, a,b,c";
  }
  return "";
}

std::string TypeAndUnit(const ConfigKey& key) {
  switch (key.type) {
    case ValueType::kChoice: return fmt::format("one of {}", key.unit);
    case ValueType::kDuration: return fmt::format("{}; a bare number is in {}", TypeName(key.type), key.unit);
    case ValueType::kInt: return key.unit.empty() ? "number" : fmt::format("number of {}", key.unit);
    default: return std::string(TypeName(key.type));
  }
}

// `text` in comment lines of at most 100 columns.
std::string Comment(std::string_view text) {
  constexpr size_t kColumns = 98;
  std::string out;
  while (!text.empty()) {
    size_t end = text.size();
    if (end > kColumns) {
      end = text.rfind(' ', kColumns);
      if (end == std::string_view::npos || end == 0) end = text.size();
    }
    out += fmt::format("# {}\n", text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  return out;
}

}  // namespace

std::span<const ConfigKey> ConfigKeys() { return kKeys; }

// A walk over some sixty keys; every reader asks once, at start.
const ConfigKey* FindConfigKey(std::string_view name) {
  for (const ConfigKey& key : kKeys)
    if (key.name == name) return &key;
  return nullptr;
}

std::string SampleConfig() {
  std::string out =
      "# Cairn's configuration: every key with its meaning, type, unit and default. A key that is not set has the\n"
      "# default; take the # away to set one. Keys of HDFS keep HDFS's names; where the default differs, it says so.\n"
      "# Searched: --config, $CAIRN_CONF, /etc/cairn/cairn.yaml, $HADOOP_CONF_DIR (core-site.xml, hdfs-site.xml).\n"
      "# -D KEY=VALUE on a command line overrides.\n";
  std::string_view part;
  for (const ConfigKey& key : kKeys) {
    if (key.part != part) out += fmt::format("\n\n# ---- {} ----\n", key.part);
    part = key.part;
    out += "\n" + Comment(key.doc) + Comment("(" + TypeAndUnit(key) + (key.reloadable ? "; reloadable" : "") + ")");
    const bool quoted = key.default_value.empty() || key.type == ValueType::kMode || key.type == ValueType::kAddress;
    out += quoted ? fmt::format("#{}: \"{}\"\n", key.name, key.default_value) : fmt::format("#{}: {}\n", key.name, key.default_value);
  }
  return out;
}

}  // namespace cairn
