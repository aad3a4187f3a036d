#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/transfer/wire_reader.h"
#include "datanode/storage/block_store.h"
#include "datanode/transfer/transfer_context.h"

namespace cairn::datanode {

// Opens a replica on its disk. kReplicaNotFound, kStaleGeneration, kChecksum as BlockStore::OpenForRead.
Awaitable<absl::StatusOr<std::shared_ptr<ReplicaReader>>> OpenForReading(BlockStore* store, Executor* executor, BlockId id,
                                                                         GenerationStamp at_least);

// One READ_BLOCK: answers, sends the packets, and waits for the reader's verdict. Whole chunks are sent, so the first packet may begin
// before the wanted bytes and the last may end behind them. Belongs to the connection's executor; all pointers outlive it.
class BlockSender {
 public:
  BlockSender(TransferContext* context, Executor* executor, Connection* to, transfer::WireReader* reader, hdfs::OpReadBlockProto op);

  // True if the connection may serve another operation. Errors were answered if nothing had been sent yet, and are for the log; a
  // reader that went away is none.
  Awaitable<absl::StatusOr<bool>> Run();

 private:
  absl::StatusOr<std::string> Plan(const ReplicaReader& replica);
  Awaitable<absl::Status> Answer(std::string bytes);

  TransferContext* const context_;
  Executor* const executor_;
  Connection* const to_;
  transfer::WireReader* const reader_;
  const hdfs::OpReadBlockProto op_;
  uint64_t start_ = 0;  // Of what is sent: whole chunks around what was asked for.
  uint64_t end_ = 0;
};

}  // namespace cairn::datanode
