#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/check.h"
#include "common/fault_points.h"
#include "common/task_group.h"
#include "common/transfer/ops.h"
#include "common/transfer/wire_reader.h"
#include "datanode/storage/event_log.h"
#include "datanode/storage/open_block_store.h"
#include "datanode/transfer/transfer_server.h"
#include "tests/testing/sim_network.h"
#include "tests/testing/sim_world.h"

namespace cairn::datanode {

inline const std::string kPool = "0123456789abcdef";
inline constexpr BlockId kBlock{1ull << 30};
inline constexpr GenerationStamp kStamp{1001};
inline constexpr uint32_t kChunk = 512;

// Bytes that differ from block to block and from place to place.
std::string Pattern(size_t size, uint64_t seed = 1);

// Runs a coroutine of the test to its end, and the world with it.
template <class T>
T Sync(testing::SimWorld* world, TaskGroup* group, absl::AnyInvocable<Awaitable<T>()> body) {
  struct Runner {
    static Awaitable<void> Run(absl::AnyInvocable<Awaitable<T>()>* body, std::optional<T>* result) {
      Awaitable<T> running = (*body)();
      T value = co_await std::move(running);
      result->emplace(std::move(value));
    }
  };
  std::optional<T> result;
  group->Spawn("test", [&] { return Runner::Run(&body, &result); });
  CAIRN_CHECK(world->RunUntil([&] { return result.has_value(); }, absl::Hours(2)), "the test's coroutine does not end");
  return std::move(*result);
}

// A DataNode without its lanes: disk, block store, transfer port.
struct TestNode {
  testing::SimMachine* machine = nullptr;
  testing::SimProcess* process = nullptr;
  std::unique_ptr<EventLog> events;
  std::unique_ptr<BlockStore> store;
  std::unique_ptr<KeyringTokenVerifier> tokens;
  std::unique_ptr<TransferServer> server;

  hdfs::DatanodeInfoProto AsTarget() const;
  std::string link() const { return transfer::LinkName(AsTarget()); }
};

// A client of the transfer port that speaks the protocol step by step.
class TestPeer {
 public:
  TestPeer(testing::SimWorld* world, TaskGroup* group, std::unique_ptr<Connection> connection)
      : world_(world), group_(group), connection_(std::move(connection)), reader_(connection_.get()) {}
  ~TestPeer() { Close(); }

  absl::Status Write(std::string bytes);
  // Sends in the background; see sent().
  void WriteLater(std::string bytes);
  size_t sent() const { return *sent_; }
  absl::Status Read(google::protobuf::MessageLite* message, absl::Duration patience = absl::Minutes(5));
  absl::StatusOr<transfer::PipelineAck> ReadAck(absl::Duration patience = absl::Minutes(5));
  absl::StatusOr<transfer::Packet> ReadPacket(ChecksumType type);
  // True if the other end closes within `patience`.
  bool AtEnd(absl::Duration patience = absl::Minutes(5));
  void Close();

 private:
  testing::SimWorld* world_;
  TaskGroup* group_;
  std::unique_ptr<Connection> connection_;
  transfer::WireReader reader_;
  std::shared_ptr<size_t> sent_ = std::make_shared<size_t>(0);
};

// Nodes "dn1", "dn2", ... and a client machine.
class TransferTest : public ::testing::Test {
 protected:
  explicit TransferTest(int nodes = 3);
  ~TransferTest() override;

  // Before the first use of nodes(): options for all of them.
  void StartNodes(const TransferOptions& options);
  TestNode& node(size_t i) { return *nodes_[i]; }
  testing::SimWorld& world() { return world_; }
  testing::SimMachine* client_machine() { return client_; }
  std::unique_ptr<TestPeer> Connect(size_t node);

  // What follows is of another block.
  void NextBlock() { block_ = BlockId(block_.value() + kBlockIdStep); }
  // WRITE_BLOCK for the nodes of `chain`, to be sent to the first.
  hdfs::OpWriteBlockProto WriteOp(const std::vector<size_t>& chain,
                                  hdfs::OpWriteBlockProto::BlockConstructionStage stage = hdfs::OpWriteBlockProto::PIPELINE_SETUP_CREATE);
  // Connects to the first of `chain`, sends the operation and expects success.
  std::unique_ptr<TestPeer> OpenPipeline(const std::vector<size_t>& chain, const hdfs::OpWriteBlockProto& op);
  std::unique_ptr<TestPeer> OpenPipeline(const std::vector<size_t>& chain) { return OpenPipeline(chain, WriteOp(chain)); }
  // One packet of `data`.
  static std::string Frame(const std::string& data, uint64_t offset, int64_t seqno, bool sync = false);
  static std::string LastFrame(uint64_t length, int64_t seqno);
  // The acknowledgement of `seqno` with so many SUCCESS.
  static transfer::PipelineAck AllGood(int64_t seqno, size_t nodes);
  // Writes a whole block in packets of `packet` bytes and expects every acknowledgement.
  void WriteBlock(const std::vector<size_t>& chain, const std::string& data, size_t packet = 64 << 10);

  struct ReadResult {
    absl::Status status;  // Of the answer.
    uint64_t chunk_offset = 0;
    std::string bytes;   // Of the packets, from chunk_offset on.
    size_t packets = 0;  // With data.
  };
  hdfs::OpReadBlockProto ReadOp(uint64_t offset, uint64_t length);
  // Over `peer`; verifies checksums, numbers and offsets, and sends the verdict.
  ReadResult ReadOver(TestPeer* peer, const hdfs::OpReadBlockProto& op);
  ReadResult ReadBlock(size_t node, uint64_t offset, uint64_t length);
  void ExpectReplica(size_t node, ReplicaState state, const std::string& data);

  BlockId block_ = kBlock;
  GenerationStamp stamp_ = kStamp;
  std::string token_;

 private:
  void StopNodes();

  const int node_count_;
  testing::SimWorld world_;
  testing::SimMachine* client_;
  testing::SimProcess* client_process_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<TaskGroup> group_;
  std::vector<std::unique_ptr<TestNode>> nodes_;
};

}  // namespace cairn::datanode
