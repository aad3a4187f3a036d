#pragma once

// datanode/transfer: the DataNode's end of the Data Transfer Protocol. transfer_server accepts connections and deals them out to
// executors; transfer_session reads operations; block_receiver (with packet_window, mirror and packet_responder) serves a writer,
// block_sender a reader, block_transfer copies a replica to other nodes. A connection, its mirror and all their coroutines live on one
// executor and need no lock; disks are reached through BlockStore's executors.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/env/executor.h"
#include "common/env/network.h"
#include "common/mutex.h"
#include "common/transfer/ops.h"
#include "datanode/storage/block_store.h"
#include "datanode/transfer/balance_pace.h"
#include "datanode/transfer/peer_latencies.h"
#include "datanode/transfer/token_verifier.h"

namespace cairn::datanode {

struct TransferOptions {
  std::string pool_id;  // 16 bytes.
  std::string datanode_uuid;
  HostPort advertised;                                 // As in the registration: what firstBadLink says of this node.
  size_t io_threads = 2;                               // cairn.datanode.transfer.threads
  size_t max_streams = 4096;                           // dfs.datanode.max.transfer.threads: operations at once; more are told BUSY.
  size_t window_bytes = 8 << 20;                       // cairn.datanode.stream.window: received, not yet written and forwarded.
  size_t memory_bytes = 1 << 30;                       // cairn.datanode.transfer.memory: the same for all streams together.
  size_t read_packet_bytes = 64 << 10;                 // cairn.datanode.read.packet-size, for readers that ask for nothing.
  size_t transfer_packet_bytes = 1 << 20;              // cairn.datanode.transfer.packet-size, between DataNodes.
  absl::Duration connect_timeout = absl::Seconds(10);  // cairn.datanode.connect.timeout
  absl::Duration socket_timeout = absl::Seconds(60);   // dfs.client.socket-timeout: silence of a peer that should speak.
  absl::Duration write_timeout = absl::Seconds(480);   // dfs.datanode.socket.write.timeout: a peer that does not take bytes.
  absl::Duration keep_alive = absl::Seconds(4);        // dfs.datanode.socket.reuse.keepalive: for another operation after a read.
  absl::Duration linger = absl::Seconds(2);            // How long a stream that failed waits for its sender to take the bad news.
  uint64_t block_capacity = 1 << 30;                   // cairn.block.max-size
  uint64_t balance_bytes_per_second = 100 << 20;       // dfs.datanode.balance.bandwidthPerSec
  bool sync_on_close = true;                           // dfs.datanode.synconclose, for writers that do not say.
  PeerLatencies::Options peers;
  bool tell_slow = false;  // dfs.pipeline.slownode: acknowledgements say that this node is slow, once the NameNode says so.
};

// What the transfers of a DataNode have done; for metrics. Monotonic, but for active_streams.
struct TransferCounters {
  std::atomic<uint64_t> active_streams = 0;
  std::atomic<uint64_t> connections = 0;  // Open ones.
  std::atomic<uint64_t> bytes_received = 0;
  std::atomic<uint64_t> bytes_sent = 0;
  std::atomic<uint64_t> blocks_written = 0;
  std::atomic<uint64_t> blocks_read = 0;
  std::atomic<uint64_t> blocks_transferred = 0;
  std::atomic<uint64_t> refused_busy = 0;
  std::atomic<uint64_t> bad_requests = 0;  // Garbage, unknown operations.
  std::atomic<uint64_t> checksum_errors = 0;
  std::atomic<uint64_t> mirror_errors = 0;
};

// The pool this node serves, which it learns at its first registration. Thread-safe.
class ServedPool {
 public:
  void Set(std::string pool_id) ABSL_LOCKS_EXCLUDED(mu_);
  std::string Get() const ABSL_LOCKS_EXCLUDED(mu_);  // Empty before.

 private:
  mutable Mutex mu_;
  std::string pool_id_ ABSL_GUARDED_BY(mu_);
};

// What every part of a transfer needs. Outlives all of them; all that it points to is thread-safe.
struct TransferContext {
  explicit TransferContext(TransferOptions of)
      : options(std::move(of)), max_streams(options.max_streams), balance_pace(options.balance_bytes_per_second), peers(options.peers) {}
  TransferOptions options;
  std::atomic<size_t> max_streams;  // As it is now.
  BlockStore* store = nullptr;
  Network* network = nullptr;
  const TokenVerifier* tokens = nullptr;
  ServedPool pool;
  TransferCounters counters;
  BalancePace balance_pace;
  PeerLatencies peers;
  std::atomic<bool> slow = false;  // As the NameNode has found this node.
};

// The block is of our pool (kRetriable while there is none), and the token of `header` is for `stamp` and for one of `modes` (bits of
// TokenMode). A key that is not known yet is waited for, 5 s at most. `header` outlives the call.
Awaitable<absl::Status> CheckAccess(const TransferContext* context, Executor* executor, const hdfs::BaseHeaderProto* header,
                                    GenerationStamp stamp, uint8_t modes);

// "block 1073741824_1001", for messages.
std::string NameOf(const hdfs::ExtendedBlockProto& block);

// Waits as long as the fault point `name` is armed to hold.
Awaitable<void> HoldAtFault(Executor* executor, const char* name);

}  // namespace cairn::datanode
