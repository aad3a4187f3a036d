#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/env/env.h"
#include "common/task_group.h"
#include "datanode/transfer/block_transfer.h"
#include "datanode/transfer/transfer_context.h"

namespace cairn::datanode {

// The DataNode's transfer port. Owns its executors and every connection; a connection is dealt to one executor and stays there, with its
// mirror. Bounded: streams by options.max_streams, or what was set since; connections by twice that, and a thousand that are told so; each
// stream's bytes by its window.
class TransferServer {
 public:
  // All pointers outlive this.
  TransferServer(Env* env, BlockStore* store, const TokenVerifier* tokens, TransferOptions options);
  ~TransferServer();  // CHECKs that it is stopped, or was never started.
  TransferServer(const TransferServer&) = delete;
  TransferServer& operator=(const TransferServer&) = delete;

  // Binds and begins to accept. A port in use is an error that names it.
  absl::Status Start(const HostPort& bind);
  HostPort local() const;  // After Start: with the port that was given for port 0.

  // The pool whose blocks are served from now on; until then every operation is told to come again. From any thread.
  void SetPool(std::string pool_id) { context_.pool.Set(std::move(pool_id)); }

  // How many operations there may be at once from now on. Those that are under way go on, however many. From any thread.
  void SetMaxStreams(size_t max_streams) { context_.max_streams.store(max_streams, std::memory_order_relaxed); }

  // What goes in and out for the balancer from now on; 0: as in the options. From any thread.
  void SetBalanceBandwidth(uint64_t bytes_per_second) { context_.balance_pace.Set(bytes_per_second, env_->clock().Now()); }
  const BalancePace& balance_pace() const { return context_.balance_pace; }

  // Whether the NameNode has found this node slow: writers are told, if options.tell_slow says so. True if that is new. From any thread.
  bool SetSlow(bool slow) { return context_.slow.exchange(slow, std::memory_order_relaxed) != slow; }
  bool slow() const { return context_.slow.load(std::memory_order_relaxed); }
  // How fast the nodes are that this one forwards to.
  const PeerLatencies& peers() const { return context_.peers; }

  // Copies a replica of ours; `done` is called once, on one of our executors. kCancelled after Stop. From any thread.
  void Transfer(TransferRequest request, absl::AnyInvocable<void(absl::Status)> done);

  // Ends the listener and every connection, and calls `then` once, on one of our executors, when nothing runs any more. The disks'
  // executors must run until then. From any thread, once.
  void StopAndThen(absl::AnyInvocable<void()> then);
  bool stopped() const { return stopped_.load(); }

  const TransferCounters& counters() const { return context_.counters; }

 private:
  struct Lane {
    std::unique_ptr<Executor> executor;
    std::unique_ptr<TaskGroup> group;
  };

  Awaitable<void> AcceptLoop();
  Awaitable<void> ServeConnection(Lane* lane, std::unique_ptr<Connection> connection);
  Lane* NextLane();

  Env* const env_;
  TransferContext context_;
  std::vector<Lane> lanes_;
  std::unique_ptr<Listener> listener_;  // Of the first lane's executor.
  HostPort local_;
  std::atomic<size_t> next_lane_ = 0;
  std::atomic<size_t> lanes_running_ = 0;
  std::atomic<bool> started_ = false;
  std::atomic<bool> stopped_ = false;
};

}  // namespace cairn::datanode
