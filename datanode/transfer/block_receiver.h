#pragma once

#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/task_group.h"
#include "datanode/storage/block_store.h"
#include "datanode/transfer/mirror.h"
#include "datanode/transfer/packet_responder.h"
#include "datanode/transfer/packet_window.h"
#include "datanode/transfer/transfer_context.h"

namespace cairn::datanode {

// One WRITE_BLOCK on this node: from a client, from the node before in its pipeline, or a copy that another DataNode sends.
//
// Four coroutines on one executor, with a PacketWindow between them:
//
//   upstream --> Receive --> PacketWindow --> WriteLoop --> volume's disk executor --> ReplicaWriter
//                                 |  \-----> Mirror::SendLoop --> next node --> Mirror::AckLoop
//                                 +--------> PacketResponder --> upstream
//
// A packet is handed downstream first and written meanwhile, and the next is received while it is written. Only the end of the chain
// verifies all checksums (a chunk that continues one on disk is verified by every ReplicaWriter). Whatever breaks, the replica stays as
// it is, RBW, for pipeline or lease recovery.
//
// Belongs to the connection's executor. As HDFS's BlockReceiver; docs/formats.md has the stages.
class BlockReceiver {
 public:
  // All pointers outlive this; `owner` stops it.
  BlockReceiver(TransferContext* context, TaskGroup* owner, Executor* executor, Connection* upstream, transfer::WireReader* reader,
                hdfs::OpWriteBlockProto op);
  ~BlockReceiver();
  BlockReceiver(const BlockReceiver&) = delete;
  BlockReceiver& operator=(const BlockReceiver&) = delete;

  // Serves the operation to its end; the connection is to be closed afterwards. Errors were answered, and are for the log.
  Awaitable<absl::Status> Run();

 private:
  struct ToWrite {
    uint64_t number;
    transfer::Packet packet;
  };

  absl::Status CheckRequest();
  Awaitable<absl::Status> SetUp();
  // Opens the replica as the stage says, on its disk. A close recovery leaves writer_ null.
  Awaitable<absl::Status> OpenReplica();
  Awaitable<absl::Status> AnswerSetUp(std::string answer);
  Awaitable<absl::Status> Stream();
  Awaitable<absl::Status> Receive();
  Awaitable<void> WriteLoop();
  Awaitable<void> Respond();
  void Take(transfer::Packet packet);
  // Ends everything at once.
  void Abort(absl::Status why);

  TransferContext* const context_;
  TaskGroup* const owner_;
  Executor* const executor_;
  Connection* const upstream_;
  transfer::WireReader* const reader_;
  const hdfs::OpWriteBlockProto op_;
  const std::string name_;
  const GenerationStamp stamp_;  // After the set-up.
  const PacketResponder::Style style_;
  ChecksumType type_ = ChecksumType::kCrc32c;
  uint32_t bytes_per_checksum_ = 512;
  bool sync_on_close_ = true;

  std::unique_ptr<Mirror> mirror_;
  std::shared_ptr<ReplicaWriter> writer_;
  PacketWindow window_;
  std::deque<ToWrite> to_write_;
  Event to_write_changed_;
  Event upstream_ended_;
  uint64_t next_offset_ = 0;              // Behind what has been received.
  bool failing_ = false;                  // The sender is being told; what still arrives is dropped.
  absl::Status failure_;                  // The first.
  std::shared_ptr<BlockReceiver*> self_;  // For the writer's revocation, which may come after the end; null inside then.
  TaskGroup parts_;
};

}  // namespace cairn::datanode
