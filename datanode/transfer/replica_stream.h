#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/env/network.h"
#include "common/task_group.h"
#include "datanode/storage/block_store.h"
#include "datanode/transfer/transfer_context.h"

namespace cairn::datanode {

// Sends a replica as packets: whole chunks go from the file to the socket, with the stored checksums beside them; the last partial chunk,
// which may be growing, is copied as it was when the replica was opened, with the checksum of that moment. Nothing is verified: that is
// the reader's part, and it would cost the copy. As HDFS's BlockSender.
//
// Belongs to the connection's executor; all pointers outlive it.
class ReplicaStream {
 public:
  // `packet_bytes` is rounded to whole chunks. Without `checksums` packets carry none (type NULL).
  ReplicaStream(TransferContext* context, Executor* executor, Connection* to, ReplicaReader* replica, size_t packet_bytes, bool checksums);

  // From now on no faster than that, which is given up for when `owner` stops. Both outlive this.
  void SetPace(BalancePace* pace, const TaskGroup* owner) {
    pace_ = pace;
    owner_ = owner;
  }
  // Packets for [start, end), numbered from 0, then the empty last one. `start` is a multiple of the chunk size, `end` is one or the
  // replica's length. No packet waits beyond `deadline`, nor longer than the write timeout.
  Awaitable<absl::Status> Send(uint64_t start, uint64_t end, SteadyTime deadline);

 private:
  Awaitable<absl::Status> SendPacket(int64_t seqno, uint64_t offset, uint64_t packet_end, SteadyTime deadline);
  // Makes checksums_ cover the chunks of [offset, packet_end), and some beyond, at most to `end_`.
  Awaitable<absl::Status> LoadChecksums(uint64_t offset, uint64_t packet_end);
  Awaitable<absl::Status> SendEmptyLast(int64_t seqno, SteadyTime deadline);

  TransferContext* const context_;
  Executor* const executor_;
  Connection* const to_;
  ReplicaReader* const replica_;
  const uint64_t chunk_bytes_;
  const uint64_t packet_bytes_;
  const bool with_checksums_;
  BalancePace* pace_ = nullptr;
  const TaskGroup* owner_ = nullptr;
  uint64_t end_ = 0;
  std::string checksums_;  // Of chunks from first_chunk_ on.
  uint64_t first_chunk_ = 0;
};

}  // namespace cairn::datanode
