#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/client_namenode.pb.h"
#include "client/src/client_core.h"
#include "client/src/packet_cutter.h"
#include "client/src/pipeline.h"
#include "client/src/scope.h"
#include "client/src/write_progress.h"
#include "common/env/wait.h"

namespace cairn::client {

// What all block streams of one file share. On the file's executor, except `progress`.
struct FileBeingWritten {
  FileBeingWritten(Scope s, ClientCore* c, WriteProgress* p) : scope(s), core(c), progress(p), changed(s.executor) {}

  Scope scope;
  ClientCore* core;
  WriteProgress* progress;
  std::string path;
  uint64_t inode_id = 0;
  std::string pool_id;
  ChecksumType checksum = ChecksumType::kCrc32c;
  uint32_t bytes_per_checksum = 512;
  bool sync_on_close = true;
  std::deque<OutgoingPacket> unsent;   // Of this block and, behind its last packet, of later ones.
  std::deque<OutgoingPacket> unacked;  // Sent to the current pipeline, oldest first.
  int64_t acked_seqno = -1;
  Event changed;  // Set when any of these moved: packets queued or acknowledged, an end.
};

// Writes one block through a pipeline, and through further ones as nodes are lost: the bad node is
// dropped, the stamp raised, the survivors are set up again, and what was not acknowledged is sent
// again. No acknowledgement of a new pipeline is released before the NameNode has taken note of it
// (UpdatePipeline), else a block recovery could cut acknowledged bytes.
//
// The last packet is sent only when all data is acknowledged: so a replica is FINALIZED on one node
// only if every node has all its bytes, and a loss at that moment is mended by a close recovery
// (stage 5), which needs no data.
//
// A node that says over and over that it is slow is dropped in the same way, as HDFS's clients do, while at least two others are left;
// what is then missing the NameNode has copied. With none to spare the pipeline stays as slow as it is.
class BlockStream {
 public:
  static constexpr int kMaxRecoveriesWithoutProgress = 5;

  BlockStream(FileBeingWritten* file, v1::LocatedBlock block);
  // A block that is written on: its replicas are FINALIZED, at `old_stamp` and the block's length.
  BlockStream(FileBeingWritten* file, v1::LocatedBlock block, uint64_t old_stamp);
  BlockStream(const BlockStream&) = delete;
  BlockStream& operator=(const BlockStream&) = delete;

  // Sets up the first pipeline (stage 6). On failure nothing was written: *failure says whom to
  // exclude when asking for another block.
  Awaitable<absl::Status> Open(PipelineFailure* failure);
  // The same for a block that is written on (stage 0, then stage 1 without the nodes that failed): there is no other block to ask for.
  Awaitable<absl::Status> OpenForAppend();
  // Until the last packet is acknowledged. On failure unacknowledged packets are back in `unsent`.
  Awaitable<absl::Status> Run();

  // Stamp as the NameNode knows it, length as acknowledged.
  v1::Block block() const;
  v1::CommittedBlock committed() const;
  uint64_t acked_length() const { return acked_length_; }
  const std::vector<v1::StorageLocation>& nodes() const { return nodes_; }
  int recoveries() const { return recoveries_; }
  // Run failed because its DataNodes did, not by the NameNode's word.
  bool datanodes_failed() const { return failed_; }

 private:
  PipelineSetUp NewSetUp() const;
  Awaitable<void> StreamOnce();  // Until the block is done or the pipeline has failed.
  Awaitable<void> SendLoop();
  Awaitable<void> AckLoop(std::shared_ptr<void> ended);
  void TakeAck(const transfer::PipelineAck& ack);
  void Acknowledge(size_t count);  // The oldest `count` of unacked.
  // Counts how often running nodes have said that they are slow. The one to go on without, if there is one.
  std::optional<size_t> CountSlow(uint64_t slow_nodes);
  void Fail(size_t bad_node, std::string reason, absl::Status status);
  Awaitable<absl::Status> Recover();
  Awaitable<absl::Status> SetUpSurvivors(bool close_only);
  bool OnlyLastIsUnacked() const;
  void TakeBackUnacked();
  std::string Name() const;

  FileBeingWritten* const file_;
  v1::LocatedBlock located_;
  std::vector<v1::StorageLocation> nodes_;
  std::unique_ptr<Pipeline> pipeline_;
  PipelineFailure failure_;
  uint64_t replica_stamp_ = 0;   // The lowest that a replica of nodes_ may have.
  bool to_be_reopened_ = false;  // The replicas are FINALIZED still.
  bool failed_ = false;
  bool finished_ = false;
  uint64_t acked_length_ = 0;
  uint64_t sent_length_ = 0;
  int recoveries_ = 0;
  int without_progress_ = 0;
  std::vector<int> slow_packets_;  // Of each of nodes_: packets running in whose acknowledgement it said that it is slow.
};

}  // namespace cairn::client
