#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/env/network.h"
#include "datanode/storage/block_store.h"
#include "datanode/transfer/mirror.h"
#include "datanode/transfer/packet_window.h"
#include "datanode/transfer/transfer_context.h"

namespace cairn::datanode {

// Answers the sender of a stream: one acknowledgement a packet, in order, once this node has written it and all nodes downstream have
// acknowledged it; only then may readers see its bytes. The last packet of a block finalizes the replica before its acknowledgement, so
// that the sender may close the file at once. Of a transfer between DataNodes only the whole is acknowledged. As HDFS's
// PacketResponder.
//
// Belongs to one executor; all pointers outlive it.
class PacketResponder {
 public:
  enum class Style {
    kPipeline,           // A writer's block.
    kTransferFinalized,  // A copy of a finished one.
    kTransferRbw,        // A copy of one that is being written, which becomes a node of its pipeline.
  };

  // `mirror` is null at the end of the chain; `nodes_downstream` counts those behind this one. `tells_slow`: whether acknowledgements
  // may say that this node is slow.
  PacketResponder(TransferContext* context, Executor* executor, Connection* upstream, PacketWindow* window, Mirror* mirror,
                  size_t nodes_downstream, Style style, bool sync_on_close, bool tells_slow, ReplicaWriter* writer,
                  hdfs::ExtendedBlockProto block);

  // OK when the last packet is acknowledged by all. Otherwise the sender has been told what could be told, and the stream is over.
  Awaitable<absl::Status> Run();

 private:
  // Replies of the nodes downstream to `packet`.
  std::vector<hdfs::Status> DownstreamReplies(const PacketWindow::InFlight& packet) const;
  Awaitable<absl::Status> EndBlock(uint64_t length, bool sync);
  // Whether our own copy is good, after a node downstream found a bad checksum in what we forwarded.
  Awaitable<absl::Status> SuspectOwnCopy();
  Awaitable<absl::Status> Send(std::string bytes);
  Awaitable<absl::Status> FinishTransfer(PacketWindow::InFlight packet);

  TransferContext* const context_;
  Executor* const executor_;
  Connection* const upstream_;
  PacketWindow* const window_;
  Mirror* const mirror_;
  const size_t nodes_downstream_;
  const Style style_;
  const bool sync_on_close_;
  const bool tells_slow_;
  ReplicaWriter* const writer_;
  const hdfs::ExtendedBlockProto block_;
};

}  // namespace cairn::datanode
