#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/wait.h"
#include "common/transfer/ops.h"
#include "common/transfer/wire_reader.h"
#include "datanode/transfer/packet_window.h"
#include "datanode/transfer/peer_latencies.h"
#include "datanode/transfer/transfer_context.h"

namespace cairn::datanode {

// The next node of a pipeline: what is sent to it and what it answers. Belongs to one executor.
class Mirror {
 public:
  // Connects to the first target of `op` and sends it the operation, with the remaining targets; does not wait for the answer.
  // `sync_on_close`: what the close of the stream waits for. UNAVAILABLE naming the node.
  static Awaitable<absl::StatusOr<std::unique_ptr<Mirror>>> Open(TransferContext* context, Executor* executor, hdfs::OpWriteBlockProto op,
                                                                 bool sync_on_close);

  // The answer to a set-up. What it says is in it; an error only if there is none.
  Awaitable<absl::StatusOr<hdfs::BlockOpResponseProto>> ReadSetUpAnswer();

  // Takes a packet to be sent; `window` bounds how many. Ended after the last of a block, or by End.
  void Send(uint64_t number, transfer::Packet packet);
  // Sends what Send took, as much as there is at once, until the last packet of the block or an error, which it tells `window`.
  Awaitable<void> SendLoop(PacketWindow* window);
  // Gives each acknowledgement to `window`, until that of the last packet, an error or a reply that is none.
  Awaitable<void> AckLoop(PacketWindow* window);
  // Of a transfer: no packet is acknowledged, the whole is. Its error names the node.
  Awaitable<absl::Status> ReadTransferAck();

  void Close();
  const std::string& link_name() const { return link_name_; }  // "address:port", as in firstBadLink.

 private:
  struct Outgoing {
    uint64_t number;
    transfer::Packet packet;
  };

  Mirror(const TransferContext* context, Executor* executor, std::string link_name, size_t nodes, std::unique_ptr<Connection> connection);
  SteadyTime AnswerDeadline() const;
  // What the acknowledgement of `packet` says of the next node's speed.
  void Measure(const PacketWindow::InFlight& packet, const transfer::PipelineAck& ack, SteadyTime now);

  const TransferContext* const context_;
  Executor* const executor_;
  const std::string link_name_;
  const size_t nodes_;  // This one and those behind it.
  const std::unique_ptr<Connection> connection_;
  transfer::WireReader reader_;
  std::shared_ptr<PeerLatency> latency_;  // Of the next node; null: not measured, as one with others behind it.
  bool sync_on_close_ = true;
  std::deque<Outgoing> outgoing_;
  Event outgoing_changed_;
  bool closed_ = false;
};

}  // namespace cairn::datanode
