#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/types.pb.h"
#include "client/src/scope.h"
#include "common/crc32c.h"
#include "common/env/network.h"
#include "common/transfer/ops.h"
#include "common/transfer/packet.h"
#include "common/transfer/wire_reader.h"
#include "hdfs/datatransfer.pb.h"

namespace cairn::client {

// The operation that opens a chain of DataNodes.
struct PipelineSetUp {
  using Stage = hdfs::OpWriteBlockProto::BlockConstructionStage;

  PipelineSetUp() = default;
  std::string pool_id;  // 16 bytes.
  v1::Block block;      // With the stamp that the NameNode holds.
  std::string token;
  std::vector<v1::StorageLocation> nodes;  // In pipeline order; at least one.
  Stage stage = hdfs::OpWriteBlockProto::PIPELINE_SETUP_CREATE;
  uint64_t min_bytes = 0;     // Acknowledged.
  uint64_t max_bytes = 0;     // Sent.
  uint64_t latest_stamp = 0;  // New one of a recovery, else 0.
  ChecksumType checksum = ChecksumType::kCrc32c;
  uint32_t bytes_per_checksum = 512;
  bool sync_on_close = true;
  std::string client_name;
};

// Which node of a pipeline to do without, and why.
struct PipelineFailure {
  PipelineFailure() = default;
  PipelineFailure(size_t index, std::string why, absl::Status what) : bad_node(index), reason(std::move(why)), status(std::move(what)) {}
  size_t bad_node = 0;  // Index in the set-up's nodes.
  std::string reason;   // UPPER_CASE: CONNECT_TIMEOUT, CONNECTION_RESET, CHECKSUM, ...
  absl::Status status;
};

// One connection to the first DataNode of a chain: set-up, packets down, acknowledgements up. Knows
// nothing of windows and recovery. Belongs to the scope's executor; one Send and one ReadAck may be
// under way at once. The scope's stop closes it.
class Pipeline {
 public:
  struct Timeouts {
    absl::Duration connect = absl::Seconds(5);
    absl::Duration read = absl::Seconds(60);  // Plus kPerNode for each node.
  };
  static constexpr absl::Duration kPerNode = absl::Seconds(5);

  Pipeline(Scope scope, Network* network, Timeouts timeouts);

  // Connects and opens the chain. On failure says whom to blame in *failure.
  Awaitable<absl::Status> SetUp(PipelineSetUp set_up, PipelineFailure* failure);
  Awaitable<absl::Status> Send(transfer::Packet packet);
  Awaitable<absl::StatusOr<transfer::PipelineAck>> ReadAck();
  // Ends both with an error. Idempotent.
  void Close();

  absl::Duration read_timeout() const { return read_timeout_; }
  size_t node_count() const { return node_count_; }

 private:
  Scope scope_;
  Network* network_;
  Timeouts timeouts_;
  absl::Duration read_timeout_;
  size_t node_count_ = 0;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<transfer::WireReader> reader_;
  std::unique_ptr<TaskGroup::StopHook> hook_;
};

// A word for programs and operators: why a DataNode is not used any more.
std::string FailureReason(const absl::Status& status, bool connecting);

}  // namespace cairn::client
