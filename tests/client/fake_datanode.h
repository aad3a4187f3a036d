#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cairn/types.pb.h"
#include "common/env/network.h"
#include "common/task_group.h"
#include "common/transfer/ops.h"
#include "common/transfer/packet.h"
#include "common/transfer/wire_reader.h"
#include "tests/testing/sim_world.h"

namespace cairn::client {

// A DataNode in memory on the simulated network: chains of WRITE_BLOCK with acknowledgements,
// recovery stages 3 and 5, READ_BLOCK. Strict about what a client may send, and wrong in ways that
// tests ask for. One thread.
class FakeDatanode {
 public:
  struct Replica {
    uint64_t stamp = 0;
    std::string data;
    bool finalized = false;
    bool synced = false;  // Up to its last byte.
    uint64_t largest_packet = 0;
    int packets = 0;  // With data, new or again.
  };

  FakeDatanode(testing::SimWorld* world, const std::string& name, uint16_t port);
  ~FakeDatanode();

  v1::StorageLocation location() const;
  void Kill();
  bool alive() const { return process_->alive(); }

  std::map<uint64_t, Replica> replicas;
  // What to do wrong.
  bool refuse_set_up = false;  // Answers every WRITE_BLOCK with ERROR.
  int die_at_data_packet = 0;  // Dies when the Nth packet with data of a block arrives; 0: never.
  bool die_at_last_packet = false;
  bool says_slow = false;      // Of itself, in every acknowledgement.
  bool hold_acks = false;      // Reads and stores, acknowledges nothing.
  bool corrupt_reads = false;  // Serves a flipped byte under the right checksums.
  int cut_reads_after = 0;     // Closes a read after so many packets; 0: never.
  bool refuse_token = false;   // Of a read.
  // What came.
  std::vector<hdfs::OpWriteBlockProto> writes;
  std::vector<hdfs::OpReadBlockProto> reads;
  std::vector<std::string> complaints;  // About what the client sent.
  int heartbeats = 0;
  int read_verdicts = 0;

 private:
  Awaitable<void> Accept();
  Awaitable<void> Handle(std::shared_ptr<Connection> connection);
  Awaitable<absl::Status> Write(Connection* connection, transfer::WireReader* reader);
  Awaitable<absl::Status> Read(Connection* connection, transfer::WireReader* reader);
  Awaitable<absl::Status> SendText(Connection* connection, std::string bytes);
  // Takes a packet in; an empty text if it was right.
  std::string Store(uint64_t block_id, const transfer::Packet& packet, uint32_t chunk);
  SteadyTime Deadline() const;

  testing::SimMachine* machine_;
  testing::SimProcess* process_;
  std::unique_ptr<Executor> executor_;
  std::string name_;
  uint16_t port_;
  std::unique_ptr<TaskGroup> group_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::weak_ptr<Connection>> open_;
};

}  // namespace cairn::client
